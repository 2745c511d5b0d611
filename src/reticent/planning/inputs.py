"""``reticent.plan_inputs``: the release to use if the input itself is to be protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Guarantee
from reticent.core.seeds import training_seed
from reticent.planning.input_methods import METHODS, PublicThirds
from reticent.planning.methods import Limit, PlanMethod, PublicUse, possible
from reticent.planning.planner import SECONDS, Comparison
from reticent.planning.plans import SURE, Plan, PlanRow
from reticent.planning.tasks import Inputs, Radius, Task
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import neighbours_within
from reticent.systems.record_labels import record_labels
from reticent.systems.scores import criterion_of
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent

_LEAST_ROWS = 100
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
    methods: Sequence[PlanMethod] = METHODS,
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
        report: receiver of the progress, called after every method.

    Returns:
        A ``Plan``: rows with joint standard errors, warnings, and ``estimator``, the winner.

    Raises:
        InvalidInput, InvalidParameter, UnknownName: arguments that do not fit, or a limit within
            which no method was finished.

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
    limit = Limit(seconds)
    criterion_of(scoring)
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
    seed = training_seed(random_state)
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
    there, left_out = possible(methods, task)
    there.sort(key=lambda method: method.slow)
    tasks = dict.fromkeys([task, *(task.at(epsilon=value) for value in curve)])
    parts = PublicThirds(table, labels, task, limit)
    comparison = _OfInputs(parts, scoring, None, tuple(tasks))
    for one in tasks:  # the wanted total of all before others
        comparison.run(there, limit, report, [one])
        there = [method for method in there if method.name not in dict(comparison.left_out)]
    if not comparison.answers:
        raise InvalidInput(
            f"methods, seconds={seconds!r}: nothing was finished; expected methods that fit, and "
            "more time"
        )
    comparison.left_out += left_out
    return comparison.plan(task, there, seconds=limit.spent)


class _OfInputs(Comparison):
    """A comparison of releases of inputs, some of which have no estimator."""

    @override
    def is_constant(self, method: PlanMethod, task: Task) -> bool:
        return method.uses is PublicUse.NOTHING

    @override
    def _taken(
        self, task: Task, fitting: Sequence[PlanMethod], rows: dict[PlanMethod, PlanRow]
    ) -> tuple[PlanMethod | None, str]:
        winner = next((one for one, row in rows.items() if row.estimator_there), next(iter(rows)))
        return winner, "it scored best on public rows of what has an estimator"

    @override
    def _notes(self, task: Task, winner: PlanMethod | None, taken: PlanRow | None) -> list[str]:
        notes, best = [], max(self.answers, key=lambda one: self.values(one, task).mean())
        floor = self._first(PublicUse.NOTHING)
        if floor is not None:
            behind = self._difference(best, floor, task)
            if behind.value <= SURE * behind.error:
                notes.append(
                    "no release here beats the majority by more than two standard errors: at this "
                    "guarantee an input tells next to nothing about its label"
                )
        if winner is not best and taken is not None:
            notes.append(
                f"{best.name} scored best, and this package has it only to compare with; the "
                "winner named here is the best method with an estimator, behind by "
                f"{taken.behind.value:.4f} ± {taken.behind.error:.4f}"
            )
        return notes


def _checked_radius(radius: Radius, schema: TabularSchema) -> float | AttributeRadii | None:
    """Return the radius as ``neighbours_within`` takes it, and refuse names not in the schema."""
    if isinstance(radius, Mapping):
        return AttributeRadii.of(radius, schema)
    return None if radius is None else positive(radius, name="radius")
