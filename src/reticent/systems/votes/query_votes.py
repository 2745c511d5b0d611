"""``QueryVotes``: classifiers that answer each public query by a noisy sum of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from typing_extensions import override

from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Receipt, Release
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger
from reticent.noise import Sampler, SeededSampler, release_sampler
from reticent.systems.prepaid_answers import PrepaidAnswers
from reticent.systems.record_labels import Classes, record_labels
from reticent.systems.releasing_system import with_class_names
from reticent.systems.streaming import ReleasesStreams
from reticent.systems.votes.cards import query_votes_card
from reticent.systems.votes.estimator import PublicRows, VoteEstimator
from reticent.systems.votes.outputs import ClassOutput, Columns
from reticent.systems.votes.responses import Response, response_of
from reticent.systems.votes.sums import VOTE, check_exact
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.tables.frames import framed
from reticent.tables.shards import Shards

Array = npt.NDArray[np.float64]

_AT_ONCE = 2**25
"""Weights, one for each record and query, that are held at once."""


class QueryVotes(ReleasesStreams, ClassifierMixin, VoteEstimator):
    """What the classifiers share whose records vote on each query.

    Guarantee:
        All labels that one fitted classifier ever releases, at most ``answers``, are (epsilon,
        delta)-differentially private together. The queries are public, and may be chosen from
        earlier answers. Neighbours are as in ``ReleasedModel``. ``predict`` is the owner's own,
        noise-free answer and is *not* private, nor is ``simulate``.

    Args:
        epsilon, delta: of the total of all answers; delta may be 0 with the response "stability".
        classes: the labels that there are, a public list; or "observed", which publishes them.
        answers: how many labels will ever be released.
        response: "gaussian" (the largest noisy sum), "stability" (randomised response whose
            probability grows with the exact margin), or "auto": stability for one answer.
        feature_map, feature_range, components, whitening, counting, data_set, random_state: see
            ``ReleasedModel``.

    Attributes:
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.
    """

    classes: Classes
    answers: int
    response: str

    classes_: npt.NDArray[Any]
    response_: Response
    _voters: Voters | ShardedVoters
    _prepaid: PrepaidAnswers

    @override
    def _read(self, y: npt.ArrayLike | None, rows: int) -> tuple[Columns, npt.NDArray[np.int64]]:
        known, codes = record_labels(y, rows, self.classes)
        return Columns((ClassOutput(known),), several=False), codes

    @override
    def _keep_columns(self, columns: Columns) -> None:
        super()._keep_columns(columns)
        (output,) = columns.outputs
        assert isinstance(output, ClassOutput)
        self.classes_ = output.classes

    def fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Self:
        """Keeps the private records, and settles the noise without looking at them.

        Args:
            X, y, public_X, public_y, keys: as in ``ReleasedModel.fit``.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is kept.
        """
        positive(self.epsilon, name="epsilon")
        probability(self.delta, name="delta")
        count(self.answers, name="answers")
        self._check_settings()
        fresh = copy(self)  # a fit that is refused leaves an earlier one, and its card, whole
        voters, public = fresh._prepare(X, y, public_X, public_y, keys)
        # A vote is centred by multiplying with the number of labels.
        check_exact(voters, VOTE * len(fresh.classes_))
        response = response_of(
            self.response,
            epsilon=self.epsilon,
            delta=self.delta,
            answers=self.answers,
            classes=len(fresh.classes_),
            adjacency=fresh._adjacency,
        )
        fresh._before(public)
        fresh._voters, fresh.response_ = voters, response
        fresh._prepaid = PrepaidAnswers(response.event, answers=self.answers)
        self.__dict__ = fresh.__dict__
        return self

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        sampler: str = "exact",
    ) -> Release:
        """A label for each public query, within the one total; noise from the operating system.

        With a ledger *all answers* are charged before the first, once; later calls draw on that
        charge and are counted in the ledger.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``; public.
            ledger, scope: where the answers are booked; both from the first call on, or neither.
            sampler: "exact" or "opendp", see docs/noise.md.

        Returns:
            ``values`` (labels), ``withheld`` (none is) and ``receipt``, whose guarantee is that of
            all answers.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        self._check_fitted()
        points, source = self._points(X), release_sampler(sampler)
        self._prepaid.take(len(points), ledger=ledger, scope=scope)
        release = self._labelled(self._scores(points, source, 1.0), source, self._prepaid)
        self._prepaid.commit(release.receipt.identifier)
        return framed(release, X, ("label",))

    def simulate(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Release:
        """As ``release`` with noise from a seed, times ``noise_scale``: for experiments, *not
        private*, and not counted.

        Args:
            X: as in ``release``.
            seed: at least 0.
            noise_scale: n_here / n_private, so that noise has the effect that it will have on
                ``n_private`` records.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        release = self._labelled(self._simulated(X, sampler, noise_scale), sampler, None)
        return framed(release, X, ("label",))

    def simulate_scores(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Array:
        """What ``simulate`` takes the largest of, shape (n, classes): noisy votes in records, less
        their mean; with the response "stability" 1 for the label that is answered and 0 for others.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        return self._simulated(X, sampler, noise_scale)

    def simulate_totals(
        self,
        X: npt.ArrayLike,
        *,
        totals: Sequence[tuple[float, float, int]],
        seeds: Sequence[int],
        noise_scale: float = 1.0,
    ) -> npt.NDArray[np.int64]:
        """Places of the labels in ``classes_`` as by ``simulate``, for each total and each seed:
        shape (totals, seeds, n). The records' votes are computed once for all of them.

        Args:
            X, noise_scale: as in ``simulate``.
            totals: epsilon, delta and number of answers, in place of the constructor's.
            seeds: of the noise, each at least 0.
        """
        self._check_fitted()
        points, scale = self._points(X), positive(noise_scale, name="noise_scale")
        responses = [
            response_of(
                self.response,
                epsilon=positive(epsilon, name="epsilon"),
                delta=probability(delta, name="delta"),
                answers=count(answers, name="answers"),
                classes=len(self.classes_),
                adjacency=self._adjacency,
            )
            for epsilon, delta, answers in totals
        ]
        samplers = [
            [SeededSampler(count(seed, name="seed", minimum=0)) for seed in seeds] for _ in totals
        ]
        found = np.empty((len(totals), len(seeds), len(points)), dtype=np.int64)
        tables: dict[str, Array] = {}  # responses of one name differ in their noise alone
        for place, response in enumerate(responses):
            if response.name not in tables:
                tables[response.name] = self._tables(points, response)
            table = tables[response.name]
            for draw, sampler in enumerate(samplers[place]):
                scores = response.scores(table, sampler=sampler, noise_scale=scale)
                found[place, draw] = scores.argmax(axis=1)
        return found

    @classmethod
    @abstractmethod
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedModel.settings_grid``; all counts are shares of the records or of the
        public rows.
        """

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The label with most votes, without noise. Private: for the owner of the records only."""
        self._check_fitted()
        sums = self.vote_table(X)
        return np.asarray(self.classes_[sums.argmax(axis=1)])

    def vote_table(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The exact votes of every label, shape (n, classes), without noise. Private: for the owner
        of the records only.

        Tables of classifiers that were fitted on parts of the records, with the same public rows,
        add up to the table of one that was fitted on all of them; the records of a person belong
        into one part.
        """
        self._check_fitted()
        return self._tables(self._points(X), self.response_).astype(np.int64)

    @property
    def guarantee(self) -> Guarantee:
        """Cost of everything that this fitted classifier will ever release."""
        self._check_fitted()
        return self.response_.guarantee

    @property
    def remaining_(self) -> int:
        """Answers that may still be given."""
        self._check_fitted()
        return self._prepaid.remaining

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        self._check_fitted()
        return query_votes_card(
            self,
            (
                ("answers at most", str(self.answers)),
                ("response", self.response_.name),
                ("in all answers together", self.response_.describe()),
            ),
        )

    def _simulated(self, X: npt.ArrayLike, sampler: Sampler, noise_scale: float) -> Array:
        self._check_fitted()
        return self._scores(self._points(X), sampler, positive(noise_scale, name="noise_scale"))

    def _scores(self, points: Array, sampler: Sampler, noise_scale: float) -> Array:
        table = self._tables(points, self.response_)
        return self.response_.scores(table, sampler=sampler, noise_scale=noise_scale)

    def _tables(self, points: Array, response: Response) -> Array:
        """Exact sums of all records for some queries, shape (n, classes), whole numbers."""
        table = np.zeros((len(points), len(self.classes_)))
        for voters in self._voters.blocks():
            most = max(1, _AT_ONCE // max(1, len(voters)))
            if voters.starts is not None:
                most = max(1, most // len(self.classes_))
            for start in range(0, len(points), most):
                part = slice(start, start + most)
                table[part] += response.sums(voters, self._weights(voters, points[part]))
        return table

    def _labelled(self, scores: Array, sampler: Sampler, prepaid: PrepaidAnswers | None) -> Release:
        booked = "" if prepaid is None else prepaid.booked
        position, digest = prepaid.place if prepaid is not None and booked else (0, "")
        receipt = Receipt(
            mechanism=f"{type(self).__name__}, {self.answers} answers, {self.response_.name}",
            guarantee=self.response_.guarantee,
            answers=len(scores),
            bundle="",
            certificate="none",
            sampler=sampler.name,
            seeded=sampler.seeded,
            booked=booked,
            position=position,
            digest=digest,
        )
        labels = scores.argmax(axis=1).astype(np.int64)
        withheld = np.zeros(len(scores), dtype=np.bool_)
        return with_class_names(Release(labels, withheld, receipt), self.classes_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "response_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    @abstractmethod
    def _check_settings(self) -> None:
        """Refuses constructor arguments out of their range."""

    @abstractmethod
    def _before(self, public: PublicRows | None) -> None:
        """What is learned from public rows alone."""

    @abstractmethod
    def _weights(self, voters: Voters, queries: Array) -> Array:
        """Weight of every record for every query, shape (n, q), whole numbers of at most ``VOTE``
        in magnitude; each from that record, that query and public things alone, to the last bit.
        """


def need_public(public: PublicRows | None, *, what: str) -> PublicRows:
    """``public``, if there is any.

    Raises:
        InvalidInput: there is none.
    """
    if public is None:
        raise InvalidInput(f"public_X: expected public rows for {what}, got none")
    return public
