"""The common part of certified classifiers: checked records, budgets, storage and explanation."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from typing_extensions import override

from reticent.accounting.composition import Composition, smallest_epsilon
from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, one_of, positive, probability
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.extras import is_torch_module
from reticent.core.guarantees import AddRemove, GuaranteeCard, data_set_name, unnamed
from reticent.core.rows import finite_or_zero
from reticent.core.settings import a_part, learned, with_settings
from reticent.mechanisms import SignedDistanceRelease
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.release.fits import use_of
from reticent.release.paying import Drawn
from reticent.release.system import PredictsByRelease
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.training_settings import Counting
from reticent.systems.certified.cards import certified_card
from reticent.systems.certified.choosing import calibrated_choice
from reticent.systems.certified.public_check import PublicCheck
from reticent.systems.certified.query import (
    AUTO,
    MECHANISMS,
    Certificate,
    CertifiedQuery,
    MechanismChoice,
)
from reticent.systems.embedding import (
    Embedding,
    IdentityEmbedding,
    check_sizes,
)
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.features import Features, numbers_of, rows_to_fit
from reticent.systems.input_rows import input_rows
from reticent.systems.public_reference import PublicReference
from reticent.systems.record_labels import (
    OBSERVED,
    Classes,
    is_observed,
    record_labels,
    restored_labels,
)
from reticent.systems.releasing_system import ReleasingSystem, class_names
from reticent.tables.frames import kept_names, stored_names
from reticent.tables.schema import TabularSchema

if TYPE_CHECKING:
    from torch import nn

_ROWS_AT_ONCE = 2**13

_Kept = dict[str, tuple[tuple[Any, ...], CertifiedQuery]]


@with_settings
class CertifiedSystem(PredictsByRelease, ClassifierMixin, ReleasingSystem):
    """A classifier trained without noise, whose labels are released with a guarantee for its
    training records.

    Use ``CertifiedClassifier``, ``CertifiedEnsemble``, ``ConvexCertifiedClassifier`` or
    ``CertifiedNetwork``.

    Attributes:
        schema_: schema that rows are encoded by, or None.
        members_: the certificate of each model, as private as the records.
        public_check_: private comparison of the model with a constant on the public rows that
            ``fit`` was given, or None. It is not stored.
        extractor_: the public feature map.
        data_set_: name of the records, or a serial drawn at random by ``fit`` where ``data_set`` is
            None.
        serial_: serial drawn at random by ``fit``, which names the fitted system where its weights
            may not.
        clipped_: private number of feature values (or records) that were cut to the public bound,
            or were not finite. It is not stored.
        classes_: the labels, sorted.
        n_features_in_: number of input features.
        input_shape_: shape of one input.
    """

    epsilon: float
    classes: Classes
    delta: float = 0.0
    mechanism: str = "auto"
    prevalence: Mapping[Any, float] | None = None
    features: Features | PublicReference | None = None
    data_set: str | None = None

    schema_: TabularSchema | None = learned()
    counting: Counting = learned()
    members_: tuple[Certificate, ...] = learned()
    public_check_: PublicCheck | None = learned()
    extractor_: Embedding = learned()
    data_set_: str = learned()
    serial_: str = learned()
    classes_: npt.NDArray[Any] = learned()
    clipped_: int = learned()

    _corrects: ClassVar[bool] = False
    """Whether its training takes log odds of public models to start from."""

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        identities: Sequence[Any] | npt.NDArray[Any] | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on private records, and certifies the training.

        Args:
            X: shape (n, features), or (n, ...) in the shape that the extractor takes. No records
                fit too, shape (0, features), as the neighbour of one record does.
            y: shape (n,), labels.
            identities: name of each record (strings, integers or bytes), which decides
                its batch and its member where there are several, or None to take the record's own
                content. Never its place in the list. They must differ: the guarantee is for data
                sets of records with different identities, and protects records, not persons.
            public_X, public_y: rows that are public, and their labels, both or neither. The models
                of a ``PublicReference`` are made of them. Without one they have no part in
                training. The model without noise is then compared with a constant label on them.
                Where it is no better there is a warning (``NoBetterThanConstant``). The owner's
                card has the numbers, which no bundle or receipt has.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: refused before anything is trained.
            CertificationFailed: too few exact bits for a network this wide.
        """
        self._choice()
        shaping = self._shaping
        records, public_X, columns = rows_to_fit(self, shaping, X, public_X)
        data_set = data_set_name(self.data_set)
        inputs, shape = input_rows(records, records=True)
        classes, labels = record_labels(y, len(inputs), self.classes)
        if (public_X is None) != (public_y is None):
            raise InvalidInput("public_X and public_y: expected both or neither")
        public = None
        if public_X is not None:
            rows, rows_shape = input_rows(public_X, name="public_X")
            if rows_shape != shape or not len(rows):
                raise InvalidInput(
                    f"public_X: expected rows of shape {shape}, at least one, got {rows_shape}"
                )
            public = finite_or_zero(rows), record_labels(public_y, len(rows), classes.tolist())[1]
        extractor = self._extractor(shaping.map, inputs.shape[1], shape, public, len(classes))
        features = extractor.alone(inputs)
        # A record whose features are not finite counts as one at the origin: to refuse it would
        # tell that it is there.
        points = finite_or_zero(features)
        use = use_of(numbers_of(self, X), data_set=self.data_set, estimator=self, booked=False)
        members = self.trained(points, labels, classes, identities)
        self._data_use = use
        self._become(
            members, extractor, classes, shape, columns, data_set=data_set, serial=token_hex(16)
        )
        parts = range(0, len(features), _ROWS_AT_ONCE)
        self.clipped_ = sum(self._cut(features[part : part + _ROWS_AT_ONCE]) for part in parts)
        if self._cut_words(features):
            warnings.warn(
                f"X: {self._cut_words(features)} were cut to it, or are not finite; bring features "
                "into that range by public numbers (PublicRanges). This count is private: it is "
                "for the owner of the records",
                UserWarning,
                stacklevel=2,
            )
        self.public_check_ = None
        if public is not None and not isinstance(self.features, PublicReference):
            predicted, _ = self.query_.stable_distances(public[0])
            self.public_check_ = PublicCheck.of(predicted, public[1])
            self.public_check_.warn(stacklevel=2)
        return self

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the model's (or the vote's) own labels, without noise. Private: for the owner of
        the records, never to be sent.
        """
        labels, _ = self.stable_distances(X)
        return np.asarray(self.classes_[labels])

    def stable_distances(self, X: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Return the position of each row's label in ``classes_``, and the certified number of
        changed records that it survives. Private.
        """
        return self.query_.stable_distances(self.checked(X))

    def member_distances(self, X: npt.ArrayLike) -> tuple[Integers, Integers]:
        """The same for every member, each of shape (members, n). Private."""
        return self.query_.member_distances(self.checked(X))

    def calibrate(self, *, epsilon: float, delta: float, answers: int) -> Self:
        """Set the cost of one answer.

        ``answers`` of them then cost at most (``epsilon``, ``delta``) together.

        By optimal composition, which is never above the sum, or for Gaussian
        noise by its exact composition. With ``mechanism="auto"`` this also decides between the two,
        by the number of labels, the total and the number of answers alone. Nothing is trained
        again, and the total is only kept by not asking more often: book in a ledger to have that
        enforced.
        """
        one_of(self.mechanism, (AUTO, *MECHANISMS), name="mechanism")
        choice = calibrated_choice(
            self.mechanism,
            classes=self._label_count(),
            epsilon=epsilon,
            delta=delta,
            answers=answers,
        )
        self.epsilon, self.delta = choice.epsilon, choice.delta
        return self

    def total(self, *, answers: int, delta: float) -> Composition:
        """Return what ``answers`` answers cost together at ``delta``: the smaller of
        basic and optimal composition, or for Gaussian noise its exact composition.
        """
        choice = self._choice()
        if choice.name == "signed-distance":
            release = choice.mechanism(self._label_count(), AddRemove(1))
            assert isinstance(release, SignedDistanceRelease)
            found = release.total(answers=answers, delta=delta)
            return Composition(found, delta, "Gaussian", {"Gaussian": found})
        return smallest_epsilon(
            epsilon=self.epsilon, answers=answers, delta=delta, answer_delta=0.0
        )

    @property
    def query_(self) -> CertifiedQuery:
        """The fitted query with the mechanism and epsilon that are set now."""
        return self._fitted()

    @override
    def _fitted(self) -> CertifiedQuery:
        if not hasattr(self, "members_"):
            raise self._not_fitted()
        fitted = self.extractor_, self.members_, self.data_set_
        made_of = (*fitted, self.epsilon, self.delta, self.mechanism)
        kept: _Kept = self.__dict__.get("_kept", {})  # made by fit: predict adds no attribute
        known = kept.get("query")
        if known is None or any(map(is_not, known[0], made_of)):
            query = CertifiedQuery(self.extractor_, self.members_, self._choice(), self.data_set_)
            known = kept["query"] = made_of, query
        return known[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the query, which is made of the other parts."""
        state = super().__getstate__()
        return {**state, "_kept": {}} if "_kept" in state else state

    @property
    @override
    def bundle_identity_(self) -> str:
        """The name of the bundle, with the mechanism and epsilon that are set now, in every
        receipt.

        It comes from public settings and from a serial that ``fit`` draws at random. The weights
        have no part in it: they are private, and a receipt is not.
        """
        choice = self._fitted().choice
        if choice not in self._identities:
            self._identities[choice] = self.bundle().identity
        return self._identities[choice]

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words, with what this process released from other fits on
        a data set of this name. A bundle's card has no such sum.
        """
        card = certified_card(self.query_, classes_given=not is_observed(self.classes))
        together = "" if self._data_use is None else self._data_use.card_line()
        if together:
            found = ("fits on the same records", together)
            card = replace(card, details=(*card.details, found))
        return card

    @override
    def bundle(self) -> Bundle:
        """Return everything that ``release`` needs, ready to be written.

        It is as private as the records: keep it where they are kept.
        """
        settings, arrays = self.query_.describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = self.classes_.tolist()
        settings["classes_given"] = not is_observed(self.classes)
        settings["mechanism_argument"] = self.mechanism
        settings["prevalence"] = (
            None
            if self.prevalence is None
            else [self.prevalence[label] for label in self.classes_.tolist()]
        )
        settings["feature_names"] = kept_names(self)
        if self.schema_ is not None:
            settings["schema"] = self.schema_.to_dict()
        return Bundle(
            type(self).__name__,
            settings,
            arrays,
            certified_card(self.query_, classes_given=settings["classes_given"]).to_markdown(),
            self.serial_,
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        feature_map: nn.Module | None = None,
        trusted_key: str | Path | None = None,
    ) -> Self:
        """A system that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            feature_map: an instance of your own module, if the bundle was fitted with one.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing or
                another one.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        return cls._of_bundle(bundle, feature_map)

    @classmethod
    def _of_bundle(cls, bundle: Bundle, feature_map: nn.Module | None = None) -> Self:
        """The system that ``bundle`` was made of."""
        query = CertifiedQuery.from_description(bundle.settings, bundle.arrays, feature_map)
        training = query.members[0].settings
        with rebuilding():
            shape = tuple(
                count(size, name="input_shape") for size in bundle.settings["input_shape"]
            )
            check_sizes(query.extractor, shape, training.features)
            classes = restored_labels(bundle.settings["labels"], expected=query.classes)
            given = classes.tolist() if bundle.settings["classes_given"] else OBSERVED
            columns = stored_names(bundle.settings, int(np.prod(shape)))
            described = bundle.settings.get("schema")
            schema = None if described is None else TabularSchema.from_dict(described)
            mechanism = one_of(
                bundle.settings["mechanism_argument"], (AUTO, *MECHANISMS), name="mechanism"
            )
            shares = bundle.settings["prevalence"]
            prevalence = (
                None if shares is None else dict(zip(classes.tolist(), shares, strict=True))
            )
            cls._check_members(query, weights_of_prevalence(prevalence, classes))
        if not bundle.serial:
            raise CorruptBundle(
                "bundle: has no serial, which names it in receipts in place of its private "
                "weights; fit it again"
            )
        loaded = cls(
            **cls._arguments(query),
            epsilon=query.choice.epsilon,
            delta=query.choice.delta,
            mechanism=mechanism,
            prevalence=prevalence,
            features=_features_of(query, schema, feature_map),
            classes=given,
            data_set=None if unnamed(query.data_set) else query.data_set,
        )
        loaded.schema_ = schema
        with rebuilding():
            loaded._become(
                query.members,
                query.extractor,
                classes,
                shape,
                columns,
                data_set=query.data_set,
                serial=bundle.serial,
            )
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    @abstractmethod
    def trained(
        self,
        points: Array,
        labels: Integers,
        classes: npt.NDArray[Any],
        identities: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> tuple[Certificate, ...]:
        """The certificates of the models trained on checked records."""

    @abstractmethod
    def _cut(self, features: Array) -> int:
        """Return how many values, or records, of the features are cut by the public bound or not
        finite.
        """

    @abstractmethod
    def _cut_words(self, features: Array) -> str:
        """The same in words, or "" where it is nothing to be warned of."""

    @classmethod
    @abstractmethod
    def _check_members(cls, query: CertifiedQuery, weights: tuple[float, ...]) -> None:
        """Raise ``CorruptBundle`` where a bundle's members are none of this system, or have other
        weights of labels.
        """

    @classmethod
    @abstractmethod
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        """Return constructor arguments of a loaded system beyond the common ones."""

    def _choice(self) -> MechanismChoice:
        epsilon = positive(self.epsilon, name="epsilon")
        delta = probability(self.delta, name="delta")
        name = one_of(self.mechanism, (AUTO, *MECHANISMS), name="mechanism")
        if name == AUTO:
            name = "signed-distance" if delta else "stability"
        if name == "signed-distance":
            probability(delta, name="delta", allow_zero=False)
        return MechanismChoice(name=name, epsilon=epsilon, delta=delta)

    def _label_count(self) -> int:
        if hasattr(self, "classes_"):
            return len(self.classes_)
        if is_observed(self.classes):
            raise self._not_fitted()
        return len(np.unique(np.asarray(list(self.classes))))

    def _become(
        self,
        members: tuple[Certificate, ...],
        extractor: Embedding,
        classes: npt.NDArray[Any],
        shape: tuple[int, ...],
        columns: Iterable[str] | None,
        *,
        data_set: str,
        serial: str,
    ) -> None:
        self._identities: dict[MechanismChoice, str] = {}
        self._kept: _Kept = {}
        self.data_set_ = data_set
        self.serial_ = serial
        self.members_ = members
        self.extractor_ = extractor
        self.classes_ = classes
        self._takes(shape, columns)

    @property
    def _shaping(self) -> Features:
        if not isinstance(self.features, PublicReference):
            used = a_part(self.features, Features, name="features")
            return used.only("schema", "map", of=self)
        if not self._corrects:
            raise InvalidParameter(
                f"features: expected no PublicReference; a {type(self).__name__} trains from a "
                "start of its own. Use ConvexCertifiedClassifier"
            )
        return Features(schema=self.features.schema)

    def _extractor(
        self,
        module: nn.Module | None,
        features: int,
        shape: tuple[int, ...],
        public: tuple[Array, Integers] | None,
        classes: int,
    ) -> Embedding:
        given = self.features
        if isinstance(given, PublicReference):
            if public is None:
                raise InvalidInput(
                    "public_X, public_y: expected labelled public rows for the models of a "
                    "PublicReference, got none"
                )
            started = PublicStartEmbedding(given.start(*public, classes)[0], given)
            started.describe()  # every receipt names the bundle: one that cannot be is refused here
            return started
        if module is None:
            return IdentityEmbedding(features)
        if not is_torch_module(module):
            raise InvalidParameter(
                f"features, map: expected None or a torch module, got {type(module).__name__}"
            )
        from reticent.systems.embedding import ModuleEmbedding

        return ModuleEmbedding(module, shape)

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        return Drawn(class_names(values, self.classes_, withheld=withheld), withheld)


def _features_of(
    query: CertifiedQuery, schema: TabularSchema | None, module: nn.Module | None
) -> Features | PublicReference | None:
    """Return the setting that a stored query was fitted with."""
    if isinstance(query.extractor, PublicStartEmbedding):
        return replace(query.extractor.reference, schema=schema)
    if schema is None and module is None:
        return None
    return Features(schema=schema, map=module)
