"""A fitted release of table rows: encoded row -> encoder -> mechanism, one array per stage.

*Vectors* are the outputs of a Lipschitz encoder plus K-norm (l2) or Gaussian noise. Codes are
those of ``code_query``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, one_of, positive, probability, real
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, InvalidParameter, UnknownName
from reticent.core.guarantees import Adjacency, Neighborhood, Replace
from reticent.core.norms import Norm
from reticent.mechanisms import (
    AdditiveMechanism,
    GaussianMechanism,
    KNormMechanism,
)
from reticent.mechanisms.mechanism import Mechanism
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems.power.protection import AttributeRadii, Protection
from reticent.systems.scores import SCORINGS, Scores
from reticent.tables.schema import TabularSchema
from reticent.training.public_models import label_shares

PROTECTED = ("clear-noise", "clear-code")
"""Mechanisms that protect within a radius and read everything else as it is: noise on the protected
coordinates themselves, and randomised response on which of the labels likeliest by the others it
is. Both are pure."""

CHOICES = ("likeliest", "risen")
"""Which of several labels "clear-code" names: the likeliest given the whole record, or the one
whose probability has risen by the largest factor against what is free."""

MECHANISMS = ("k-norm-l2", "gaussian", "code", *PROTECTED)
"""Release mechanisms: K-norm noise in l2 (pure), Gaussian noise (needs delta), a code of any two
records (pure), and those of ``PROTECTED``.
"""

VECTORS = MECHANISMS[:2]

TIE = 1e-9
"""Utilities no farther apart than this count as equal."""

SPACE = "encoded record, in public units: a change of any one attribute moves it by at most 1"
"""The space of neighbours within a radius, in words. Distance means nothing without the schema
that it is measured by: of two records a tenth apart under one schema, another, with narrower
ranges, may make any distance. So the schema's digest is the identity of the space, and costs add
up within one schema only."""


@dataclass(frozen=True, kw_only=True)
class PowerSetting:
    """One complete setting of a release.

    Attributes:
        mechanism: one of ``MECHANISMS``.
        epsilon, delta: cost of one answer.
        radius: l2 distance of neighbours, or a radius for each attribute, or None where any two
            records are neighbours.
        utility: worth of the release by ``scoring`` that calibration rows expect.
        information: nats about the label that they expect of it. It breaks ties of utility.
        scoring: one of ``SCORINGS``.
        columns: with the mechanism "clear-noise", rising places among the protected coordinates of
            those that are answered about, () for all of them, and with others.
        candidates: with the mechanism "clear-code", number of labels that are told apart, two or
            more, 0 otherwise.
        choice: with the mechanism "clear-code", one of ``CHOICES``, "" otherwise.
    """

    mechanism: str
    epsilon: float
    delta: float
    radius: float | AttributeRadii | None
    utility: float = 0.0
    information: float = 0.0
    scoring: str = "information"
    columns: tuple[int, ...] = ()
    candidates: int = 0
    choice: str = ""

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise UnknownName(
                f"mechanism={self.mechanism!r}: expected one of {', '.join(MECHANISMS)}"
            )
        positive(self.epsilon, name="epsilon")
        probability(self.delta, name="delta")
        if self.radius is not None and not isinstance(self.radius, AttributeRadii):
            positive(self.radius, name="radius")
        if self.mechanism in PROTECTED and self.radius is None:
            raise InvalidParameter(
                f"mechanism={self.mechanism!r}: expected a radius; without one any two records "
                "are neighbours, and nothing is free"
            )
        if isinstance(self.radius, AttributeRadii) and self.mechanism in ("k-norm-l2", "gaussian"):
            raise InvalidParameter(
                f"mechanism={self.mechanism!r}: expected an l2 radius, one number, got a radius "
                f"for each attribute; use one of {', '.join(PROTECTED)}"
            )
        for name in ("utility", "information"):
            if not math.isfinite(real(getattr(self, name), name=name)):
                raise InvalidParameter(f"{name}={getattr(self, name)!r}: expected a finite number")
        if not isinstance(self.columns, (list, tuple)):
            raise InvalidParameter(f"columns={self.columns!r}: expected a list of places")
        places = tuple(count(place, name="columns", minimum=0) for place in self.columns)
        object.__setattr__(self, "columns", places)
        if list(places) != sorted(set(places)) or (places and self.mechanism != "clear-noise"):
            raise InvalidParameter(
                f"columns={self.columns!r}: expected rising places, and none for mechanisms other "
                "than clear-noise"
            )
        named = self.mechanism == "clear-code"
        most = count(self.candidates, name="candidates", minimum=0)
        if (most >= 2, self.choice in CHOICES) != (named, named) or most == 1:
            raise InvalidParameter(
                f"candidates={most}, choice={self.choice!r}: expected at least two and one of "
                f"{', '.join(CHOICES)} for the mechanism clear-code, 0 and '' for others"
            )
        one_of(self.scoring, SCORINGS, name="scoring")

    def worth(self, scores: Scores) -> PowerSetting:
        """Return this setting with its utility and information."""
        return replace(self, utility=scores.of(self.scoring), information=scores.information)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, the constructor's arguments."""
        radius = self.radius.to_dict() if isinstance(self.radius, AttributeRadii) else self.radius
        return {**asdict(self), "columns": list(self.columns), "radius": radius}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], schema: TabularSchema) -> PowerSetting:
        """The plan that ``to_dict`` described, for records of ``schema``."""
        radius = values.get("radius")
        if isinstance(radius, dict):
            radius = AttributeRadii.of(AttributeRadii.numbers(radius), schema)
        return cls(**{**values, "radius": radius})


def rank(plan: PowerSetting) -> tuple[float, float]:
    """Return what plans are sorted by, best first: utility, and information where utilities tie."""
    return -round(plan.utility / TIE) * TIE, -plan.information


def neighbours_within(radius: float | AttributeRadii | None, schema: TabularSchema) -> Adjacency:
    """Return the adjacency of records at most ``radius`` apart under this schema.

    They are so all at once or in each attribute, or one record is replaced by any other. The latter
    holds for any two records whatever the schema, so costs of bundles with different
    schemas add up. It has no data set: the records are those that a release is given, and the scope
    says whose they are.
    """
    if radius is None:
        return Replace(1)
    if isinstance(radius, AttributeRadii):
        return Protection(schema, radius).adjacency
    return Neighborhood(Norm.L2, radius, SPACE, schema.digest)


class RowQuery(ABC):
    """A fitted release of table rows: everything that answering takes, and nothing that looks at
    the data it was fitted on.

    Attributes:
        schema: the public description of rows.
        plan: mechanism and budget.
        mechanism: the mechanism that answers.
        outputs: released values per row.
    """

    schema: TabularSchema
    plan: PowerSetting

    certificate: ClassVar[str] = "none"
    """The kind of proof that the constant has."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism that answers."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of released values per row."""

    @abstractmethod
    def exact(self, inputs: Array | CodedRows) -> Array:
        """Return what would be released without noise, shape (n, outputs). Private."""

    @abstractmethod
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        """Return one vector for each encoded row, shape (n, outputs)."""

    @abstractmethod
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``rebuilt`` reads."""

    @classmethod
    @abstractmethod
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        """The query that ``parts`` took apart, checked again."""

    @property
    def columns(self) -> int:
        """The columns of a row."""
        return self.schema.columns

    @cached_property
    def protection(self) -> Protection:
        """Return what is free and what is protected, from the plan and the schema, and from nothing
        else.

        Raises:
            CorruptBundle: any two records are neighbours.
        """
        return protection_of(self.schema, self.plan)

    @cached_property
    def adjacency(self) -> Adjacency:
        """The adjacency, by ``neighbours_within``."""
        return neighbours_within(self.plan.radius, self.schema)

    @property
    def constant(self) -> float:
        """The proved Lipschitz constant, 0 where none is needed, since any two nodes of a channel
        are told apart by at most e^epsilon.
        """
        return 0.0

    def encode(self, table: npt.NDArray[Any]) -> CodedRows:
        """Return checked rows of a table, ready to be answered.

        It raises what ``TabularSchema.code`` raises.
        """
        return self.schema.code(table)

    def answer(
        self, inputs: Array | CodedRows, *, sampler: Sampler
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return one vector for each encoded row, shape (n, outputs), and which are withheld: none.

        Args:
            inputs: rows that ``encode`` gave, or in full, shape (n, dimension), which moves values
                by a rounding error at most.
            sampler: source of randomness.
        """
        return self.drawn(inputs, sampler=sampler), np.zeros(len(inputs), dtype=np.bool_)

    def rehearse(self) -> None:
        """Answer about a corner of the public box, with a seed, and forget it.

        So what cannot answer fails before any charge.

        Raises:
            ReticentError: the encoder has no certificate, or its noise is beyond what the grid
                holds.
        """
        _ = self.mechanism.event
        self.answer(self.schema.domain.upper[None, :], sampler=SeededSampler(0))

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``from_description`` reads."""
        settings, arrays = self.parts()
        return {"schema": self.schema.to_dict(), "plan": self.plan.to_dict(), **settings}, arrays

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> Self:
        """The query that ``describe`` took apart, its table or its constants checked again.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together.
        """
        with rebuilding():
            schema = TabularSchema.from_dict(settings["schema"])
            plan = PowerSetting.from_dict(settings["plan"], schema)
            query = cls.rebuilt(schema, plan, settings, arrays)
            query.rehearse()
        return query


Answers = tuple[list[Array], list[Array]]
"""What may be released about n rows, shape (n, outputs) each, and its chances, shape (n,) each."""


class ClearQuery(RowQuery):
    """A release that reads what the radius leaves free as it is. Its first values are log odds of
    labels by a public model.
    """

    @property
    @abstractmethod
    def odds(self) -> int:
        """The number of log odds."""

    @abstractmethod
    def answers(self, rows: Array, *, seed: int) -> Answers:
        """Return what may be released about rows, some draws or all of it, with its chances."""

    def chances(self, rows: Array, *, seed: int) -> Answers:
        """Return the same with probabilities of labels, shape (n, classes), in place of values."""
        values, weights = self.answers(rows, seed=seed)
        return [label_shares(value[:, : self.odds]) for value in values], weights


def protection_of(schema: TabularSchema, plan: PowerSetting) -> Protection:
    """Return what ``plan`` protects of records of ``schema``.

    Raises:
        CorruptBundle: any two records are neighbours.
    """
    if plan.radius is None:
        raise CorruptBundle("bundle: its mechanism needs a radius")
    return Protection(schema, plan.radius)


def dense(inputs: Array | CodedRows) -> Array:
    """Return rows in full, shape (n, dimension)."""
    return inputs.dense() if isinstance(inputs, CodedRows) else inputs


def coded(inputs: Array | CodedRows) -> CodedRows:
    """Return rows by what differs from zero."""
    return inputs if isinstance(inputs, CodedRows) else CodedRows.of(inputs)


@dataclass(frozen=True, eq=False)
class PowerQuery(RowQuery):
    """A release of vectors: encoded row -> encoder -> noise.

    Attributes:
        schema: the public description of rows.
        network: the encoder, on encoded rows.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    network: Network
    plan: PowerSetting

    certificate: ClassVar[str] = "sorting"

    @cached_property
    @override
    def constant(self) -> float:
        """The proved constant of the encoder, l2 to l2, over the whole space."""
        from reticent.lipschitz.operator_norms import OperatorNormBound  # late: codes need none

        return OperatorNormBound(
            self.network, domain=self.schema.domain, input_norm=Norm.L2, output=Norm.L2
        ).global_bound()

    @cached_property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that answers. Its sensitivity is P times the radius, or times the l2
        diameter of the encoded box where any two records are neighbours.
        """
        plan = self.plan
        assert not isinstance(plan.radius, AttributeRadii)  # the plan refuses it
        distance = self.schema.diameter * (1.0 + 2.0**-40) if plan.radius is None else plan.radius
        shared: dict[str, Any] = {
            "sensitivity": self.constant * distance,
            "epsilon": plan.epsilon,
            "dimension": self.network.output_dimension,
            "adjacency": self.adjacency,
            "evaluation_error": self.network.rounding_error(self.schema.domain),
        }
        if plan.mechanism == "gaussian":
            return GaussianMechanism(delta=plan.delta, **shared)
        return KNormMechanism(output_norm=Norm.L2, **shared)

    @property
    def outputs(self) -> int:
        """The number of released values per row."""
        return self.network.output_dimension

    @override
    def exact(self, inputs: Array | CodedRows) -> Array:
        return self.network.forward_each(coded(inputs))

    @override
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        return self.mechanism.release(self.network.forward_each(coded(inputs)), sampler=sampler)

    @override
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        structure, weights = describe(self.network, "encoder")
        return {"network": structure}, dict(weights)

    @classmethod
    @override
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        network = rebuild(settings["network"], arrays, "encoder")
        if network.input_shape != (schema.dimension,) or plan.mechanism not in VECTORS:
            raise CorruptBundle("bundle: its encoder does not fit its schema or its mechanism")
        return cls(schema, network, plan)
