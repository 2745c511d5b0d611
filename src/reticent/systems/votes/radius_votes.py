"""``RadiusVotesClassifier``: the records within a public radius of the query vote."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter
from reticent.core.rows import in_blocks
from reticent.core.settings import with_settings
from reticent.grids.whole_numbers import exact_product
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.features import Features
from reticent.systems.votes.query_votes import QueryVotes, need_public
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.voters import Voters
from reticent.training.public_space import REACH, UNIT, share_of

Array = npt.NDArray[np.float64]

_LIMITS_AT_ONCE = 16


@with_settings
class RadiusVotesClassifier(QueryVotes):
    """Every record within a public radius of the query has one vote for its label.

    Args:
        epsilon, delta, classes, answers, response, features, counting, data_set: see
            ``QueryVotes``.
        share: of the public rows that lie within the radius of a query, in (0, 1]; so every query
            has a radius of its own, from public rows.
        radius: one radius for all queries in place of ``share``, in units of the root mean square
            length of public rows (of the box, without public rows); None where ``share`` is meant.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> votes = RadiusVotesClassifier(epsilon=2.0, delta=1e-5, classes=range(10), answers=5)
        >>> len(votes.fit(X[:1300], y[:1300], public_X=X[1300:]).release(X[1300:1305]).values)
        5

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, votes of neighbours on public queries.
        - Why a vote within a radius depends on no other record: docs/votes.md, section 4.

    See Also:
        reticent.LinearVoteClassifier: votes by a linear model.
        reticent.IndividualKNNClassifier: any number of answers.
        reticent.PrivateKNNClassifier: the nearest records of a sample.
        reticent.CellsClassifier: a model to publish.
    """

    share: float | None = 0.02
    radius: float | None = None

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``QueryVotes.settings_grid``."""
        dimensions = sorted({min(features, size) for size in (10, 40)})
        return [
            {"features": Features(components=kept, whitening=0.0), "share": share}
            for kept in dimensions
            for share in (0.005, 0.02, 0.08, 0.2)
        ]

    @override
    def check_settings(self) -> None:
        if (self.share is None) == (self.radius is None):
            raise InvalidParameter(
                f"share={self.share!r}, radius={self.radius!r}: expected one of them, None for the "
                "other"
            )
        if self.share is not None:
            share_of(self.share, name="share")
        if self.radius is not None:
            positive(self.radius, name="radius")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        self._public = None
        if self.share is not None:
            self._public = need_public(public, what="radii (or give radius)").points

    @override
    def asked(self, queries: Array) -> Array:
        """Return each query, and the largest squared distance of its votes, shape (q, m + 1)."""
        return np.column_stack([queries, in_blocks(self._limits, queries, block=_LIMITS_AT_ONCE)])

    @override
    def weights(self, voters: Voters, queries: Array) -> Array:
        return np.where(_squares(voters.points, queries[:, :-1]) <= queries[:, -1], VOTE, 0.0)

    def _limits(self, queries: Array) -> Array:
        """Shape (q, 1), from public things alone."""
        if self._public is None or self.share is None:
            assert self.radius is not None
            return np.full((len(queries), 1), np.floor((self.radius * UNIT) ** 2))
        nearest = max(1, round(self.share * len(self._public)))
        distances = np.partition(_squares(self._public, queries), nearest - 1, axis=0)
        return np.asarray(distances[nearest - 1])[:, None]


def _squares(points: Array, queries: Array) -> Array:
    """Squared distances, shape (n, q), exact."""
    bound = 4.0 * REACH * REACH * points.shape[1]
    products = exact_product(points, queries.T, bound=bound)
    own, asked = (np.square(rows).sum(axis=1) for rows in (points, queries))
    return np.asarray(own[:, None] + asked - 2.0 * products)
