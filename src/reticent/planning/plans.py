"""``Plan``: which methods there are for a task, of records or of inputs, what each is worth, and
which one to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee
from reticent.planning.candidates import PublicUse
from reticent.planning.survey import named
from reticent.planning.tasks import Task

CLOSE = 0.25
"""Joint standard errors by which a method that uses private records has to be ahead."""
SURE = 2.0
"""Joint standard errors within which a row may be as good as the best one, as warnings say."""


@dataclass(frozen=True)
class PlanRow:
    """One setting of one method.

    Attributes:
        method: its name.
        line: what it does.
        settings: of the method.
        utility: expected on the real number of rows, by the plan's criterion; higher is better. NaN
            where the public rows have no labels: ``score`` still ranks.
        error: standard error of ``utility``.
        behind: how much less than the best row, on the same splits and draws.
        behind_error: joint standard error of that difference.
        score: what rows are ranked by: utility, mixed with the prior where that was used.
        splits: on how many splits it was tried.
        answers: for how many answers; None for any number.
        protects: what its releases protect; of a release of inputs, what leaves.
        uses: what the method does with public rows.
        make: makes the unfitted estimator; None where the package has only a baseline.
    """

    method: str
    line: str
    settings: Mapping[str, Any]
    utility: float
    error: float
    behind: float
    behind_error: float
    score: float
    splits: int
    answers: int | None
    protects: str
    uses: PublicUse
    make: Callable[[], Any]

    @property
    def as_good(self) -> bool:
        """Whether it may be as good as the best row: within two joint standard errors of it."""
        return self.behind <= SURE * self.behind_error

    @property
    def private(self) -> bool:
        """Whether it uses what is private at all."""
        return uses_private(self.uses)

    @property
    def estimator_there(self) -> bool:
        """Whether the package has an estimator of it, and not only a baseline."""
        return self.make() is not None

    @property
    def name(self) -> str:
        """Method and settings."""
        return named(self.method, self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for NaN."""
        numbers = ("utility", "error", "behind", "behind_error", "score")
        return {
            "method": self.method,
            "settings": dict(self.settings),
            **{name: _or_none(getattr(self, name)) for name in numbers},
            "splits": self.splits,
            "answers": self.answers,
            "protects": self.protects,
            "private": self.private,
            "estimator": self.estimator_there,
        }


@dataclass(frozen=True)
class Point:
    """The best setting of one method at one total, or for one number of answers.

    Attributes:
        at: epsilon, or the number of answers.
        method: name of the method.
        utility, error: as in ``PlanRow``.
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
        labelled: whether public labels were there; without them only the order of rows means
            anything.
        rows: one for each setting, best first.
        curve: the best setting of each method, by epsilon.
        by_answers: the same by the number of answers, at the task's total.
        most_answers: Q*, up to how many answers private prediction (answers paid for one by one) is
            worth more than private training (a released model) at this total; 0 where it never is,
            None where one of them was not tried.
        warnings: what to know before anything is fitted.
        left_out: what was not tried, or not to the end, and why.
        close: joint standard error of the difference of two good rows.
        prior_used: whether measurements on other data sets were mixed in.
        seconds: how long it took.
    """

    task: Task
    scoring: str
    labelled: bool
    rows: tuple[PlanRow, ...]
    curve: tuple[Point, ...]
    by_answers: tuple[Point, ...]
    most_answers: int | None
    warnings: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    close: float
    prior_used: bool
    seconds: float

    @property
    def of_inputs(self) -> bool:
        """Whether inputs are protected, and not records."""
        return self.task.inputs is not None

    @property
    def guarantee(self) -> Guarantee:
        """Total of everything that the winner will release."""
        return self.task.guarantee

    @property
    def best(self) -> PlanRow:
        """The row of highest score."""
        return self.rows[0]

    @property
    def winner(self) -> PlanRow:
        """The row to take: the highest score among methods that this package has an estimator for.

        Labelled public rows alone give nothing private away, so they are taken where they are
        within a quarter of a joint standard error of the best row: as measured where there are
        enough of them, and by the score, which rests on other data sets too, where they are few.
        """
        there = [row for row in self.rows if row.estimator_there] or list(self.rows)
        alone = [row for row in there if row.uses is PublicUse.LABELS_ALONE]
        if self.task.n_public >= self.task.enough_public:
            close = [row for row in alone[:1] if row.behind <= CLOSE * row.behind_error]
        else:
            margin = CLOSE * self.close
            close = [row for row in alone if there[0].score - row.score <= margin]
        return next(iter(close), there[0])

    @property
    def estimator(self) -> Any:
        """The winner as an unfitted estimator with its settings, a new one each time; None where no
        row has one.
        """
        return self.winner.make()

    @property
    def guess_cap(self) -> float:
        """Largest share of right guesses: whether a record was there, all others being known; or
        which of two neighbouring inputs was released.
        """
        if not self.winner.private:
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
            "labelled": self.labelled,
            "winner": self.winner.name,
            "best": self.best.name,
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
            "warnings": list(self.warnings),
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
            "prior_used": self.prior_used,
            "seconds": round(self.seconds, 2),
        }

    def table(self, *, rows: int = 20) -> str:
        """The plan as text: rows, what was left out, warnings.

        Args:
            rows: how many of the best rows; the best row of every method is always there.
        """
        from reticent.planning.text import text_of

        return text_of(self, rows=rows)

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


def uses_private(uses: PublicUse) -> bool:
    """Return whether a method uses what is private."""
    return uses not in (PublicUse.NOTHING, PublicUse.LABELS_ALONE)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
