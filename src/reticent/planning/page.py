"""A plan as one HTML page: each method's score by epsilon and by the number of answers.

Pages for records and for inputs differ in some sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.pages.line_chart import Level, Series
from reticent.pages.page import Chart, Fact, Items, Section, Table, page
from reticent.planning.methods import PublicUse
from reticent.planning.plans import METRICS, NOTHING, Plan, Point
from reticent.planning.text import NAMES, interval, questions, short, unit_of
from reticent.systems.scores import criterion_of

_STYLES = ("ours", "label", "best", "published")
_MARKERS = ("circle", "square", "diamond", "triangle")
_ANSWERED = (
    "Every number and picture on this page was computed by the run that wrote it, on public rows "
    "with noise from a seed. Nothing was released."
)


@dataclass(frozen=True)
class _Words:
    """Sentences in which plans for records and for inputs differ."""

    protected: str
    stood_in: str
    tried: str
    epsilon: str
    attacker: str
    cap: str


_RECORDS = _Words(
    protected="records",
    stood_in="that stood in for the records",
    tried="Four fifths of the public rows stood in for public rows and private records, with noise "
    "in proportion. Every method predicted the last fifth, whose labels it had not seen. So few "
    "stand-ins teach less than the records will.",
    epsilon="epsilon of everything that is released",
    attacker="An attacker sees everything that is released, knows every other record, computes "
    "without limit and guesses whether one given record was among the private ones. If it was "
    "there with probability one half",
    cap="of an attacker's guesses about a record's presence are right at most, half by chance",
)
_INPUTS = _Words(
    protected="inputs",
    stood_in="that stood in for the inputs",
    tried="A release learned from a third of the public rows. A server learned labels from "
    "releases of another third, and predicted those of the last.",
    epsilon="epsilon of one released input",
    attacker="An attacker sees what was released, computes without limit and guesses which of two "
    "neighbouring inputs it came from. If both are equally likely beforehand",
    cap="of an attacker's guesses between two neighbouring inputs are right at most, half by "
    "chance",
)


def page_of(plan: Plan) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing."""
    task, words = plan.task, _words(plan)
    asked = (
        "any number of answers" if task.answers is None else f"{task.answers:,} answer(s) at most"
    )
    what = "one private input" if plan.of_inputs else f"{task.n_private:,} private records"
    notes = Section("Before you start", "", [Items([("", note) for note in plan.notes])])
    left_out = Section(
        "What was left out, and why",
        f"The plan took {plan.seconds:.0f} CPU seconds.",
        [Items(plan.left_out)],
    )
    return page(
        "Nothing is taken" if plan.winner is None else plan.winner.method,
        f"For {what} and {asked}, with {task.promise}: {plan.decided}. The plan was made on "
        f"{task.n_public:,} public rows {words.stood_in}. No private data were read, and nothing "
        "was spent.",
        _facts(plan),
        [
            *([notes] if plan.notes else []),
            _methods(plan),
            *_charts(plan),
            _attacker(plan),
            *([left_out] if plan.left_out else []),
        ],
        name="plan",
        about="Which method to use at a guarantee, tried on public rows",
        window=f"A plan for private {words.protected}",
        answered=_ANSWERED,
    )


def table_of(plan: Plan) -> str:
    """Return the section with every method's scores, and the one that is taken, as HTML."""
    return _methods(plan).html("methods")


def _words(plan: Plan) -> _Words:
    return _INPUTS if plan.of_inputs else _RECORDS


def _facts(plan: Plan) -> list[Fact]:
    facts = []
    if plan.winner is not None and plan.winner.measured:
        facts.append(
            Fact(
                f"≥ {plan.expected.at_least:.3f}",
                f"{plan.scoring} ({unit_of(plan)}) expected at least, in 9 cases of 10; measured "
                f"{interval(plan.expected)}",
                "ours",
            )
        )
    if plan.constant is not None:
        facts.append(
            Fact(
                f"{plan.constant.utility.value:.3f}",
                f"the constant's {plan.scoring}: the same answer for everybody",
                "plain",
            )
        )
    if not math.isnan(plan.power):
        told = "true difference that is seen 4 times in 5"
        facts.append(Fact(f"{plan.power:.3f}", told, "published"))
    if plan.most_answers is not None:
        facts.append(Fact(f"{plan.most_answers:,}", f"Q*: {questions(plan.most_answers)}", "label"))
    return [*facts, Fact(plan.guess_cap, _words(plan).cap, "best")]


def _methods(plan: Plan) -> Section:
    names = [name for name in (*METRICS, "cost") if name != plan.scoring]
    shown = [name for name in names if any(name in row.scores for row in plan.rows)]
    counted = any(row.answers is not None for row in plan.rows)
    rows = [
        (
            row.name,
            [
                short(row.utility) if row.measured else interval(row.utility),
                interval(row.behind),
                *(short(row.scores.get(name, NOTHING)) for name in shown),
                *(["any" if row.answers is None else f"{row.answers:,}"] if counted else []),
            ],
        )
        for row in plan.rows
    ]
    table = Table(
        "method",
        [plan.scoring, "behind", *(NAMES[name] for name in shown), *["answers"] * counted],
        rows,
        f"{plan.scoring}, higher is better; ± one standard error, joint for differences",
        () if plan.winner is None else (plan.winner.name,),
    )
    words = _words(plan).tried
    if plan.winner is not None:
        settings = ", ".join(f"{key}={value}" for key, value in plan.winner.settings.items())
        words += (
            f"\n\n{plan.winner.name}: {plan.winner.line}. It protects {plan.winner.protects}. "
            f"Settings: {settings or 'as they are'}. plan.estimator is the unfitted estimator."
        )
    lines = Items([(row.method, row.line) for row in plan.rows], "The methods")
    return Section("What each method is worth", words, [table, lines])


def _charts(plan: Plan) -> list[Section]:
    """Return the scores against epsilon, and against the number of answers."""
    counted = (
        "A released model answers any number of queries. Answers that are paid for one by one get "
        "noisier the more of them there are."
    )
    if plan.most_answers is not None:
        counted += f" Q* = {plan.most_answers:,}: {questions(plan.most_answers)}."
    totals = "The chart shows the methods at other totals, with everything else unchanged."
    return [
        Section(f"Against {name}", text, [_chart(plan, points, name, axis)])
        for name, text, points, axis in (
            ("epsilon", totals, plan.curve, _words(plan).epsilon),
            (
                "the number of answers",
                counted,
                plan.by_answers,
                "answers at the total of this plan",
            ),
        )
        if points
    ]


def _chart(plan: Plan, points: Sequence[Point], name: str, axis: str) -> Chart:
    """Return a drawing of some methods' points, the winner's most clearly, and its numbers."""
    series = []
    for method, style, marker in zip(_drawn(plan), _STYLES, _MARKERS, strict=False):
        own = sorted((point for point in points if point.method == method), key=lambda p: p.at)
        if own:
            drawn = tuple(
                (point.at, _share(plan, point.utility), 1.96 * _half(point, plan)) for point in own
            )
            series.append(Series(method, drawn, style, marker))
    constant = None if plan.constant is None else plan.constant.method
    flat = [point for point in points if point.method == constant][:1]
    levels = [Level("constant", _share(plan, point.utility)) for point in flat]
    shares = [y for line in series for _, y, _ in line.points] + [level.y for level in levels]
    floor = math.floor(20 * min(shares)) / 20
    ceiling = min(1.0, math.ceil(20 * max(shares)) / 20)
    return Chart(
        f"Utility against {name}",
        axis,
        series[::-1],
        levels,
        (max(0.0, floor - 0.05), max(ceiling, floor + 0.05)),
        _axis(plan.scoring),
    )


def _drawn(plan: Plan) -> list[str]:
    """Return the methods to draw, the most important one first.

    The winner comes first, then public rows alone, the best released model, the best answers one by
    one, and others while there is room.
    """
    rows = [row for row in plan.rows if row.uses is not PublicUse.NOTHING]
    wanted = [
        [row for row in rows if row is plan.winner],
        [row for row in rows if row.uses is PublicUse.LABELS_ALONE][:1],
        [row for row in rows if row.private and row.answers is None][:1],
        [row for row in rows if row.private and row.answers is not None][:1],
        rows,
    ]
    return list(dict.fromkeys(row.method for group in wanted for row in group))


def _half(point: Point, plan: Plan) -> float:
    """Return the standard error on the scale from 0 to 1."""
    low, high = (_share(plan, point.utility + sign * point.error) for sign in (-1.0, 1.0))
    return (high - low) / 2


def _share(plan: Plan, value: float) -> float:
    """Return a score on a scale from 0 to 1. For a cost, 0 is the dearest answer and 1 no cost."""
    if plan.costs is not None:
        return 1.0 + value / max(1e-12, *(max(row) for row in plan.costs))
    return criterion_of(plan.scoring).share(value)


def _axis(scoring: str) -> str:
    return {
        "log_loss": "geometric mean probability of the true label",
        "information": "nats per answer, in hundredths",
        "cost": "share of the dearest answer that is saved",
    }.get(scoring, scoring.replace("_", " "))


def _attacker(plan: Plan) -> Section:
    own, delta = plan.guarantee.epsilon, plan.guarantee.delta
    rows = [
        (f"{epsilon:g}", [f"{100 * float(which_of_two_cap(epsilon, delta)):.1f} %"])
        for epsilon in sorted({own, *(point.at for point in plan.curve)})
    ]
    return Section(
        "What an attacker would still get",
        f"{_words(plan).attacker}, at most (exp(ε) + δ) / (1 + exp(ε)) of the guesses are right. "
        "A method that uses nothing private leaves one half.",
        [Table("epsilon", ["right guesses, at most"], rows, strong=(f"{own:g}",))],
    )
