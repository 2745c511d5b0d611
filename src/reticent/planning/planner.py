"""``reticent.plan``: the method to use for labels or a model from private records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, one_of, positive, probability
from reticent.core.errors import CalibrationFailed, InvalidInput, InvalidParameter, MissingExtra
from reticent.core.guarantees import AddRemove, Guarantee, Replace
from reticent.core.seeds import training_seed
from reticent.planning.input_methods import PublicThirds
from reticent.planning.methods import (
    Limit,
    NoTime,
    PlanMethod,
    PublicUse,
    RecordMethod,
    all_methods,
    possible,
)
from reticent.planning.parts import PublicParts
from reticent.planning.plans import (
    ENDLESS,
    METRICS,
    NOTHING,
    SURE,
    Plan,
    PlanRow,
    Point,
    Score,
    shared,
)
from reticent.planning.rows import checked_costs, kind_of_rows, public_labels, public_rows
from reticent.planning.tasks import FEW_LABELS, FEW_RECORDS, Task
from reticent.systems.scores import DEFAULT, Predictions, criterion_of, lifted, row_scores
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent

SECONDS = 300.0
NO_TIME = "not tried, no time"

_CURVE = (0.1, 0.3, 3.0)
_ANSWERS = (1, 10, 100, 1000, 10_000, 100_000)
_LEAST_ROWS = 20
_ADJACENCIES: dict[str, Callable[[], AddRemove | Replace]] = {
    "add-remove": AddRemove,
    "replace": Replace,
}


def plan(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    n_private: int,
    epsilon: float,
    delta: float,
    adjacency: str = "add-remove",
    answers: int | None = None,
    classes: Sequence[Any] | None = None,
    scoring: str = DEFAULT,
    cost: npt.ArrayLike | None = None,
    rows: str | None = None,
    schema: TabularSchema | None = None,
    epsilons: Sequence[float] | None = None,
    methods: Sequence[RecordMethod] | None = None,
    seconds: float = SECONDS,
    random_state: Any = None,
    report: Report = silent,
) -> Plan:
    """Compare the methods that fit at a guarantee on public rows, and say which one to take.

    Private records are not read, so a plan costs nothing. The model that starts from the best
    public models is taken, unless another was measured to be better by two standard errors on the
    public rows. With fewer than 1,000 private records or 100 labelled public rows nothing is
    decided by measurement, and the usual method is taken.

    Guarantee:
        None is needed: everything follows from public rows, ``n_private`` and the other arguments,
        all of which count as public. The winner states its own guarantee once it is fitted.

    Args:
        X: *public* rows, shape (m, columns): an array of numbers, or a data frame of pandas, polars
            or pyarrow. A schema is drafted for a data frame that does not hold numbers alone.
        y: labels of these rows, numbers or words, shape (m,), or None. With None nothing is
            measured.
        n_private: number of private records, at least 1. It counts as public.
        epsilon: epsilon of everything that is released, above 0.
        delta: delta of everything that is released, in [0, 1).
        adjacency: neighbouring relation of data sets: "add-remove" or "replace".
        answers: number of labels that will ever be asked for, or None for any number. With None,
            methods that pay for each answer are left out.
        classes: public list of all labels, or None for those in ``y``. Needed without ``y``.
        scoring: "log_loss", "brier", "information" (proper scores), "accuracy",
            "balanced_accuracy" or "roc_auc".
        cost: cost of the answer of column j if row i is true, shape (classes, classes), or None.
            With costs, methods are compared by them, in place of ``scoring``.
        rows: "table", "embedding" or "picture", as ``PublicStartClassifier`` takes it, or None for
            a choice by the number of columns.
        schema: description of the columns. The estimator has it too.
        epsilons: further totals for the page's curve, or None for a tenth to three times
            ``epsilon``.
        methods: methods to compare, or None for all.
        seconds: limit of CPU time, above 0. A method that has begun by then is finished. Methods
            that have not are named in ``left_out`` and have no score.
        random_state: seed of simulated noise, or None for the operating system.
        report: receiver of the progress, called after every method.

    Returns:
        A ``Plan``: rows with joint standard errors, notes, and ``estimator``, the winner.

    Raises:
        InvalidInput, InvalidParameter, UnknownName: arguments that do not fit. Nothing is tried.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from reticent.planning.methods import Constant, PublicModels
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> found = plan(
        ...     X[:200], y[:200], n_private=5000, epsilon=1.0, delta=1e-6, scoring="accuracy",
        ...     random_state=0, methods=[Constant(), PublicModels()],
        ... )
        >>> found.winner.method, found.expected.at_least > 0.9
        ('public models alone', True)

    References:
        - Agresti and Coull (1998), "Approximate is better than 'exact' for interval estimation of
          binomial proportions", doi:10.1080/00031305.1998.10480550, errors of few rows.
        - DeLong, DeLong and Clarke-Pearson (1988), "Comparing the areas under two or more
          correlated receiver operating characteristic curves: a nonparametric approach",
          doi:10.2307/2531595, joint standard errors on the same rows.
        - Nadeau and Bengio (2003), "Inference for the generalization error",
          doi:10.1023/A:1024068626366, folds that share training rows.
        - Liu and Talwar (2019), "Private selection from private candidates", arXiv:1811.07971,
          selection on the private records, which this replaces.

    See Also:
        reticent.PublicStartClassifier: the usual winner.
        reticent.plan_inputs: plan that protects inputs, and not records.
    """
    limit = Limit(seconds)
    numbers, known_schema, notes = public_rows(X, schema)
    if len(numbers) < _LEAST_ROWS:
        raise InvalidInput(f"X: expected at least {_LEAST_ROWS} public rows, got {len(numbers)}")
    criterion_of(scoring)
    make = _ADJACENCIES[one_of(adjacency, _ADJACENCIES, name="adjacency")]
    guarantee = Guarantee(
        positive(epsilon, name="epsilon"), probability(delta, name="delta"), make()
    )
    seed = training_seed(random_state)
    codes, labels = public_labels(y, len(numbers), classes)
    costs = checked_costs(cost, len(labels))
    task = Task(
        guarantee,
        count(n_private, name="n_private"),
        len(numbers),
        len(labels),
        answers,
        labels=labels,
        rows=kind_of_rows(rows, numbers.shape[1], known_schema),
        schema=known_schema,
    )
    curve = [positive(value, name="epsilons") for value in epsilons or ()] or [
        factor * guarantee.epsilon for factor in _CURVE
    ]
    there, left_out = possible(
        all_methods() if methods is None else methods, task, labelled=codes is not None
    )
    if codes is None:
        return _unmeasured(task, scoring, there, left_out, notes, limit)
    parts = PublicParts(numbers, codes, task, seed)
    name = scoring if costs is None else "cost"
    comparison = Comparison(parts, name, costs, _tasks(task, curve), left_out)
    comparison.run(there, limit, report)
    return comparison.plan(task, there, notes=notes, seconds=limit.spent)


@dataclass(eq=False)
class Comparison:
    """Answers of methods for public rows whose labels they did not see, and their scores.

    Attributes:
        parts: public rows in the roles of public rows and private records.
        scoring: criterion of the comparison, or "cost".
        costs: costs of wrong labels, or None.
        tasks: totals and numbers of answers that are tried.
        left_out: untried methods, and the reasons.
        answers: predictions of all rows for each draw of the noise, by method and task.
    """

    parts: PublicParts | PublicThirds
    scoring: str
    costs: Array | None
    tasks: tuple[Task, ...]
    left_out: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[PlanMethod, dict[Task, list[Predictions]]] = field(default_factory=dict)
    _values: dict[tuple[PlanMethod, Task, str], Array] = field(default_factory=dict)

    def run(
        self,
        methods: Sequence[PlanMethod],
        limit: Limit,
        report: Report = silent,
        tasks: Sequence[Task] = (),
    ) -> None:
        """Compare one method after the other, as long as there is time.

        Args:
            methods: methods that fit the task.
            limit: the time that there is.
            report: receiver of the progress, called after every method.
            tasks: tasks to try, or none for all.
        """
        if not self.parts.folds:
            self.left_out += [(one.name, "labels are too few to compare by") for one in methods]
            return
        tasks = tasks or self.tasks
        for place, method in enumerate(methods):
            asked = list(dict.fromkeys(_key(method, task) for task in tasks))
            try:
                limit.check()
                found = method.answers(asked, self.parts)
            except NoTime:
                at = "" if self.tasks[0] in tasks else f" at epsilon={_epsilon(tasks[0]):g}"
                why = f"{NO_TIME}{at} within {limit.seconds:g} CPU seconds"
                self.left_out.append((method.name, why))
                continue
            except (CalibrationFailed, InvalidParameter, MissingExtra) as error:
                self.left_out.append((method.name, str(error)))
                continue
            self.answers.setdefault(method, {}).update(zip(asked, found, strict=True))
            report(
                method.name, place + 1, len(methods), -float(self.values(method, tasks[0]).mean())
            )

    def values(self, method: PlanMethod, task: Task, name: str | None = None) -> Array:
        """Return a value for each draw and row, shape (draws, m), whose mean is a score.

        Args:
            method: a method that was tried.
            task: a task that was tried.
            name: name of the score, or None for the criterion of the comparison.
        """
        wanted = self.scoring if name is None else name
        key = (method, _key(method, task), wanted)
        if key not in self._values:
            self._values[key] = self._scored(wanted, self.answers[method][key[1]])
        return self._values[key]

    def _score(self, method: PlanMethod, task: Task, name: str | None = None) -> Score:
        """Return a score. A further row has the constant's mean where a score has no end."""
        wanted, floor = name or self.scoring, self._first(PublicUse.NOTHING)
        worst = 0.0
        if wanted in ENDLESS and floor is not None:
            worst = float(self.values(floor, task, name).mean())
        return Score.of_rows(
            self.values(method, task, name),
            labels=self.parts.codes if wanted == "balanced_accuracy" else None,
            folds=len(self.parts.folds),
            worst=worst,
        )

    def _difference(self, one: PlanMethod, other: PlanMethod, task: Task) -> Score:
        """Return how much more the first is worth, with the joint standard error."""
        if one is other:
            return Score(0.0, 0.0)
        both = self.values(one, task), self.values(other, task)
        away = both[0].mean(axis=0) - both[1].mean(axis=0)
        spread = sum(
            float(values.mean(axis=1).var(ddof=1)) / len(values)
            for values in both
            if len(values) > 1
        )
        error = math.sqrt(
            shared(len(self.parts.folds)) * float(away.var(ddof=1)) / len(away) + spread
        )
        return Score(float(away.mean()), error)

    def is_constant(self, method: PlanMethod, task: Task) -> bool:
        """Return whether a method names one label for every row, whatever it is called."""
        draws = self.answers[method][_key(method, task)]
        return all(len(np.unique(draw.labels)) == 1 for draw in draws)

    def _scored(self, name: str, draws: Sequence[Predictions]) -> Array:
        classes, truth = self.parts.task.classes, self.parts.codes
        known: dict[int, Array] = {}  # a method without noise returns one object for all
        for draw in draws:
            if id(draw) in known:
                continue
            cut = draw
            if name == "balanced_accuracy" and draw.probabilities is not None:
                # A threshold at public prevalence is post-processing.
                shares = np.bincount(truth, minlength=classes).astype(np.float64) + 1.0
                labels = lifted(draw.probabilities, shares)
                cut = Predictions(labels, draw.probabilities)
            known[id(draw)] = row_scores(name, cut, truth, classes=classes, costs=self.costs)
        return np.stack([known[id(draw)] for draw in draws])

    def plan(
        self,
        task: Task,
        fitting: Sequence[PlanMethod],
        *,
        notes: Sequence[str] = (),
        seconds: float = math.nan,
    ) -> Plan:
        """Return the plan for one of the tasks.

        Args:
            task: the wanted task.
            fitting: methods that fit it, tried or not.
            notes: notes about the rows.
            seconds: CPU seconds that were spent.
        """
        methods = sorted(self.answers, key=lambda one: -self.values(one, task).mean())
        best = methods[0] if methods else None
        rows = {method: self._row(method, task, best) for method in methods}
        winner, decided = self._taken(task, fitting, rows)
        if winner is not None and winner not in rows:  # too few labels to compare by
            rows[winner] = unmeasured_row(winner, task)
        taken = None if winner is None else rows[winner]
        return Plan(
            task=task,
            scoring=self.scoring,
            rows=tuple(rows.values()),
            winner=taken,
            decided=decided,
            curve=self._points(lambda t: t.answers == task.answers, _epsilon),
            by_answers=self._points(_of_total(task), lambda t: float(t.answers or 0)),
            most_answers=self._most_answers(task),
            notes=(*notes, *self._notes(task, winner, taken)),
            left_out=tuple(self.left_out),
            seconds=seconds,
            costs=None if self.costs is None else tuple(map(tuple, self.costs.tolist())),
        )

    def _row(self, method: PlanMethod, task: Task, best: PlanMethod | None) -> PlanRow:
        floor = self._first(PublicUse.NOTHING)
        assert best is not None
        names = [*METRICS, *(["cost"] if self.costs is not None else [])]
        return replace(
            unmeasured_row(method, task),
            utility=self._score(method, task),
            behind=self._difference(best, method, task),
            gain=NOTHING if floor is None else self._difference(method, floor, task),
            scores={name: self._score(method, task, name) for name in names},
            constant=self.is_constant(method, task),
        )

    def _taken(
        self,
        task: Task,
        fitting: Sequence[PlanMethod],
        rows: dict[PlanMethod, PlanRow],
    ) -> tuple[PlanMethod | None, str]:
        """Return the method to take, or None, and why."""
        named = {method.name: method for method in fitting if method.uses is not PublicUse.NOTHING}
        if task.few:
            wanted = [named[name] for name in USUAL if name in named] or list(named.values())
            return (wanted[0] if wanted else None), (
                f"nothing was decided by measurement: fewer than {FEW_RECORDS:,} private records "
                f"or {FEW_LABELS} labelled public rows. This is what usually did best on small "
                "tables too"
            )
        usual = next((named[name] for name in USUAL if name in named), None)
        if usual is None or usual not in rows:
            others = [one for one in rows if one.uses is not PublicUse.NOTHING]
            if usual is not None or not others:
                return None, NO_TIME
            usual = others[0]
        for method, row in rows.items():  # best first
            if method is usual or row.constant:
                continue
            lead = self._difference(method, usual, task)
            if lead.value > SURE * lead.error:
                return method, (
                    f"it was measured to be better than {usual.name} by {lead.value:.4f} ± "
                    f"{lead.error:.4f}"
                )
        return usual, "nothing else was measured to be better by two standard errors"

    def _first(self, use: PublicUse) -> PlanMethod | None:
        return next((method for method in self.answers if method.uses is use), None)

    def _notes(self, task: Task, winner: PlanMethod | None, taken: PlanRow | None) -> list[str]:
        """Return notes to read before anything is fitted."""
        notes = _delta_note(task)
        if winner is None or taken is None or not taken.measured:
            return notes
        if taken.constant or not taken.gain.value > SURE * taken.gain.error:
            notes.append(
                f"{winner.name} was not measured to beat the constant by two standard errors "
                f"({taken.gain.value:+.4f} ± {taken.gain.error:.4f}): what is spent may buy nothing"
            )
        alone = self._first(PublicUse.LABELS_ALONE)
        if alone is not None and taken.private:
            more = self._difference(winner, alone, task)
            if more.value <= SURE * more.error:
                notes.append(
                    "what private records add to the public models was not seen on "
                    f"{task.n_public:,} public rows in their place ({more.value:+.4f} ± "
                    f"{more.error:.4f}), which are fewer than the records"
                )
        if taken.constant:
            notes.append(
                f"{winner.name} names one label for every public row: by accuracy it is the "
                "constant, and only its order of rows, or another threshold, tells anything"
            )
        return notes

    def _points(
        self, wanted: Callable[[Task], bool], at: Callable[[Task], float]
    ) -> tuple[Point, ...]:
        found = set()
        for method in self.answers:
            tried = (task for task in self.tasks if _key(method, task) in self.answers[method])
            for task in filter(wanted, tried):
                score = self._score(method, task)
                found.add(Point(at(task), method.name, score.value, score.error))
        return tuple(sorted(found, key=lambda point: (point.method, point.at)))

    def _most_answers(self, wanted: Task) -> int | None:
        """Return the most answers for which answers one by one are worth more than the best model.

        Between two numbers that were tried, the lead is linear in the logarithm of the number.
        """
        single = [one for one in self.answers if one.limited]
        models = [
            one
            for one in self.answers
            if not one.limited and one.uses not in (PublicUse.NOTHING, PublicUse.LABELS_ALONE)
        ]
        if not single or not models:
            return None
        level = max(self.values(one, wanted).mean() for one in models)
        leads = [
            (
                int(task.answers or 0),
                float(max(self.values(one, task).mean() for one in single) - level),
            )
            for task in filter(_of_total(wanted), self.tasks)
        ]
        return crossing(sorted(leads)) if leads else None


def unmeasured_row(method: PlanMethod, task: Task) -> PlanRow:
    """Return the row of a method that has no score."""
    return PlanRow(
        method=method.name,
        line=method.line,
        settings=method.settings(task),
        utility=NOTHING,
        behind=NOTHING,
        gain=NOTHING,
        scores=dict.fromkeys(METRICS, NOTHING),
        answers=task.answers if method.limited else None,
        protects=method.protects,
        uses=method.uses,
        constant=False,
        make=partial(method.estimator, task),
    )


def _key(method: PlanMethod, task: Task) -> Task:
    """Return the task without the number of answers if the method releases a model.

    A released model answers any number of queries alike.
    """
    return task if method.limited else replace(task, answers=None)


def _of_total(wanted: Task) -> Callable[[Task], bool]:
    return lambda task: task.answers is not None and task.guarantee == wanted.guarantee


def crossing(leads: Sequence[tuple[int, float]]) -> int:
    """Return the number of answers at which a lead is lost, or 0 if there is no lead.

    Args:
        leads: numbers of answers, rising, with the lead at each.

    Example:
        >>> crossing([(1, 0.2), (100, -0.2)])
        10
    """
    ahead = [place for place, (_, lead) in enumerate(leads) if lead >= 0]
    if not ahead:
        return 0
    answers, lead = leads[ahead[-1]]
    if ahead[-1] + 1 == len(leads):
        return answers
    following, lag = leads[ahead[-1] + 1]
    return int(answers * math.exp(lead / (lead - lag) * math.log(following / answers)) + 1e-9)


ALONE = "start from the constant"
USUAL = ("public start", "start from the constant", "public models alone")


def _epsilon(task: Task) -> float:
    return task.guarantee.epsilon


def _tasks(task: Task, curve: Sequence[float]) -> tuple[Task, ...]:
    """Return the task first, then other totals, then other numbers of answers."""
    others = [task.at(epsilon=epsilon) for epsilon in curve]
    if task.answers is not None:
        others += [task.at(answers=answers) for answers in _ANSWERS]
    return tuple(dict.fromkeys([task, *others]))


def _unmeasured(
    task: Task,
    scoring: str,
    methods: Sequence[PlanMethod],
    left_out: list[tuple[str, str]],
    notes: Sequence[str],
    limit: Limit,
) -> Plan:
    """Return the plan for public rows without labels."""
    there = [method for method in methods if method.uses is not PublicUse.NOTHING]
    ranked = sorted(there, key=lambda one: (one.limited, one.name != ALONE))
    rows = {method: unmeasured_row(method, task) for method in ranked}
    return Plan(
        task=task,
        scoring=scoring,
        rows=tuple(rows.values()),
        winner=rows[ranked[0]] if ranked else None,
        decided="public rows have no labels, so nothing was measured"
        if ranked
        else "no method fits without labels of public rows",
        notes=(
            *notes,
            "public rows without labels: nothing was measured, and what to expect cannot be said",
            *_delta_note(task),
        ),
        left_out=tuple(left_out),
        seconds=limit.spent,
    )


def _delta_note(task: Task) -> list[str]:
    if task.guarantee.delta * task.n_private < 1:
        return []
    chance = f"delta={task.guarantee.delta:g} is at least 1 / n_private"
    return [f"{chance}: a method may give whole records away with such a chance"]
