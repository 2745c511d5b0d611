"""The certified demonstration as one HTML page and one picture."""

from __future__ import annotations

from html import escape
from typing import Any

from reticent.demos.certified.chart import Chart, figure_of
from reticent.demos.certified.demo import CertifiedOutcome
from reticent.demos.certified.expected_accuracy import GLOBAL, OURS, PUBLISHED
from reticent.demos.certified.explanations import (
    on_accuracy,
    on_facts,
    on_fraction,
    on_many,
    on_total,
)
from reticent.demos.certified.rungs import CERTIFIED, CONSTANT, DESCENT, PUBLIC, VOTE
from reticent.pages.line_chart import Level, Series, line_chart
from reticent.pages.parts import card_section, document, explained, figure_table, percent

_STYLES = {
    OURS: ("ours", "circle"),
    CERTIFIED: ("ours", "circle"),
    VOTE: ("label", "diamond"),
    DESCENT: ("best", "square"),
    PUBLISHED: ("published", "triangle"),
    GLOBAL: ("published", "circle"),
}
_SHORT = {
    OURS: "ours",
    CERTIFIED: "ours",
    VOTE: "linear vote",
    DESCENT: "gradient descent",
    PUBLISHED: "published: Cauchy",
    GLOBAL: "published: Laplace",
}
_ABOUT = (
    "Labels of a model that was trained without noise, released with a proved "
    "guarantee for its training records"
)


def figure(outcome: CertifiedOutcome) -> bytes:
    """PNG: accuracy against epsilon and against the number of answers, and the share of labels that
    survive k changed records.
    """
    return figure_of([outcome.accuracy, outcome.many, outcome.fraction])


def page(outcome: CertifiedOutcome) -> str:
    """The whole page as HTML."""
    results = outcome.results
    body = [
        _header(results),
        "<main>",
        _facts(results),
        _accuracy_section(outcome.accuracy, results),
        _many_section(outcome.many, results),
        _fraction_section(outcome.fraction, results),
        _total_section(results),
        card_section(outcome.classifier.card()),
        _details_section(results),
        "</main>",
    ]
    return document(
        title=f"A label that one record cannot change: {results['data']['name']}",
        about=_ABOUT,
        body=body,
    )


def _header(results: dict[str, Any]) -> str:
    return f"""<header>
<p class="name-of">reticent · {escape(results["data"]["name"])}</p>
<h1>A label that one record cannot change</h1>
<p class="lead">Every single training record is protected from whoever receives the answers,
whatever else they know. A model was trained on the records without any noise, and what it answers
could give one of them away. Here a proof says how many records would have to come or go before an
answer could change, and the answer is randomised only as much as that number leaves necessary.</p>
</header>"""


def _facts(results: dict[str, Any]) -> str:
    at, epsilon = results["accuracy_at_epsilon"], results["epsilon"]
    facts = [
        (
            "ours",
            results["accuracy_released"],
            f"of the released labels are right, at ε = {epsilon:g} each",
        )
    ]
    best = max((VOTE, DESCENT), key=lambda name: at[name])
    facts.append(("label", at[best], f"would be right with {best}, at the same ε"))
    facts.append(("best", at[PUBLIC], "are right by the labelled public rows alone"))
    if PUBLISHED in at:
        what = "would be right with the published smooth sensitivity, same model and certificates"
        facts.append(("published", at[PUBLISHED], what))
    facts.append(("", results["accuracy_noise_free"], "are right without any protection"))
    items = [
        f'<li class="{style}"><b>{percent(value)}</b><span>{escape(text)}</span></li>'
        for style, value, text in facts
    ]
    return (
        '<ul class="facts" aria-label="Main '
        f'results">{"".join(items)}</ul><p>{escape(results["data"]["about"])} '
        f"{results['data']['records']:,} private records, {results['data']['queries']:,} "
        "held-out queries. Always naming the label that is most frequent among the public rows is "
        f"right for {percent(at[CONSTANT])}. The released labels were drawn with randomness from "
        f"the operating system.</p>{explained(on_facts(results))}"
    )


def _accuracy_section(chart: Chart, results: dict[str, Any]) -> str:
    names = [name for name in reversed(list(_STYLES)) if name in chart.series]
    series = [
        Series(_SHORT[name], tuple((x, y, 0.0) for x, y in chart.series[name]), *_STYLES[name])
        for name in names
    ]
    summary = "; ".join(
        f"{_SHORT[name]}: "
        + ", ".join(f"{percent(y)} at epsilon {x:g}" for x, y in chart.series[name])
        for name in names
    )
    drawn = line_chart(
        series,
        _levels(chart),
        title="Accuracy against epsilon",
        description=f"Expected accuracy on held-out queries. {summary}.",
        x_name=chart.x_name,
        y_name="accuracy",
    )
    values = [x for x, _ in chart.series[OURS]]
    rows = [
        (
            name,
            [f"{100 * y:.1f}" for _, y in chart.series[name]],
            "strong ours" if name == OURS else "",
        )
        for name in reversed(names)
    ]
    table = figure_table(
        "Accuracy in percent.", "method", [f"ε = {x:g}" for x in values], [*rows, *_flat(chart)]
    )
    closing = (
        "The published mechanism reads the same certificates; its error falls as "
        "e<sup>-εk/6</sup> in the certified distance k, "
        "ours as e<sup>-εk</sup>."
        if results["classes"] == 2
        else "The published mechanisms answer two labels only, so there is nothing published "
        "to compare with here."
    )
    return f"""<section aria-labelledby="accuracy">
<h2 id="accuracy">What protection costs in accuracy</h2>
<p>One answer. Exact expectations over the randomness of each mechanism; for the linear vote and
noisy gradient descent means of three draws, with settings chosen on the public rows. {closing}</p>
{explained(on_accuracy(results))}
<div class="scroll" role="region" aria-label="Chart" tabindex="0">{drawn}</div>
<details><summary>The same as a table</summary>{table}</details>
</section>"""


def _many_section(chart: Chart, results: dict[str, Any]) -> str:
    names = [name for name in reversed(list(_STYLES)) if name in chart.series]
    summary = "; ".join(
        f"{_SHORT[name]}: "
        + ", ".join(f"{percent(y)} at {x:,.0f} answers" for x, y in chart.series[name])
        for name in names
    )
    drawn = line_chart(
        [
            Series(_SHORT[name], tuple((x, y, 0.0) for x, y in chart.series[name]), *_STYLES[name])
            for name in names
        ],
        _levels(chart),
        title="Accuracy against the number of answers",
        description=f"Accuracy on held-out queries. {summary}.",
        x_name=chart.x_name,
        y_name="accuracy",
        name="many",
    )
    rows = [
        (
            name,
            [f"{100 * y:.1f}" for _, y in chart.series[name]],
            "strong ours" if name == CERTIFIED else "",
        )
        for name in reversed(names)
    ]
    rows += [
        (name, [f"{100 * y:.1f}" for _, y in points], "")
        for name, points in results["many_others"].items()
    ]
    heads = [f"{x:,.0f}" for x, _ in chart.series[CERTIFIED]]
    table = figure_table("Accuracy in percent.", "answers", heads, [*rows, *_flat(chart)])
    return f"""<section aria-labelledby="many-answers">
<h2 id="many-answers">Many answers at one total</h2>
<p>All answers together cost the same, so each is noisier the more there are. Certified answers are
randomised or moved by Gaussian noise, whichever the number asks for. The table has further methods
at the same total: {escape(", ".join(results["many_others"]))}.</p>
{explained(on_many(results))}
<div class="scroll" role="region" aria-label="Chart of many answers" tabindex="0">{drawn}</div>
<details><summary>The same as a table</summary>{table}</details>
</section>"""


def _levels(chart: Chart) -> list[Level]:
    return [Level(name, value) for name, value in chart.levels.items()]


def _flat(chart: Chart) -> list[tuple[str, list[str], str]]:
    """Rows of a table for what no epsilon and no number of answers changes."""
    [points, *_] = chart.series.values()
    return [
        (name, [f"{100 * value:.1f}"] * len(points), "") for name, value in chart.levels.items()
    ]


def _fraction_section(chart: Chart, results: dict[str, Any]) -> str:
    [points] = chart.series.values()
    drawn = line_chart(
        [Series("certified", tuple((x, y, 0.0) for x, y in points), "ours")],
        [],
        title="Certified fraction",
        description="Share of queries whose label survives k changed records: "
        + ", ".join(f"{percent(y)} at {x:g}" for x, y in points)
        + ".",
        x_name="changed records k",
        y_name="share of queries",
        name="survival",
    )
    return f"""<section aria-labelledby="fraction">
<h2 id="fraction">How many records a label survives</h2>
<p>Training was repeated on intervals: one pass bounds every model that could have come out, had k
records been added or removed. A label survives k changes if all those models agree on it. Half of
the queries survive {results["median_distance"]:g} changes or more; nothing beyond
{results["k_max"]} was looked at.</p>
{explained(on_fraction(results))}
<div class="scroll" role="region" aria-label="Chart" tabindex="0">{drawn}</div>
</section>"""


def _total_section(results: dict[str, Any]) -> str:
    rows = [
        (f"{entry['answers']:,}", [f"{entry['epsilon']:.3g}"], "") for entry in results["totals"]
    ]
    delta = results["totals"][0]["delta"]
    table = figure_table("", "answers", (f"total ε at δ = {delta:g}",), rows)
    return f"""<section aria-labelledby="total">
<h2 id="total">What many answers cost</h2>
<p>Every answer spends ε = {results["epsilon"]:g}. Together they spend less than the sum, by optimal
composition; a ledger enforces the total.</p>
{table}
{explained(on_total(results))}
</section>"""


def _details_section(results: dict[str, Any]) -> str:
    rows = [(name, [f"{value:.2f} s"], "") for name, value in results["cpu_seconds"].items()]
    return f"""<section aria-labelledby="made">
<h2 id="made">Where the time went</h2>
{figure_table("", "stage", ("processor time",), rows)}
<p>The folder of this page holds the fitted bundle, which is as private as the records, the queries,
the figures as numbers (results.json) and the card.</p>
</section>"""
