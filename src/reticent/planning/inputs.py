"""``reticent.plan_inputs``: the release to use if the input itself is to be protected."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive, probability
from reticent.core.errors import CalibrationFailed, InvalidInput, InvalidParameter, MissingExtra
from reticent.core.guarantees import Guarantee
from reticent.core.seeds import training_seed
from reticent.planning.input_methods import METHODS, InputMethod, Majority, Thirds
from reticent.planning.methods import PublicUse
from reticent.planning.planner import NO_TIME, SECONDS
from reticent.planning.plans import METRICS, SURE, Plan, PlanRow, Point, Score
from reticent.planning.tasks import Inputs, Radius, Task
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import neighbours_within
from reticent.systems.record_labels import record_labels
from reticent.systems.scores import Criterion, Predictions, criterion_of, lifted
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent

_LEAST_ROWS = 100
_SPLITS = 3
_CURVE = (0.3, 3.0)
_CHOSEN_BY = {"accuracy": "accuracy", "balanced_accuracy": "balanced_accuracy", "roc_auc": "auc"}
"""Criterion of ``PowerEncoder`` for each of ours. It takes proper scores as information."""


def plan_inputs(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    schema: TabularSchema,
    epsilon: float,
    delta: float,
    radius: Radius = None,
    scoring: str = "information",
    epsilons: Sequence[float] | None = None,
    methods: Sequence[InputMethod] = METHODS,
    seconds: float = SECONDS,
    random_state: Any = None,
    report: Report = silent,
) -> Plan:
    """Compare the releases of one private input that fit at a guarantee, and say which to take.

    A release learns from a third of the public rows. A server learns labels from releases of
    another third, and predicts those of the last third from its releases. The thirds take turns.
    Servers know the channel of codes. No private row is read, so a plan costs nothing.

    Guarantee:
        None is needed: everything follows from public rows and public arguments. The winner states
        its own guarantee once it is fitted.

    Args:
        X: *public* rows as ``schema`` describes them, shape (m, columns), an array or a data frame.
        y: labels of these rows, shape (m,).
        schema: public description of the columns.
        epsilon: epsilon of one released input, above 0.
        delta: delta of one released input, in [0, 1).
        radius: argument of ``PowerEncoder``: None for any two rows, a number, or a radius for every
            attribute.
        scoring: "information", "log_loss", "brier", "accuracy", "balanced_accuracy" or "roc_auc".
        epsilons: further totals for the page's curve, or None for .3 and 3 times ``epsilon``.
        methods: methods to try.
        seconds: limit of CPU time, above 0. Methods not begun by then are named in ``left_out``.
        random_state: seed of splits, training and simulated noise, or None for the operating
            system.
        report: receiver of the progress, called after every trial.

    Returns:
        A ``Plan``: rows with joint standard errors, warnings, and ``estimator``, the winner.

    Raises:
        InvalidInput, InvalidParameter, UnknownName: arguments that do not fit. Nothing is tried.

    Example:
        >>> from reticent.datasets import load_adult_sample
        >>> from reticent.tables import adult_schema
        >>> table = load_adult_sample()
        >>> found = plan_inputs(
        ...     table.train_rows[:600], table.train_labels[:600], schema=adult_schema(),
        ...     epsilon=2.0, delta=0.0, random_state=0, methods=METHODS[:2], epsilons=[1.0],
        ... )
        >>> [row.method for row in found.rows]
        ['randomised response', 'majority']

    References:
        - Warner (1965), "Randomized response: a survey technique for eliminating evasive answer
          bias", doi:10.1080/01621459.1965.10480775.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the codes that are worth most.

    See Also:
        reticent.plan: plan that protects training records, and not inputs.
        reticent.PowerEncoder: the estimator of most winners.
    """
    criterion = criterion_of(scoring)
    if not isinstance(schema, TabularSchema):
        raise InvalidParameter(f"schema: expected a TabularSchema, got {type(schema).__name__}")
    table = schema.rows(X, name="X")
    if len(table) < _LEAST_ROWS:
        raise InvalidInput(f"X: expected at least {_LEAST_ROWS} public rows, got {len(table)}")
    classes, labels = record_labels(y, len(table), "observed")
    guarantee = Guarantee(
        positive(epsilon, name="epsilon"),
        probability(delta, name="delta"),
        neighbours_within(_checked_radius(radius, schema), schema),
    )
    limit, seed = positive(seconds, name="seconds"), training_seed(random_state)
    curve = [positive(value, name="epsilons") for value in epsilons or ()] or [
        factor * epsilon for factor in _CURVE
    ]
    chosen_by = _CHOSEN_BY.get(scoring, "information")
    task = Task(
        guarantee,
        n_private=0,
        n_public=len(table),
        classes=len(classes),
        labels=tuple(classes.tolist()),
        inputs=Inputs(schema, radius, chosen_by, seed),
    )
    tasks = [task.at(epsilon=value) for value in dict.fromkeys([float(epsilon), *curve])]
    parts = _thirds(table, labels, seed)
    tried = _Trials(criterion, len(classes), limit, report)
    ordered = sorted((m for m in methods if m.fits(tasks[0])), key=lambda method: method.slow)
    tried.run(ordered, tasks, parts)
    for method in methods:
        if method not in ordered:
            tried.left_out.append((method.name, "needs a radius that leaves something free"))
    if not tried.scores:
        raise InvalidInput(
            f"methods, seconds={seconds!r}: nothing was finished; expected methods that fit, and "
            "more time"
        )
    return _planned(tried, tasks)


@dataclass
class _Trials:
    """Scores of every finished method, shape (tasks, splits).

    ``metrics`` are those of ``METRICS`` at the wanted total, shape (metrics, splits).
    """

    scoring: Criterion
    classes: int
    seconds: float
    report: Report
    begun: float = field(default_factory=time.process_time)
    scores: dict[InputMethod, Array] = field(default_factory=dict)
    metrics: dict[InputMethod, Array] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """The CPU seconds since the beginning."""
        return time.process_time() - self.begun

    def run(
        self, methods: Sequence[InputMethod], tasks: Sequence[Task], parts: list[Thirds]
    ) -> None:
        """Try all methods at the wanted total, then at others, as long as there is time."""
        alive = list(methods)
        self.scores = {method: np.full((len(tasks), len(parts)), np.nan) for method in methods}
        for place, task in enumerate(tasks):
            for method in list(alive):
                why = self._tried(method, place, task, parts)
                if why:
                    alive.remove(method)
                    self.left_out.append((method.name, why))
                if why and place == 0:
                    del self.scores[method]

    def _tried(self, method: InputMethod, place: int, task: Task, parts: list[Thirds]) -> str:
        """Fill in one row of a method's scores, or return why it was not done."""
        found, metrics = np.empty(len(parts)), np.empty((len(METRICS), len(parts)))
        for at, thirds in enumerate(parts):
            if self.spent > self.seconds:
                return (
                    f"{NO_TIME} at epsilon={task.guarantee.epsilon:g} within {self.seconds:g} CPU "
                    "seconds"
                )
            try:
                answers = method.answers(task, thirds, self.classes)
            except (CalibrationFailed, InvalidParameter, MissingExtra) as error:
                return str(error)
            found[at] = np.mean([self._score(self.scoring, one, thirds) for one in answers])
            for row, name in enumerate(METRICS if place == 0 else ()):
                metric = criterion_of(name)
                metrics[row, at] = np.mean([self._score(metric, one, thirds) for one in answers])
            self.report(method.name, at + 1, len(parts), -float(found[at]))
        self.scores[method][place] = found
        if place == 0:
            self.metrics[method] = metrics
        return ""

    def _score(self, scoring: Criterion, probabilities: Array, parts: Thirds) -> float:
        labels = probabilities.argmax(axis=1)
        if scoring.name == "balanced_accuracy":
            often = np.bincount(parts.learned_y, minlength=self.classes)
            labels = lifted(probabilities, np.maximum(often, 1.0))
        found = Predictions(labels, probabilities)
        return scoring.of(found, parts.scored_y, classes=self.classes)


def _planned(tried: _Trials, tasks: Sequence[Task]) -> Plan:
    methods = list(tried.scores)
    table = np.stack([tried.scores[method][0] for method in methods])
    means, errors = table.mean(axis=1), standard_errors(table)
    order = np.argsort(-means, kind="stable")
    joint = standard_errors(table[order[0]] - table)
    floor = next((at for at, method in enumerate(methods) if method.name == Majority.name), None)
    gains = np.full(table.shape, np.nan) if floor is None else table - table[floor]
    over = standard_errors(gains)
    rows = tuple(
        PlanRow(
            method=methods[at].name,
            line=methods[at].line,
            settings=methods[at].settings(tasks[0]),
            utility=Score(float(means[at]), float(errors[at])),
            behind=Score(float(means[order[0]] - means[at]), float(joint[at])),
            gain=Score(float(gains[at].mean()), float(over[at])),
            scores={
                name: Score(float(each.mean()), float(standard_errors(each[None, :])[0]))
                for name, each in zip(METRICS, tried.metrics[methods[at]], strict=True)
            },
            answers=None,
            protects=methods[at].line,
            uses=PublicUse.NOTHING if at == floor else PublicUse.ROWS,
            constant=bool(at == floor),
            make=partial(methods[at].estimator, tasks[0]),
        )
        for at in order
    )
    winner = next((row for row in rows if row.estimator_there), rows[0])
    curve: list[Point] = []
    for place, task in enumerate(tasks):
        for method, scores in tried.scores.items():
            if np.isnan(scores[place]).any():
                continue
            value = float(scores[place].mean())
            error = float(standard_errors(scores[place][None, :])[0])
            curve.append(Point(task.guarantee.epsilon, method.name, value, error))
    return Plan(
        task=tasks[0],
        scoring=tried.scoring.name,
        rows=rows,
        winner=winner,
        decided="it scored best on public rows of what has an estimator",
        curve=tuple(sorted(curve, key=lambda point: (point.method, point.at))),
        notes=tuple(_notes(rows, winner)),
        left_out=tuple(tried.left_out),
        seconds=tried.spent,
    )


def standard_errors(table: Array) -> Array:
    """Return standard errors of the means over the splits of a cross-validation.

    Folds share most of the rows that they train on, so their scores are not independent. For J
    scores, the variance of their mean is (1/J + held out/trained on) times that of one score.

    Args:
        table: scores, shape (methods, folds).

    Returns:
        Standard errors, shape (methods,).

    References:
        - Nadeau and Bengio (2003), "Inference for the generalization error",
          doi:10.1023/A:1024068626366, equation 9 (corrected resampled variance).

    Example:
        >>> standard_errors(np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])).round(4)
        array([1.0607])
    """
    folds = table.shape[1]
    return np.asarray(table.std(axis=1, ddof=1) * np.sqrt(1.0 / folds + 1.0 / (folds - 1)))


def _notes(rows: Sequence[PlanRow], winner: PlanRow) -> Iterator[str]:
    """Yield facts to know before anything is fitted."""
    floor = next((row for row in rows if row.uses is PublicUse.NOTHING), None)
    if floor is not None and floor.behind.value <= SURE * floor.behind.error:
        yield (
            "no release here beats the majority by more than two standard errors: at this "
            "guarantee an input tells next to nothing about its label"
        )
    if winner is not rows[0]:
        yield (
            f"{rows[0].name} scored best, and this package has it only to compare with; the winner "
            "named here is the best method with an estimator, behind by "
            f"{winner.behind.value:.4f} ± {winner.behind.error:.4f}"
        )


def _thirds(table: npt.NDArray[Any], labels: Integers, seed: int) -> list[Thirds]:
    """Return three turns of three parts, each with about its share of every label."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    parts = [np.sort(order[at::_SPLITS]) for at in range(_SPLITS)]
    return [
        Thirds(table[a], labels[a], table[b], labels[b], table[c], labels[c])
        for a, b, c in (parts[turn:] + parts[:turn] for turn in range(_SPLITS))
    ]


def _checked_radius(radius: Radius, schema: TabularSchema) -> float | AttributeRadii | None:
    """Return the radius as ``neighbours_within`` takes it, and refuse names not in the schema."""
    if isinstance(radius, Mapping):
        return AttributeRadii.of(radius, schema)
    return None if radius is None else positive(radius, name="radius")
