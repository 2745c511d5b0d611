"""What a guarantee is: a kind, two numbers, and the adjacency that gives them meaning."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from reticent.core.checks import count, positive, probability
from reticent.core.errors import IncompatibleGuarantees, InvalidInput
from reticent.core.norms import Norm


@dataclass(frozen=True)
class Neighborhood:
    """Neighbours are two points of ``space`` at most ``radius`` apart in ``metric``.

    Attributes:
        metric: the norm that distance is measured in.
        radius: largest distance of two neighbours, above 0, in the units of ``space``.
        space: what the points are, in plain words ("8-dimensional embedding of the picture").
    """

    metric: Norm
    radius: float
    space: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", Norm.parse(self.metric))
        object.__setattr__(self, "radius", positive(self.radius, name="radius"))

    def describe(self) -> str:
        """The adjacency as one phrase."""
        return f"two points within {self.metric.value} distance {self.radius:g} in the {self.space}"


@dataclass(frozen=True)
class AddRemove:
    """Neighbours are two data sets, one of which has ``records`` records more than the other."""

    records: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", count(self.records, name="records"))

    def describe(self) -> str:
        """The adjacency as one phrase."""
        return f"two data sets that differ by adding or removing {self.records} record(s)"


@dataclass(frozen=True)
class Replace:
    """Neighbours are two data sets of the same size that differ in ``records`` records."""

    records: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", count(self.records, name="records"))

    def describe(self) -> str:
        """The adjacency as one phrase."""
        return f"two data sets of one size that differ in {self.records} record(s)"


Adjacency = Neighborhood | AddRemove | Replace


class GuaranteeKind(StrEnum):
    """What kind of statement a guarantee is; kinds never add up with each other."""

    DIFFERENTIAL_PRIVACY = "differential privacy"
    LIPSCHITZ_PRIVACY = "Lipschitz (metric) privacy"
    NO_PRIVACY = "no differential privacy"


@dataclass(frozen=True)
class Guarantee:
    """A privacy statement: for neighbours x, x' and every set S of outputs, Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta.

    Attributes:
        epsilon: above 0. For Lipschitz privacy it is per unit of distance.
        delta: in [0, 1).
        adjacency: what neighbours are.
        kind: what kind of statement this is.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    kind: GuaranteeKind = GuaranteeKind.DIFFERENTIAL_PRIVACY

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, name="epsilon"))
        object.__setattr__(self, "delta", probability(self.delta, name="delta"))

    def compose(self, other: Guarantee) -> Guarantee:
        """Both statements together, by basic composition.

        Raises:
            IncompatibleGuarantees: the two have different kinds or adjacencies, or promise nothing.
        """
        if self.kind is not other.kind:
            raise IncompatibleGuarantees(f"cannot add {self.kind.value} to {other.kind.value}")
        if self.kind is GuaranteeKind.NO_PRIVACY:
            raise IncompatibleGuarantees("cannot add statements that promise no differential privacy")
        if self.adjacency != other.adjacency:
            raise IncompatibleGuarantees(
                f"costs compose only within one adjacency: {self.adjacency.describe()} is not {other.adjacency.describe()}"
            )
        return Guarantee(self.epsilon + other.epsilon, self.delta + other.delta, self.adjacency, self.kind)

    def describe(self) -> str:
        """The statement as one sentence."""
        if self.kind is GuaranteeKind.NO_PRIVACY:
            return "no differential privacy"
        return f"{self.kind.value} with epsilon={self.epsilon:g}, delta={self.delta:g} for {self.adjacency.describe()}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` reads them back."""
        adjacency = {"type": type(self.adjacency).__name__, **asdict(self.adjacency)}
        return {"epsilon": self.epsilon, "delta": self.delta, "kind": self.kind.value, "adjacency": adjacency}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The guarantee that ``to_dict`` described.

        Raises:
            InvalidInput: the dictionary is not one that ``to_dict`` writes.
        """
        types: dict[str, type[Neighborhood] | type[AddRemove] | type[Replace]] = {
            "Neighborhood": Neighborhood,
            "AddRemove": AddRemove,
            "Replace": Replace,
        }
        try:
            fields = dict(values["adjacency"])
            adjacency = types[fields.pop("type")](**fields)
            return cls(values["epsilon"], values["delta"], adjacency, GuaranteeKind(values["kind"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"guarantee: not a description written by to_dict ({error})") from error


@dataclass(frozen=True)
class GuaranteeCard:
    """A guarantee in plain words, for the person whose data it is.

    Attributes:
        title: what is released.
        protected: what is hidden, and how well.
        from_whom: whom it is hidden from.
        guarantee: the formal statement.
        assumptions: what must hold for the statement to hold, one phrase each.
        not_protected: what a reader might wrongly expect to be covered, one phrase each.
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
        """The card as Markdown."""
        lines = [f"# {self.title}", "", f"**Protected:** {self.protected}", "", f"**From whom:** {self.from_whom}", ""]
        lines += [f"**Statement:** {self.guarantee.describe()}", "", "**Assumed:**", ""]
        lines += [f"- {item}" for item in self.assumptions]
        lines += ["", "**Not protected:**", ""]
        lines += [f"- {item}" for item in self.not_protected]
        if self.details:
            lines += ["", "| setting | value |", "|---|---|"]
            lines += [f"| {name} | {value} |" for name, value in self.details]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "title": self.title,
            "protected": self.protected,
            "from_whom": self.from_whom,
            "guarantee": self.guarantee.to_dict(),
            "assumptions": list(self.assumptions),
            "not_protected": list(self.not_protected),
            "details": dict(self.details),
        }
