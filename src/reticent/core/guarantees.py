"""Guarantees: a kind, two numbers, and the adjacency that gives them meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from html import escape
from secrets import token_hex
from typing import Any

from reticent.core.checks import count, positive, probability, words
from reticent.core.errors import IncompatibleGuarantees, InvalidInput, InvalidParameter, UnknownName
from reticent.core.norms import Norm

_SHOWN = 16
"""Digits of an identity or serial that a sentence shows. JSON has all of them."""

_UNNAMED = "unnamed "


@dataclass(frozen=True)
class Neighborhood:
    """Neighbours are two points of one space, at most ``radius`` apart in ``metric``.

    Two neighbourhoods are the same only if a pair that is adjacent under one is adjacent under the
    other. Words do not decide that, because two embedders of one shape put the same two pictures at
    different distances. So the comparison looks at ``identity`` beside ``space``.

    Attributes:
        metric: the norm that distance is measured in.
        radius: largest distance of two neighbours, above 0, in the units of ``space``.
        space: name of the points' space in plain words ("8-dimensional embedding of the picture").
        identity: digest of the whole map from a protected input to the point whose distance is
            measured. With "" the writer of ``space`` must see to it that equal words mean equal
            maps. No estimator leaves it empty.

    Example:
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding", identity="6f1c")
        >>> near == Neighborhood(Norm.LINF, 0.5, "embedding", identity="02ab")
        False
    """

    metric: Norm
    radius: float
    space: str
    identity: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", Norm.parse(self.metric))
        object.__setattr__(self, "radius", positive(self.radius, name="radius"))
        words(self.space, name="space", most=1000)
        words(self.identity, name="identity", minimum=0)

    def describe(self) -> str:
        """Return the adjacency as one phrase."""
        which = f" (identity {self.identity[:_SHOWN]})" if self.identity else ""
        return (
            f"two points within {self.metric.value} distance {self.radius:g} in the "
            f"{self.space}{which}"
        )


class Unit(StrEnum):
    """The unit whose presence a record adjacency hides."""

    RECORD = "record"
    PERSON = "person"


@dataclass(frozen=True)
class _Records:
    """The common part of ``AddRemove`` and ``Replace``: the data set, and the units that neighbours
    differ in.

    Costs for persons and for records do not add up, nor do those of two data sets. A pair that
    differs in all records of one person is not a pair that differs in one record.

    Attributes:
        records: number of units that neighbours differ in.
        unit: one record, or one person, who may own any number of records.
        data_set: the owner's name for the data set, or a serial from ``data_set_name(None)`` if the
            owner gave none. "" means the records that a release is given, whoever owns them.
    """

    records: int = 1
    unit: Unit = Unit.RECORD
    data_set: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", count(self.records, name="records"))
        if self.unit not in list(Unit):
            raise UnknownName(f"unit={self.unit!r}: expected one of {', '.join(Unit)}")
        object.__setattr__(self, "unit", Unit(self.unit))
        words(self.data_set, name="data_set", minimum=0)

    @cached_property
    def unnamed(self) -> bool:
        """True if a random serial stands for a name that the owner has not given."""
        return self.data_set.startswith(_UNNAMED)

    def _what(self) -> str:
        what = (
            f"{self.records} record(s)"
            if self.unit is Unit.RECORD
            else f"all records of {self.records} person(s)"
        )
        if not self.data_set:
            return what
        if self.unnamed:
            serial = self.data_set.removeprefix(_UNNAMED)
            return f"{what} of a data set that its owner has not named (serial {serial[:_SHOWN]})"
        return f"{what} of the data set {self.data_set!r}"


@dataclass(frozen=True)
class AddRemove(_Records):
    """Neighbours are two data sets, one of which has ``records`` records (or persons) more than the
    other.

    Attributes:
        records: number of units that neighbours differ in.
        unit: "record", or "person": all records of one owner.
        data_set: the owner's name for the data set.

    Example:
        >>> AddRemove(unit="person").describe()
        'two data sets that differ by adding or removing all records of 1 person(s)'
    """

    def describe(self) -> str:
        """Return the adjacency as one phrase."""
        return f"two data sets that differ by adding or removing {self._what()}"


@dataclass(frozen=True)
class Replace(_Records):
    """Neighbours are two data sets of the same size that differ in ``records`` records (or
    persons).

    Attributes:
        records: number of units that neighbours differ in.
        unit: "record", or "person": all records of one owner.
        data_set: the owner's name for the data set.
    """

    def describe(self) -> str:
        """Return the adjacency as one phrase."""
        return f"two data sets of one size that differ in {self._what()}"


def unnamed(data_set: str) -> bool:
    """Return whether ``data_set`` is a serial that stands for a name that the owner has not
    given.
    """
    return data_set.startswith(_UNNAMED)


def data_set_name(name: str | None) -> str:
    """Return ``name`` as the owner gave it, or for None a random serial that no other data set has.

    A name is the owner's word and never a digest, because a digest of records tells anyone who can
    guess them whether the guess is right.

    Raises:
        InvalidParameter: no name of 1 to 200 printable characters, or one that looks like a serial.

    Example:
        >>> data_set_name("ward 7")
        'ward 7'
        >>> data_set_name(None) == data_set_name(None)
        False
    """
    if name is None:
        return f"{_UNNAMED}{token_hex(16)}"
    if unnamed(words(name, name="data_set")):
        raise InvalidParameter(
            f"data_set={name!r}: names that begin with {_UNNAMED!r} stand for data sets without one"
        )
    return name


Adjacency = Neighborhood | AddRemove | Replace


class GuaranteeKind(StrEnum):
    """The kind of statement that a guarantee makes. Kinds never add up with each other."""

    DIFFERENTIAL_PRIVACY = "differential privacy"
    LIPSCHITZ_PRIVACY = "Lipschitz (metric) privacy"
    NO_PRIVACY = "no differential privacy"


@dataclass(frozen=True)
class Guarantee:
    """A privacy statement: for neighbours x, x' and every set S of outputs, Pr[M(x) in S] <=
    e^epsilon Pr[M(x') in S] + delta.

    Attributes:
        epsilon: above 0. For Lipschitz privacy it is per unit of distance.
        delta: in [0, 1).
        adjacency: the relation of neighbours.
        kind: the kind of statement.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    kind: GuaranteeKind = GuaranteeKind.DIFFERENTIAL_PRIVACY

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, name="epsilon"))
        object.__setattr__(self, "delta", probability(self.delta, name="delta"))

    def compose(self, other: Guarantee) -> Guarantee:
        """Return both statements together, by basic composition.

        Raises:
            IncompatibleGuarantees: the two have different kinds or adjacencies, or promise nothing.
        """
        if self.kind is not other.kind:
            raise IncompatibleGuarantees(f"cannot add {self.kind.value} to {other.kind.value}")
        if self.kind is GuaranteeKind.NO_PRIVACY:
            raise IncompatibleGuarantees(
                "cannot add statements that promise no differential privacy"
            )
        if self.adjacency != other.adjacency:
            raise IncompatibleGuarantees(
                f"costs compose only within one adjacency: {self.adjacency.describe()} is not "
                f"{other.adjacency.describe()}"
            )
        return Guarantee(
            self.epsilon + other.epsilon, self.delta + other.delta, self.adjacency, self.kind
        )

    def describe(self) -> str:
        """Return the statement as one sentence."""
        if self.kind is GuaranteeKind.NO_PRIVACY:
            return "no differential privacy"
        return (
            f"{self.kind.value} with epsilon={self.epsilon:g}, delta={self.delta:g} "
            f"for {self.adjacency.describe()}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, which ``from_dict`` reads back."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "kind": self.kind.value,
            "adjacency": adjacency_to_dict(self.adjacency),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """Return the guarantee that ``to_dict`` described.

        Raises:
            InvalidInput: the dictionary is not one that ``to_dict`` writes.
        """
        try:
            adjacency = adjacency_from_dict(values["adjacency"])
            return cls(values["epsilon"], values["delta"], adjacency, GuaranteeKind(values["kind"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"guarantee: not a description written by to_dict ({error})"
            ) from error


def adjacency_to_dict(adjacency: Adjacency) -> dict[str, Any]:
    """Return plain values for JSON, which ``adjacency_from_dict`` reads back."""
    found: dict[str, Any] = {"type": type(adjacency).__name__}
    for field in fields(adjacency):
        value = getattr(adjacency, field.name)
        found[field.name] = str(value) if isinstance(value, StrEnum) else value
    return found


def adjacency_from_dict(values: dict[str, Any]) -> Adjacency:
    """Return the adjacency that ``adjacency_to_dict`` described.

    Fields that were added later may be missing: ``identity``, ``unit`` and ``data_set``.

    Raises:
        InvalidInput: the dictionary is not one that ``adjacency_to_dict`` writes.
    """
    types: dict[str, type[Neighborhood] | type[AddRemove] | type[Replace]] = {
        "Neighborhood": Neighborhood,
        "AddRemove": AddRemove,
        "Replace": Replace,
    }
    try:
        given = dict(values)
        return types[given.pop("type")](**given)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"adjacency: not a description written by adjacency_to_dict ({error})"
        ) from error


@dataclass(frozen=True)
class GuaranteeCard:
    """A guarantee in plain words, for the person whose data it is.

    Attributes:
        title: the release, in a few words.
        protected: the protected thing, and how well it is hidden.
        from_whom: the observers it is hidden from.
        guarantee: the formal statement.
        assumptions: conditions of the statement, one phrase each.
        not_protected: things that a reader might wrongly expect to be covered, one phrase each.
        details: settings and how they were found, name to value.
    """

    title: str
    protected: str
    from_whom: str
    guarantee: Guarantee
    assumptions: tuple[str, ...]
    not_protected: tuple[str, ...]
    details: tuple[tuple[str, str], ...] = ()

    def to_markdown(self) -> str:
        """Return the card as Markdown."""
        lines = [
            f"# {self.title}",
            "",
            f"**Protected:** {self.protected}",
            "",
            f"**From whom:** {self.from_whom}",
            "",
        ]
        lines += [f"**Statement:** {self.guarantee.describe()}", "", "**Assumed:**", ""]
        lines += [f"- {item}" for item in self.assumptions]
        lines += ["", "**Not protected:**", ""]
        lines += [f"- {item}" for item in self.not_protected]
        if self.details:
            lines += ["", "| setting | value |", "|---|---|"]
            lines += [f"| {name} | {value} |" for name, value in self.details]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_markdown()

    def to_html(self) -> str:
        """Return the card as HTML without a document around it."""

        def listed(items: Iterable[str]) -> str:
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"

        def defined(entries: Iterable[tuple[str, str]]) -> str:
            return "<dl>" + "".join(f"<dt>{a}</dt><dd>{b}</dd>" for a, b in entries) + "</dl>"

        entries = [
            ("Protected", escape(self.protected)),
            ("From whom", escape(self.from_whom)),
            ("Statement", escape(self.guarantee.describe())),
            ("Assumed", listed(self.assumptions)),
            ("Not protected", listed(self.not_protected)),
        ]
        settings = defined((escape(name), escape(value)) for name, value in self.details)
        return (
            f"<h3>{escape(self.title)}</h3>{defined(entries)}"
            f"<details><summary>Settings</summary>{settings}</details>"
        )

    _repr_html_ = to_html  # what notebooks show

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "title": self.title,
            "protected": self.protected,
            "from_whom": self.from_whom,
            "guarantee": self.guarantee.to_dict(),
            "assumptions": list(self.assumptions),
            "not_protected": list(self.not_protected),
            "details": dict(self.details),
        }
