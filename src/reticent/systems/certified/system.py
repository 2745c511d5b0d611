"""What ``CertifiedClassifier`` and ``CertifiedEnsemble`` share: checked settings, training, budgets, storing and explaining."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import nn
from typing_extensions import override

from reticent.accounting.calibration import epsilon_per_answer
from reticent.accounting.composition import Composition, smallest_epsilon
from reticent.accounting.ledger import Ledger
from reticent.accounting.scopes import Scope
from reticent.certify.record_keys import record_buckets, record_keys
from reticent.certify.training import ParameterIntervals, parameter_intervals
from reticent.certify.training_settings import TrainingSettings
from reticent.core.checks import count, positive, probability
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.guarantees import GuaranteeCard, data_set_name, unnamed
from reticent.core.releases import Release
from reticent.noise import Sampler
from reticent.systems.booking import Scopes
from reticent.systems.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.certified.cards import certified_card
from reticent.systems.certified.query import CertifiedLaw, CertifiedQuery, features_of
from reticent.systems.class_labels import restored_labels
from reticent.systems.embedding import Embedding, IdentityEmbedding, ModuleEmbedding, check_pictures, check_sizes
from reticent.systems.releasing_system import ReleasingSystem, with_class_names
from reticent.training.progress import progress

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TRAINING = (
    "hidden",
    "epochs",
    "batches",
    "learning_rate",
    "rate_decay",
    "clip",
    "momentum",
    "weight_decay",
    "input_bound",
    "counting",
)
"""Constructor arguments that go into ``TrainingSettings`` as they are."""


class CertifiedSystem(ClassifierMixin, ReleasingSystem):
    """A classifier trained without noise, whose labels are released with a guarantee for its training records.

    Use ``CertifiedClassifier`` or ``CertifiedEnsemble``.

    Attributes:
        members_: certified parameter intervals of each model; as private as the records.
        extractor_: the public feature map.
        data_set_: name of the records; a serial drawn at random by ``fit`` where ``data_set`` is None.
        serial_: drawn at random by ``fit``; names the fitted system where its weights may not.
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        input_shape_: shape of one input.
    """

    members_: tuple[ParameterIntervals, ...]
    extractor_: Embedding
    data_set_: str
    serial_: str
    classes_: npt.NDArray[Any]

    epsilon: float
    delta: float
    law: str
    hidden: tuple[int, ...]
    k_max: int
    extractor: nn.Module | None
    classes: Sequence[Any] | None
    data_set: str | None
    random_state: Any
    verbose: bool

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, keys: Sequence[Any] | npt.NDArray[Any] | None = None) -> Self:
        """Trains on private records, and certifies the training.

        Args:
            X: shape (n, features), or (n, ...) in the shape that the extractor takes.
            y: shape (n,), labels.
            keys: what each record is known by (strings, integers or bytes), which decides its batch and its member; None to
                take the record's own content. Never its place in the list.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: before anything is trained.
            CertificationFailed: too few exact bits for a network this wide.
        """
        self._law()
        members = self._member_count()
        k_max = count(self.k_max, name="k_max", minimum=0)
        data_set = data_set_name(self.data_set)
        inputs, shape = check_pictures(X, name="X")
        classes, labels = self._encoded(y, len(inputs))
        extractor = _extractor(self.extractor, inputs.shape[1], shape)
        points = features_of(extractor, inputs)
        if not np.isfinite(points).all():
            raise InvalidInput("extractor: gives values that are not finite on X; check the module and the range of X")
        fields = {name: getattr(self, name) for name in TRAINING}
        training = TrainingSettings(features=points.shape[1], classes=len(classes), **{**fields, "hidden": tuple(self.hidden)})
        if members > 1 and training.counting == "replace":
            raise InvalidParameter("counting='replace': a replaced record can change two members; expected add-remove")
        names = record_keys(points, labels, keys)
        member = record_buckets(names, buckets=members, purpose="ensemble member")
        batch = record_buckets(names, buckets=training.batches, purpose="batch")
        random = check_random_state(self.random_state)
        seeds = [int(random.randint(2**31 - 1)) for _ in range(members)]
        fitted = []
        with progress(self.verbose) as report:
            for index, seed in enumerate(seeds):
                mine = member == index
                stage = "certified training" if members == 1 else f"certified training, member {index + 1}"

                def done(distances: int, stage: str = stage) -> None:
                    report(stage, distances, k_max + 1, float("nan"))

                fitted.append(
                    parameter_intervals(
                        points[mine],
                        labels[mine],
                        training,
                        k_max=k_max,
                        initial=training.initial(seed if training.hidden else None),
                        batch=batch[mine],
                        report=done,
                    )
                )
        self._become(tuple(fitted), extractor, classes, shape, data_set=data_set, serial=token_hex(16))
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The model's (or the vote's) own labels, without noise. Private: for the owner of the records, never to be sent."""
        labels, _ = self.stable_distances(X)
        return np.asarray(self.classes_[labels])

    def stable_distances(self, X: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Position of each row's label in ``classes_``, and the certified number of changed records that it survives. Private."""
        return self.query_.stable_distances(self._inputs(X))

    def member_distances(self, X: npt.ArrayLike) -> tuple[Integers, Integers]:
        """The same for every member, each of shape (members, n). Private."""
        return self.query_.member_distances(self._inputs(X))

    def calibrate(self, *, epsilon: float, delta: float, answers: int) -> Self:
        """Sets the epsilon of one answer such that ``answers`` of them cost at most (``epsilon``, ``delta``) together.

        By optimal composition, which is never above basic or advanced composition. Nothing is trained again, and the total is
        only kept by not asking more often: book in a ledger to have that enforced.

        Raises:
            InvalidParameter: the law "distance", whose answers have a delta of their own.
        """
        if self.law == "distance":
            raise InvalidParameter(
                "calibrate: expected a law of pure epsilon, got law='distance'; set epsilon and delta yourself"
            )
        self.epsilon = epsilon_per_answer(epsilon=epsilon, delta=delta, answers=answers)
        return self

    def total(self, *, answers: int, delta: float) -> Composition:
        """What ``answers`` answers cost together at ``delta``: the smallest of basic, advanced and optimal composition."""
        own = self.delta if self._law().name == "distance" else 0.0
        return smallest_epsilon(epsilon=self.epsilon, answers=answers, delta=delta, answer_delta=own)

    @property
    def query_(self) -> CertifiedQuery:
        """The fitted query with the law and epsilon that are set now."""
        if not hasattr(self, "members_"):
            raise self._not_fitted()
        return CertifiedQuery(self.extractor_, self.members_, self._law(), self.data_set_)

    @property
    @override
    def bundle_identity_(self) -> str:
        """Names the bundle, with the law and epsilon that are set now, in every receipt.

        It comes from public settings and from a serial that ``fit`` draws at random. The weights have no part in it: they are
        private, and a receipt is not.
        """
        law = self._fitted().law
        if law not in self._identities:
            self._identities[law] = self.bundle().identity
        return self._identities[law]

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        return certified_card(self.query_, classes_given=self.classes is not None)

    @override
    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written. As private as the records: keep it where they are kept."""
        settings, arrays = self.query_.describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = self.classes_.tolist()
        settings["classes_given"] = self.classes is not None
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown(), self.serial_)

    @classmethod
    def load(cls, folder: str | Path, *, extractor: nn.Module | None = None, trusted_key: str | Path | None = None) -> Self:
        """A system that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            extractor: an instance of your own module, if the bundle was fitted with one.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing or another one.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        query = CertifiedQuery.from_description(bundle.settings, bundle.arrays, extractor)
        training = query.members[0].settings
        with rebuilding():
            shape = tuple(count(size, name="input_shape") for size in bundle.settings["input_shape"])
            check_sizes(query.extractor, shape, training.features)
            classes = restored_labels(bundle.settings["labels"], expected=query.classes)
            given = classes.tolist() if bundle.settings["classes_given"] else None
        if not bundle.serial:
            raise CorruptBundle("bundle: has no serial, which names it in receipts in place of its private weights; fit it again")
        arguments = {name: getattr(training, name) for name in TRAINING}
        loaded = cls(
            **cls._arguments(query),
            epsilon=query.law.epsilon,
            delta=query.law.delta,
            law=query.law.name,
            k_max=query.members[0].k_max,
            extractor=extractor,
            classes=given,
            data_set=None if unnamed(query.data_set) else query.data_set,
            **arguments,
        )
        with rebuilding():
            loaded._become(query.members, query.extractor, classes, shape, data_set=query.data_set, serial=bundle.serial)
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    @abstractmethod
    def _member_count(self) -> int:
        """Number of models."""

    @classmethod
    @abstractmethod
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        """Constructor arguments of a loaded system beyond the common ones."""

    def _law(self) -> CertifiedLaw:
        epsilon = positive(self.epsilon, name="epsilon")
        law = CertifiedLaw(name=self.law, epsilon=epsilon, delta=probability(self.delta, name="delta"))
        if self.law == "distance":
            probability(self.delta, name="delta", allow_zero=False)
        return law

    def _become(
        self,
        members: tuple[ParameterIntervals, ...],
        extractor: Embedding,
        classes: npt.NDArray[Any],
        shape: tuple[int, ...],
        *,
        data_set: str,
        serial: str,
    ) -> None:
        self._identities: dict[CertifiedLaw, str] = {}
        self.data_set_ = data_set
        self.serial_ = serial
        self.members_ = members
        self.extractor_ = extractor
        self.classes_ = classes
        self._takes(shape)

    @override
    def _fitted(self) -> CertifiedQuery:
        return self.query_

    @override
    def _answer(self, X: npt.ArrayLike, sampler: Sampler, ledger: Ledger | None, scope: Scopes | None) -> Release:
        if not (scope is None or isinstance(scope, Scope)):
            raise InvalidInput(
                f"scope: expected one Scope, got {type(scope).__name__}; every answer, whatever its row, is paid for by the "
                "records seen in fit"
            )
        return with_class_names(super()._answer(X, sampler, ledger, scope), self.classes_)

    def _encoded(self, y: npt.ArrayLike | None, rows: int) -> tuple[npt.NDArray[Any], Integers]:
        if y is None:
            raise InvalidInput("y: requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        if labels.shape != (rows,):
            raise InvalidInput(f"y: expected {rows} labels, got shape={labels.shape}")
        if labels.dtype.kind == "f" and not bool(np.isfinite(labels).all()):
            raise InvalidInput("y: contains NaN or infinity")
        try:
            check_classification_targets(labels)
            classes = np.unique(labels if self.classes is None else np.asarray(list(self.classes)))
        except (ValueError, TypeError):
            raise InvalidInput("y: Unknown label type: expected class labels of one kind") from None
        if len(classes) < 2:
            raise InvalidInput("y: expected at least two classes, got one class; name all of them in classes")
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        if not bool((classes[codes] == labels).all()):
            raise InvalidInput("y: expected labels from classes only; labels are not shown")
        return classes, codes.astype(np.int64)


def _extractor(module: nn.Module | None, features: int, shape: tuple[int, ...]) -> Embedding:
    if module is None:
        return IdentityEmbedding(features)
    if not isinstance(module, nn.Module):
        raise InvalidParameter(f"extractor: expected None or a torch module, got {type(module).__name__}")
    return ModuleEmbedding(module, shape)
