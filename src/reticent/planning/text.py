"""A plan as plain text, for terminals."""

from __future__ import annotations

import math

from reticent.planning.plans import METRICS, NOTHING, Plan, Score
from reticent.systems.scores import criterion_of

NAMES = {"accuracy": "accuracy", "roc_auc": "AUC", "balanced_accuracy": "balanced", "cost": "cost"}
"""Heads of columns of scores."""


def text_of(plan: Plan) -> str:
    """Return the table, methods left out, notes, and the winner."""
    lines = [f"Plan for {subject_of(plan)}", plan.task.promise]
    lines += [f"compared by {plan.scoring} ({unit_of(plan)}) ± standard error", ""]
    names = [row.name for row in plan.rows]
    width = max(len(name) for name in [*names, "method"])
    kept = [name for name in METRICS if name != plan.scoring]
    heads = "".join(f"  {NAMES[name]:>14}" for name in kept)
    lines.append(f"{'method':<{width}}  {'score':>16}  {'behind by':>16}{heads}  answers")
    for row, name in zip(plan.rows, names, strict=True):
        answers = "any" if row.answers is None else str(row.answers)
        cells = "".join(f"  {short(row.scores.get(each, NOTHING)):>14}" for each in kept)
        lines.append(
            f"{name:<{width}}  {interval(row.utility):>16}  {interval(row.behind):>16}{cells}"
            f"  {answers:>7}"
        )
    if plan.left_out:
        lines += ["", "Left out:", *(f"- {name}: {why}" for name, why in plan.left_out)]
    lines += ["", *(f"note: {note}" for note in plan.notes)]
    if not math.isnan(plan.power):
        lines.append(
            f"power: a difference of {plan.power:.4f} between two methods would be seen with "
            "chance 4 in 5"
        )
    if plan.winner is None:
        return "\n".join([*lines, f"Take nothing: {plan.decided}"])
    lines.append(f"Take: {plan.winner.name}: {plan.decided}")
    lines.append(f"      {plan.winner.line}; protects {plan.winner.protects}")
    if plan.winner.measured:
        lines.append(f"Expected: {expected_of(plan)}")
    if plan.most_answers is not None:
        lines.append(f"Q*: {questions(plan.most_answers)}")
    return "\n".join(lines)


def subject_of(plan: Plan) -> str:
    """Return a phrase on the protected data and the number of public rows."""
    task = plan.task
    if plan.of_inputs:
        return f"one private input, {task.n_public:,} public rows"
    asked = "any number of answers" if task.answers is None else f"{task.answers:,} answer(s)"
    return f"{task.n_private:,} private records, {task.n_public:,} public rows, {asked}"


def unit_of(plan: Plan) -> str:
    """Return one unit of the plan's score, in words."""
    return "minus the mean cost" if plan.scoring == "cost" else criterion_of(plan.scoring).unit


def expected_of(plan: Plan) -> str:
    """Return a phrase on the least that the winner is worth."""
    found = plan.expected
    return (
        f"{plan.scoring} of at least {found.at_least:.4f} in 9 cases of 10 (measured "
        f"{found.value:.4f} ± {found.error:.4f})"
    )


def questions(most: int) -> str:
    """Return a sentence on the meaning of Q*.

    Example:
        >>> questions(0)
        'a privately trained model is worth more than answers paid for one by one, however few'
    """
    if most == 0:
        return (
            "a privately trained model is worth more than answers paid for one by one, however few"
        )
    return (
        f"up to {most:,} answers, answers paid for one by one are worth more than a privately "
        "trained model"
    )


def interval(score: Score) -> str:
    """Return a number and its standard error.

    Example:
        >>> interval(Score(0.81234, 0.0042)), interval(NOTHING)
        ('0.8123 ± 0.0042', 'not measured')
    """
    if math.isnan(score.value):
        return "not measured"
    return f"{score.value:.4f} ± {score.error:.4f}"


def short(score: Score) -> str:
    """Return a number and its standard error, in three digits.

    Example:
        >>> short(Score(0.81234, 0.0042))
        '.812 ± .004'
    """
    if math.isnan(score.value):
        return "–"
    return " ± ".join(f"{part:.3f}".removeprefix("0") for part in (score.value, score.error))
