"""A plan as plain text, for terminals."""

from __future__ import annotations

import math

from reticent.planning.plans import Plan, PlanRow
from reticent.systems.scores import criterion_of


def text_of(plan: Plan, *, rows: int) -> str:
    """The table, what was left out, warnings, and the winner.

    Args:
        plan: what was found.
        rows: how many of the best rows; the best row of each method is always there.
    """
    task = plan.task
    asked = "any number of answers" if task.answers is None else f"{task.answers} answer(s)"
    what = (
        f"one private input, {task.n_public} public rows"
        if plan.of_inputs
        else f"{task.n_private} private records, {task.n_public} public rows, {asked}"
    )
    unit = criterion_of(plan.scoring).unit
    lines = [
        f"Plan for {what}",
        task.promise,
        f"score: {plan.scoring} ({unit}) ± standard error; joint one beside the difference",
        "",
    ]
    shown = shown_rows(plan, rows=rows)
    names = [row.name for row in shown]
    width = max(len(name) for name in [*names, "method"])
    lines.append(f"{'method':<{width}}  {'score':>15}  {'behind by':>15}  splits  answers")
    for row, name in zip(shown, names, strict=True):
        answers = "any" if row.answers is None else str(row.answers)
        lines.append(
            f"{name:<{width}}  {interval(row.utility, row.error):>15}  "
            f"{interval(row.behind, row.behind_error):>15}  {row.splits:>6}  {answers:>7}"
        )
    if len(shown) < len(plan.rows):
        lines.append(f"({len(plan.rows) - len(shown)} further settings were worse than these)")
    if plan.left_out:
        lines += ["", "Left out:", *(f"- {name}: {why}" for name, why in plan.left_out)]
    lines += ["", *(f"warning: {warning}" for warning in plan.warnings)]
    lines.append(f"Take: {plan.winner.name}")
    lines.append(f"      {plan.winner.line}; {plan.winner.protects}")
    if plan.most_answers is not None:
        lines.append(f"Q*: {questions(plan.most_answers)}")
    return "\n".join(lines)


def questions(most: int) -> str:
    """What Q* means, as a sentence.

    Example:
        >>> questions(0)
        'a privately trained model is worth more than answers paid for one by one, however few'
    """
    if most == 0:
        return (
            "a privately trained model is worth more than answers paid for one by one, however few"
        )
    return (
        f"up to {most} answers, answers paid for one by one are worth more than a privately "
        "trained model"
    )


def shown_rows(plan: Plan, *, rows: int) -> list[PlanRow]:
    """The best ``rows`` rows, and the best row of every method."""
    first: dict[str, int] = {}
    for place, row in enumerate(plan.rows):
        first.setdefault(row.method, place)
    kept = sorted({*range(min(rows, len(plan.rows))), *first.values()})
    return [plan.rows[place] for place in kept]


def interval(value: float, error: float) -> str:
    """A number and its standard error.

    Example:
        >>> interval(0.81234, 0.0042), interval(float("nan"), 0.0)
        ('0.8123 ± 0.0042', 'only ranked')
    """
    if math.isnan(value):
        return "only ranked"
    return f"{value:.4f} ± {error:.4f}"
