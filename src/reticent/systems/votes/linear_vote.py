"""``LinearVoteClassifier``: records vote for their label as far as they point the query's way,
perhaps beside public models.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.rows import in_blocks
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import exact_product, of_length, softmax
from reticent.systems.features import Features
from reticent.systems.public_reference import PublicReference
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import inverse_moments
from reticent.systems.votes.outputs import Columns
from reticent.systems.votes.query_votes import QueryVotes, need_public
from reticent.systems.votes.responses import Response, outlasted
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.voters import Voters
from reticent.training.public_space import INTERCEPT, LENGTH, RowMap, directions_of, share_of
from reticent.training.public_start import OFFSET_STEPS

BALLOT = 2.0**10
"""Grid steps between a record's largest and least vote."""

_BELOW = 1.0 - 2.0**-40
_QUERY_LENGTH = 2.0**20
_FINE = 2.0**30
_CLIPS_AT_ONCE = 16
_MOST_TRUST = 2.0**24

_PLAIN = 0.5
_BESIDE = ((1000.0, 1.0), (500.0, 0.99), (300.0, 0.95), (0.0, 0.8))
"""The largest number of records to one vote of noise, and the share of votes not clipped from there
on. Noise of that size hardly changes a label (docs/results/certified/beside-public.md).
"""


@with_settings
class LinearVoteClassifier(QueryVotes):
    """A record with features phi votes clip(<phi, u_x> / tau_x, -1, 1) for its label at query x.

    u_x is the query's feature vector times the inverse of the public second moments; tau_x is a
    quantile of |<phi, u_x>| over the public rows.

    With a ``PublicReference`` the records correct public models. The votes begin with kappa times
    the log odds that these give the query. A record votes with its residual e_y - p beside them,
    which is small where they are right. That is one Newton step from the public models, for
    each query, under the curvature of public rows. kappa follows from these, from the stated number
    of records and from the reference's weight.

    Guarantee:
        See ``QueryVotes``. *Why it holds beside public models.* A record's vote is its weight
        clip(s <phi, u_x> / tau_x, -1, 1) times its residual over s, the residual's spread.
        So no two labels' votes move apart by more than 1 (docs/votes.md, section 2).
        Weights, residuals and the public models' part are whole numbers that follow from the
        record, the query and public rows alone, and s <phi, u_x> is cut after the product.

    Args:
        epsilon, delta, classes, answers, response, counting, data_set: arguments of ``QueryVotes``.
        features: a feature map of ``ReleasedModel``, or a ``PublicReference``, for which ``fit``
            needs labelled public rows.
        ridge: added to the public second moments, as a share of their mean.
        clip_quantile: share of public rows whose vote is not clipped, in (0, 1]. Beside public
            models 1 keeps what few records know, and .8 bears ten times the noise. None for 0.5,
            or beside public models for .8 to 1, by the noise and the stated number of records.

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
        reticent.PublicReference: what the records correct.
        reticent.NoisyGradientClassifier: a model to publish.
        reticent.ConvexCertifiedClassifier: labels of a trained model.
    """

    features: Features | PublicReference | None = None  # type: ignore[assignment]
    ridge: float = 0.1
    clip_quantile: float | None = None

    _spreads: Array = learned()

    @override
    def check_settings(self) -> None:
        positive(self.ridge, name="ridge")
        if self.clip_quantile is not None:
            share_of(self.clip_quantile, name="clip_quantile")
        if isinstance(self.features, PublicReference) and self.features.records is None:
            raise InvalidParameter(
                "features, records=None: expected a public number, about that of the private "
                "records, which says how far they can be trusted beside public models"
            )

    @property
    def _unclipped(self) -> float:
        """Share of public rows whose vote is not clipped; from public numbers alone."""
        if self.clip_quantile is not None:
            return self.clip_quantile
        return self.clip_for(self.epsilon, self.delta, self.answers)

    def clip_for(self, epsilon: float, delta: float, answers: int) -> float:
        """Return the share of votes not clipped at that total of so many answers, once fitted."""
        return self._share(self._answering(epsilon, delta, answers))

    def _share(self, response: Response) -> float:
        """Return the share of votes not clipped where none is set."""
        if not isinstance(self.features, PublicReference):
            return _PLAIN
        stated = self._stated
        return next(share for least, share in _BESIDE if stated >= least * response.spread)

    @property
    def _stated(self) -> int:
        """The public number of records beside a ``PublicReference``; 0 where there is none."""
        if self._start is not None:
            return self._start.records
        return (isinstance(self.features, PublicReference) and self.features.records) or 0

    @property
    @override
    def _shaping(self) -> Features:
        if isinstance(self.features, PublicReference):
            return Features(schema=self.features.schema)
        return super()._shaping

    @property
    def _started(self) -> bool:
        return isinstance(self.features, PublicReference)

    @override
    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[Any, Array | None]:
        if not isinstance(self.features, PublicReference):
            return super()._space(row_map, columns, public_features, public_codes, labels)
        if public_features is None or public_codes is None:
            raise InvalidInput(
                "public_X, public_y: expected labelled public rows for the models of a "
                "PublicReference, got none"
            )
        [output] = labels.outputs
        space, self.held_out_ = self.features.start(public_features, public_codes, output.width)
        return space, space.points(public_features)

    @override
    def prepare(self, public: PublicRows | None) -> None:
        rows = need_public(public, what="directions and clips")
        self._public, self._spreads = self._ways(rows.points), np.ones(len(rows.points))
        bends = self._spreads
        if self._started:
            assert rows.codes is not None  # ``_space`` refused
            self._spreads = residual_spreads(self.held_out_, rows.codes)
            shares = softmax(self.held_out_)
            bends = (shares * (1.0 - shares)).mean(axis=1)
        curved = self._public * np.sqrt(bends)[:, None]
        self._inverse = inverse_moments(curved, curved.shape[1], ridge=self.ridge)

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """Return for each row how many records, or persons, could be taken away at least.

        Whichever they are, those that are left would still have the label of ``exact_predict``.
        The number is deterministic, and as private as the records.

        Args:
            X: shape (n, n_features_in_), public queries.

        Returns:
            Shape (n,), int64. Private.
        """
        return self._survived(X, 1)

    def poisoning(
        self, X: npt.ArrayLike, *, change: Literal["insert", "replace"] = "insert"
    ) -> Integers:
        """Return for each row how many records, or persons, would have to be slipped in or
        exchanged, less 1.

        That is the least number to get another label than that of ``exact_predict``.

        Args:
            X: shape (n, n_features_in_), public queries.
            change: "insert" or "replace".

        Returns:
            Shape (n,), int64. Private.
        """
        one_of(change, ("insert", "replace"), name="change")
        return self._survived(X, 1 if change == "insert" else 2)

    def _survived(self, X: npt.ArrayLike, changed: int) -> Integers:
        table = self.vote_table(X).astype(np.float64)
        return outlasted(table, changed * self.response_.moved(persons=self.by_person_))

    def _ways(self, points: Array) -> Array:
        size = self._inputs
        return directions_of(points[:, :size], intercept=INTERCEPT)

    @property
    def _inputs(self) -> int:
        """Coordinates of a point, without log probabilities after them."""
        space: Any = self.space_
        return int(space.space.dimension if self._started else space.dimension)

    @override
    def asked(self, queries: Array) -> Array:
        """Return of each query the direction u_x, whole numbers, its clip, and votes for each label
        that public models begin with, in steps of 1 / ``VOTE``.
        """
        directions = self._ways(queries) / LENGTH
        # bit-exact: the blocks have one shape, and a query's place in them is public.
        turned = in_blocks(lambda rows: rows @ self._inverse, directions)
        longest = np.maximum(np.abs(turned).max(axis=1, keepdims=True), 1e-300)
        ways = of_length(np.rint(turned / longest * _FINE), _QUERY_LENGTH)
        clips = in_blocks(self._clips, ways, block=_CLIPS_AT_ONCE)
        logs = self._logs(queries)
        return np.column_stack([ways, clips, np.rint(self._trust(turned, clips) * logs * VOTE)])

    def _trust(self, turned: Array, clips: Array) -> Array | float:
        """Return kappa of each query, shape (q, 1): votes for each unit of log odds.

        A Newton step of n records moves the log odds by sum (e_y - p) <phi, u_x> / n, where u_x is
        ``turned``. Votes are that sum over tau_x, of which cutting keeps the share of a normal
        variable that is not cut. Two labels' log odds bend half as much as each alone, K labels'
        (K - 1)/K as much.
        """
        if not isinstance(self.features, PublicReference):
            return 0.0
        labels, records = len(self.classes_), self.features.records or 0  # 0: it was refused
        kept = self.features.weight * records * self._unclipped * labels / (labels - 1)
        sizes = np.sqrt(np.square(turned).sum(axis=1, keepdims=True))
        taus = clips * sizes / (LENGTH * _QUERY_LENGTH)
        return np.asarray(np.minimum(kept / np.maximum(taus, 1e-300), _MOST_TRUST / labels))

    @override
    def opening(self, asked: Array) -> Array:
        return np.asarray(asked[:, self._inputs + 2 :])

    @override
    def ballots(self, voters: Voters) -> Array:
        if not self._started:
            return super().ballots(voters)
        return residual_ballots(self._logs(voters.points), voters.codes)

    @override
    def weights(self, voters: Voters, queries: Array) -> Array:
        own = self._ways(voters.points)
        if not self._started:
            return self._pointing(own, queries, np.ones(len(own)), VOTE)
        spreads = residual_spreads(self._logs(voters.points), voters.codes)
        return self._pointing(own, queries, spreads, VOTE / BALLOT)

    def _logs(self, points: Array) -> Array:
        """Return log probabilities of labels; zeros without public models."""
        if not self._started:
            return np.zeros((len(points), len(self.classes_)))
        return points[:, self._inputs :] / OFFSET_STEPS

    def _pointing(self, own: Array, queries: Array, spreads: Array, steps: float) -> Array:
        """Return how far records point each query's way, cut, in steps of 1 / ``steps``."""
        ways, clips = queries[:, : self._inputs + 1], queries[:, self._inputs + 1]
        pointing = exact_product(own, ways.T, bound=LENGTH * _QUERY_LENGTH)
        pointing *= spreads[:, None]
        return np.asarray(np.clip(np.rint(pointing * (steps / clips)), -steps, steps))

    def _clips(self, ways: Array) -> Array:
        """tau_x of each direction, shape (q, 1), from public rows."""
        seen = np.abs(exact_product(self._public, ways.T, bound=LENGTH * _QUERY_LENGTH))
        seen *= self._spreads[:, None]
        return np.asarray(np.maximum(np.quantile(seen, self._unclipped, axis=0), 1.0)[:, None])


def residual_spreads(offsets: Array, codes: Integers) -> Array:
    """Return how far a record's residual e_y - p reaches, from its largest to its least entry.

    It is in (0, 2): 1 - p_y and the largest p of another label.

    Args:
        offsets: shape (n, classes), log probabilities by public models, up to a constant.
        codes: shape (n,), places of labels.
    """
    others = _others(offsets, codes)
    return np.asarray(_total(others) + others.max(axis=1))


def residual_ballots(offsets: Array, codes: Integers) -> Array:
    """Return residuals e_y - p over their spread, whole numbers of steps of 1 / ``BALLOT``.

    **Guarantee.** The largest entry, that of the record's label, is exactly ``BALLOT`` above the
    least. Less its mean a row is no longer than ``BALLOT`` sqrt(1 - 1/K), the length of a whole
    vote for one of K labels. Each row follows from that record and public models, to the last bit.

    *Why the length.* Let a be the entry of the label and -b_l the others, in units of ``BALLOT``.
    Rounding only shortens the b_l, and a is set to 1 - max b, so that b_l >= 0 and t = a - sum b
    >= 0. With max b = 1 - a the squares add up to at most a^2 + (1 - a)(a - t) = a - t (1 - a), and
    t^2/K is taken off with the mean. From sum b <= (K - 1)(1 - a) follows a <= 1 - 1/K + t/K. Put
    into a (1 + t) - t - t^2/K, which grows with a, that is 1 - 1/K.

    Args:
        offsets, codes: arguments of ``residual_spreads``.

    Example:
        >>> residual_ballots(np.log([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1])).tolist()
        [[513.0, -511.0], [-511.0, 513.0]]
    """
    others = _others(offsets, codes)
    spread = _total(others) + others.max(axis=1)
    found = -np.trunc(others * (_BELOW * BALLOT / spread)[:, None])
    found[np.arange(len(codes)), codes] = BALLOT + found.min(axis=1)
    return np.asarray(found)


def _others(offsets: Array, codes: Integers) -> Array:
    """Return the probabilities of all labels but the record's own, whose place holds 0."""
    shares = softmax(offsets)
    shares[np.arange(len(codes)), codes] = 0.0
    return shares


def _total(shares: Array) -> Array:
    # bit-exact: labels in their order, whatever the number of rows.
    total = np.full(len(shares), 2.0**-60)  # so that no spread is 0
    for column in shares.T:
        total += column
    return total
