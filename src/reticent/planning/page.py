"""A plan as one HTML page: each method's score by epsilon and by the number of answers.

Pages for records and for inputs differ in some sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.pages.line_chart import Level, Series, line_chart
from reticent.pages.parts import document, figure_table, percent
from reticent.planning.methods import PublicUse
from reticent.planning.plans import METRICS, NOTHING, Plan, PlanRow, Point
from reticent.planning.text import NAMES, interval, questions, short, unit_of
from reticent.systems.scores import criterion_of

_STYLES = ("ours", "label", "best", "published")
_MARKERS = ("circle", "square", "diamond", "triangle")
_ANSWERED = (
    "Every number and picture on this page was computed by the run that wrote it, on public rows "
    "with noise from a seed. Nothing was released."
)


def page_of(plan: Plan) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing."""
    body = [
        _header(plan),
        "<main>",
        _facts(plan),
        _notes(plan),
        table_of(plan),
        _curve(plan),
        _answers(plan),
        _attacker(plan),
        _left_out(plan),
        "</main>",
    ]
    return document(
        title=f"A plan for private {_words(plan).protected}",
        about="Which method to use at a guarantee, tried on public rows",
        body=body,
        answered=_ANSWERED,
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


def _words(plan: Plan) -> _Words:
    return _INPUTS if plan.of_inputs else _RECORDS


def _header(plan: Plan) -> str:
    task = plan.task
    asked = (
        "any number of answers" if task.answers is None else f"{task.answers:,} answer(s) at most"
    )
    what = "one private input" if plan.of_inputs else f"{task.n_private:,} private records"
    head = "Nothing is taken" if plan.winner is None else plan.winner.method
    return f"""<header>
<p class="name-of">reticent · plan</p>
<h1>{escape(head)}</h1>
<p class="lead">For {what} and {asked}, with {escape(task.promise)}: {escape(plan.decided)}.
The plan was made on {task.n_public:,} public rows {_words(plan).stood_in}. No private data were
read, and nothing was spent.</p>
</header>"""


def _facts(plan: Plan) -> str:
    facts = []
    unit, floor = f"{plan.scoring} ({unit_of(plan)})", plan.constant
    if plan.winner is not None and plan.winner.measured:
        found = plan.expected
        facts.append(
            (
                "ours",
                f"≥ {found.at_least:.3f}",
                f"{unit} expected at least, in 9 cases of 10; measured {interval(found)}",
            )
        )
    if floor is not None:
        facts.append(
            (
                "plain",
                f"{floor.utility.value:.3f}",
                f"the constant's {plan.scoring}: the same answer for everybody",
            )
        )
    if not math.isnan(plan.power):
        facts.append(
            ("published", f"{plan.power:.3f}", "true difference that is seen 4 times in 5")
        )
    if plan.most_answers is not None:
        facts.append(("label", f"{plan.most_answers:,}", f"Q*: {questions(plan.most_answers)}"))
    facts.append(("best", percent(plan.guess_cap), _words(plan).cap))
    items = "\n".join(
        f'<li class="{style}"><b>{escape(value)}</b><span>{escape(text)}</span></li>'
        for style, value, text in facts
    )
    return f'<ul class="facts">\n{items}\n</ul>'


def _notes(plan: Plan) -> str:
    if not plan.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in plan.notes)
    return f"""<section aria-labelledby="notes">
<h2 id="notes">Before you start</h2><ul>{items}</ul></section>"""


def table_of(plan: Plan) -> str:
    """Return the section with every method's scores, and the one that is taken."""
    names = [name for name in (*METRICS, "cost") if name != plan.scoring]
    shown = [name for name in names if any(name in row.scores for row in plan.rows)]
    counted = any(row.answers is not None for row in plan.rows)
    rows = [
        (
            row.name,
            [
                escape(short(row.utility) if row.measured else interval(row.utility)),
                escape(interval(row.behind)),
                *(escape(short(row.scores.get(name, NOTHING))) for name in shown),
                *(["any" if row.answers is None else f"{row.answers:,}"] if counted else []),
            ],
            "strong ours" if row is plan.winner else "",
        )
        for row in plan.rows
    ]
    caption = f"{plan.scoring}, higher is better; ± one standard error, joint for differences"
    heads = (plan.scoring, "behind", *(NAMES[name] for name in shown))
    heads += ("answers",) if counted else ()
    table = figure_table(caption, "method", heads, rows)
    taken = ""
    if plan.winner is not None:
        settings = ", ".join(f"{key}={value}" for key, value in plan.winner.settings.items())
        taken = (
            f"<b>{escape(plan.winner.name)}</b>: {escape(plan.winner.line)}. It protects "
            f"{escape(plan.winner.protects)}. Settings: {escape(settings) or 'as they are'}. "
            "<code>plan.estimator</code> is the unfitted estimator."
        )
    lines = "".join(
        f"<li><b>{escape(row.method)}</b>: {escape(row.line)}</li>" for row in plan.rows
    )
    return f"""<section aria-labelledby="methods">
<h2 id="methods">What each method is worth</h2>
<p>{_words(plan).tried}</p><p>{taken}</p>
{table}
<details><summary>The methods</summary><ul>{lines}</ul></details>
</section>"""


def _curve(plan: Plan) -> str:
    if not plan.curve:
        return ""
    text = "The chart shows the methods at other totals, with everything else unchanged."
    chart = _chart(
        plan,
        plan.curve,
        name="epsilons",
        title="Utility against epsilon",
        x_name=_words(plan).epsilon,
    )
    return _section("epsilons", "Against epsilon", text, chart)


def _answers(plan: Plan) -> str:
    if not plan.by_answers:
        return ""
    text = (
        "A released model answers any number of queries. Answers that are paid for one by one get "
        "noisier the more of them there are."
    )
    if plan.most_answers is not None:
        text += f" Q* = {plan.most_answers:,}: {questions(plan.most_answers)}."
    chart = _chart(
        plan,
        plan.by_answers,
        name="answers",
        title="Utility against the number of answers",
        x_name="answers at the total of this plan",
    )
    return _section("answers", "Against the number of answers", text, chart)


def _section(name: str, head: str, text: str, chart: str) -> str:
    """Return a heading, a sentence or two, and a chart below."""
    return f"""<section aria-labelledby="{name}-head">
<h2 id="{name}-head">{head}</h2>
<p>{escape(text)}</p>
{chart}
</section>"""


def _chart(
    plan: Plan,
    points: Sequence[Point],
    *,
    name: str,
    title: str,
    x_name: str,
) -> str:
    """Return a drawing of some methods' points, the winner's most clearly, and its numbers."""
    chosen, constant = _lines(plan)
    series = []
    shares = []
    for place, method in enumerate(chosen):
        own = sorted((point for point in points if point.method == method), key=lambda p: p.at)
        drawn = tuple(
            (point.at, _share(plan, point.utility), 1.96 * _half(point, plan)) for point in own
        )
        shares += [value for _, value, _ in drawn]
        if drawn:
            series.append(Series(method, drawn, _STYLES[place], _MARKERS[place]))
    levels = []
    flat = [point for point in points if point.method == constant]
    if flat:
        level = _share(plan, flat[0].utility)
        levels.append(Level("constant", level))
        shares.append(level)
    floor = math.floor(20 * min(shares)) / 20
    ceiling = min(1.0, math.ceil(20 * max(shares)) / 20)
    drawing = line_chart(
        series[::-1],
        levels,
        title=title,
        description=f"{plan.scoring} on a scale from 0 to 1 for {', '.join(chosen)}",
        x_name=x_name,
        y_name=_axis(plan.scoring),
        y_range=(max(0.0, floor - 0.05), max(ceiling, floor + 0.05)),
        name=name,
    )
    rows = [
        (
            line.name,
            [_percent_of(value) for value in _aligned(line, series)],
            "",
        )
        for line in series
    ]
    values = sorted({x for line in series for x, _, _ in line.points})
    table = figure_table(_axis(plan.scoring), x_name, [f"{x:g}" for x in values], rows)
    label = f'role="region" aria-label="{escape(title)}" tabindex="0"'
    scrolled = f'<div class="scroll" {label}>{drawing}</div>'
    return f"{scrolled}\n<details><summary>The numbers</summary>{table}</details>"


def _aligned(line: Series, series: Sequence[Series]) -> list[float | None]:
    values = sorted({x for other in series for x, _, _ in other.points})
    own = {x: y for x, y, _ in line.points}
    return [own.get(x) for x in values]


def _percent_of(value: float | None) -> str:
    """Return a share in percent with one digit after the point, or a dash.

    Example:
        >>> _percent_of(0.1234), _percent_of(None)
        ('12.3 %', '–')
    """
    return "–" if value is None else f"{100 * value:.1f} %"


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


def _lines(plan: Plan) -> tuple[list[str], str | None]:
    """Return the methods to draw, and the name of the constant.

    The winner comes first, then public rows alone, the best released model, the best answers one by
    one, and others while there is room.
    """
    constant = _first(plan, lambda row: row.uses is PublicUse.NOTHING)
    wanted = [
        plan.winner,
        _first(plan, lambda row: row.uses is PublicUse.LABELS_ALONE),
        _first(plan, lambda row: row.private and row.answers is None),
        _first(plan, lambda row: row.private and row.answers is not None),
        *plan.rows,
    ]
    names = dict.fromkeys(
        row.method for row in wanted if row is not None and row.uses is not PublicUse.NOTHING
    )
    return list(names)[: len(_STYLES)], None if constant is None else constant.method


def _first(plan: Plan, fits: Callable[[PlanRow], bool]) -> PlanRow | None:
    return next((row for row in plan.rows if fits(row)), None)


def _attacker(plan: Plan) -> str:
    delta = plan.guarantee.delta
    values = sorted({plan.guarantee.epsilon, *(point.at for point in plan.curve)})
    rows = [
        (
            f"{epsilon:g}",
            [_percent_of(float(which_of_two_cap(epsilon, delta)))],
            "strong ours" if epsilon == plan.guarantee.epsilon else "",
        )
        for epsilon in values
    ]
    table = figure_table("", "epsilon", ("right guesses, at most",), rows)
    return f"""<section aria-labelledby="attacker">
<h2 id="attacker">What an attacker would still get</h2>
<p>{_words(plan).attacker}, at most (e<sup>ε</sup> + δ) / (1 + e<sup>ε</sup>) of the guesses are
right. A method that uses nothing private leaves one half.</p>
{table}
</section>"""


def _left_out(plan: Plan) -> str:
    if not plan.left_out:
        return ""
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(why)}</li>" for name, why in plan.left_out)
    return (
        '<section aria-labelledby="left-out"><h2 id="left-out">What was left out, and why</h2>'
        f"<ul>{items}</ul><p>The plan took {plan.seconds:.0f} CPU seconds.</p></section>"
    )
