"""``Plan``: the methods for a task of records or of inputs, their scores, and the one to take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee
from reticent.planning.methods import PublicUse
from reticent.planning.tasks import Task

SURE = 2.0
"""Number of joint standard errors from which a difference counts as measured."""

LOWER_END = 1.2816
"""Number of standard errors below a score of a bound that holds in 90 of 100 cases."""

SEEN = 2.8416
"""Number of joint standard errors of a true difference that is measured with chance 4 in 5."""

METRICS = ("accuracy", "roc_auc", "balanced_accuracy")
"""Scores on every page, beside the plan's own criterion."""

ENDLESS = ("log_loss", "information", "cost")
"""Scores that have no worst value."""


@dataclass(frozen=True)
class Score:
    """A score and its standard error, NaN if it was not measured."""

    value: float
    error: float

    @classmethod
    def of_rows(
        cls, values: Array, *, labels: Integers | None = None, folds: int, worst: float = 0.0
    ) -> Self:
        """Return a score over rows and draws of the noise, of which the real method makes one.

        Two further rows that score ``worst`` widen its error, as Agresti and Coull (1998) add two
        failures to a share. So a few rows, all of them right, do not have an error of 0. It is
        widened once more, for folds share training rows (Nadeau and Bengio 2003, equation 9).

        Args:
            values: shape (draws, m), of a mean that is the score.
            labels: shape (m,), labels of the rows if the score is a mean of shares, of which each
                has two further rows, or None.
            folds: the number of folds, at least 2.
            worst: the score of a further row.
        """
        rows, draws = values.mean(axis=0), values.mean(axis=1)
        spread = float(draws.var(ddof=1)) if len(draws) > 1 else 0.0
        parts = np.array([len(rows)])
        if labels is not None:
            parts = np.unique(labels, return_counts=True)[1]
        weights = len(rows) / (len(parts) * parts)  # of a row of each part
        further = 2.0 * (float(rows.mean()) - worst) ** 2 * np.square(weights).sum() / len(rows)
        each = shared(folds) * (float(rows.var(ddof=1)) + further) / len(rows)
        return cls(float(draws.mean()), math.sqrt(each + spread))

    @property
    def at_least(self) -> float:
        """The lower end. A later score is above it in 90 of 100 cases."""
        return self.value - LOWER_END * self.error

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON."""
        return {"value": _or_none(self.value), "error": _or_none(self.error)}


NOTHING = Score(math.nan, math.nan)


def shared(folds: int) -> float:
    """Return the ratio of two variances of a mean: over folds that share training rows, and over as
    many rows that share none.
    """
    return 1.0 + folds / (folds - 1.0)


@dataclass(frozen=True)
class PlanRow:
    """One method.

    Attributes:
        method: name of the method.
        line: description of the method.
        settings: settings that are not the estimator's own defaults.
        utility: score by the plan's criterion. Higher is better.
        behind: loss against the best row, on the same rows, with its joint standard error.
        gain: gain over the constant, on the same rows, with its joint standard error.
        scores: scores by the name of each of ``METRICS``, and "cost" if costs were given.
        answers: number of answers, or None for any number.
        protects: data that its releases protect, or, for a release of inputs, what leaves.
        uses: the use of public rows.
        constant: whether it names one label for all public rows, so that it is the constant.
        make: function that makes the unfitted estimator, or None if the package has only a
            baseline.
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
        """Return whether there is a score."""
        return not math.isnan(self.utility.value)

    @property
    def private(self) -> bool:
        """Return whether it uses private data at all."""
        return self.uses not in (PublicUse.NOTHING, PublicUse.LABELS_ALONE)

    @property
    def estimator_there(self) -> bool:
        """Return whether the package has an estimator of the method, and not only a baseline."""
        return self.make() is not None

    @property
    def name(self) -> str:
        """The method and its settings, with a mark if it is the constant."""
        inside = ", ".join(f"{key}={value}" for key, value in self.settings.items() if value)
        found = f"{self.method} ({inside})" if inside else self.method
        same = self.constant and self.uses is not PublicUse.NOTHING
        return f"{found} = the constant" if same else found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with None for what was not measured."""
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
        utility, error: score of the method and its standard error.
    """

    at: float
    method: str
    utility: float
    error: float


@dataclass(frozen=True)
class Plan:
    """The result of ``reticent.plan`` or ``reticent.plan_inputs``.

    It is made from public rows and public numbers alone.

    Attributes:
        task: the task.
        scoring: the criterion.
        rows: one row for each method, best score first.
        winner: the row to take, or None: not tried, no time.
        decided: the reason for the winner, in a sentence.
        curve: each method by epsilon.
        by_answers: each method by the number of answers, at the task's total.
        most_answers: Q*, the most answers for which private prediction (answers paid for one by
            one) is worth more than private training (a released model) at this total. It is 0 if
            it never is, and None if one of them was not tried.
        notes: facts to know before anything is fitted.
        left_out: methods that were not tried, or not to the end, and the reasons.
        seconds: CPU seconds that the plan took.
        costs: matrix of costs as rows, shape (classes, classes), or None.
    """

    task: Task
    scoring: str
    rows: tuple[PlanRow, ...]
    winner: PlanRow | None
    decided: str
    curve: tuple[Point, ...] = ()
    by_answers: tuple[Point, ...] = ()
    most_answers: int | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    seconds: float = math.nan
    costs: tuple[tuple[float, ...], ...] | None = None

    @property
    def of_inputs(self) -> bool:
        """Return whether inputs are protected, and not records."""
        return self.task.inputs is not None

    @property
    def guarantee(self) -> Guarantee:
        """The total of everything that the winner will release."""
        return self.task.guarantee

    @property
    def expected(self) -> Score:
        """The winner's score on labelled public rows whose labels it did not see.

        Expect only its lower end, ``at_least``.
        """
        return NOTHING if self.winner is None else self.winner.utility

    @property
    def constant(self) -> PlanRow | None:
        """The row of the constant, or None if it was not tried."""
        return next((row for row in self.rows if row.uses is PublicUse.NOTHING), None)

    @property
    def beats_constant(self) -> bool:
        """Return whether the winner was measured to be better than the constant."""
        found = self.winner
        if found is None or found.constant:
            return False
        return found.gain.value > SURE * found.gain.error

    @property
    def power(self) -> float:
        """The true difference to the best row that would be seen with chance 4 in 5.

        It is NaN if nothing was compared.
        """
        errors = sorted(row.behind.error for row in self.rows if row.behind.error > 0)
        return SEEN * errors[len(errors) // 2] if errors else math.nan

    @property
    def estimator(self) -> Any:
        """Return the winner as a new unfitted estimator with its settings.

        Raises:
            InvalidInput: nothing is taken.
        """
        if self.winner is None:
            raise InvalidInput(f"plan: {self.decided}; nothing is taken")
        return self.winner.make()

    @property
    def guess_cap(self) -> float:
        """The largest share of right guesses that an attacker can expect.

        The guess is whether a record was there, if all others are known, or which of two
        neighbouring inputs was released.
        """
        if self.winner is None or not self.winner.private:
            return 0.5
        return float(which_of_two_cap(self.guarantee.epsilon, self.guarantee.delta))

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row. ``pandas.DataFrame(plan.records())`` makes a frame."""
        return [row.to_dict() for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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
        """Return the plan as text: rows, methods left out, notes, the winner."""
        from reticent.planning.text import text_of

        return text_of(self)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the rows and the winner as HTML, which notebooks show."""
        from reticent.planning.page import table_of

        return table_of(self)

    def page(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the plan as one HTML page that needs nothing else.

        Args:
            path: path of the file.
            overwrite: whether a file that is there may be replaced.

        Raises:
            InvalidInput: ``path`` is there already, or a folder.
            WriteFailed: ``path`` is not writable.
        """
        from reticent.planning.page import page_of

        content = page_of(self).encode()
        target = Path(path)
        with output_file(target, size=len(content), overwrite=overwrite) as put:
            put(content)
        return target


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
