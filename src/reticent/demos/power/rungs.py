"""What servers make of a release and of simple methods at the same guarantee: accuracy, balanced
accuracy, AUC and nats of each.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.demos.power.baselines import clear_columns, raw_columns, raw_vector
from reticent.noise import SeededSampler
from reticent.systems.power.channels import randomised_response
from reticent.systems.power.protection import LARGEST_SHARED_RADIUS
from reticent.systems.power.scoring import prediction_scores
from reticent.systems.power.servers import Server, train_server
from reticent.tables.schema import TabularSchema

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

OURS = "ours"
RESPONSE = "booster + randomised response, at prevalence"
SCORES = ("accuracy", "balanced_accuracy", "auc", "information")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rows that every method is fitted, trained and scored on.

    Attributes:
        schema: public.
        public, private, held_out: encoded rows.
        public_labels, private_labels, held_out_labels: their labels.
        seed: of servers and of the baselines' noise.
    """

    schema: TabularSchema
    public: Array
    private: Array
    held_out: Array
    public_labels: Labels
    private_labels: Labels
    held_out_labels: Labels
    seed: int

    def scores(
        self,
        released: Array,
        tested: Array,
        *,
        epsilon: float,
        radius: float | None,
        channel: Array | None,
    ) -> dict[str, dict[str, float]]:
        """Each method's four scores on held-out rows, by name, ours first.

        Args:
            released, tested: our releases of private and held-out rows.
            epsilon, radius: the guarantee that every method has.
            channel: of our release, where it has one.
        """
        name = "boosted" if channel is None else "channel"
        server = train_server(name, released, self.private_labels, seed=self.seed, channel=channel)
        found = {OURS: self._scores(server, tested), RESPONSE: self._response(epsilon)}
        for rung, (private, held_out) in self._columns(epsilon, radius).items():
            server = train_server("boosted", private, self.private_labels, seed=self.seed)
            found[rung] = self._scores(server, held_out)
        return found

    @cached_property
    def _booster(self) -> Any:
        return HistGradientBoostingClassifier(
            learning_rate=0.05, max_leaf_nodes=8, random_state=self.seed
        ).fit(self.public, self.public_labels)

    def _response(self, epsilon: float) -> dict[str, float]:
        """Randomised response on the label whose probability exceeds its share most."""
        shares = np.bincount(self.public_labels) / len(self.public_labels)
        channel = randomised_response(len(shares), epsilon=epsilon)
        sampler, sides = SeededSampler(self.seed), []
        for rows in (self.private, self.held_out):
            named = (self._booster.predict_proba(rows) / shares).argmax(axis=1)
            sides.append(np.eye(len(shares))[sampler.categorical(channel[named])])
        server = train_server(
            "channel", sides[0], self.private_labels, seed=self.seed, channel=channel
        )
        return self._scores(server, sides[1])

    def _columns(self, epsilon: float, radius: float | None) -> dict[str, tuple[Array, Array]]:
        """Both sides of every release of columns at this guarantee."""
        both, seed = (self.private, self.held_out), self.seed

        def sides(release: Any) -> tuple[Array, Array]:
            return release(both[0], seed), release(both[1], seed + 1)

        found = {
            "raw columns": sides(
                lambda rows, seed: raw_columns(self.schema, rows, epsilon=epsilon, seed=seed)
            )
        }
        if radius is None:
            return found
        found["raw columns, one noise vector"] = sides(
            lambda rows, seed: raw_vector(rows, epsilon=epsilon, radius=radius, seed=seed)
        )
        if radius <= LARGEST_SHARED_RADIUS:
            found["categories in clear + noise"] = sides(
                lambda rows, seed: clear_columns(
                    self.schema, rows, epsilon=epsilon, radius=radius, seed=seed
                )
            )
        return found

    def _scores(self, server: Server, tested: Array) -> dict[str, float]:
        right = (self.held_out_labels[:, None] == server.classes).astype(np.float64)
        found = prediction_scores(server.predict_proba(tested), right, shares=server.shares)
        return asdict(found)
