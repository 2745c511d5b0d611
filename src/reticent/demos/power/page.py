"""The power demonstration as one HTML page."""

from __future__ import annotations

from html import escape
from typing import Any

from reticent.demos.power.attacks import NOTHING, PUBLISHED
from reticent.demos.power.chart import (
    accuracy_levels,
    accuracy_series,
    half_width,
    shown_range,
)
from reticent.demos.power.demo import SERVERS, PowerDemo, neighbours_name
from reticent.demos.power.explanations import on_accuracy, on_facts
from reticent.demos.power.score_table import score_section
from reticent.pages.line_chart import line_chart
from reticent.pages.parts import card_section, document, explained, figure_table, percent
from reticent.systems.power.query import PROTECTED

_ABOUT = "Rows of a table to a server that nobody has to trust, with a proved guarantee"
_MODELS = {"boosted": "boosted trees", "forest": "a random forest", "network": "a network"}
_FEW = 10  # so few different guesses are worth a sentence
_MECHANISMS = {
    "code": "randomised response",
    "score-code": "randomised response on score bins",
    "k-norm-l2": "K-norm noise",
    "gaussian": "Gaussian noise",
    "score-noise": "K-norm noise on a score, categories as they are",
    "score-levels": "level response on a score, categories as they are",
    "clear-noise": "K-norm noise on numbers, categories as they are",
    "clear-code": "randomised response on a label, categories as they are",
}


def page(demo: PowerDemo) -> str:
    """The whole page as HTML."""
    results = demo.results
    body = [
        _header(results),
        "<main>",
        _facts(results),
        _attack_section(results),
        _accuracy_section(results),
        score_section(results),
        _neighbour_section(results),
        card_section(demo.encoder.card()),
        _use_section(results),
        "</main>",
    ]
    return document(
        title=f"A row of a table, for a server nobody has to trust: {results['data']['name']}",
        about=_ABOUT,
        body=body,
    )


def _header(results: dict[str, Any]) -> str:
    return f"""<header>
<p class="name-of">reticent · {escape(results["data"]["name"])}</p>
<h1>A row of a table, for a server nobody has to trust</h1>
<p class="lead">Every single record is protected from the server that receives what was made of it,
and from anybody else who sees that. A record of {results["data"]["columns"]} columns stays on its
owner's device. What leaves is a number or two with noise, and a proof of what they can give away.
The server learns from nothing else, with any model it likes.</p>
</header>"""


def _server(results: dict[str, Any]) -> str:
    return str(results["settings"]["server_shown"])


def _at(results: dict[str, Any], radius: float | None, epsilon: float) -> dict[str, Any]:
    return next(
        row for row in results["rows"] if row["radius"] == radius and row["epsilon"] == epsilon
    )


def _facts(results: dict[str, Any]) -> str:
    server, (epsilon, radius) = _server(results), results["settings"]["stored"]
    stored, data = _at(results, radius, epsilon), results["data"]
    facts = [
        (
            "ours",
            stored["accuracy"][server],
            (
                f"right, by {_MODELS[server]} that saw only released values, at ε = {epsilon:g}; "
                f"neighbours: {stored['neighbours']}"
            ),
        )
    ]
    facts += [
        (
            "label",
            _at(results, other, epsilon)["accuracy"][server],
            (
                f"right at the same ε, where neighbours are only records {neighbours_name(other)} "
                "of each other"
            ),
        )
        for other in results["settings"]["radii"]
        if other != radius
    ]
    facts.append(
        (
            "best",
            stored["raw columns"][server],
            f"right with noise on the raw columns, ε = {epsilon:g}, {stored['neighbours']}",
        )
    )
    facts.append(
        (
            "",
            results["accuracy_without_protection"][server],
            (
                f"right without protection; {percent(results['accuracy_by_chance'])} by always "
                "naming one class"
            ),
        )
    )
    items = [
        f'<li class="{style}"><b>{percent(value)}</b><span>{escape(text)}</span></li>'
        for style, value, text in facts
    ]
    low, high = data["classes"]
    return (
        f'<ul class="facts" aria-label="Main results">{"".join(items)}</ul><p>The server tells '
        f"“{escape(low)}” from "
        f"“{escape(high)}”. Encoders learnt from {data['public']:,} public rows; the server "
        f"learnt from {data['private']:,} "
        f"released rows and was scored on {data['held_out']:,} released held-out rows, so "
        "figures are good to about "
        f"{100 * half_width(stored['accuracy'][server], data['held_out']):.0f} points. Data: "
        f"{escape(data['origin'])}.</p>{explained(on_facts(results))}"
    )


def _sees(results: dict[str, Any], name: str) -> str:
    """A column or row head that says what the attacker sees."""
    if name == PUBLISHED:
        return "published mode, inverted"
    return (
        "nothing" if name == NOTHING else f"ours, {name}, ε = {results['settings']['stored'][0]:g}"
    )


def _attack_section(results: dict[str, Any]) -> str:
    attacks = results["attacks"]
    mode, qualities = (
        attacks["published_mode"],
        {quality["sees"]: quality for quality in attacks["qualities"]},
    )
    released = (
        f"It withheld {percent(1 - mode['released'])} of the held-out rows and sent "
        "the others without noise."
    )
    if mode["to_three_digits"] is not None:
        released += (
            f" <strong>With the encoder in hand, {percent(mode['to_three_digits'])} of those "
            "came back to three digits</strong>, "
            "by a few Newton steps."
        )
    measures = [
        ("categories", "categories right", percent),
        ("all_categories", "all of a row's categories right", lambda share: f"{100 * share:.1f} %"),
        ("number_error", "error of numbers", percent),
    ]
    kept = [measure for measure in measures if qualities[NOTHING][measure[0]] is not None]
    rows = [
        (
            _sees(results, name),
            [show(quality[key]) for key, _, show in kept],
            "strong" if name == PUBLISHED else "",
        )
        for name, quality in qualities.items()
    ]
    table = figure_table(
        "On the held-out rows that were sent. The error is the root of the mean square, as a "
        "share of a number's range.",
        "the attacker sees",
        [head for _, head, _ in kept],
        rows,
    )
    few = [
        f"For {escape(name)} it can only ever draw {count} different records, one for each "
        "code that may be sent."
        for name, count in attacks["different_guesses"].items()
        if count <= _FEW
    ]
    return f"""<section aria-labelledby="attack">
<h2 id="attack">What an attacker gets back</h2>
<p>A published method (<code>mode="published"</code>, kept here for research) sends every row whose
<em>score</em> is at most {mode["score"]:g}, a number that its authors call ε. {released} The score
is no privacy guarantee, and the method's card here says so.</p>
<p>Against ours the attacker knows encoder, noise and guarantee, owns {results["data"]["public"]:,}
rows of the same kind with their releases, and trains a decoder on them. The last line is what it
would say of a row that it knows nothing about: the floor. {" ".join(few)}</p>
{table}
{_examples(results)}
</section>"""


def _examples(results: dict[str, Any]) -> str:
    attacks, lines = results["attacks"], []
    for number, example in enumerate(attacks["examples"], start=1):
        names = list(example["guesses"])
        heads = "".join(
            f'<th scope="col">{escape(head)}</th>'
            for head in ("column", "the record", *[_sees(results, n) for n in names])
        )
        body = []
        for place, attribute in enumerate(attacks["attributes"]):
            cells = [f"<td>{escape(example['record'][place])}</td>"]
            for name in names:
                guess = example["guesses"][name]
                word = escape(guess["words"][place])
                cells.append(
                    f"<td><b>{word}</b></td>"
                    if guess["right"][place]
                    else f'<td class="wrong">{word}</td>'
                )
            body.append(f'<tr><th scope="row">{escape(attribute)}</th>{"".join(cells)}</tr>')
        counts = "".join(
            f"<td>{sum(example['guesses'][name]['right'])} of {len(attacks['attributes'])}</td>"
            for name in names
        )
        body.append(f'<tr class="strong"><th scope="row">right</th><td></td>{counts}</tr>')
        title = f"Record {number}, and what an attacker makes of it"
        lines.append(
            f"<details{' open' if number == 1 else ''}><summary>{title}</summary>"
            f'<div class="scroll" role="region" aria-label="{title}" tabindex="0"><table '
            'class="figures records">'
            f"<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></div></details>"
        )
    note = (
        "The first held-out records that the published method did not withhold; they are "
        "public. Bold is right: the same "
        f"category, or a number within {percent(attacks['near'])} of its range. Who sees "
        "nothing says the most frequent "
        "category and the median."
    )
    return f"<h3>The same in words</h3><p>{note}</p>{''.join(lines)}"


def _accuracy_section(results: dict[str, Any]) -> str:
    server, charts = _server(results), []
    for number, radius in enumerate(results["settings"]["radii"]):
        rows = [row for row in results["rows"] if row["radius"] == radius]
        charts.append(
            f"<h3>Neighbours: {escape(neighbours_name(radius))}</h3>"
            '<div class="scroll" role="region" aria-label="Chart, '
            f'{escape(neighbours_name(radius))}" tabindex="0">'
            f"{_chart(results, rows, f'chart-{number}')}</div>"
        )
    best = max(results["accuracy_without_protection"].values())
    ceiling = ""
    if any(row["ceiling"] is not None for row in results["rows"]):
        ceiling = (
            "<p>For any two records there is a ceiling. Whatever is released about a row with "
            "(ε, 0)-local privacy, and whatever "
            "is learnt from it, two classes are told apart with accuracy at most max(majority, "
            "(e<sup>ε</sup> A + 1 − A) / "
            "(e<sup>ε</sup> + 1)), where A is what the best classifier of unprotected rows "
            "reaches. It is drawn "
            f"for A = {100 * best:.1f} %, the best server here. It bounds the mean of many "
            "runs, and one run scatters.</p>"
        )
    return f"""<section aria-labelledby="accuracy">
<h2 id="accuracy">What protection costs in accuracy</h2>
<p>Held-out accuracy of {_MODELS[server]} that learnt from what was released, with 95 % intervals.
The axis does not begin at 0. Raw columns get the same ε for the same neighbours: every attribute
its share of it, by randomised response or Laplace noise; within a radius also one noise vector for
the whole row, and the better of the two ways is shown. The dashed line releases a label alone, of a
model of the public rows, by randomised response: any two records, whatever the heading says, and
exact expectations.</p>
{explained(on_accuracy(results))}
{"".join(charts)}
{ceiling}
<details><summary>The same as a table, with every server</summary>
{_accuracy_table(results)}</details>
</section>"""


def _chart(results: dict[str, Any], rows: list[dict[str, Any]], name: str) -> str:
    series = accuracy_series(results, rows)
    summary = "; ".join(
        f"{one.name}: " + ", ".join(f"{percent(y)} at epsilon {x:g}" for x, y, _ in one.points)
        for one in series
    )
    return line_chart(
        series,
        accuracy_levels(results),
        title=f"Accuracy against epsilon, neighbours: {rows[0]['neighbours']}",
        description=f"Held-out accuracy. {summary}.",
        x_name="proved ε per row (smaller protects more)",
        y_name="held-out accuracy",
        y_range=shown_range(results),
        name=name,
    )


def _accuracy_table(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        cells = [
            f"{100 * row['accuracy'][name]:.1f} ({100 * row['raw columns'][name]:.1f})"
            for name in SERVERS
        ]
        mechanism = (
            f"{_MECHANISMS[row['mechanism']]}, {row['values']} "
            f"value{'s' if row['values'] > 1 else ''}"
        )
        ceiling = "" if row["ceiling"] is None else f"{100 * row['ceiling']:.1f}"
        response = f"{100 * row['label response']:.1f}"
        name = f"{row['neighbours']}, ε = {row['epsilon']:g}"
        rows.append((name, [*cells, response, ceiling, mechanism], ""))
    rows.append(
        (
            "no protection",
            [
                *[f"{100 * results['accuracy_without_protection'][name]:.1f}" for name in SERVERS],
                "",
                "",
                "",
            ],
            "",
        )
    )
    rows.append(
        (
            "majority",
            [*[f"{100 * results['accuracy_by_chance']:.1f}" for _ in SERVERS], "", "", ""],
            "",
        )
    )
    caption = (
        "Accuracy in percent; in brackets raw columns. The mechanism is the one that "
        "calibration on public rows chose."
    )
    return figure_table(
        caption,
        "neighbours",
        [*[_MODELS[name] for name in SERVERS], "label response", "ceiling", "mechanism"],
        rows,
    )


def _neighbour_section(results: dict[str, Any]) -> str:
    parts = [_within(results, reach) for reach in results["reach"]]
    return f"""<section aria-labelledby="neighbours">
<h2 id="neighbours">Two kinds of neighbours</h2>
<p>Every guarantee says between which records an observer cannot decide. Two kinds are offered, and
their numbers must not be compared.</p>
<p><strong>Any two records.</strong> Whatever two rows are, an answer is at most e<sup>ε</sup> times
likelier from one than from the other. That is local differential privacy of the whole row: nothing
that the receiver knows or computes changes it. It is the stronger promise by far.</p>
{"".join(parts)}
</section>"""


def _within(results: dict[str, Any], reach: dict[str, Any]) -> str:
    """What a radius means, in the table's own units, and what it does not cover."""
    radius, epsilon = reach["radius"], results["settings"]["stored"][0]
    units = ", ".join(
        f"{value:,.0f} of {escape(name)}" if value >= 1000 else f"{value:.3g} of {escape(name)}"
        for name, value in list(reach["numbers"].items())[:4]
    )
    steps = f"{1 / radius:.3g}"
    codes = [
        f"ε = {row['epsilon']:g}"
        for row in results["rows"]
        if row["radius"] == radius and row["mechanism"] in ("code", "score-code")
    ]
    covered = (
        f" Where calibration chose randomised response ({', '.join(codes)}), any two records "
        "are covered all the same."
        if codes
        else ""
    )
    free = [
        f"ε = {row['epsilon']:g}"
        for row in results["rows"]
        if row["radius"] == radius and row["mechanism"] in PROTECTED
    ]
    if free:
        covered += (
            f" Where calibration chose a release that reads categories as they are "
            f"({', '.join(free)}), another category is not hidden at all."
        )
    return f"""<p><strong>Within {radius:g}.</strong> Every attribute is brought to one scale, on
which a change of it, however large, is a step of at most 1. A step of {radius:g} is, for example,
{units}: one of these, and nothing else. Rows that near to each other are told apart by no more than
e<sup>ε</sup>. The largest change of one attribute, such as another category, is {steps} times as
far; K-norm noise holds the odds there to e<sup>{steps} ε</sup> only, which at ε = {epsilon:g}
promises next to nothing. {percent(reach["share_with_a_private_row_within"])} of the held-out rows
have one of the private rows within {radius:g}, and half have none within
{reach["median_distance_to_nearest"]:.2f}. So this hides small differences between records that are
alike, and not what kind of record it is; the attack above shows that too.{covered}</p>"""


def _use_section(results: dict[str, Any]) -> str:
    settings, mode = results["settings"], results["attacks"]["published_mode"]
    epsilon, radius = settings["stored"]
    seconds = [(name, [f"{value:.1f} s"], "") for name, value in results["cpu_seconds"].items()]
    return f"""<section aria-labelledby="use">
<h2 id="use">Use it, and how this was made</h2>
<p>The folder of this page holds the fitted encoder (ε = {epsilon:g},
{escape(neighbours_name(radius))}) and the held-out rows with the schema's column names, without
labels. So this works at once in that folder:</p>
<pre><code>reticent card bundle
reticent release bundle --input held-out.csv --output released.npz</code></pre>
<p>Training was short, for looking around: {settings["epochs"]} passes over the public rows for
encoders, {settings["hijacking"]["epochs"]} for the attacker's decoders, seed {settings["seed"]}.
Which mechanism serves best was decided on a fifth of the public rows. Raw columns got noise from a
seed, because nobody releases them here. The published method learnt from the private rows, as in
its paper, and its density estimate has {mode["bandwidth_factor"]:g} times Scott's bandwidth.
Held-out rows were used for nothing but the figures on this page.</p>
<details><summary>Where the time went</summary>
{figure_table("", "stage", ("processor time",), seconds)}</details>
</section>"""
