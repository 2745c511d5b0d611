"""``IndividualKNNClassifier``: labels for public queries from private records with own budgets.

A record whose budget is spent retires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from typing_extensions import override

from reticent.core.checks import count, one_each, positive
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours import PointGrid, RadiusKernel
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler, SeededSampler
from reticent.release.fits import use_of
from reticent.release.paying import Drawn, Price
from reticent.release.prepaid import Prepaid
from reticent.release.system import PredictsByRelease, release
from reticent.systems.features import Features, rows_to_fit
from reticent.systems.private_knn.cards import KnnCircumstances, individual_card
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession
from reticent.systems.private_knn.inputs import (
    checked_persons,
    feature_map_of,
    grid_of,
    input_rows,
    point_blocks,
    protected,
    shaped,
)
from reticent.systems.private_knn.radii import Ball, kernels_by_share, kernels_of_radius
from reticent.systems.private_knn.settings_choice import (
    PublicFold,
    TunedOnPublicRows,
    individual_settings,
)
from reticent.systems.record_labels import Classes, is_observed, record_labels
from reticent.systems.releasing_system import class_names, inputs_as_fitted
from reticent.tables.frames import keep_names
from reticent.tables.schema import TabularSchema


@with_settings
class IndividualKNNClassifier(TunedOnPublicRows, PredictsByRelease, ClassifierMixin, BaseEstimator):
    """Answer public queries by the noisy votes of the private records near them.

    There is no limit on the number of queries. A record that has voted as much as its budget allows
    votes no more.

    Guarantee:
        Everything that one fitted classifier ever releases is (epsilon, delta)-differentially
        private together. The two sets of private records differ by one record more, or with
        ``persons`` by all records of one person more, whenever they are inserted or forgotten.
        Queries are public, and may be chosen from earlier answers. ``card()`` says what is assumed,
        and docs/private-knn.md has the proof. ``exact_predict`` is the owner's own, noise-free
        answer and is *not* private, and neither is what a record has spent, which nothing shows.

    Each record within a query's public radius votes for its label, with a weight that falls with
    the distance. Where there are ``public_X``, a query's radius is such that a share of them lies
    within it. Answers get worse as records retire, but no answer is ever withheld.

    Args:
        epsilon: epsilon of everything, above 0.
        delta: delta of everything, in (0, 1).
        classes: the labels that there are, a public list, or "observed" to take those that occur
            among the records. That publishes them: the card then says that they are not protected.
        votes: number of whole votes that a record gives in its life, 1 to 2^20. Noise grows with
            the square root. Take about the number of queries that a record will be near.
        ball: rule for which records are near a query, and how far each votes, or None for the
            usual.
        looks: precisions of the noisy looks at one query, whole numbers, or (1,) for one look.
        lead: standard deviations by which a class must lead for a query to get no further look.
        features: meaning of a record's columns, and the map of a row to a vector: schema, map and
            range. None for ``Features()``. Without a range the grid is one around the public rows.
        data_set: the owner's name for the private records. It stays the same whenever they
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
        ...     epsilon=2.0, delta=1e-5, classes=range(10), votes=4.0, ball=Ball(radius=40.0),
        ...     features=Features(range=(0, 16)),
        ... ).fit(X[:1700], y[:1700], persons=list(range(1700)))
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
        reticent.accounting.IndividualGaussianBudget: the total.
    """

    epsilon: float
    delta: float
    classes: Classes
    votes: float = 20.0
    ball: Ball | None = None
    looks: Sequence[int] = (1,)
    lead: float = 1.0
    features: Features | None = None
    data_set: str | None = None
    schema_: TabularSchema | None = learned()
    classes_: npt.NDArray[Any] = learned()
    n_features_in_: int = learned()
    plan_: IndividualNoise = learned()
    session_: IndividualSession = learned()
    held_: HeldRecords = learned()
    _prepaid: Prepaid = learned()
    _public: Exhaustive | None = learned()

    @classmethod
    @override
    def _best(
        cls, folds: Sequence[PublicFold], settings: Mapping[str, Any], **known: Any
    ) -> dict[str, Any]:
        return individual_settings(folds, **known, lead=settings.get("lead", 1.0))

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        persons: Sequence[Any] | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
    ) -> Self:
        """Keep the private records, and settle the noise without looking at them.

        Args:
            X: shape (n, features) or (n, height, width) or (n, channels, height, width).
            y: shape (n,), labels.
            persons: one name per record, equal for the records of one person. A person then has one
                budget and one vote at a time, by the nearest record, and can be forgotten.
            public_X: public rows of the same shape, without labels. They set the radii, and the
                grid where the range of ``features`` does not.

        Raises:
            InvalidInput, InvalidParameter, UnknownName, CalibrationFailed: nothing is kept.
        """
        shaping = shaped(self)
        records, public_X, names = rows_to_fit(self, shaping, X, public_X)
        inputs, shape = input_rows(records, records=True)
        classes, codes = record_labels(y, len(inputs), self.classes)
        found = checked_persons(persons, len(inputs))
        feature_map = feature_map_of(shaping.map, shape)
        width = feature_map.features(inputs[:1]).shape[1]
        public = None
        if public_X is not None:
            rows, public_shape = input_rows(public_X)
            if public_shape != shape:
                raise InvalidInput(
                    f"public_X: expected rows of shape {shape}, as X has, got {public_shape}"
                )
            public = feature_map.features(rows)
        grid = (
            PointGrid.around(public)
            if shaping.range is None and feature_map.ball is None and public is not None
            else grid_of(shaping.range, feature_map, width, self.schema_)
        )
        near = None if public is None else Exhaustive.of(grid.points(public))
        size = 0 if public is None else len(public)
        plan = self._planned(len(classes), persons is not None)
        self._kernels(grid, near, size, np.zeros((1, grid.dimension), dtype=np.int16))
        use = use_of(inputs, data_set=self.data_set, estimator=self, booked=False)
        session = IndividualSession(plan)
        held = HeldRecords(session.filter, dimension=grid.dimension, by_person=found is not None)
        held.insert(point_blocks(inputs, feature_map, grid), codes, found)
        self.feature_map_, self.grid_, self.plan_ = feature_map, grid, plan
        self.session_, self.held_, self.classes_ = session, held, classes
        self._public, self._public_rows = near, size
        self._prepaid = Prepaid(plan.event, queries=None)
        self._data_use = use
        self.input_shape_ = shape
        self.n_features_in_ = inputs.shape[1]
        keep_names(self, names)
        return self

    def insert(
        self, X: npt.ArrayLike, y: npt.ArrayLike, persons: Sequence[Any] | None = None
    ) -> Self:
        """Take in further private records, which vote from the next query on.

        Whoever was there before goes on spending from where they were, forgotten or not.

        Args:
            X, y, persons: arguments of ``fit``, with persons in every call or in none.

        Raises:
            InvalidInput: other shapes, labels or persons. Nothing is taken in.
        """
        points = self._points(X, records=True)
        known = list(self.classes_)
        _, codes = record_labels(y, len(points), known)
        found = checked_persons(persons, len(points))
        with self.session_.turn:
            self.held_.insert([points], codes, found)
        return self

    def forget(self, person: Any) -> Self:
        """Remove all records of one person.

        Once this returns, they vote in no answer, nor in those that another thread waits for. What
        they spent stays counted, under a digest of the name, so that coming back buys nothing.

        A person of whom there is nothing is no error: who is there is private.

        Raises:
            InvalidInput: the classifier was fitted without persons, or no such kind of name.
        """
        self._fitted()
        name = one_each([person], 1, name="person")[0]
        with self.session_.turn:
            self.held_.forget(name)
        return self

    @override
    def checked(self, X: npt.ArrayLike) -> Points:
        """Return public rows on the public grid, shape (n, d).

        Raises:
            NotFittedYet, InvalidInput: the errors of ``release``.
        """
        return self._points(X, records=False)

    @override
    def price(self, inputs: Points) -> Price:
        """Return the cost of everything that will ever be released."""
        return Price(
            self.plan_.event,
            len(inputs),
            "individual votes",
            prepaid=self._prepaid,
            use=self._data_use,
        )

    @override
    def draw(self, inputs: Points, sampler: Sampler) -> Drawn:
        """Return a label for each of the checked queries, in order. They must be paid for."""
        return self._labelled(self.session_, self.held_, inputs, sampler)

    def simulate(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Release:
        """Answer as the first queries of a new total, with noise from a seed.

        It is for experiments, *not private*, and not counted.

        Args:
            X: the queries.
            seed: seed of the noise.
            noise_scale: noise in units of the plan's, above 0. Take records here over private
                records, where the effect on a private set of another size is looked for.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        return release(
            _Simulated(self, positive(noise_scale, name="noise_scale")), X, sampler=sampler
        )

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the label with most votes of all records, spent or not, without noise. Private:
        for their owner only.
        """
        points = self.checked(X)
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
        """The cost of everything that this fitted classifier will ever release."""
        self._fitted()
        return self.plan_.guarantee

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        self._fitted()
        found, given = self.feature_map_, not is_observed(self.classes)
        return individual_card(
            self.plan_, KnnCircumstances(found.name, found.origin, self.held_.by_person, given)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which has no budget."""
        state = dict(super().__getstate__())
        if "session_" in state:
            with self.session_.turn:
                session = copy(self.session_)
                state["session_"] = session
                state["held_"] = self.held_.beside(session.filter)
        return state

    def _points(self, X: npt.ArrayLike, *, records: bool) -> Points:
        """Return queries, or records, of which there may be none, on the public grid."""
        self._fitted()
        rows = inputs_as_fitted(self, X, records=records)
        return self.grid_.points(self.feature_map_.features(rows))

    def _planned(self, classes: int, by_person: bool) -> IndividualNoise:
        return IndividualNoise.of(
            epsilon=self.epsilon,
            delta=self.delta,
            classes=classes,
            votes=self.votes,
            looks=self.looks,
            lead=self.lead,
            adjacency=protected(self.data_set, () if by_person else None),
        )

    def _kernels(
        self, grid: PointGrid, public: Exhaustive | None, rows: int, points: Points
    ) -> list[RadiusKernel]:
        """Return a kernel for each query, from public things only."""
        ball = a_part(self.ball, Ball, name="ball")
        if ball.radius is not None:
            return kernels_of_radius(
                len(points), ball.radius, per_unit=grid.per_unit, power=ball.power
            )
        if public is None:
            raise InvalidParameter(
                "radius=None: expected a radius in units of the features, or public_X in fit, of "
                "which share lies within the radius of a query"
            )
        return kernels_by_share(points, public, rows, share=ball.share, power=ball.power)

    def _labelled(
        self, session: IndividualSession, held: HeldRecords, points: Points, sampler: Sampler
    ) -> Drawn:
        kernels = self._kernels(self.grid_, self._public, self._public_rows, points)
        places = session.answer(held, points, kernels, sampler=sampler)
        withheld = np.zeros(len(places), dtype=np.bool_)
        return Drawn(class_names(places, self.classes_, withheld=withheld), withheld)

    def _fitted(self) -> None:
        if not hasattr(self, "plan_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class _Simulated:
    """The same records as they were before any query, for one simulation."""

    def __init__(self, fitted: IndividualKNNClassifier, noise_scale: float) -> None:
        self._fitted, self._noise_scale = fitted, noise_scale
        self.checked, self.price = fitted.checked, fitted.price

    def draw(self, inputs: Points, sampler: Sampler) -> Drawn:
        """Draw, as ``System`` says."""
        session = IndividualSession(self._fitted.plan_, noise_scale=self._noise_scale)
        with self._fitted.session_.turn:
            held = self._fitted.held_.anew(session.filter)
        return self._fitted._labelled(session, held, inputs, sampler)
