"""A trained and certified classifier, or a vote of several, ready to answer privately."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of, words
from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import Adjacency
from reticent.mechanisms import (
    SignedDistanceRelease,
    StabilityResponse,
)
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.retraining.convex import ConvexModel, ConvexSettings
from reticent.retraining.hidden_layer import HiddenModel, HiddenSettings
from reticent.retraining.reserves import ReserveModel, ReserveSettings, one_against_one
from reticent.retraining.stability import stable_distances, vote_distances
from reticent.retraining.training import ParameterIntervals
from reticent.retraining.training_settings import PROTECTING, TrainingGrids, TrainingSettings
from reticent.systems.embedding import Arrays, Embedding, restore
from reticent.systems.embedding.public_start import PublicStartEmbedding

if TYPE_CHECKING:
    from torch import nn

Certificate = ParameterIntervals | ReserveModel
Response = StabilityResponse | SignedDistanceRelease

MECHANISMS = ("stability", "signed-distance")
"""How a certified label is released: by calibrated randomised response, or by Gaussian noise on its
signed distance.
"""

AUTO = "auto"
"""Calibrated randomised response where delta is 0, Gaussian noise where it is not."""


@dataclass(frozen=True, kw_only=True)
class MechanismChoice:
    """The mechanism that answers, and its cost.

    Attributes:
        name: one of ``MECHANISMS``.
        epsilon: epsilon of one answer, above 0.
        delta: delta of one answer, in [0, 1), used by "signed-distance" alone, which needs it above
            0.

    Raises:
        UnknownName: another mechanism.
    """

    name: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        one_of(self.name, MECHANISMS, name="mechanism")

    def mechanism(self, classes: int, adjacency: Adjacency) -> Response:
        """The mechanism for ``classes`` labels.

        Raises:
            InvalidParameter: epsilon or delta out of range.
        """
        if self.name == "stability":
            return StabilityResponse(classes=classes, epsilon=self.epsilon, adjacency=adjacency)
        return SignedDistanceRelease(
            classes=classes, epsilon=self.epsilon, delta=self.delta, adjacency=adjacency
        )


@dataclass(frozen=True, eq=False)
class CertifiedQuery:
    """Everything that answering takes. It holds what was learnt from the records, and is as private
    as they are.

    Attributes:
        extractor: public map from inputs to features, applied to one input at a time.
        members: one certificate, one for each member of an ensemble, or one with reserves for each
            pair of labels.
        choice: mechanism that releases labels.
        data_set: name or serial of the records that it was trained on.
    """

    extractor: Embedding
    members: tuple[Certificate, ...]
    choice: MechanismChoice
    data_set: str = ""

    @property
    def classes(self) -> int:
        """The number of labels."""
        if isinstance(self.members[0], ReserveModel):
            return labels_of_pairs(len(self.members))
        return self.members[0].settings.classes

    @cached_property
    def mechanism(self) -> Response:
        """The mechanism that answers. It has answered about label 0 at distance 0, with a seed, so
        that what cannot answer fails before any charge.

        Raises:
            ReticentError: a cost or noise beyond what is computed.
        """
        found = self.choice.mechanism(self.classes, self.adjacency)
        nobody = np.zeros(1, dtype=np.int64)
        _ = found.event
        found.release(nobody, nobody, sampler=SeededSampler(0))
        return found

    @property
    def adjacency(self) -> Adjacency:
        """One record more, less or replaced, of this data set. Keys name records here. They make
        none a person's.
        """
        return replace(self.members[0].settings.adjacency, data_set=self.data_set)

    @cached_property
    def certificate(self) -> str:
        """The kind of the certificate that answers rest on: the first member's stands for all."""
        return self.members[0].kind

    def member_distances(self, inputs: Array) -> tuple[Integers, Integers]:
        """Return every member's label and stable distance, each of shape (members, n). Private.

        The label of a pair's member is 0 for the first of its pair and 1 for the second.
        """
        if isinstance(self.members[0], ReserveModel):
            labels, reserves = self.member_reserves(inputs)
            return labels, self.members[0].settings.distances(reserves)
        points = self.extractor.embed(inputs)
        found = [stable_distances(member, points) for member in self.members]  # type: ignore[arg-type]
        return np.stack([labels for labels, _ in found]), np.stack(
            [distances for _, distances in found]
        )

    def member_reserves(self, inputs: Array) -> tuple[Integers, Array]:
        """Return every pair's label and reserve, each of shape (members, n). Private."""
        points = self.extractor.embed(inputs)
        found = []
        pairs = combinations(range(self.classes), 2)
        for pair, member in zip(pairs, self.members, strict=True):
            assert isinstance(member, ReserveModel)
            found.append(member.reserves(*rows_of_pair(points, member.settings, pair)))
        return np.stack([labels for labels, _ in found]), np.stack(
            [reserves for _, reserves in found]
        )

    def reserves(self, inputs: Array) -> tuple[Integers, Array]:
        """The label that wins all its pairs, and its least reserve. Private."""
        return one_against_one(*self.member_reserves(inputs), classes=self.classes)

    def stable_distances(self, inputs: Array) -> tuple[Integers, Integers]:
        """The label of the model, or of the vote, and how many records must change at least
        before it does, less 1. Private.
        """
        if isinstance(self.members[0], ReserveModel):
            labels, reserves = self.reserves(inputs)
            return labels, self.members[0].settings.distances(reserves)
        labels, distances = self.member_distances(inputs)
        if len(self.members) == 1:
            return labels[0], distances[0]
        return vote_distances(labels, distances, classes=self.classes)

    def answer(
        self, inputs: Array, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return one label for each row of checked ``inputs``, and that none is withheld.

        Args:
            inputs: shape (n, features), finite.
            sampler: source of randomness.
        """
        labels, distances = self.stable_distances(inputs)
        released = self.mechanism.release(labels, distances, sampler=sampler)
        return released, np.zeros(len(labels), dtype=bool)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``from_description`` reads."""
        extractor, arrays = self.extractor.describe()
        certificates, of_members = _described(self.members)
        choice = {
            "name": self.choice.name,
            "epsilon": self.choice.epsilon,
            "delta": self.choice.delta,
        }
        settings = {
            "extractor": extractor,
            **certificates,
            "mechanism": choice,
            "data_set": self.data_set,
        }
        return settings, {**arrays, **of_members}

    @classmethod
    def from_description(
        cls, settings: dict[str, Any], arrays: Arrays, extractor: nn.Module | None
    ) -> CertifiedQuery:
        """The query that ``describe`` took apart.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together.
            InvalidInput: the bundle needs the user's own extractor.
        """
        with rebuilding():
            described = settings["extractor"]
        with rebuilding():
            members = _restored(settings, arrays)
            started = described["kind"] == PublicStartEmbedding.kind
        if started:
            labels = labels_of_pairs(len(members))
            features: Embedding = PublicStartEmbedding.from_description(
                described, arrays, labels=labels
            )
        else:
            features = restore(described, arrays, extractor)
        with rebuilding():
            query = cls(
                features,
                members,
                MechanismChoice(**settings["mechanism"]),
                words(settings["data_set"], name="data_set"),
            )
            _ = query.mechanism, members[0]
        return query


def labels_of_pairs(pairs: int) -> int:
    """Return how many labels have so many pairs, or 0 where no number has.

    Example:
        >>> [labels_of_pairs(pairs) for pairs in (1, 2, 3, 45)]
        [2, 0, 3, 10]
    """
    labels = math.isqrt(2 * pairs) + 1
    return labels if labels * (labels - 1) == 2 * pairs else 0


def rows_of_pair(
    points: Array, settings: ReserveSettings, pair: tuple[int, int]
) -> tuple[Array, Array | None]:
    """Return features, and the log odds of the second label of a pair against the first: of the
    columns that stand after features, a log probability for each label. None where no offset is.
    """
    rows, logs = points[:, : settings.features], points[:, settings.features :]
    if not settings.offset_bound:
        return rows, None
    return rows, logs[:, pair[1]] - logs[:, pair[0]]


def _described(members: tuple[Certificate, ...]) -> tuple[dict[str, Any], Arrays]:
    """Return plain JSON values and named arrays that ``_restored`` reads."""
    training = members[0].settings
    fields: dict[str, Any] = {
        name: getattr(training, name)
        for name in type(training).__dataclass_fields__
        if name != "classes" or isinstance(training, TrainingSettings)
    }
    if isinstance(training, ReserveSettings):  # the only field that differs by pair
        fields["class_weights"] = [member.settings.class_weights for member in members]
    arrays: Arrays = {}
    for index, member in enumerate(members):
        if isinstance(member, ConvexModel):
            arrays[f"member{index}.eigenvalue"] = np.array([member.eigenvalue])
        if isinstance(member, ConvexModel | HiddenModel):
            arrays[f"member{index}.weights"] = member.weights
            continue
        assert isinstance(member, ParameterIntervals)
        for layer, start in enumerate(member.grids.start):
            name = f"member{index}.layer{layer}"
            # Whole numbers below 2**27: int32 holds them, float64 the starting weights they are
            # multiples around.
            arrays[f"{name}.start"] = start * member.grids.weight_units[layer]
            arrays[f"{name}.lower"] = member.lower[layer].astype(np.int32)
            arrays[f"{name}.upper"] = member.upper[layer].astype(np.int32)
    return {"certificate": members[0].kind, "training": fields, "members": len(members)}, arrays


def _restored(settings: dict[str, Any], arrays: Arrays) -> tuple[Certificate, ...]:
    """Return the members that ``_described`` took apart.

    Raises:
        CorruptBundle: fields or arrays that are missing or do not fit together. Other errors of
            missing fields are for the caller to translate.
    """
    fields = dict(settings["training"])
    names = [f"member{index}" for index in range(int(settings["members"]))]
    kind = settings["certificate"]
    if kind in (ConvexModel.kind, HiddenModel.kind):
        weights = [tuple(pair) for pair in fields.pop("class_weights")]
        return tuple(
            _convex(ConvexSettings(**fields, class_weights=of_pair), arrays, name)
            if kind == ConvexModel.kind
            else _hidden(HiddenSettings(**fields, class_weights=of_pair), arrays, name)
            for name, of_pair in zip(names, weights, strict=True)
        )
    for name in ("hidden", "class_weights"):
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    if kind != ParameterIntervals.kind or fields["counting"] not in PROTECTING:
        raise CorruptBundle("bundle: no certificate that protects records")
    training = TrainingSettings(**fields)
    return tuple(_intervals(training, arrays, name) for name in names)


def _convex(settings: ConvexSettings, arrays: Arrays, name: str) -> ConvexModel:
    weights, eigenvalue = arrays[f"{name}.weights"], arrays[f"{name}.eigenvalue"]
    if (
        weights.shape != (settings.features + 1,)
        or eigenvalue.shape != (1,)
        or not bool(np.isfinite(weights).all() and np.isfinite(eigenvalue).all())
        or eigenvalue[0] < 0
    ):
        raise CorruptBundle("bundle: weights or a curvature that do not fit the model")
    return ConvexModel(settings, weights.astype(np.float64), float(eigenvalue[0]))


def _hidden(settings: HiddenSettings, arrays: Arrays, name: str) -> HiddenModel:
    weights = arrays[f"{name}.weights"]
    if weights.shape != (settings.units, settings.features + 1) or not bool(
        (np.linalg.norm(weights, axis=1) <= settings.longest).all()
    ):
        raise CorruptBundle("bundle: weights that training does not reach")
    return HiddenModel(settings, weights.astype(np.float64))


def _intervals(training: TrainingSettings, arrays: Arrays, name: str) -> ParameterIntervals:
    layers = range(len(training.widths) - 1)
    grids = TrainingGrids.build(
        training, [arrays[f"{name}.layer{layer}.start"] for layer in layers]
    )
    lower = tuple(arrays[f"{name}.layer{layer}.lower"].astype(np.float64) for layer in layers)
    upper = tuple(arrays[f"{name}.layer{layer}.upper"].astype(np.float64) for layer in layers)
    for start, low, high in zip(grids.start, lower, upper, strict=True):
        if (
            low.shape != high.shape
            or low.shape[1:] != start.shape
            or len(low) != len(lower[0])
            or bool((low > high).any())
        ):
            raise CorruptBundle("bundle: parameter intervals that do not fit the network")
    return ParameterIntervals(grids, lower, upper)
