"""``PrivateKNNClassifier``: labels for public queries from private records, with one total for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

from reticent.accounting.ledger import Ledger
from reticent.accounting.scopes import Scope
from reticent.core.checks import probability
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet, UnknownName
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeCard
from reticent.core.releases import Receipt, Release
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.neighbours.search import ENGINES
from reticent.noise import Sampler, SecureSampler, SeededSampler
from reticent.systems.booking import check_bookable
from reticent.systems.private_knn.cards import private_knn_card
from reticent.systems.private_knn.inputs import checked_records, feature_map_of, input_rows, protected
from reticent.systems.private_knn.plan import UNANSWERED, KnnDesk, KnnPlan
from reticent.systems.releasing_system import inputs_as_fitted, with_class_names
from reticent.training.features import FeatureMap

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PrivateKNNClassifier(ClassifierMixin, BaseEstimator):
    """Releases labels for public queries by the noisy votes of their nearest private records.

    Guarantee:
        All labels that one fitted classifier ever releases, withheld answers included, are (epsilon, delta)-differentially
        private together, for two sets of private records one of which has one record more; with ``keys``, all records of one key
        more. ``guarantee`` is that total, ``card()`` says what is assumed, docs/private-knn.md has the proof. The queries are
        public. ``predict`` is the owner's own, noise-free answer and is *not* private.

    Args:
        epsilon: of the total, above 0.
        delta: of the total, in (0, 1).
        queries: how many queries will ever be asked.
        answers: how many labels will ever be released; None for as many as queries.
        neighbours: k, how many included records vote.
        sampling_probability: with which every record is included, afresh for every query and step.
        threshold: votes, noise included, that the largest count of a query must reach before it is answered; None to answer all.
        sigma_votes: noise of every count, in votes; None for the least that the total allows.
        sigma_screening: noise of the largest count, in votes; None where ``sigma_votes`` is.
        noise_ratio: sigma_screening / sigma_votes where they are chosen.
        shared_subsample: whether screening and vote of a query see one sample; it costs more.
        feature_map: "identity", "hog" or "upright hog" (pictures; the second for handwriting), a ``FeatureMap``, or your own
            torch module that was trained on public data only.
        classes: the labels that there are, which are public; None takes those that occur and *assumes* that they are public.
        data_set: what the private records are called, by their owner; the same name whenever they are the same, since a ledger
            charges every fit on them to it. None books in no ledger.
        engine: "numpy" or "faiss"; the answers are the same.

    Attributes:
        plan_: noise and total.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> classifier = PrivateKNNClassifier(
        ...     epsilon=2.0, delta=1e-5, queries=20, neighbours=20, sampling_probability=0.5, classes=range(10)
        ... ).fit(X[:1700], y[:1700])
        >>> release = classifier.release(X[1700:1710])
        >>> len(release.released), classifier.remaining_
        (10, 10)
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    plan_: KnnPlan
    desk_: KnnDesk
    booked_: str

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        queries: int,
        answers: int | None = None,
        neighbours: int = 300,
        sampling_probability: float = 0.15,
        threshold: float | None = None,
        sigma_votes: float | None = None,
        sigma_screening: float | None = None,
        noise_ratio: float = 3.0,
        shared_subsample: bool = False,
        feature_map: str | FeatureMap | nn.Module = "identity",
        classes: Sequence[Any] | None = None,
        data_set: str | None = None,
        engine: str = "numpy",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.queries = queries
        self.answers = answers
        self.neighbours = neighbours
        self.sampling_probability = sampling_probability
        self.threshold = threshold
        self.sigma_votes = sigma_votes
        self.sigma_screening = sigma_screening
        self.noise_ratio = noise_ratio
        self.shared_subsample = shared_subsample
        self.feature_map = feature_map
        self.classes = classes
        self.data_set = data_set
        self.engine = engine

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, keys: Sequence[Any] | None = None) -> Self:
        """Keeps the private records, and settles the noise without looking at them.

        Args:
            X: shape (n, features) or (n, height, width) or (n, channels, height, width).
            y: shape (n,), labels.
            keys: one per record, equal for the records of one person. A person then counts as one: only the nearest record of
                each may vote, and the guarantee covers all of them. None where every record is a person's only one.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is kept.
            CalibrationFailed: no noise meets the total, or the given noise does not.
        """
        inputs, shape = input_rows(X)
        classes, codes = checked_records(inputs, y, keys, self.classes)
        if self.engine not in ENGINES:
            raise UnknownName(f"engine={self.engine!r}: expected one of {', '.join(ENGINES)}")
        feature_map = feature_map_of(self.feature_map, shape)
        self._settle(len(classes), protected(self.data_set, keys))
        self.feature_map_ = feature_map
        self.features_ = feature_map.features(inputs)
        self.codes_ = codes
        self.keys_ = None if keys is None else list(keys)
        self.classes_ = classes
        self.input_shape_ = shape
        self.n_features_in_ = inputs.shape[1]
        return self

    def calibrate(self, *, epsilon: float, delta: float, queries: int, answers: int | None = None) -> Self:
        """A new total and number of queries, with the least noise for them; the private records are not looked at.

        Args:
            epsilon, delta, queries, answers: as in the constructor.

        Raises:
            InvalidParameter: labels were released already, under the total that they were promised.
            CalibrationFailed: no noise meets the total.
        """
        if hasattr(self, "desk_") and self.desk_.asked:
            raise InvalidParameter("calibrate: labels were released already; fit again, which starts a new total")
        self.set_params(epsilon=epsilon, delta=delta, queries=queries, answers=answers, sigma_votes=None, sigma_screening=None)
        if hasattr(self, "classes_"):
            self._settle(len(self.classes_), self.plan_.adjacency)
        return self

    def release(self, X: npt.ArrayLike, *, ledger: Ledger | None = None, scope: Scope | None = None) -> Release:
        """A label for each public query, within the one total; noise and samples from the operating system.

        With a ledger the *whole plan* is charged before the first answer, once; later calls draw on that charge.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``; public.
            ledger, scope: where the plan is booked; both from the first call on, or neither.

        Returns:
            ``values`` (labels; -1, or None, where withheld), ``withheld`` and ``receipt``, whose guarantee is the whole plan's.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        if (ledger is None) != (scope is None):
            raise InvalidInput("ledger and scope: expected both or neither")
        queries = self._queries(X)
        if ledger is not None:
            check_bookable(self.plan_.adjacency)
        if self.desk_.asked and (ledger is None) != (self.booked_ == ""):
            raise InvalidInput("ledger: expected the choice of the first release, to book or not, in all later ones")
        features = self.feature_map_.features(queries)
        if not hasattr(self, "grid_"):
            # The first public queries say how large features are; those of the private records may not.
            self.grid_ = PointGrid.around(features)
            self.voters_ = self._voters(self.grid_)
        points = self.grid_.points(features)
        charge = (
            nullcontext(None)
            if ledger is None or scope is None or self.booked_
            else ledger.reserve(scope, self.plan_.event, answers=1)
        )
        sampler = SecureSampler()
        with charge as reservation:
            booked = self.booked_ if reservation is None else reservation.id
            labels = self.desk_.answer(points, self.voters_, sampler=sampler)
            release = self._named(labels, sampler, booked)
            if reservation is not None:
                reservation.commit(release.receipt.identifier)
        self.booked_ = booked
        return release

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """As the whole plan on X, with noise and samples from a seed: for experiments, *not private*, and not counted.

        Raises:
            BudgetExceeded: more queries than the plan has.
        """
        queries = self._queries(X)
        features = self.feature_map_.features(queries)
        grid = PointGrid.around(features)
        sampler = SeededSampler(seed)
        return self._named(KnnDesk(self.plan_).answer(grid.points(features), self._voters(grid), sampler=sampler), sampler, "")

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The label of most of the k / sampling_probability nearest records, without noise. Private: for their owner only."""
        queries = self._queries(X)
        features = self.feature_map_.features(queries)
        # Laid around the records: what the owner alone sees may depend on all of them.
        grid = PointGrid.around(self.features_)
        search = NeighbourSearch(Records.of(grid.points(self.features_), self.codes_, self.keys_), engine=self.engine)
        voters = SampledNeighbours(search, neighbours=max(1, round(self.neighbours / self.sampling_probability)), probability=1.0)
        desk = [voters.draw(lists, sampler=SecureSampler()) for lists in search.lists(grid.points(features), depth=voters.depth)]
        votes = [np.bincount(search.records.votes[row[row >= 0]], minlength=len(self.classes_)) for part in desk for row in part]
        return np.asarray(self.classes_[np.array(votes).argmax(axis=1)])

    @property
    def guarantee(self) -> Guarantee:
        """Cost of everything that this fitted classifier will ever release."""
        self._fitted()
        return self.plan_.guarantee

    @property
    def remaining_(self) -> int:
        """Queries that may still be asked."""
        self._fitted()
        return self.desk_.remaining

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        self._fitted()
        return private_knn_card(
            self.plan_, self.feature_map_, keyed=self.keys_ is not None, classes_given=self.classes is not None
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy may not spend the same budget again: it can predict, but its queries count as asked."""
        state = dict(super().__getstate__())
        if "desk_" in state:
            spent = KnnDesk(self.plan_)
            spent.asked = self.plan_.steps.queries
            state["desk_"] = spent
        return state

    def _settle(self, classes: int, adjacency: AddRemove) -> None:
        probability(self.delta, name="delta", allow_zero=False)
        self.plan_ = KnnPlan.of(
            epsilon=self.epsilon,
            delta=self.delta,
            queries=self.queries,
            answers=self.answers,
            neighbours=self.neighbours,
            sampling_probability=self.sampling_probability,
            threshold=self.threshold,
            sigma_screening=self.sigma_screening,
            sigma_votes=self.sigma_votes,
            noise_ratio=self.noise_ratio,
            shared_subsample=self.shared_subsample,
            classes=classes,
            adjacency=adjacency,
        )
        self.desk_ = KnnDesk(self.plan_)
        self.booked_ = ""
        for cached in ("grid_", "voters_"):
            self.__dict__.pop(cached, None)

    def _voters(self, grid: PointGrid) -> SampledNeighbours:
        search = NeighbourSearch(Records.of(grid.points(self.features_), self.codes_, self.keys_), engine=self.engine)
        steps = self.plan_.steps
        return SampledNeighbours(search, neighbours=steps.neighbours, probability=steps.sampling_probability)

    def _named(self, labels: Integers, sampler: Sampler, booked: str) -> Release:
        """Codes turned into the user's own labels; withheld answers stay -1, or None where labels are not 0, 1, ..."""
        withheld = labels == UNANSWERED
        receipt = Receipt(
            mechanism=f"Private-kNN plan of {self.plan_.steps.queries} queries",
            guarantee=self.plan_.guarantee,
            answers=len(labels),
            bundle="",
            certificate="none",
            sampler=sampler.name,
            seeded=sampler.seeded,
            booked=booked,
        )
        return with_class_names(Release(labels, withheld, receipt), self.classes_)

    def _fitted(self) -> None:
        if not hasattr(self, "plan_") or not hasattr(self, "classes_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    def _queries(self, X: npt.ArrayLike) -> Array:
        self._fitted()
        return inputs_as_fitted(self, *input_rows(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
