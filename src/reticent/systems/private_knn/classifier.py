"""``PrivateKNNClassifier``: labels for public queries from private records, with one total for
all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from reticent.bundles.booking import check_bookable
from reticent.core.checks import count, one_of, probability
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeCard
from reticent.core.releases import Receipt, Release
from reticent.core.scopes import Scope
from reticent.ledger.counters import PlanCounter
from reticent.ledger.ledger import Ledger
from reticent.ledger.reservations import Reservation
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.neighbours.integer_points import Points
from reticent.neighbours.search import ENGINES
from reticent.noise import Sampler, SecureSampler, SeededSampler, release_sampler
from reticent.systems.private_knn.cards import private_knn_card
from reticent.systems.private_knn.inputs import (
    checked_keys,
    feature_map_of,
    grid_of,
    input_rows,
    protected,
    sharded_records,
)
from reticent.systems.private_knn.plan import UNANSWERED, KnnPlan, KnnSession, MemoryCount
from reticent.systems.private_knn.settings_choice import private_knn_settings, public_folds
from reticent.systems.record_labels import Classes, is_observed, record_labels
from reticent.systems.releasing_system import inputs_as_fitted, with_class_names
from reticent.systems.streaming import ReleasesStreams
from reticent.tables.feature_names import keep_names, rows_as_fitted
from reticent.tables.frames import framed, named_rows
from reticent.tables.shards import Shards
from reticent.training.features import FeatureMap

if TYPE_CHECKING:
    from torch import nn

Integers = npt.NDArray[np.int64]


class PrivateKNNClassifier(ReleasesStreams, ClassifierMixin, BaseEstimator):
    """Releases labels for public queries by the noisy votes of their nearest private records.

    Guarantee:
        All labels that one fitted classifier ever releases, withheld answers included, are
        (epsilon, delta)-differentially private together, for two sets of private records one of
        which has one record more; with ``keys``, all records of one key more. ``guarantee`` is that
        total, ``card()`` says what is assumed, docs/private-knn.md has the proof. The queries are
        public. ``predict`` is the owner's own, noise-free answer and is *not* private.

    Args:
        epsilon: of the total, above 0.
        delta: of the total, in (0, 1).
        queries: how many queries will ever be asked.
        answers: how many labels will ever be released; None for as many as queries.
        neighbours: k, how many included records vote.
        sampling_probability: with which every record is included, afresh for every query and step.
        threshold: votes, noise included, that the largest count of a query must reach before it is
            answered; None to answer all.
        sigma_votes: noise of every count, in votes; None for the least that the total allows.
        sigma_screening: noise of the largest count, in votes; None where ``sigma_votes`` is.
        noise_ratio: sigma_screening / sigma_votes where they are chosen.
        shared_subsample: whether screening and vote of a query see one sample; it costs more.
        feature_map: "identity", "hog" or "upright hog" (pictures; the second for handwriting), a
            ``FeatureMap``, or your own torch module that was trained on public data only.
        classes: the labels that there are, a public list; or "observed" to take those that occur
            among the records, which publishes them: the card then says that they are not protected.
        feature_range: public (lower, upper) ends of the features, numbers or one for each feature,
            or a ``PointGrid``: the grid that neighbours are compared on. None where the feature map
            knows ("hog", ``ReducedFeatures``).
        data_set: what the private records are called, by their owner; the same name whenever they
            are the same, since a ledger charges every fit on them to it. None books in no ledger.
        engine: "numpy" or "faiss"; the answers are the same.

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
        ...     neighbours=20,
        ...     sampling_probability=0.5,
        ...     classes=range(10),
        ...     feature_range=(0, 16),
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
        reticent.PrivateKNNStudent: a model that can be published.
        reticent.CertifiedClassifier: a trained model.
        reticent.accounting.private_knn_total: the total.
        reticent.mechanisms.NoisyArgmax: the vote.
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    plan_: KnnPlan
    session_: KnnSession
    booked_: str
    _paid: Reservation | None
    _place: tuple[int, str]

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        queries: int,
        classes: Classes,
        answers: int | None = None,
        neighbours: int = 300,
        sampling_probability: float = 0.15,
        threshold: float | None = None,
        sigma_votes: float | None = None,
        sigma_screening: float | None = None,
        noise_ratio: float = 3.0,
        shared_subsample: bool = False,
        feature_map: str | FeatureMap | nn.Module = "identity",
        feature_range: tuple[npt.ArrayLike, npt.ArrayLike] | PointGrid | None = None,
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
        self.feature_range = feature_range
        self.data_set = data_set
        self.engine = engine

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
        """An unfitted classifier with the neighbours and samples that answer most public
        queries right; no private record is looked at, so nothing is paid for the choice.

        Args:
            public_X, public_y: labelled public rows, from 20 on; half of them ask the other half.
            epsilon, delta, classes: as in the constructor.
            records: about how many private records there will be, a public number.
            queries: how many will be asked, at most.
            seed: of the noise in the choice.
            settings: further arguments of the constructor.

        Raises:
            InvalidInput, InvalidParameter: rows, labels or numbers that cannot be.
        """
        rows, shape = input_rows(public_X)
        known, codes = record_labels(public_y, len(rows), classes)
        feature_map = feature_map_of(settings.get("feature_map", "identity"), shape)
        chosen = private_knn_settings(
            public_folds(feature_map.features(rows), codes, seed=seed),
            epsilon=epsilon,
            delta=delta,
            classes=len(known),
            records=records,
            queries=queries,
            seed=seed,
        )
        return cls(
            epsilon=epsilon, delta=delta, classes=classes, queries=queries, **{**chosen, **settings}
        )

    def fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Self:
        """Keeps the private records, and settles the noise without looking at them.

        Args:
            X: shape (n, features) or (n, height, width) or (n, channels, height, width). Or
                ``reticent.tables.Shards``, which hold the labels too: they are read block by block
                and kept as 16-bit points, and answers do not depend on how they are split.
            y: shape (n,), labels; None with shards.
            keys: one per record, equal for the records of one person. A person then counts as one:
                only the nearest record of each may vote, and the guarantee covers all of them. None
                where every record is a person's only one.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is kept.
            CalibrationFailed: no noise meets the total, or the given noise does not.
        """
        shards = X if isinstance(X, Shards) else None
        rows, names = named_rows(X) if shards is None else (shards.first, None)
        if shards is not None and y is not None:
            raise InvalidInput("y: expected None with shards, which hold their labels")
        inputs, shape = input_rows(rows)
        size = len(inputs) if shards is None else len(shards)
        classes, codes = record_labels(
            y if shards is None else shards.all_labels(), size, self.classes
        )
        found = checked_keys(keys, size)
        one_of(self.engine, ENGINES, name="engine")
        feature_map = feature_map_of(self.feature_map, shape)
        features = feature_map.features(inputs)
        grid = grid_of(self.feature_range, feature_map, features.shape[1])
        records = (
            Records.of(grid.points(features), codes, found)
            if shards is None
            else sharded_records(shards, codes, found, feature_map=feature_map, grid=grid)
        )
        search = NeighbourSearch(records, engine=self.engine)
        self._settle(len(classes), protected(self.data_set, keys))
        self.feature_map_, self.grid_, self.search_ = feature_map, grid, search
        self.keyed_ = found is not None
        self.classes_ = classes
        self.input_shape_ = shape
        self.n_features_in_ = inputs.shape[1]
        keep_names(self, names)
        return self

    def calibrate(
        self, *, epsilon: float, delta: float, queries: int, answers: int | None = None
    ) -> Self:
        """A new total and number of queries, with the least noise for them; the private records are
        not looked at.

        Args:
            epsilon, delta, queries, answers: as in the constructor.

        Raises:
            InvalidParameter: labels were released already, under the total that they were promised,
                or it was paid for.
            CalibrationFailed: no noise meets the total.
        """
        if hasattr(self, "session_") and (
            self.session_.asked or self.booked_ or self._paid is not None
        ):
            raise InvalidParameter(
                "calibrate: labels were released already; fit again, which starts a new total"
            )
        self.set_params(
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            answers=answers,
            sigma_votes=None,
            sigma_screening=None,
        )
        if hasattr(self, "classes_"):
            self._settle(len(self.classes_), self.plan_.adjacency)
        return self

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        sampler: str = "exact",
    ) -> Release:
        """A label for each public query, within the one total; noise and samples from the operating
        system.

        With a ledger the *whole plan* is charged before the first answer, once; later calls draw on
        that charge, and their queries are counted in the ledger. So a process that is forked, or a
        copy that is unpickled, after the first booked release may go on with that ledger: all of
        them together ask what the plan allows. Without a ledger only the object that was fitted, in
        the process where it was, has queries to ask.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``; public.
            ledger, scope: where the plan is booked; both from the first call on, or neither.
            sampler: where noise comes from: "exact", our own samplers, or "opendp", those of OpenDP
                (an extra; docs/noise.md).

        Returns:
            ``values`` (labels; -1, or None, where withheld), ``withheld`` and ``receipt``, whose
            guarantee is the whole plan's.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        if (ledger is None) != (scope is None):
            raise InvalidInput("ledger and scope: expected both or neither")
        points, source = self._points(X), release_sampler(sampler)
        if ledger is not None:
            check_bookable(self.plan_.adjacency)
        if ledger is None and self.booked_:
            raise InvalidInput(
                "ledger: the plan is paid for in one, which counts its queries; expected the "
                "same ledger again"
            )
        if ledger is not None and scope is not None:
            self._book(ledger, scope, len(points))
        release = self._named(
            self.session_.answer(points, self._voters(), sampler=source), source, self.booked_
        )
        with self._booking:  # two threads must not both write the receipt
            if self._paid is not None:
                self._paid.commit(release.receipt.identifier)
                self._paid = None
        return framed(release, X, ("label",))

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """As the whole plan on X, with noise and samples from a seed: for experiments, *not
        private*, and not counted.

        Raises:
            BudgetExceeded: more queries than the plan has.
        """
        points = self._points(X)
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        labels = KnnSession(self.plan_).answer(points, self._voters(), sampler=sampler)
        return framed(self._named(labels, sampler, ""), X, ("label",))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The label of most of the k / sampling_probability nearest records, without noise.
        Private: for their owner only.
        """
        points = self._points(X)
        most = max(1, round(self.neighbours / self.sampling_probability))
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
        """Cost of everything that this fitted classifier will ever release."""
        self._fitted()
        return self.plan_.guarantee

    @property
    def remaining_(self) -> int:
        """Queries that may still be asked."""
        self._fitted()
        return self.session_.remaining

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        self._fitted()
        given = not is_observed(self.classes)
        return private_knn_card(
            self.plan_, self.feature_map_, keyed=self.keyed_, classes_given=given
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy may not spend the same budget again: it can predict, and go on in a ledger that
        counts the plan already.
        """
        state = dict(super().__getstate__())
        state.pop("_booking", None)
        if "session_" in state:
            state["session_"], state["_paid"] = (
                KnnSession(self.plan_, count=copy(MemoryCount(*self._limits()))),
                None,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._booking = Lock()

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
        self.plan_.rehearse()
        self.session_ = KnnSession(self.plan_)
        self.plan_name_ = token_hex(16)
        self.booked_ = ""
        self._place = (0, "")  # of the charge in the ledger's chain
        self._paid = None
        self._booking = Lock()  # two threads must not both pay

    def _limits(self) -> tuple[int, int]:
        return self.plan_.steps.queries, self.plan_.steps.answers

    def _book(self, ledger: Ledger, scope: Scope, queries: int) -> None:
        """Charges the plan unless it is charged, and counts by the ledger from here on.

        Whatever fails on the way can be tried again: what was paid once is not paid again.

        Raises:
            InvalidInput: queries were asked without a ledger, or the plan is charged to another
                one.
            BudgetExceeded: the plan does not fit, has no queries left, or this is a copy of what
                was never booked.
            IncompatibleGuarantees, LedgerUnavailable: as ``Ledger.reserve``.
        """
        if not isinstance(scope, Scope):
            raise InvalidInput(
                f"scope: expected one Scope, got {type(scope).__name__}; the records pay for "
                "the whole plan"
            )
        if not self.booked_:
            if self.session_.asked:
                raise InvalidInput(
                    "ledger: expected the choice of the first release, to book or not, in all "
                    "later ones"
                )
            if queries > self.session_.remaining:
                self.session_.count.take(
                    queries
                )  # refuses, with the reason, before anything is charged
            with self._booking:
                self._pay(ledger, scope)
        counter = PlanCounter.find(ledger, self.plan_name_, scope=scope, event=self.plan_.event)
        if counter is None:
            raise InvalidInput(
                "ledger: the plan is paid for in another one; expected that one again"
            )
        self.session_ = KnnSession(self.plan_, count=counter)

    def _pay(self, ledger: Ledger, scope: Scope) -> None:
        if self.booked_:
            return
        if self._paid is None:
            self._paid = ledger.reserve(scope, self.plan_.event, answers=1)
        queries, answers = self._limits()
        counter = PlanCounter.open(
            ledger,
            self.plan_name_,
            scope=scope,
            event=self.plan_.event,
            booked=self._paid.id,
            queries=queries,
            answers=answers,
        )
        self._place = self._paid.position, self._paid.digest
        self.booked_ = counter.booked

    def _voters(self) -> SampledNeighbours:
        steps = self.plan_.steps
        return SampledNeighbours(
            self.search_, neighbours=steps.neighbours, probability=steps.sampling_probability
        )

    def _named(self, labels: Integers, sampler: Sampler, booked: str) -> Release:
        """Codes turned into the user's own labels; withheld answers stay -1, or None where
        labels are not 0, 1, ...
        """
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
            position=self._place[0] if booked else 0,
            digest=self._place[1] if booked else "",
        )
        return with_class_names(Release(labels, withheld, receipt), self.classes_)

    def _fitted(self) -> None:
        if not hasattr(self, "plan_") or not hasattr(self, "classes_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    def _points(self, X: npt.ArrayLike) -> Points:
        """Queries on the public grid; whatever cannot be used is refused here, before anything
        is charged.
        """
        self._fitted()
        queries = inputs_as_fitted(self, *input_rows(rows_as_fitted(self, X)))
        return self.grid_.points(self.feature_map_.features(queries))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
