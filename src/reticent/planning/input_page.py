"""A plan for private inputs as one HTML page: what each release is worth, and by epsilon."""

from __future__ import annotations

from html import escape

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.pages.parts import document, figure_table
from reticent.planning.input_plans import MAJORITY, InputPlan
from reticent.planning.page import ANSWERED, curve_chart, percent_of, section
from reticent.planning.text import interval
from reticent.systems.scores import criterion_of


def input_page_of(plan: InputPlan) -> str:
    """The whole page as HTML; it needs no script and loads nothing."""
    body = [_header(plan), "<main>", _warnings(plan), _table(plan), _curve(plan)]
    body += [_attacker(plan), _left_out(plan), "</main>"]
    return document(
        title="A plan for private inputs",
        about="Which release of an input to use at a guarantee, tried on public rows",
        body=body,
        answered=ANSWERED,
    )


def _header(plan: InputPlan) -> str:
    return f"""<header>
<p class="name-of">reticent · plan</p>
<h1>{escape(plan.winner.method)}</h1>
<p class="lead">The release to take for a private input, with
{escape(plan.promise)}. It was found on {plan.n_public:,} public rows; no private input
was looked at, and nothing was spent.</p>
</header>"""


def _warnings(plan: InputPlan) -> str:
    if not plan.warnings:
        return ""
    items = "".join(f"<li>{escape(warning)}</li>" for warning in plan.warnings)
    return f"""<section aria-labelledby="warnings">
<h2 id="warnings">Before you start</h2><ul>{items}</ul></section>"""


def _table(plan: InputPlan) -> str:
    rows = [
        (
            row.name,
            [
                escape(interval(row.utility, row.error)),
                escape(interval(row.behind, row.behind_error)),
                escape(row.line),
            ],
            "strong ours" if row is plan.winner else "",
        )
        for row in plan.rows
    ]
    caption = f"{plan.scoring}, higher is better; ± one standard error, joint for differences"
    table = figure_table(caption, "method", ("expected", "behind the first", "what leaves"), rows)
    return f"""<section aria-labelledby="methods">
<h2 id="methods">What each release is worth</h2>
<p>A third of the public rows taught a release, a server learned labels from releases of another
third, and predicted those of the last. <code>plan.estimator</code> is the unfitted estimator.</p>
{table}
</section>"""


def _curve(plan: InputPlan) -> str:
    names = list(dict.fromkeys(row.method for row in plan.rows if row.method != MAJORITY))
    chart = curve_chart(
        plan.curve,
        criterion_of(plan.scoring),
        chosen=[plan.winner.method, *(name for name in names if name != plan.winner.method)],
        constant=MAJORITY,
        name="epsilons",
        title="Utility against epsilon",
        x_name="epsilon of one released input",
    )
    text = "Each line is one method, its settings chosen anew at each epsilon."
    return section("epsilons", "Against epsilon", text, chart)


def _attacker(plan: InputPlan) -> str:
    values = sorted({plan.guarantee.epsilon, *(point.at for point in plan.curve)})
    rows = [
        (
            f"{epsilon:g}",
            [percent_of(float(which_of_two_cap(epsilon, plan.guarantee.delta)))],
            "strong ours" if epsilon == plan.guarantee.epsilon else "",
        )
        for epsilon in values
    ]
    table = figure_table("", "epsilon", ("right guesses, at most",), rows)
    return f"""<section aria-labelledby="attacker">
<h2 id="attacker">What an attacker would still get</h2>
<p>Somebody who sees what was released and computes without limit guesses which of two neighbouring
inputs it came from. If both are equally likely beforehand, at most
(e<sup>ε</sup> + δ) / (1 + e<sup>ε</sup>) of the guesses are right.</p>
{table}
</section>"""


def _left_out(plan: InputPlan) -> str:
    if not plan.left_out:
        return ""
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(why)}</li>" for name, why in plan.left_out)
    return (
        '<section aria-labelledby="left-out"><h2 id="left-out">What was left out, and why</h2>'
        f"<ul>{items}</ul><p>The plan took {plan.seconds:.0f} seconds.</p></section>"
    )
