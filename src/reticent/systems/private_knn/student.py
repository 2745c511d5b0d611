"""``PrivateKNNStudent``: a model that may be published, from private records and public pictures
without labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin

from reticent.accounting import PrivateKnnSteps
from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, probability, words
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeCard, Unit
from reticent.core.releases import Receipt
from reticent.core.scopes import Scope
from reticent.core.seeds import training_seed
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.noise import SecureSampler
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.release.fits import use_of
from reticent.release.paying import Payment, Price, check_books, paid
from reticent.systems.class_labels import restored_labels
from reticent.systems.features import Features
from reticent.systems.private_knn.cards import KnnCircumstances, knn_card
from reticent.systems.private_knn.checked_student import (
    AnyStudent,
    StudentCheck,
    checked_student,
    validation_rows,
)
from reticent.systems.private_knn.inputs import (
    checked_persons,
    feature_map_of,
    input_rows,
    protected,
)
from reticent.systems.private_knn.plan import UNANSWERED, KnnNoise, Neighbours
from reticent.systems.private_knn.stored_network import network_parts, stored_network
from reticent.systems.private_knn.student_configs import student_configs
from reticent.systems.record_labels import OBSERVED, Classes, is_observed, record_labels
from reticent.systems.releasing_system import class_names
from reticent.tables.frames import (
    keep_names,
    kept_names,
    named_rows,
    rows_as_fitted,
    rows_named_alike,
    stored_names,
)
from reticent.training.features import FeatureMap, ReducedFeatures, StudentFeatures
from reticent.training.nearest_labels import NearestLabels
from reticent.training.progress import Report, silent
from reticent.training.query_choice import representatives
from reticent.training.students import Student, StudentConfig, train_student
from reticent.training.surest_student import SurestStudent, surest_student

if TYPE_CHECKING:
    from reticent.ledger.ledger import Ledger

_USUAL = Features(map="hog", components=40)


@with_settings
class PrivateKNNStudent(ClassifierMixin, BaseEstimator):
    """Labels some public pictures by private neighbours, trains a student on them, and does it
    again with the student's features.

    Guarantee:
        Everything that comes out - the student, the released labels, which queries were withheld -
        is (epsilon, delta)-differentially private together, for two sets of private records one of
        which has one record more; with ``persons``, all records of one person more. ``predict`` is
        post-processing, for anyone and any number of times. ``card()`` says what is assumed.

    Each round asks for labels of public pictures that were not asked for before, all with the same
    mechanisms, so that all rounds are one plan with one total. The student learns from the labels
    so far and from all public pictures. A label of an earlier round that the previous student
    contradicts is left out: its features were worse.

    Args:
        epsilon: of the total, above 0.
        delta: of the total, in (0, 1).
        queries: public pictures asked for in each round.
        neighbours: which records vote on a query, and when their vote counts; None for the usual.
        features: map of the first round, and the number of principal components, of public
            pictures, that it is reduced to; None for 40 of "hog".
        student: settings of the students, or those of all but the last and of the last one, which
            is published; None for the usual ones. Their seeds come from
            ``random_state``. "svm" for a linear support vector machine on the features of the first
            round, trained on the surest of the labels; all rounds then search in these features,
            and such a student has no bundle.
        classes: the labels that there are, a public list; or "observed" to take those that occur
            among the records, which publishes them: the card then says that they are not protected.
        data_set: what the private records are called, by their owner; the same name whenever they
            are the same, since a ledger charges every fit on them to it. None books in no ledger.
        random_state: seed of training and of the choice of queries; samples and noise never depend
            on it.

    Attributes:
        plan_: noise and total.
        feature_map_: of the first round.
        student_: the last student; or a ``NearestLabels``, where that student did not beat its own
            labels on the validation rows, or where every label was withheld.
        check_: what the student and its labels got right there; None without validation rows.
        released_: shape (public pictures,), the released labels; -1, or None, where none was asked
            for or released.
        rounds_: for each round, the places of the public pictures that were asked for.
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> X = X.reshape(-1, 8, 8) / 16
        >>> settings = StudentConfig(image_shape=(1, 8, 8), epochs=2)
        >>> student = PrivateKNNStudent(
        ...     epsilon=4.0,
        ...     delta=1e-5,
        ...     queries=(20,),
        ...     neighbours=Neighbours(number=20, sampling_probability=0.5),
        ...     student=settings,
        ...     classes=range(10),
        ...     random_state=0,
        ... )
        >>> student.fit(X[:1400], y[:1400], public=X[1400:]).predict(X[1400:1403]).shape
        (3,)

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187.
        - Papernot, Abadi, Erlingsson, Goodfellow and Talwar (2017), "Semi-supervised knowledge
          transfer for deep learning from private training data", arXiv:1610.05755, a student of
          released labels.
        - Sohn et al. (2020), "FixMatch: simplifying semi-supervised learning with consistency and
          confidence", arXiv:2001.07685, how the student learns from unlabelled pictures.

    See Also:
        reticent.PrivateKNNClassifier: labels alone.
        reticent.accounting.private_knn_total: the total.
    """

    epsilon: float
    delta: float
    classes: Classes
    queries: Sequence[int] = (300, 400)
    neighbours: Neighbours | None = None
    features: Features | None = None
    student: StudentConfig | tuple[StudentConfig, StudentConfig] | Literal["svm"] | None = None
    data_set: str | None = None
    random_state: int | None = None

    classes_: npt.NDArray[Any] = learned()
    n_features_in_: int = learned()
    plan_: KnnNoise = learned()
    student_: AnyStudent = learned()
    check_: StudentCheck | None = learned()
    receipt_: Receipt = learned()
    _unbooked: _Finished | None = learned()

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        persons: Sequence[Any] | None = None,
        *,
        public: npt.ArrayLike,
        validation_X: npt.ArrayLike | None = None,
        validation_y: npt.ArrayLike | None = None,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        report: Report | None = None,
    ) -> Self:
        """Labels, trains and looks again, once per round; the whole plan is charged before the
        first label.

        Args:
            X: shape (n, height, width), (n, channels, height, width) or (n, pixels); private.
            y: shape (n,), labels of the private records.
            persons: one per record, equal for the records of one person; see
                ``PrivateKNNClassifier.fit``.
            public: pictures of the same shape, without labels.
            validation_X, validation_y: further public pictures of the same shape, with public
                labels, both or neither. The last student is kept only if it is right on more of
                them than the nearest released label is, in the first round's features; otherwise
                these labels answer in its place. That is post-processing.
            ledger, scope: where the plan is booked, both or neither.
            report: told after every epoch of training, such as ``reticent.training.progress.bar``.

        Raises:
            InvalidInput, InvalidParameter, UnknownName, CalibrationFailed: nothing is charged.
            BudgetExceeded: nothing is released.
            LedgerUnavailable: nothing is released. Where the plan was paid for and only its receipt
                could not be written, ``commit`` tries that again; the student is kept.
        """
        source = SecureSampler()
        adjacency = protected(self.data_set, persons)
        check_books(adjacency, source, ledger, scope)
        rows, names = named_rows(X)
        inputs, shape = input_rows(rows, records=True)
        classes, codes = record_labels(y, len(inputs), self.classes)
        found = checked_persons(persons, len(inputs))
        # Whether there is such an engine has to be known before anything is charged.
        NeighbourSearch(Records.of([[0]], [0], None), engine=self._neighbours.engine)
        alike = rows_named_alike(public, names, of="the private records", name="public")
        pictures, public_shape = input_rows(alike)
        if public_shape != shape:
            raise InvalidInput(
                f"public: expected inputs of shape {shape}, as the private ones have, got "
                f"{public_shape}"
            )
        if isinstance(self.queries, (str, bytes)) or not isinstance(self.queries, Iterable):
            raise InvalidParameter(
                f"queries={self.queries!r}: expected how many to ask in each round, as (300, 400)"
            )
        checked = validation_rows(
            validation_X, validation_y, classes=classes, names=names, shape=shape
        )
        rounds = [count(asked, name="queries") for asked in self.queries]
        if not rounds or sum(rounds) > len(pictures):
            raise InvalidParameter(
                f"queries={self.queries!r}: expected at least one round, and at most "
                f"{len(pictures)} queries in all"
            )
        seed = training_seed(self.random_state)
        config, last = student_configs(self.student, shape)
        shaping = _USUAL if self.features is None else self.features
        shaping = a_part(shaping, Features, name="features").only("map", "components", of=self)
        feature_map = feature_map_of(shaping.map, shape)
        if shaping.components is not None:
            feature_map = ReducedFeatures.of(feature_map, pictures, dimension=shaping.components)
        plan = self._plan(sum(rounds), len(classes), adjacency)
        plan.rehearse()
        first_map = feature_map
        circumstances = KnnCircumstances(
            feature_map.name, feature_map.origin, found is not None, not is_observed(self.classes)
        )
        use = use_of(inputs, data_set=self.data_set, estimator=self, booked=ledger is not None)
        price = Price(plan.event, 1, "student", use=use)
        with (
            paid(price, sampler=source, ledger=ledger, scope=scope) as payment,
            torch.random.fork_rng(devices=[]),
        ):
            labels = np.full(len(pictures), UNANSWERED, dtype=np.int64)
            student: Student | SurestStudent | None = None
            check: StudentCheck | None = None
            asked: list[Integers] = []
            for number, wanted in enumerate(rounds):
                earlier = np.concatenate([*asked, np.zeros(0, dtype=np.int64)])
                lessons = labels.copy()
                if isinstance(student, Student):
                    feature_map = StudentFeatures(student)
                    contradicted = student.probabilities(pictures).argmax(axis=1) != labels
                    lessons[earlier[contradicted[earlier]]] = UNANSWERED
                public_features = feature_map.features(pictures)
                places = representatives(
                    public_features, wanted, asked=earlier, seed=(seed + number) % 2**31
                )
                voters, grid = self._voters(
                    public_features, feature_map.features(inputs), codes, found, plan
                )
                answers = plan.answer(grid.points(public_features[places]), voters, sampler=source)
                labels[places] = lessons[places] = answers
                asked.append(places)
                settings = last if number == len(rounds) - 1 else config
                # A student needs a label; a plan that was paid for must not end in an error.
                if settings is not None and (lessons != UNANSWERED).any():
                    student = train_student(
                        pictures,
                        lessons,
                        classes=len(classes),
                        config=replace(settings, seed=seed + number),
                        report=report or silent,
                    )
            if last is None:
                student = surest_student(public_features, labels, classes=len(classes), seed=seed)
            own = NearestLabels.of(first_map.features(pictures), labels, classes=len(classes))
            final: AnyStudent = own if student is None else student
            if checked is not None:
                final, check = checked_student(final, own, checked, first_map)
            self._unbooked = _Finished(
                payment=payment,
                plan=plan,
                circumstances=circumstances,
                feature_map=first_map,
                features=inputs.shape[1],
                student=final,
                classes=classes,
                names=names,
                labels=labels,
                asked=asked,
                check=check,
            )
        return self.commit()

    def commit(self) -> Self:
        """Books the receipt of a student that ``fit`` could not book, and takes the student on.

        The plan was paid for before the first label; ``fit`` again would pay for another one.

        Raises:
            NotFittedYet: there is none.
            LedgerUnavailable: could not be written; the student is kept for another try.
        """
        finished = getattr(self, "_unbooked", None)
        if finished is None:
            raise NotFittedYet("commit: expected a student whose receipt is missing; there is none")
        finished.payment.commit()
        self.receipt_ = finished.payment.receipt
        self.released_ = class_names(
            finished.labels, finished.classes, withheld=finished.labels == UNANSWERED
        )
        self.rounds_, self.check_ = finished.asked, finished.check
        self.feature_map_, self.n_features_in_ = finished.feature_map, finished.features
        self._become(
            finished.plan,
            finished.circumstances,
            finished.student,
            finished.classes,
            finished.names,
        )
        self._unbooked = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is not booked stays where it was made."""
        return {**super().__getstate__(), "_unbooked": None}

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """The student's probability of every class, shape (n, classes); anyone may ask, as often
        as they like.
        """
        self._fitted()
        inputs, _ = input_rows(rows_as_fitted(self, X))
        if inputs.shape[1] != self.n_features_in_:
            raise InvalidInput(f"X: expected {self.n_features_in_} features, got {inputs.shape[1]}")
        if isinstance(self.student_, Student):
            return self.student_.probabilities(inputs)
        return self.student_.probabilities(self.feature_map_.features(inputs))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The student's labels, shape (n,)."""
        likely = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likely])

    @property
    def guarantee(self) -> Guarantee:
        """Cost of the student and all released labels together."""
        self._fitted()
        return self.plan_.guarantee

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        self._fitted()
        return knn_card(self.plan_, self._circumstances)

    def bundle(self) -> Bundle:
        """The student with its guarantee, ready to be written; no private record is in it.

        Raises:
            InvalidInput: a support vector machine, or labels that no student beat, which need
                the feature map as well.
        """
        self._fitted()
        if isinstance(self.student_, SurestStudent):
            raise InvalidInput(
                "student='svm': expected a network, whose weights are all that a bundle needs; "
                "keep the weights of student_ beside your feature map, or fit with "
                "student=StudentConfig(...)"
            )
        if isinstance(self.student_, NearestLabels):
            raise InvalidInput(
                "student_: expected a network, whose weights are all that a bundle needs; no "
                "student beat its labels, or none was released; keep what is in released_ beside "
                "the public pictures"
            )
        sizes, arrays = network_parts(self.student_)
        settings = {
            "steps": asdict(self.plan_.steps),
            "delta": self.plan_.delta,
            "data_set": self.plan_.adjacency.data_set,
            "card": self._circumstances.to_dict(),
            "classes": self.classes_.tolist(),
            "feature_names": kept_names(self),
            **sizes,
        }
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the bundle, whole or not at all; see ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path, *, trusted_key: str | Path | None = None) -> Self:
        """A student that predicts, from what ``save`` wrote; it has nothing private and nothing
        left to ask.

        Args:
            folder: the bundle.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: no such folder, or a bundle of another system.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        settings = bundle.settings
        with rebuilding():
            classes = restored_labels(settings["classes"])
            student = stored_network(settings, len(classes), bundle.arrays)
            circumstances = KnnCircumstances.from_dict(settings["card"])
            unit = Unit.PERSON if circumstances.by_person else Unit.RECORD
            adjacency = AddRemove(1, unit, words(settings["data_set"], name="data_set"))
            plan = KnnNoise(
                PrivateKnnSteps(**settings["steps"]),
                probability(settings["delta"], name="delta", allow_zero=False),
                len(classes),
                adjacency,
            )
            total, name = plan.total, None if adjacency.unnamed else adjacency.data_set
            given = classes.tolist() if circumstances.classes_given else OBSERVED
            names = stored_names(settings, int(np.prod(student.image_shape)))
            loaded = cls(
                epsilon=total.epsilon,
                delta=total.delta,
                queries=(plan.steps.queries,),
                classes=given,
                data_set=name,
            )
            loaded._become(plan, circumstances, student, classes, names)
            loaded.check_ = None
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    @property
    def _neighbours(self) -> Neighbours:
        return a_part(self.neighbours, Neighbours, name="neighbours")

    def _plan(self, queries: int, classes: int, adjacency: AddRemove) -> KnnNoise:
        voting = self._neighbours
        probability(self.delta, name="delta", allow_zero=False)
        return KnnNoise.of(
            epsilon=self.epsilon,
            delta=self.delta,
            queries=queries,
            answers=None,
            neighbours=voting.number,
            sampling_probability=voting.sampling_probability,
            threshold=voting.threshold,
            classes=classes,
            adjacency=adjacency,
        )

    def _voters(
        self,
        public: Array,
        private: Array,
        codes: Integers,
        persons: Sequence[Any] | None,
        plan: KnnNoise,
    ) -> tuple[SampledNeighbours, PointGrid]:
        """The private records on a grid around all public pictures."""
        grid = PointGrid.around(public)
        search = NeighbourSearch(
            Records.of(grid.points(private), codes, persons), engine=self._neighbours.engine
        )
        steps = plan.steps
        return SampledNeighbours(
            search, neighbours=steps.neighbours, probability=steps.sampling_probability
        ), grid

    def _become(
        self,
        plan: KnnNoise,
        circumstances: KnnCircumstances,
        student: AnyStudent,
        classes: npt.NDArray[Any],
        names: Iterable[str] | None,
    ) -> None:
        keep_names(self, names)
        self.plan_, self._circumstances, self.student_, self.classes_ = (
            plan,
            circumstances,
            student,
            classes,
        )
        if isinstance(student, Student):
            self.n_features_in_ = int(np.prod(student.image_shape))

    def _fitted(self) -> None:
        if not hasattr(self, "student_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")


@dataclass(frozen=True, eq=False)
class _Finished:
    """What a fit came to, until it is booked."""

    payment: Payment
    plan: KnnNoise
    circumstances: KnnCircumstances
    feature_map: FeatureMap
    features: int
    student: AnyStudent
    classes: npt.NDArray[Any]
    names: Iterable[str] | None
    labels: Integers
    asked: list[Integers]
    check: StudentCheck | None
