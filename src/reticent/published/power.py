"""The Power Mechanism as printed: embeddings of the rows whose density-smoothness score is small.
*Not private.*
"""

from __future__ import annotations

import math
from dataclasses import asdict
from secrets import token_hex
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, positive, probability
from reticent.core.guarantees import Adjacency, Neighborhood, Replace
from reticent.core.norms import Norm
from reticent.core.seeds import training_generator
from reticent.core.settings import learned, with_settings
from reticent.noise import Sampler
from reticent.published.density import KernelDensity, bandwidth
from reticent.published.power_network import (
    PowerConfig,
    PowerNetwork,
    PowerSteps,
    PowerTraining,
    per_sample_epsilon,
)
from reticent.published.research import Account, Answers, PublishedSystem, WorstPair
from reticent.release.bundle import Bundle
from reticent.systems.record_labels import OBSERVED, record_labels
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent


@with_settings
class PublishedPowerEncoder(PublishedSystem):
    """Algorithm 1 of the Power Mechanism paper, whose epsilon is a score of the population's
    density.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". Given x, the release is a single
        point, so two different records are told apart with certainty by anyone who holds the
        encoder (``papers.power.inversion``). The row itself decides whether it is released. The
        training rows, whose density estimate decides the scores, are not protected.

    Args:
        epsilon: the paper's epsilon, above 0. Rows with a larger score are withheld.
        alpha: the paper's delta, one minus the confidence of the density's interval, above 0.
        schema: the public description of rows.
        training: settings of the encoder. None for the paper's.
        bandwidth_factor: multiple of Scott's bandwidth, above 0. In 30 columns that bandwidth is
            far below the distance of two rows, and everything is withheld at epsilon 1. A factor of
            10 answers nearly every row of breast cancer.
        density_rows: the largest number of training rows that become centers of the density
            estimate, from 2.
        random_state: seed of training.

    Attributes:
        training_: networks and loss curves.
        density_: estimate of the training rows' density.
        classes_: labels seen in ``fit``.
        n_features_in_: columns of the table.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> encoder = PublishedPowerEncoder(
        ...     epsilon=4.0, alpha=0.05, schema=TabularSchema.numbers(4, 0.0, 8.0),
        ...     training=PowerConfig(steps=2), random_state=0,
        ... ).fit(X, y)
        >>> encoder.transform(X).shape, encoder.guarantee.kind.value
        ((150, 4), 'no differential privacy')

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, algorithm 1.

    See Also:
        reticent.PowerEncoder: embeddings of table rows that are released with a proof.
    """

    epsilon: float
    alpha: float
    schema: TabularSchema
    training: PowerConfig | None = None
    bandwidth_factor: float = 1.0
    density_rows: int = 20_000
    random_state: int | np.random.RandomState | None = None

    training_: PowerTraining = learned()
    training_config_: PowerConfig = learned()
    density_: KernelDensity = learned()

    mechanism_: ClassVar[None] = None
    """Nothing is drawn."""

    stated_adjacency: ClassVar[Adjacency] = Replace(1)

    name: ClassVar[str] = "power release, as published"
    source: ClassVar[str] = "Vepakomma and Ponkshe (2025), arXiv:2510.05581"

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, report: Report = silent) -> Self:
        """Train on the rows that are to be released, as in the paper.

        Args:
            X: shape (n, columns), as the schema says.
            y: shape (n,), labels that embeddings should keep.
            report: a callback that is told after every step.

        Raises:
            InvalidInput, InvalidParameter: rows or settings do not fit. Nothing is trained then.
        """
        _ = self.stated()
        factor = positive(self.bandwidth_factor, name="bandwidth_factor")
        most = count(self.density_rows, name="density_rows", minimum=2)
        table = self.schema.rows(X, name="X")
        rows = self.schema.encode(table)
        self.classes_, labels = record_labels(y, len(rows), OBSERVED)
        random = training_generator(self.random_state)
        order, seed = random.permutation(len(rows)), int(random.randint(2**31 - 1))
        config = PowerConfig(seed=seed) if self.training is None else self.training
        self.training_config_ = config
        rows, labels = rows[order], labels[order]
        centers = rows[:most].astype(np.float32)
        self.density_ = KernelDensity(centers, factor * bandwidth(centers))
        with torch.random.fork_rng(devices=[]):
            self.training_ = PowerSteps(rows, labels, config, density=self.density_).run(report)
        self.n_features_in_ = table.shape[1]
        self.serial_ = token_hex(16)
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return embeddings, shape (n, d), with NaN in rows whose score is above ``epsilon``."""
        return self.released(self.checked(X))

    def points(self, rows: Array) -> Array:
        """Return checked rows: distances are measured between these."""
        return rows

    @property
    def within(self) -> Neighborhood:
        """Encoded rows at l2 distance 1 at most, which the stated epsilon is about."""
        return Neighborhood(Norm.L2, 1.0, "encoded rows")

    def released(self, rows: Array) -> Array:
        """Return ``transform`` of encoded rows, shape (n, d)."""
        withheld = ~(self._scores(rows) <= self.epsilon)
        return np.where(withheld[:, None], np.nan, self.training_.network.embed(rows))

    def embed(self, X: npt.ArrayLike) -> Array:
        """Return embeddings, shape (n, d), whatever the score of a row."""
        return self.training_.network.embed(self.checked(X))

    def scores(self, X: npt.ArrayLike) -> Array:
        """Return the paper's per-sample epsilon, shape (n,)."""
        return self._scores(self.checked(X))

    @override
    def stated(self) -> Account:
        return Account(
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=probability(self.alpha, name="alpha", allow_zero=False),
            reason="Of Lipschitz privacy, for rows at l2 distance 1 whose score is at most that. "
            "Delta is one minus the confidence of the density's interval.",
        )

    @override
    def spent(self) -> Account:
        return Account(
            epsilon=math.inf,
            reason="Given the row the release is one point, and the map has an inverse.",
        )

    @override
    def worst_pair(self) -> WorstPair:
        return WorstPair(
            description="Any two rows that are released, whatever their distance: their embeddings "
            "differ, and nothing is random.",
            loss=math.inf,
        )

    @override
    def answer(self, X: npt.ArrayLike, *, sampler: Sampler) -> Answers:
        """Return ``transform``. Nothing is drawn."""
        values = self.transform(X)
        return Answers(values, np.asarray(np.isnan(values).all(axis=1)))

    @override
    def _content(self) -> tuple[dict[str, Any], Arrays]:
        network, config = self.training_.network, self.training_config_
        settings = {
            **{name: getattr(self, name) for name in _NUMBERS},
            "schema": self.schema.to_dict(),
            "training": asdict(config),
            "bandwidth": self.density_.bandwidth,
        }
        weights = {name: value.numpy() for name, value in network.state_dict().items()}
        return settings, {**weights, "centers": self.density_.centers}

    @classmethod
    @override
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        stored, arrays = bundle.settings, dict(bundle.arrays)
        schema = TabularSchema.from_dict(stored["schema"])
        config = PowerConfig(**stored["training"])
        numbers = {name: stored[name] for name in _NUMBERS}
        found = cls(**numbers, schema=schema, training=config)
        centers = arrays.pop("centers")
        network = PowerNetwork(schema.dimension, config.hidden, config.power)
        network.load_state_dict(
            {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        )
        found.training_ = PowerTraining(network.eval(), torch.nn.Sequential(), (), ())
        found.training_config_ = config
        found.density_ = KernelDensity(centers, stored["bandwidth"])
        return found

    @override
    def checked(self, X: npt.ArrayLike) -> Array:
        """Return encoded rows, shape (n, d)."""
        self._check_fitted()
        return self.schema.encode(self.schema.rows(X, name="X"))

    def _scores(self, rows: Array) -> Array:
        return per_sample_epsilon(self.training_.network, self.density_, rows, alpha=self.alpha)


_NUMBERS = ("epsilon", "alpha", "bandwidth_factor")
