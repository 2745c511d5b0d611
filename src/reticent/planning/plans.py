"""``Plan``: which methods there are for a task, of records or of inputs, what each is worth, and
which one to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee
from reticent.planning.methods import PublicUse
from reticent.planning.tasks import Task

SURE = 2.0
"""Joint standard errors from which a difference counts as measured."""

LOWER_END = 1.2816
"""Standard errors below a score that hold in 90 of 100 cases."""

SEEN = 2.8416
"""Joint standard errors of a true difference that is measured with chance 4 in 5."""

METRICS = ("accuracy", "roc_auc", "balanced_accuracy")
"""Scores that every page has, whatever the plan's own is."""


@dataclass(frozen=True)
class Score:
    """A score and its standard error; NaN where it was not measured."""

    value: float
    error: float

    @property
    def at_least(self) -> float:
        """The lower end, which a later score is above in 90 of 100 cases."""
        return self.value - LOWER_END * self.error

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON."""
        return {"value": _or_none(self.value), "error": _or_none(self.error)}


NOTHING = Score(math.nan, math.nan)


@dataclass(frozen=True)
class PlanRow:
    """One method.

    Attributes:
        method: its name.
        line: what it does.
        settings: that are not the estimator's own defaults.
        utility: by the plan's criterion; higher is better.
        behind: how much less than the best row, on the same rows, with its joint standard error.
        gain: how much more than the constant, likewise.
        scores: by the name of each of ``METRICS``, and "cost" where costs were given.
        answers: for how many answers; None for any number.
        protects: what its releases protect; of a release of inputs, what leaves.
        uses: what the method does with public rows.
        constant: whether it names one label for all public rows, so that it is the constant.
        make: makes the unfitted estimator; None where the package has only a baseline.
    """

    method: str
    line: str
    settings: Mapping[str, Any]
    utility: Score
    behind: Score
    gain: Score
    scores: Mapping[str, Score]
    answers: int | None
    protects: str
    uses: PublicUse
    constant: bool
    make: Callable[[], Any] = field(repr=False)

    @property
    def measured(self) -> bool:
        """Whether there is a score."""
        return not math.isnan(self.utility.value)

    @property
    def private(self) -> bool:
        """Whether it uses what is private at all."""
        return self.uses not in (PublicUse.NOTHING, PublicUse.LABELS_ALONE)

    @property
    def estimator_there(self) -> bool:
        """Whether the package has an estimator of it, and not only a baseline."""
        return self.make() is not None

    @property
    def name(self) -> str:
        """Method and settings, and whether it is the constant."""
        inside = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        found = f"{self.method} ({inside})" if inside else self.method
        same = self.constant and self.uses is not PublicUse.NOTHING
        return f"{found} = the constant" if same else found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for what was not measured."""
        return {
            "method": self.method,
            "settings": dict(self.settings),
            "utility": self.utility.to_dict(),
            "behind": self.behind.to_dict(),
            "gain": self.gain.to_dict(),
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "answers": self.answers,
            "protects": self.protects,
            "private": self.private,
            "constant": self.constant,
            "estimator": self.estimator_there,
        }


@dataclass(frozen=True)
class Point:
    """A method at one total, or for one number of answers.

    Attributes:
        at: epsilon, or the number of answers.
        method: name of the method.
        utility, error: its score and the standard error of that.
    """

    at: float
    method: str
    utility: float
    error: float


@dataclass(frozen=True)
class Plan:
    """What ``reticent.plan`` or ``reticent.plan_inputs`` found out, from public rows and public
    numbers alone.

    Attributes:
        task: what was wanted.
        scoring: the criterion.
        rows: one for each method, best score first.
        winner: the row to take, or None: not tried, no time.
        decided: why it is taken, in a sentence.
        curve: each method by epsilon.
        by_answers: each method by the number of answers, at the task's total.
        most_answers: Q*, up to how many answers private prediction (answers paid for one by one) is
            worth more than private training (a released model) at this total; 0 where it never is,
            None where one of them was not tried.
        notes: what to know before anything is fitted.
        left_out: what was not tried, or not to the end, and why.
        seconds: CPU seconds that it took.
        costs: shape (classes, classes) as rows, or None.
    """

    task: Task
    scoring: str
    rows: tuple[PlanRow, ...]
    winner: PlanRow | None
    decided: str
    curve: tuple[Point, ...]
    by_answers: tuple[Point, ...]
    most_answers: int | None
    notes: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    seconds: float
    costs: tuple[tuple[float, ...], ...] | None = None

    @property
    def of_inputs(self) -> bool:
        """Whether inputs are protected, and not records."""
        return self.task.inputs is not None

    @property
    def guarantee(self) -> Guarantee:
        """Total of everything that the winner will release."""
        return self.task.guarantee

    @property
    def expected(self) -> Score:
        """The winner's score on labelled public rows whose labels it did not see; it counts from
        its lower end, ``at_least``.
        """
        return NOTHING if self.winner is None else self.winner.utility

    @property
    def constant(self) -> PlanRow | None:
        """The row of the constant, where it was tried."""
        return next((row for row in self.rows if row.uses is PublicUse.NOTHING), None)

    @property
    def beats_constant(self) -> bool:
        """Whether the winner was measured to be better than the constant."""
        found = self.winner
        if found is None or found.constant:
            return False
        return found.gain.value > SURE * found.gain.error

    @property
    def power(self) -> float:
        """The true difference to the best row that would be seen with chance 4 in 5; NaN where
        nothing was compared.
        """
        errors = sorted(row.behind.error for row in self.rows if row.behind.error > 0)
        return SEEN * errors[len(errors) // 2] if errors else math.nan

    @property
    def estimator(self) -> Any:
        """The winner as an unfitted estimator with its settings, a new one each time.

        Raises:
            InvalidInput: nothing is taken.
        """
        if self.winner is None:
            raise InvalidInput(f"plan: {self.decided}; nothing is taken")
        return self.winner.make()

    @property
    def guess_cap(self) -> float:
        """Largest share of right guesses: whether a record was there, all others being known; or
        which of two neighbouring inputs was released.
        """
        if self.winner is None or not self.winner.private:
            return 0.5
        return float(which_of_two_cap(self.guarantee.epsilon, self.guarantee.delta))

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row; ``pandas.DataFrame(plan.records())`` makes a frame of them."""
        return [row.to_dict() for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        points = {"epsilon": self.curve, "answers": self.by_answers}
        return {
            "guarantee": self.guarantee.to_dict(),
            "protects": "inputs" if self.of_inputs else "records",
            "n_private": self.task.n_private,
            "n_public": self.task.n_public,
            "classes": self.task.classes,
            "answers": self.task.answers,
            "scoring": self.scoring,
            "winner": None if self.winner is None else self.winner.name,
            "decided": self.decided,
            "expected": {**self.expected.to_dict(), "at_least": _or_none(self.expected.at_least)},
            "beats_constant": self.beats_constant,
            "power": _or_none(self.power),
            "most_answers": self.most_answers,
            "guess_cap": self.guess_cap,
            "rows": self.records(),
            **{
                f"by_{axis}": [
                    {
                        "at": point.at,
                        "method": point.method,
                        "utility": _or_none(point.utility),
                        "error": _or_none(point.error),
                    }
                    for point in found
                ]
                for axis, found in points.items()
            },
            "notes": list(self.notes),
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
            "seconds": round(self.seconds, 2),
        }

    def table(self) -> str:
        """The plan as text: rows, what was left out, notes, what to take."""
        from reticent.planning.text import text_of

        return text_of(self)

    def page(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the plan as one HTML page that needs nothing else.

        Args:
            path: of the file.
            overwrite: whether a file that is there may be replaced.

        Raises:
            InvalidInput: ``path`` is there already, or a folder.
            WriteFailed: not writable.
        """
        from reticent.planning.page import page_of

        content = page_of(self).encode()
        target = Path(path)
        with output_file(target, size=len(content), overwrite=overwrite) as put:
            put(content)
        return target


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
