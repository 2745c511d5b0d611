"""``PrivateKNNClassifier``: labels for public queries from private records, with one total for
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from typing_extensions import override

from reticent.core.checks import probability
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours import NeighbourSearch, SampledNeighbours
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler, SecureSampler
from reticent.release.fits import use_of
from reticent.release.paying import Drawn, Payment, Price
from reticent.release.prepaid import Prepaid
from reticent.release.system import PredictsByRelease
from reticent.systems.features import Features, rows_to_fit
from reticent.systems.private_knn.cards import KnnCircumstances, knn_card
from reticent.systems.private_knn.inputs import (
    blocked_records,
    checked_persons,
    feature_map_of,
    grid_of,
    input_rows,
    protected,
    shaped,
)
from reticent.systems.private_knn.plan import UNANSWERED, KnnNoise, Neighbours
from reticent.systems.private_knn.settings_choice import (
    PublicFold,
    TunedOnPublicRows,
    private_knn_settings,
)
from reticent.systems.record_labels import Classes, is_observed, record_labels
from reticent.systems.releasing_system import class_names, inputs_as_fitted
from reticent.tables.frames import keep_names
from reticent.tables.schema import TabularSchema
from reticent.tables.shards import Shards


@with_settings
class PrivateKNNClassifier(TunedOnPublicRows, PredictsByRelease, ClassifierMixin, BaseEstimator):
    """Release labels for public queries by the noisy votes of their nearest private records.

    Guarantee:
        All labels that one fitted classifier ever releases, withheld answers included, are
        (epsilon, delta)-differentially private together. The two sets of private records differ
        by one record more, or with ``persons`` by all records of one person more. ``guarantee``
        is that total, ``card()`` says what is assumed, and docs/private-knn.md has the proof. The
        queries are public. ``exact_predict`` is the owner's own answer and is *not* private.

    Args:
        epsilon: epsilon of the total, above 0.
        delta: delta of the total, in (0, 1).
        queries: number of queries that will ever be asked.
        answers: number of labels that will ever be released, or None for as many as queries.
        neighbours: rule for which records vote on a query, and when their vote counts, or None for
            the usual.
        features: meaning of a record's columns, and the map of a row to a vector: schema, map and
            range, the grid that neighbours are compared on. None for ``Features()``.
        classes: the labels that there are, a public list, or "observed" to take those that occur
            among the records. That publishes them: the card then says that they are not protected.
        data_set: the owner's name for the private records. It stays the same whenever they
            are the same, since a ledger charges every fit on them to it. None books in no ledger.
        fallback: the public label that ``predict`` gives where an answer is withheld, or None where
            none is.

    Attributes:
        plan_: noise and total.
        grid_: the public grid.
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> classifier = PrivateKNNClassifier(
        ...     epsilon=2.0,
        ...     delta=1e-5,
        ...     queries=20,
        ...     neighbours=Neighbours(number=20, sampling_probability=0.5),
        ...     classes=range(10),
        ...     features=Features(range=(0, 16)),
        ... ).fit(X[:1700], y[:1700])
        >>> release = classifier.release(X[1700:1710])
        >>> len(release.released), classifier.remaining_
        (10, 10)

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187.
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908, screening
          and noisy votes.
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530, sampled Gaussian noise.
        - Accounting: docs/private-knn-accounting.md.

    See Also:
        reticent.CertifiedClassifier: a trained model.
        reticent.accounting.private_knn_total: the total.
        reticent.mechanisms.NoisyArgmax: the vote.
    """

    epsilon: float
    delta: float
    queries: int
    classes: Classes
    answers: int | None = None
    neighbours: Neighbours | None = None
    features: Features | None = None
    data_set: str | None = None
    fallback: Any = None

    schema_: TabularSchema | None = learned()
    classes_: npt.NDArray[Any] = learned()
    n_features_in_: int = learned()
    plan_: KnnNoise = learned()
    _prepaid: Prepaid = learned()

    @classmethod
    @override
    def _best(
        cls, folds: Sequence[PublicFold], settings: Mapping[str, Any], **known: Any
    ) -> dict[str, Any]:
        return {"queries": known["queries"], **private_knn_settings(folds, **known)}

    def fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        persons: Sequence[Any] | None = None,
    ) -> Self:
        """Keep the private records, and settle the noise without looking at them.

        Args:
            X: shape (n, features) or (n, height, width) or (n, channels, height, width). Or
                ``reticent.tables.Shards``, which hold the labels too. They are read block by block
                and kept as 16-bit points, and answers do not depend on how they are split.
            y: shape (n,), labels, or None with shards.
            persons: one name per record, equal for the records of one person. A person then counts
                as one: only the nearest record of each may vote, and the guarantee covers all of
                them. None where every record is a person's only one.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is kept.
            CalibrationFailed: no noise meets the total, or the given noise does not.
        """
        shards = X if isinstance(X, Shards) else None
        shaping = shaped(self)
        if shards is not None and (y is not None or shaping.schema is not None):
            raise InvalidInput(
                "y, schema: expected None with shards, which hold numbers and their labels"
            )
        rows, _, names = rows_to_fit(self, shaping, X if shards is None else shards.first)
        inputs, shape = input_rows(rows, records=True)
        size = len(inputs) if shards is None else len(shards)
        classes, codes = record_labels(
            y if shards is None else shards.all_labels(), size, self.classes
        )
        found = checked_persons(persons, size)
        feature_map = feature_map_of(shaping.map, shape)
        width = feature_map.features(inputs[:1]).shape[1]
        grid = grid_of(shaping.range, feature_map, width, self.schema_)
        given = inputs if shards is None else shards
        records = blocked_records(given, codes, found, feature_map=feature_map, grid=grid)
        use = use_of(given, data_set=self.data_set, estimator=self, booked=False)
        search = NeighbourSearch(records)
        self._settle(len(classes), protected(self.data_set, persons))
        self.feature_map_, self.grid_, self.search_ = feature_map, grid, search
        self._data_use = use
        self.by_person_ = found is not None
        self.classes_ = classes
        self.input_shape_ = shape
        self.n_features_in_ = inputs.shape[1]
        keep_names(self, names)
        return self

    def calibrate(
        self, *, epsilon: float, delta: float, queries: int, answers: int | None = None
    ) -> Self:
        """Set a new total and number of queries, with the least noise for them.

        The private records are not looked at.

        Args:
            epsilon, delta, queries, answers: arguments of the constructor.

        Raises:
            InvalidParameter: labels were released already, under the total that they were promised,
                or it was paid for.
            CalibrationFailed: no noise meets the total.
        """
        if hasattr(self, "_prepaid") and self._prepaid.used:
            raise InvalidParameter(
                "calibrate: labels were released already; fit again, which starts a new total"
            )
        self.set_params(epsilon=epsilon, delta=delta, queries=queries, answers=answers)
        if hasattr(self, "classes_"):
            self._settle(len(self.classes_), self.plan_.adjacency)
        return self

    @override
    def checked(self, X: npt.ArrayLike) -> Points:
        """Return public queries on the public grid, shape (n, d).

        Raises:
            NotFittedYet, InvalidInput: the errors of ``release``.
        """
        self._fitted()
        return self.grid_.points(self.feature_map_.features(inputs_as_fitted(self, X)))

    @override
    def price(self, inputs: Points) -> Price:
        """Return the cost of the whole plan, and the count of its queries."""
        words = f"Private-kNN plan of {self.plan_.steps.queries} queries"
        return Price(
            self.plan_.event, len(inputs), words, prepaid=self._prepaid, use=self._data_use
        )

    @override
    def draw(self, inputs: Points, sampler: Sampler) -> Drawn:
        """Return a label for each of the checked queries, which must be paid for."""
        labels = self.plan_.answer(inputs, self._voters(), sampler=sampler)
        withheld = labels == UNANSWERED
        return Drawn(class_names(labels, self.classes_, withheld=withheld), withheld)

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """Answer as the whole plan would on X, with noise and samples from a seed.

        It is for experiments, *not private*, and not counted.

        Raises:
            BudgetExceeded: more queries than the plan has.
        """
        found, steps = super().simulate(X, seed=seed), self.plan_.steps
        if len(found) > steps.queries:
            raise BudgetExceeded(
                f"queries: requested {len(found)}, the plan has {steps.queries} in all"
            )
        kept = Payment(found.receipt, steps.answers).kept(Drawn(found.values, found.withheld))
        return replace(found, values=kept.values, withheld=kept.withheld)

    @property
    @override
    def _withholds(self) -> bool:
        self._fitted()
        steps = self.plan_.steps
        return steps.threshold is not None or steps.answers < steps.queries

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the label of most of the k / sampling_probability nearest records, without noise.
        Private: for their owner only.
        """
        points = self.checked(X)
        steps = self.plan_.steps
        most = max(1, round(steps.neighbours / steps.sampling_probability))
        voters = SampledNeighbours(self.search_, neighbours=most, probability=1.0)
        records = self.search_.records
        drawn = [
            voters.draw(lists, sampler=SecureSampler())
            for lists in self.search_.lists(points, depth=voters.depth)
        ]
        votes = [
            np.bincount(records.votes[row[row >= 0]], minlength=len(self.classes_))
            for part in drawn
            for row in part
        ]
        return np.asarray(self.classes_[np.array(votes).argmax(axis=1)])

    @property
    def guarantee(self) -> Guarantee:
        """The cost of everything that this fitted classifier will ever release."""
        self._fitted()
        return self.plan_.guarantee

    @property
    def remaining_(self) -> int:
        """The number of queries that may still be asked."""
        self._fitted()
        return self._prepaid.remaining

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        self._fitted()
        found, given = self.feature_map_, not is_observed(self.classes)
        return knn_card(
            self.plan_, KnnCircumstances(found.name, found.origin, self.by_person_, given)
        )

    @property
    def _neighbours(self) -> Neighbours:
        return a_part(self.neighbours, Neighbours, name="neighbours")

    def _settle(self, classes: int, adjacency: AddRemove) -> None:
        voting = self._neighbours
        probability(self.delta, name="delta", allow_zero=False)
        self.plan_ = KnnNoise.of(
            epsilon=self.epsilon,
            delta=self.delta,
            queries=self.queries,
            answers=self.answers,
            neighbours=voting.number,
            sampling_probability=voting.sampling_probability,
            threshold=voting.threshold,
            classes=classes,
            adjacency=adjacency,
        )
        self.plan_.rehearse()
        steps = self.plan_.steps
        self._prepaid = Prepaid(self.plan_.event, queries=steps.queries, answers=steps.answers)

    def _voters(self) -> SampledNeighbours:
        steps = self.plan_.steps
        return SampledNeighbours(
            self.search_, neighbours=steps.neighbours, probability=steps.sampling_probability
        )

    def _fitted(self) -> None:
        if not hasattr(self, "plan_") or not hasattr(self, "classes_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
