"""``QueryVotes``: a label for each public query, by a noisy sum of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.core.settings import learned, with_settings
from reticent.noise import Sampler, SeededSampler
from reticent.release.fits import DataUse, use_of
from reticent.release.paying import Drawn, Price
from reticent.release.prepaid import Prepaid
from reticent.release.system import PredictsByRelease, release
from reticent.systems.features import numbers_of
from reticent.systems.record_labels import Classes, record_labels
from reticent.systems.releasing_system import class_names
from reticent.systems.votes.cards import query_votes_card
from reticent.systems.votes.estimator import Given, PublicRows, VoteEstimator
from reticent.systems.votes.outputs import ClassOutput, Columns
from reticent.systems.votes.responses import Response, response_of
from reticent.systems.votes.sums import VOTE, centred_length, most_records, one_hot
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.tables.shards import Shards

_AT_ONCE = 2**25
"""Weights, one for each record and query, that are held at once."""


@with_settings
class QueryVotes(ClassifierMixin, PredictsByRelease, VoteEstimator):
    """The common part of the classifiers whose records vote on each query.

    Guarantee:
        All labels that one fitted classifier ever releases, at most ``answers``, are (epsilon,
        delta)-differentially private together. The queries are public, and may be chosen from
        earlier answers. Neighbours are as in ``ReleasedModel``. ``exact_predict`` is the owner's
        own, noise-free answer and is *not* private, nor is ``simulate``.

    Args:
        epsilon, delta: total of all answers. delta may be 0 with the response "stability".
        classes: the labels that there are, a public list, or "observed", which publishes them.
        answers: number of labels that will ever be released.
        response: "gaussian" (the largest noisy sum), "stability" (randomised response whose
            probability grows with the exact margin), or "auto": stability for one answer.
        features, counting, data_set: arguments of ``ReleasedModel``.

    Attributes:
        classes_: the labels, sorted.
        response_: response from exact sums to answers, with the cost of all of them.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.
    """

    answers: int
    classes: Classes
    response: str = "auto"

    classes_: npt.NDArray[Any] = learned()
    response_: Response = learned()
    _prepaid: Prepaid = learned()
    _data_use: DataUse | None = learned()
    _voters: Voters | ReadVoters = learned()

    def fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        persons: Sequence[Any] | None = None,
    ) -> Self:
        """Keep the private records, and settle the noise without looking at them.

        Args:
            X, y, public_X, public_y, persons: arguments of ``ReleasedModel.fit``.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is kept.
        """
        positive(self.epsilon, name="epsilon")
        probability(self.delta, name="delta")
        count(self.answers, name="answers")
        self.check_settings()
        fresh = copy(self)  # a fit that is refused leaves an earlier one, and its card, whole
        voters, public = fresh._prepare(Given(X, y, public_X, public_y, persons))
        fresh._data_use = use_of(
            numbers_of(fresh, X), data_set=self.data_set, estimator=self, booked=False
        )
        fresh.most_records_ = most_records(voters, fresh._added)
        fresh.response_ = fresh._answering(self.epsilon, self.delta, self.answers)
        fresh.prepare(public)
        fresh._keep(voters)
        fresh._prepaid = Prepaid(fresh.response_.event, queries=self.answers)
        self.__dict__ = fresh.__dict__
        return self

    @override
    def checked(self, X: npt.ArrayLike) -> Array:
        """Return public queries as points, shape (n, m).

        Raises:
            NotFittedYet, InvalidInput: the errors of ``release``.
        """
        self._check_fitted()
        return self._points(X)

    @override
    def price(self, inputs: Array) -> Price:
        """Return the cost of all answers that will ever be given, and their count."""
        words = f"{type(self).__name__}, {self.answers} answers, {self.response_.name}"
        return Price(
            self.response_.event, len(inputs), words, prepaid=self._prepaid, use=self._data_use
        )

    def simulate(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Release:
        """Answer as ``release`` does, with noise from a seed, times ``noise_scale``.

        It is for experiments, *not private*, and not counted.

        Args:
            X: queries, as ``release`` takes them.
            seed: seed of the noise, at least 0.
            noise_scale: n_here / n_private, so that noise has the effect that it will have on
                ``n_private`` records.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        scale = positive(noise_scale, name="noise_scale")
        return release(self, X, sampler=sampler, noise_scale=scale)

    @property
    def guarantee(self) -> Guarantee:
        """The cost of everything that this fitted classifier will ever release."""
        self._check_fitted()
        return self.response_.guarantee

    @property
    def remaining_(self) -> int:
        """The number of answers that may still be given."""
        self._check_fitted()
        return self._prepaid.remaining

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        self._check_fitted()
        details = (("answers at most", str(self.answers)), *self._card_details())
        return query_votes_card(self, details)

    def _check_fitted(self) -> None:
        if not hasattr(self, "response_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    @abstractmethod
    def check_settings(self) -> None:
        """Refuse constructor arguments out of their range."""

    @abstractmethod
    def prepare(self, public: PublicRows | None) -> None:
        """Settle what is learned from public rows alone."""

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

    @override
    def draw(self, inputs: Array, sampler: Sampler, *, noise_scale: float = 1.0) -> Drawn:
        """Return a label for each of the checked queries, which must be paid for."""
        places = self._noisy_scores(inputs, sampler, noise_scale).argmax(axis=1).astype(np.int64)
        withheld = np.zeros(len(places), dtype=np.bool_)
        return Drawn(class_names(places, self.classes_, withheld=withheld), withheld)

    def simulate_scores(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Array:
        """Return what ``simulate`` takes the largest of, shape (n, classes).

        These are noisy votes in records, less their mean. With the response "stability" they are 1
        for the label that is answered and 0 for others.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        scale = positive(noise_scale, name="noise_scale")
        return self._noisy_scores(self.checked(X), sampler, scale)

    def simulate_totals(
        self,
        X: npt.ArrayLike,
        *,
        totals: Sequence[tuple[float, float, int]],
        seeds: Sequence[int],
        noise_scale: float = 1.0,
    ) -> npt.NDArray[np.int64]:
        """Return places of the labels in ``classes_`` by ``simulate``, for each total and each
        seed.

        They have shape (totals, seeds, n). The records' votes are computed once for all of them.

        Args:
            X, noise_scale: arguments of ``simulate``.
            totals: epsilon, delta and number of answers, in place of the constructor's.
            seeds: seeds of the noise, each at least 0.
        """
        self._check_fitted()
        points, scale = self._points(X), positive(noise_scale, name="noise_scale")
        responses = [
            self._answering(
                positive(epsilon, name="epsilon"),
                probability(delta, name="delta"),
                count(answers, name="answers"),
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

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the label with most votes, without noise. Private: for the owner of the records,
        never to be sent.
        """
        self._check_fitted()
        sums = self.vote_table(X)
        return np.asarray(self.classes_[sums.argmax(axis=1)])

    def vote_table(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the exact votes of every label, shape (n, classes), without noise.

        They are private, for the owner of the records only. Tables of classifiers that were fitted
        on parts of the records, with the same public rows, add up to the table of one that was
        fitted on all of them. Public votes do not, since each has them. The records of a person
        belong into one part.
        """
        self._check_fitted()
        return self._tables(self._points(X), self.response_).astype(np.int64)

    @property
    def _bound(self) -> float:
        """The l2 norm of what one record or person moves in centred votes of a query."""
        return VOTE * centred_length(len(self.classes_))

    @property
    @override
    def _added(self) -> float:
        # A vote is centred by multiplying with the number of labels.
        return VOTE * len(self.classes_)

    @override
    def _answering(self, epsilon: float, delta: float, answers: int) -> Response:
        return response_of(
            self.response,
            epsilon=epsilon,
            delta=delta,
            answers=answers,
            classes=len(self.classes_),
            adjacency=self._adjacency,
            bound=self._bound,
        )

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("response", self.response_.name),
            ("in all answers together", self.response_.describe()),
        )

    @override
    def _keep(self, voters: Voters | ReadVoters) -> None:
        self._voters = voters

    def _noisy_scores(self, points: Array, sampler: Sampler, noise_scale: float) -> Array:
        table = self._tables(points, self.response_)
        return self.response_.scores(table, sampler=sampler, noise_scale=noise_scale)

    def _tables(self, points: Array, response: Response) -> Array:
        """Return exact sums of all records for some queries, shape (n, classes), whole numbers."""
        asked = self.asked(points)  # before blocks, whose sizes follow from private numbers
        table = response.opening(self.opening(asked))
        for voters in self._voters.blocks():
            most = max(1, _AT_ONCE // max(1, len(voters)))
            if voters.starts is not None:
                most = max(1, most // len(self.classes_))
            ballots = self.ballots(voters)
            for start in range(0, len(points), most):
                part = slice(start, start + most)
                table[part] += response.sums(voters, self.weights(voters, asked[part]), ballots)
        return table

    def asked(self, queries: Array) -> Array:
        """Return what ``weights`` takes of each query: the query itself, or a public function of it
        that is computed here, in blocks of a public size.

        Args:
            queries: shape (q, m), points.

        Returns:
            Shape (q, ...).
        """
        return queries

    def opening(self, asked: Array) -> Array:
        """Return public votes for every query, shape (q, classes), whole numbers in steps of 1 /
        ``VOTE``.

        They are what the table is without any record.

        Args:
            asked: result of ``asked``.
        """
        return np.zeros((len(asked), len(self.classes_)))

    def ballots(self, voters: Voters) -> Array:
        """Return what the weights of every record are multiplied by for each label, for
        ``Response.sums``.

        Each is from that record and public things alone, to the last bit.
        """
        return one_hot(voters.codes, len(self.classes_))

    @abstractmethod
    def weights(self, voters: Voters, queries: Array) -> Array:
        """Return the weight of every record for every query, shape (n, q), whole numbers.

        Times its ballots a weight is at most ``VOTE``. Each is from that record, that query and
        public things alone, to the last bit.
        """


def need_public(public: PublicRows | None, *, what: str) -> PublicRows:
    """Return ``public``, if there is any.

    Raises:
        InvalidInput: there is none.
    """
    if public is None:
        raise InvalidInput(f"public_X: expected public rows for {what}, got none")
    return public
