"""``LinearVoteClassifier``: records vote for their label as far as they point the query's way."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.rows import in_blocks
from reticent.core.settings import with_settings
from reticent.grids.whole_numbers import exact_product, of_length
from reticent.systems.features import Features
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import inverse_moments
from reticent.systems.votes.query_votes import QueryVotes, need_public
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.voters import Voters
from reticent.training.public_space import INTERCEPT, LENGTH, directions_of, share_of

_QUERY_LENGTH = 2.0**20
_FINE = 2.0**30
_CLIPS_AT_ONCE = 16


@with_settings
class LinearVoteClassifier(QueryVotes):
    """A record with features phi votes clip(<phi, u_x> / tau_x, -1, 1) for its label at query x.

    u_x is the query's feature vector times the inverse of the public second moments; tau_x is a
    quantile of |<phi, u_x>| over the public rows.

    Args:
        epsilon, delta, classes, answers, response, features, counting, data_set: see
            ``QueryVotes``.
        ridge: added to the public second moments, as a share of their mean.
        clip_quantile: share of public rows whose vote is not clipped, in (0, 1].

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> vote = LinearVoteClassifier(epsilon=1.0, delta=0.0, classes=(0, 1), answers=1)
        >>> len(vote.fit(X[:400], y[:400], public_X=X[400:]).release(X[:1]).values)
        1

    References:
        - Papernot et al. (2017), "Semi-supervised knowledge transfer for deep learning from private
          training data", arXiv:1610.05755, noisy votes on public queries.
        - Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
          prediction & estimation in unbounded domain", arXiv:1803.02596, regression from moments,
          of which a vote is one record's part.
        - The sensitivity: docs/votes.md, section 2.

    See Also:
        reticent.MomentClassifier: the same model, to publish.
        reticent.CertifiedClassifier: labels of a trained model.
    """

    ridge: float = 0.1
    clip_quantile: float = 0.5

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``QueryVotes.settings_grid``."""
        dimensions = sorted({min(features, size) for size in (30, 200)})
        return [
            {"features": Features(components=kept), "ridge": ridge, "clip_quantile": quantile}
            for kept in dimensions
            for ridge in (0.1, 1.0)
            for quantile in (0.2, 0.6)
        ]

    @override
    def check_settings(self) -> None:
        positive(self.ridge, name="ridge")
        share_of(self.clip_quantile, name="clip_quantile")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        rows = need_public(public, what="directions and clips")
        self._public = directions_of(rows.points, intercept=INTERCEPT)
        self._inverse = inverse_moments(self._public, self._public.shape[1], ridge=self.ridge)

    @override
    def asked(self, queries: Array) -> Array:
        """Return the direction u_x of each query, whole numbers, and its clip, shape (q, m + 2)."""
        directions = directions_of(queries, intercept=INTERCEPT) / LENGTH
        # bit-exact: the blocks have one shape, and a query's place in them is public.
        turned = in_blocks(lambda rows: rows @ self._inverse, directions)
        longest = np.maximum(np.abs(turned).max(axis=1, keepdims=True), 1e-300)
        ways = of_length(np.rint(turned / longest * _FINE), _QUERY_LENGTH)
        return np.column_stack([ways, in_blocks(self._clips, ways, block=_CLIPS_AT_ONCE)])

    @override
    def weights(self, voters: Voters, queries: Array) -> Array:
        ways, clips = queries[:, :-1], queries[:, -1]
        own = directions_of(voters.points, intercept=INTERCEPT)
        pointing = exact_product(own, ways.T, bound=LENGTH * _QUERY_LENGTH)
        return np.asarray(np.clip(np.rint(pointing * (VOTE / clips)), -VOTE, VOTE))

    def _clips(self, ways: Array) -> Array:
        """tau_x of each direction, shape (q, 1), from public rows."""
        seen = np.abs(exact_product(self._public, ways.T, bound=LENGTH * _QUERY_LENGTH))
        return np.asarray(np.maximum(np.quantile(seen, self.clip_quantile, axis=0), 1.0)[:, None])
