"""``InputPlan``: which releases of a private input there are, what each is worth, and which one to
take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee, Replace
from reticent.planning.plans import SURE, Point
from reticent.systems.scores import criterion_of

MAJORITY = "majority"
"""The method that releases nothing."""


@dataclass(frozen=True)
class InputRow:
    """One setting of one method.

    Attributes:
        method: its name.
        line: what leaves.
        settings: of the estimator.
        utility: what a server's predictions from released inputs are worth, by the plan's
            criterion; higher is better.
        error: standard error of ``utility``.
        behind: how much less than the best row, on the same splits.
        behind_error: joint standard error of that difference.
        make: the unfitted estimator, or None where this package has none.
    """

    method: str
    line: str
    settings: Mapping[str, Any]
    utility: float
    error: float
    behind: float
    behind_error: float
    make: Callable[[], Any]

    @property
    def name(self) -> str:
        """Method and settings."""
        said = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.method} ({said})" if said else self.method

    @property
    def estimator_there(self) -> bool:
        """Whether this package has an estimator of it."""
        return self.make() is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = ("utility", "error", "behind", "behind_error")
        return {
            "method": self.method,
            "line": self.line,
            "settings": dict(self.settings),
            **{name: getattr(self, name) for name in numbers},
            "estimator": self.estimator_there,
        }


@dataclass(frozen=True)
class InputPlan:
    """What ``reticent.plan_inputs`` found out, from public rows alone.

    Attributes:
        guarantee: of one released input.
        scoring: the criterion.
        labels: the labels of public rows, in rising order.
        n_public: public rows.
        rows: one for each setting, best first.
        curve: the best setting of each method, by epsilon.
        left_out: what was not tried, or not to the end, and why.
        seconds: how long it took.
    """

    guarantee: Guarantee
    scoring: str
    labels: tuple[Any, ...]
    n_public: int
    rows: tuple[InputRow, ...]
    curve: tuple[Point, ...]
    left_out: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def best(self) -> InputRow:
        """The row of highest utility."""
        return self.rows[0]

    @property
    def winner(self) -> InputRow:
        """The row to take: the best that this package has an estimator for; the best of all where
        it has none for any.
        """
        return next((row for row in self.rows if row.estimator_there), self.best)

    @property
    def estimator(self) -> Any:
        """The winner as an unfitted estimator with its settings, a new one each time; None where no
        row has one.
        """
        return self.winner.make()

    @property
    def promise(self) -> str:
        """The guarantee of one released input, in a phrase."""
        if not isinstance(self.guarantee.adjacency, Replace):
            return self.guarantee.describe()
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        return (
            f"local differential privacy with epsilon={epsilon:g}, delta={delta:g} for any two rows"
        )

    @property
    def telling_apart_cap(self) -> float:
        """Largest share of right guesses which of two neighbouring inputs was released."""
        return float(which_of_two_cap(self.guarantee.epsilon, self.guarantee.delta))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before anything is fitted."""
        found = []
        floor = next((row for row in self.rows if row.method == MAJORITY), None)
        if floor is not None and floor.behind <= SURE * floor.behind_error:
            found.append(
                "no release here beats the majority by more than two standard errors: at this "
                "guarantee an input tells next to nothing about its label"
            )
        if not self.best.estimator_there and self.best is not self.winner:
            found.append(
                f"{self.best.name} scored best, and this package has it only to compare with; the "
                "winner named here is the best method with an estimator, behind by "
                f"{self.winner.behind:.4f} ± {self.winner.behind_error:.4f}"
            )
        return tuple(found)

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row; ``pandas.DataFrame(plan.records())`` makes a frame of them."""
        return [row.to_dict() for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "protects": "inputs",
            "n_public": self.n_public,
            "classes": len(self.labels),
            "scoring": self.scoring,
            "winner": self.winner.name,
            "best": self.best.name,
            "telling_apart_cap": self.telling_apart_cap,
            "rows": self.records(),
            "by_epsilon": [
                {
                    "at": point.at,
                    "method": point.method,
                    "utility": point.utility,
                    "error": point.error,
                }
                for point in self.curve
            ],
            "warnings": list(self.warnings),
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
            "seconds": round(self.seconds, 2),
        }

    def table(self) -> str:
        """The plan as text: rows, what was left out, warnings, the winner."""
        from reticent.planning.text import interval

        unit = criterion_of(self.scoring).unit
        lines = [
            f"Plan for one private input, {self.n_public} public rows",
            self.promise,
            f"score: {self.scoring} ({unit}) ± standard error; joint one beside the difference",
            "",
        ]
        width = max(len("method"), *(len(row.name) for row in self.rows))
        lines.append(f"{'method':<{width}}  {'score':>15}  {'behind by':>15}")
        lines += [
            f"{row.name:<{width}}  {interval(row.utility, row.error):>15}  "
            f"{interval(row.behind, row.behind_error):>15}"
            for row in self.rows
        ]
        if self.left_out:
            lines += ["", "Left out:", *(f"- {name}: {why}" for name, why in self.left_out)]
        lines += ["", *(f"warning: {warning}" for warning in self.warnings)]
        return "\n".join([*lines, f"Take: {self.winner.name}", f"      {self.winner.line}"])

    def page(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the plan as one HTML page that needs nothing else.

        Args:
            path: of the file.
            overwrite: whether a file that is there may be replaced.

        Raises:
            InvalidInput: ``path`` is there already, or a folder.
            WriteFailed: not writable.
        """
        from reticent.planning.input_page import input_page_of

        content = input_page_of(self).encode()
        target = Path(path)
        with output_file(target, size=len(content), overwrite=overwrite) as put:
            put(content)
        return target
