"""``IndividualKNNClassifier``: labels for public queries from private records, each of which has a
budget of its own and retires when it is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from reticent.bundles.booking import check_bookable
from reticent.core.checks import count, one_each, positive
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Receipt, Release
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger
from reticent.ledger.reservations import Reservation
from reticent.neighbours import PointGrid, RadiusKernel
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler, SeededSampler, release_sampler
from reticent.systems.private_knn.cards import individual_card
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualPlan, IndividualSession
from reticent.systems.private_knn.inputs import (
    checked_keys,
    feature_map_of,
    grid_of,
    input_rows,
    protected,
)
from reticent.systems.private_knn.radii import kernels_by_share, kernels_of_radius
from reticent.systems.private_knn.settings_choice import individual_settings, public_folds
from reticent.systems.record_labels import Classes, is_observed, record_labels
from reticent.systems.releasing_system import inputs_as_fitted, with_class_names
from reticent.systems.streaming import ReleasesStreams
from reticent.tables.feature_names import keep_names, rows_as_fitted
from reticent.tables.frames import framed, named_rows, plain_rows, rows_named_alike
from reticent.training.features import FeatureMap

if TYPE_CHECKING:
    from torch import nn

Integers = npt.NDArray[np.int64]


class IndividualKNNClassifier(ReleasesStreams, ClassifierMixin, BaseEstimator):
    """Answers public queries by the noisy votes of the private records near them, without a limit
    on their number; a record that has voted as much as its budget allows votes no more.

    Guarantee:
        Everything that one fitted classifier ever releases is (epsilon, delta)-differentially
        private together, for two sets of private records one of which has one record more; with
        ``keys``, all records of one key more, whenever they are inserted or forgotten. Queries are
        public, and may be chosen from earlier answers. ``card()`` says what is assumed,
        docs/private-knn.md has the proof. ``predict`` is the owner's own, noise-free answer and is
        *not* private, and neither is what a record has spent, which nothing shows.

    Each record within a query's public radius votes for its label, with a weight that falls with
    the distance. Where there are ``public_X``, a query's radius is such that ``share`` of them lie
    within it. Answers get worse as records retire; no answer is ever withheld.

    Args:
        epsilon: of everything, above 0.
        delta: of everything, in (0, 1).
        classes: the labels that there are, a public list; or "observed" to take those that occur
            among the records, which publishes them: the card then says that they are not protected.
        votes: how many whole votes a record gives in its life, 1 to 2^20; noise grows with the
            square root. About the number of queries that a record will be near.
        share: of the public rows within the radius of a query, in (0, 1]; used where ``radius`` is
            None.
        radius: one radius for all queries, above 0, in units of the features; None for ``share``.
        power: of the fall of a vote between half the radius (with ``share``: the distance that a
            sixteenth of these rows are within) and the radius; 0, 1 or 2.
        looks: precisions of the noisy looks at one query, whole numbers; (1,) for one look.
        lead: standard deviations by which a class must lead for a query to get no further look.
        feature_map: "identity", "hog" or "upright hog" (pictures; the second for handwriting), a
            ``FeatureMap``, or your own torch module that was trained on public data only.
        feature_range: public (lower, upper) ends of the features, or a ``PointGrid``; None where
            the feature map knows, or for a grid around the public rows.
        data_set: what the private records are called, by their owner; the same name whenever they
            are the same, since a ledger charges every fit on them to it. None books in no ledger.

    Attributes:
        plan_: noise, cap and total.
        grid_: the public grid.
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> classifier = IndividualKNNClassifier(
        ...     epsilon=2.0, delta=1e-5, classes=range(10), votes=4.0, radius=40.0,
        ...     feature_range=(0, 16),
        ... ).fit(X[:1700], y[:1700], keys=list(range(1700)))
        >>> _ = classifier.forget(17)
        >>> len(classifier.release(X[1700:]).released)
        97

    References:
        - Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
          arXiv:2008.11193, individual filters.
        - Koskela, Tobaben and Honkela (2023), "Individual privacy accounting with Gaussian
          differential privacy", arXiv:2209.15596, the same with Gaussian noise.
        - Zhu, Zhao, Guo and Wang (2023), "'Private prediction strikes back!' Private kernelized
          nearest neighbors with individual Rényi filter", arXiv:2306.07381, votes of neighbours
          (Ind-KNN).
        - **Differs from the papers** in exact discrete noise, votes without what all classes share,
          and several looks at one query: docs/private-knn.md.

    See Also:
        reticent.PrivateKNNClassifier: a number of answers that is fixed beforehand.
        reticent.RadiusVotesClassifier: the same votes, for few answers.
        reticent.accounting.IndividualGaussianBudget: the total.
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    plan_: IndividualPlan
    session_: IndividualSession
    held_: HeldRecords
    _paid: Reservation | None
    _place: tuple[str, int, str] | None
    _payer: tuple[str, Scope] | None
    _public: Exhaustive | None

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        votes: float = 20.0,
        share: float = 0.05,
        radius: float | None = None,
        power: int = 1,
        looks: Sequence[int] = (1,),
        lead: float = 1.0,
        feature_map: str | FeatureMap | nn.Module = "identity",
        feature_range: tuple[npt.ArrayLike, npt.ArrayLike] | PointGrid | None = None,
        data_set: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.votes = votes
        self.share = share
        self.radius = radius
        self.power = power
        self.looks = looks
        self.lead = lead
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.data_set = data_set

    @classmethod
    def tuned(
        cls,
        public_X: npt.ArrayLike,
        public_y: npt.ArrayLike,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        records: int,
        queries: int,
        seed: int = 0,
        **settings: Any,
    ) -> Self:
        """An unfitted classifier with the radii, votes and looks that answer most public
        queries right; no private record is looked at, so nothing is paid for the choice.

        Args:
            public_X, public_y: labelled public rows, from 20 on; half of them ask the other half.
            epsilon, delta, classes: as in the constructor.
            records: about how many private records there will be, a public number.
            queries: about how many will be asked.
            seed: of the noise in the choice.
            settings: further arguments of the constructor.

        Raises:
            InvalidInput, InvalidParameter: rows, labels or numbers that cannot be.
        """
        rows, shape = input_rows(plain_rows(public_X))
        known, codes = record_labels(public_y, len(rows), classes)
        feature_map = feature_map_of(settings.get("feature_map", "identity"), shape)
        chosen = individual_settings(
            public_folds(feature_map.features(rows), codes, seed=seed),
            epsilon=epsilon,
            delta=delta,
            classes=len(known),
            records=records,
            queries=queries,
            lead=settings.get("lead", 1.0),
            seed=seed,
        )
        return cls(epsilon=epsilon, delta=delta, classes=classes, **{**chosen, **settings})

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        keys: Sequence[Any] | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
    ) -> Self:
        """Keeps the private records, and settles the noise without looking at them.

        Args:
            X: shape (n, features) or (n, height, width) or (n, channels, height, width).
            y: shape (n,), labels.
            keys: one per record, equal for the records of one person. A person then has one budget
                and one vote at a time, by the nearest record, and can be forgotten.
            public_X: public rows of the same shape, without labels; they set the radii, and the
                grid where ``feature_range`` does not.

        Raises:
            InvalidInput, InvalidParameter, UnknownName, CalibrationFailed: nothing is kept.
        """
        records, names = named_rows(X)
        inputs, shape = input_rows(records)
        classes, codes = record_labels(y, len(inputs), self.classes)
        found = checked_keys(keys, len(inputs))
        feature_map = feature_map_of(self.feature_map, shape)
        features = feature_map.features(inputs)
        public = None
        if public_X is not None:
            alike = rows_named_alike(public_X, names, of="the private records", name="public_X")
            rows, public_shape = input_rows(alike)
            if public_shape != shape:
                raise InvalidInput(
                    f"public_X: expected rows of shape {shape}, as X has, got {public_shape}"
                )
            public = feature_map.features(rows)
        grid = (
            PointGrid.around(public)
            if self.feature_range is None and feature_map.ball is None and public is not None
            else grid_of(self.feature_range, feature_map, features.shape[1])
        )
        near = None if public is None else Exhaustive(grid.points(public))
        size = 0 if public is None else len(public)
        plan = self._planned(len(classes), keys is not None)
        self._kernels(grid, near, size, np.zeros((1, grid.dimension), dtype=np.float32))
        session = IndividualSession(plan)
        held = HeldRecords(session.filter, dimension=grid.dimension, keyed=found is not None)
        held.insert(grid.points(features), codes, found)
        self.feature_map_, self.grid_, self.plan_ = feature_map, grid, plan
        self.session_, self.held_, self.classes_ = session, held, classes
        self._public, self._public_rows = near, size
        self._paid, self._place, self._payer, self._asked = None, None, None, False
        self._booking = Lock()  # two threads must not both pay
        self.input_shape_ = shape
        self.n_features_in_ = inputs.shape[1]
        keep_names(self, names)
        return self

    def insert(self, X: npt.ArrayLike, y: npt.ArrayLike, keys: Sequence[Any] | None = None) -> Self:
        """Takes in further private records, which vote from the next query on. Who was there before
        goes on spending from where they were, forgotten or not.

        Args:
            X, y, keys: as in ``fit``; keys in every call or in none.

        Raises:
            InvalidInput: other shapes, labels or keys; nothing is taken in.
        """
        points = self._points(X)
        known = list(self.classes_)
        _, codes = record_labels(y, len(points), known)
        found = checked_keys(keys, len(points))
        with self.session_.turn:
            self.held_.insert(points, codes, found)
        return self

    def forget(self, key: Any) -> Self:
        """Removes all records of one key: once this returns, they vote in no answer, nor in those
        that another thread waits for. What they spent stays counted, under a digest of the key, so
        that coming back buys nothing.

        A key that there is none of is no error: who is there is private.

        Raises:
            InvalidInput: the classifier was fitted without keys, or no such kind of key.
        """
        self._fitted()
        name = one_each([key], 1, name="key")[0]
        with self.session_.turn:
            self.held_.forget(name)
        return self

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        sampler: str = "exact",
    ) -> Release:
        """A label for each public query, within the one total, in order; noise from the operating
        system.

        With a ledger the whole total is charged before the first answer, once, and covers all later
        ones. What records have spent is counted in the memory of the process that fitted: a forked
        child and a copy answer nothing.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``; public.
            ledger, scope: where the total is booked; both from the first call on, or neither.
            sampler: where noise comes from: "exact", our own samplers, or "opendp", those of OpenDP
                (an extra; docs/noise.md).

        Returns:
            ``values`` (labels), ``withheld`` (none) and ``receipt``, whose guarantee is that of
            everything.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        if (ledger is None) != (scope is None):
            raise InvalidInput("ledger and scope: expected both or neither")
        points, source = self._points(X), release_sampler(sampler)
        kernels = self._kernels(self.grid_, self._public, self._public_rows, points)
        if ledger is not None and scope is not None:
            self._book(ledger, scope)
        elif self._payer is not None:
            raise InvalidInput("ledger: the total is paid for in one; expected the same again")
        self._asked = self._asked or self.session_.is_here
        labels = self.session_.answer(self.held_, points, kernels, sampler=source)
        release = self._named(labels, source)
        with self._booking:  # two threads must not both write the receipt
            if self._paid is not None:
                self._paid.commit(release.receipt.identifier)
                self._paid = None
        return framed(release, X, ("label",))

    def simulate(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Release:
        """As the first queries of a new total, with noise from a seed: for experiments, *not
        private*, and not counted.

        Args:
            X: the queries.
            seed: of the noise.
            noise_scale: noise in units of the plan's, above 0; records here over private records,
                where the effect on a private set of another size is looked for.
        """
        points = self._points(X)
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        session = IndividualSession(
            self.plan_, noise_scale=positive(noise_scale, name="noise_scale")
        )
        kernels = self._kernels(self.grid_, self._public, self._public_rows, points)
        with self.session_.turn:
            held = self.held_.anew(session.filter)
        labels = session.answer(held, points, kernels, sampler=sampler)
        return framed(self._named(labels, sampler), X, ("label",))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The label with most votes of all records, spent or not, without noise. Private: for their
        owner only.
        """
        points = self._points(X)
        kernels = self._kernels(self.grid_, self._public, self._public_rows, points)
        limits = np.array([kernel.squared_radius for kernel in kernels], dtype=np.int64)
        with self.session_.turn:
            votes = [
                np.bincount(labels, weights=kernel.weights(squared), minlength=len(self.classes_))
                for kernel, (_, squared, labels) in zip(
                    kernels, self.held_.near(points, limits), strict=True
                )
            ]
        return np.asarray(self.classes_[np.array(votes).argmax(axis=1)])

    @property
    def guarantee(self) -> Guarantee:
        """Cost of everything that this fitted classifier will ever release."""
        self._fitted()
        return self.plan_.guarantee

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        self._fitted()
        return individual_card(
            self.plan_,
            self.feature_map_,
            keyed=self.held_.keyed,
            classes_given=not is_observed(self.classes),
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy can predict; it has no budget."""
        state = dict(super().__getstate__())
        state.pop("_booking", None)
        if "session_" in state:
            with self.session_.turn:
                session = copy(self.session_)
                state["session_"], state["_paid"] = session, None
                state["held_"] = self.held_.beside(session.filter)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._booking = Lock()

    def _planned(self, classes: int, keyed: bool) -> IndividualPlan:
        return IndividualPlan.of(
            epsilon=self.epsilon,
            delta=self.delta,
            classes=classes,
            votes=self.votes,
            looks=self.looks,
            lead=self.lead,
            adjacency=protected(self.data_set, () if keyed else None),
        )

    def _kernels(
        self, grid: PointGrid, public: Exhaustive | None, rows: int, points: Points
    ) -> list[RadiusKernel]:
        """A kernel for each query, from public things only."""
        if self.radius is not None:
            return kernels_of_radius(
                len(points), self.radius, per_unit=grid.per_unit, power=self.power
            )
        if public is None:
            raise InvalidParameter(
                "radius=None: expected a radius in units of the features, or public_X in fit, of "
                "which share lies within the radius of a query"
            )
        return kernels_by_share(points, public, rows, share=self.share, power=self.power)

    def _book(self, ledger: Ledger, scope: Scope) -> None:
        """Charges the total unless it is charged.

        Raises:
            InvalidInput: queries were asked without a ledger, or the total is charged elsewhere.
            BudgetExceeded: it does not fit, or this is a copy.
            IncompatibleGuarantees, LedgerUnavailable: as ``Ledger.reserve``.
        """
        check_bookable(self.plan_.adjacency)
        if not isinstance(scope, Scope):
            raise InvalidInput(
                f"scope: expected one Scope, got {type(scope).__name__}; the records pay for "
                "everything together"
            )
        payer = (ledger.store.name, scope)
        with self._booking:
            if self._payer is None:
                if self._asked:
                    raise InvalidInput(
                        "ledger: expected the choice of the first release, to book or not, in all "
                        "later ones"
                    )
                if self.session_.is_here:
                    self._paid = ledger.reserve(scope, self.plan_.event, answers=1)
                    self._place = (self._paid.id, self._paid.position, self._paid.digest)
                    self._payer = payer
            elif self._payer != payer:
                raise InvalidInput(
                    "ledger: the total is paid for in another one, or by another scope; expected "
                    "the same again"
                )

    def _named(self, labels: Integers, sampler: Sampler) -> Release:
        booked, position, digest = ("", 0, "")
        if self._place is not None and not sampler.seeded:
            booked, position, digest = self._place
        receipt = Receipt(
            mechanism="individual votes",
            guarantee=self.plan_.guarantee,
            answers=len(labels),
            bundle="",
            certificate="none",
            sampler=sampler.name,
            seeded=sampler.seeded,
            booked=booked,
            position=position,
            digest=digest,
        )
        release = Release(labels, np.zeros(len(labels), dtype=np.bool_), receipt)
        return with_class_names(release, self.classes_)

    def _fitted(self) -> None:
        if not hasattr(self, "plan_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    def _points(self, X: npt.ArrayLike) -> Points:
        """Rows on the public grid; whatever cannot be used is refused here, before any charge."""
        self._fitted()
        rows = inputs_as_fitted(self, *input_rows(rows_as_fitted(self, X)))
        return self.grid_.points(self.feature_map_.features(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
