"""The demonstration as one HTML page that needs nothing else: no script, no font, no request to
anywhere.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from reticent.demos.label_response import RESPONSE
from reticent.demos.posthoc.accuracy_lines import accuracy_levels, accuracy_series
from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, DemoOutcome, at, best_published, inked
from reticent.demos.posthoc.explanations import on_attack, on_facts, on_headline
from reticent.demos.posthoc.gaps import NOTHING, UNPROTECTED
from reticent.pages.line_chart import line_chart
from reticent.pages.parts import card_section, document, explained, figure_table, percent

_ABOUT = "A private picture, released with a proved guarantee"


def page(outcome: DemoOutcome) -> str:
    """The whole page as HTML."""
    results = outcome.results
    body = [
        _header(results),
        "<main>",
        _facts(results),
        _attack_section(outcome),
        _gap_section(results),
        _neighbour_section(outcome),
        _accuracy_section(results),
        card_section(outcome.encoder.card()),
        _details_section(results),
        "</main>",
    ]
    return document(
        title=f"A private picture, released with a guarantee: {results['data']['name']}",
        about=_ABOUT,
        body=body,
    )


def _total(results: dict[str, Any], epsilon: float) -> str:
    deltas = {row["guarantee"]["delta"] for row in results["rows"] if row["epsilon"] == epsilon}
    return f"ε = {epsilon:g}, δ ≤ {max(deltas):g}" if max(deltas) else f"ε = {epsilon:g}, δ = 0"


def _header(results: dict[str, Any]) -> str:
    data = results["data"]
    return f"""<header>
<p class="name-of">reticent · {escape(data["name"])}</p>
<h1>A private picture, released with a guarantee</h1>
<p class="lead">Every single picture is protected from the server that receives its embedding, and
from anybody else who sees it. A network turns a picture into a handful of numbers. Sent as they
are, those numbers give the picture away. Here they leave only after a proof has said how much noise
they need, and the server still learns what it was asked to learn.</p>
</header>"""


def _facts(results: dict[str, Any]) -> str:
    epsilon = results["headline"][OURS]["epsilon"]
    best = best_published(results)
    facts = [
        (
            "ours",
            at(results, OURS, epsilon),
            "correct, by a server that has seen nothing but released values",
        ),
        ("label", at(results, LABEL, epsilon), "correct, when the device releases only the label"),
        (
            "plain",
            at(results, PLAIN, epsilon),
            "correct with noise on the embedding itself, untrained, under the same proof",
        ),
        (
            "best",
            at(results, best, epsilon),
            f"correct with {best}, the best published obfuscator here, under the same proof",
        ),
    ]
    items = [
        f'<li class="{style}"><b>{percent(row["accuracy"])}</b><span>{escape(text)}</span></li>'
        for style, row, text in facts
    ]
    without = percent(results["accuracy_without_protection"])
    items.append(
        f"<li><b>{without}</b><span>correct with no protection at all; {_chance(results)} by "
        "always naming one class</span></li>"
    )
    held_out = results["data"]["held_out"]
    return (
        f"<p>{escape(' '.join(on_headline(results)))}</p>"
        f'<ul class="facts" aria-label="Main results">{"".join(items)}</ul>'
        f"<p>The first four carry the same proved total, {_total(results, epsilon)} per "
        "picture, for embeddings within distance "
        f"{results['settings']['radius']:g} of each other. Measured on {held_out:,} held-out "
        "pictures; "
        f"a withheld answer counts as wrong.</p>{explained(on_facts(results))}"
    )


def _chance(results: dict[str, Any]) -> str:
    return percent(results["accuracy_by_chance"])


def _attack_section(outcome: DemoOutcome) -> str:
    results, pictures = outcome.results, outcome.pictures
    quality = {(row["sees"], row["epsilon"]): row for row in results["attacks"]}
    invert = inked(pictures.originals)
    rows = [("the picture", "stays on the device", pictures.originals, "original")]
    today = quality[(UNPROTECTED, None)]
    rows.append(
        (
            "attacker, no protection",
            _similarity(today),
            pictures.attacked_embedding,
            "reconstruction without protection",
        )
    )
    for epsilon in sorted(pictures.attacked, reverse=True):
        row = quality[("our release", epsilon)]
        name = f"attacker, ε = {epsilon:g}"
        rows.append(
            (
                name,
                _similarity(row),
                pictures.attacked[epsilon],
                f"reconstruction at epsilon {epsilon:g}",
            )
        )
    guess = np.repeat(pictures.guess[None], len(pictures.originals), axis=0)
    rows.append(
        (
            "attacker, sees nothing",
            _similarity(quality[(NOTHING, 0.0)]),
            guess,
            "the attacker's guess without any answer",
        )
    )
    table = _picture_table(
        "Held-out pictures, and what a trained attacker draws from what was released about each.",
        rows,
        pictures.names,
        invert,
    )
    return f"""<section aria-labelledby="attack">
<h2 id="attack">What an attacker gets back</h2>
<p>The attacker knows the networks, the noise and the guarantee, owns pictures of the same kind with
their released values, and trains a decoder on them. A smaller ε tells it less. What it can still
draw is the rough kind of picture: the server is meant to learn that much, and the card below says
that it is not hidden.</p>
{explained(on_attack(results))}
{table}
{_quality_table(results)}
</section>"""


def _gap_section(results: dict[str, Any]) -> str:
    rows = [
        (
            f"{gap['name']}, ε = {gap['epsilon']:g}",
            [percent(gap["closed"]), f"{100 * gap['lost']:.1f} points"],
            "",
        )
        for gap in sorted(results["gap"], key=lambda gap: (gap["name"], gap["epsilon"]))
    ]
    table = figure_table("", "release", ("of the way to nothing", "accuracy lost"), rows)
    return f"""<section aria-labelledby="gap"><h2 id="gap">What is gained, and what it costs</h2>
<p>Without protection the attacker draws the picture; from nothing, the mean picture. How much of
the way between the two, in structural similarity, each of our releases goes, and how many points of
accuracy that costs against no protection. A share near 0 says that the rough picture is still
visible; below 0, that the attacker learned a little better from noisy values.</p>
{table}</section>"""


def _similarity(row: dict[str, Any]) -> str:
    return f"structural similarity {row['ssim']:.2f}"


def _quality_table(results: dict[str, Any]) -> str:
    rows = []
    for row in sorted(
        results["attacks"], key=lambda row: -np.inf if row["epsilon"] is None else -row["epsilon"]
    ):
        name = row["sees"] + (f", ε = {row['epsilon']:g}" if row["epsilon"] else "")
        cells = [f"{row[key]:.3f}" for key in ("ssim", "l1", "l2")] + [
            f"{row[key]:.1f} dB" for key in ("psnr_peak_1", "psnr_peak_255")
        ]
        rows.append((name, cells, ""))
    columns = (
        "structural similarity",
        "mean |error|",
        "mean error²",
        "PSNR, peak 1",
        "PSNR, peak 255",
    )
    table = figure_table(
        "The same attack, measured on all held-out pictures.", "the attacker sees", columns, rows
    )
    return f"<details><summary>All measures of the attack</summary>{table}</details>"


def _neighbour_section(outcome: DemoOutcome) -> str:
    results, pictures = outcome.results, outcome.pictures
    near = results["median_distance_to_nearest"]
    radius = results["settings"]["radius"]
    rows = [
        ("the picture", "", pictures.originals, "original"),
        ("its embedding, decoded", "", pictures.decoded, "decoded"),
    ]
    rows += [
        (
            f"neighbour {index + 1}",
            f"distance {radius:g}",
            pictures.neighbours[:, index],
            f"decoded neighbour {index + 1}",
        )
        for index in range(pictures.neighbours.shape[1])
    ]
    table = _picture_table(
        "Decoded points at distance R from each embedding, in random directions.",
        rows,
        pictures.names,
        inked(pictures.originals),
    )
    return f"""<section aria-labelledby="neighbours">
<h2 id="neighbours">What the guarantee covers</h2>
<p>Pictures whose embeddings lie within l<sub>∞</sub> distance R = {radius:g} of each other are
<em>neighbours</em>: the probability of any answer changes between two of them by at most a factor
e<sup>ε</sup>, plus δ. Beyond R the protection fades with distance; this is not differential privacy
of the whole picture. For comparison, half of the held-out pictures have a training picture of their
own class within {near["same"]:.2f}, and half have one of another class within
{near["other"]:.2f}.</p>
{table}
</section>"""


def _accuracy_section(results: dict[str, Any]) -> str:
    settings, best = results["settings"], best_published(results)
    others = [name for name in settings["published"] if name != best]
    summary = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{percent(at(results, name, epsilon)['accuracy'])} at epsilon {epsilon:g}"
            for epsilon in settings["epsilons"]
        )
        for name in (OURS, LABEL, PLAIN, best)
    )
    chart = line_chart(
        accuracy_series(results),
        accuracy_levels(results),
        title="Accuracy against the proved total epsilon",
        description=f"Accuracy of the server's model on held-out pictures. {summary}.",
        x_name="proved total ε per picture (smaller protects more)",
        y_name="held-out accuracy",
    )
    rows = []
    for name in (LABEL, OURS, PLAIN, best, *others):
        entries = [at(results, name, epsilon) for epsilon in settings["epsilons"]]
        cells = [
            f"{100 * row['accuracy']:.1f} ± {196 * row['standard_error']:.1f}" for row in entries
        ]
        mechanisms = sorted({f"{row['mechanism']}, {row['path']}" for row in entries})
        withheld = f"{100 * max(row['withheld'] for row in entries):.1f} %"
        rows.append(
            (name, [*cells, withheld, "; ".join(mechanisms)], "strong ours" if name == OURS else "")
        )
    response = [f"{100 * row['accuracy']:.1f}" for row in results["randomised_response"]]
    rows.append((RESPONSE, [*response, "0.0 %", "response, expected"], ""))
    columns = (
        *[f"ε = {epsilon:g}" for epsilon in settings["epsilons"]],
        "most withheld",
        "mechanism, path",
    )
    table = figure_table("Accuracy in percent with 95 % intervals.", "released", columns, rows)
    return f"""<section aria-labelledby="accuracy">
<h2 id="accuracy">What protection costs in accuracy</h2>
<p>Every line carries the same proved total: the same neighbours, the same kind of certificate, the
same choice of mechanism and path by calibration. What differs is how the released network was
trained. Ours is trained through the very noise that its release will add. The dashed line promises
more: randomised response on the label of the unprotected model hides any two pictures from each
other.</p>
<div class="scroll" role="region" aria-label="Chart" tabindex="0">{chart}</div>
<details><summary>The same as a table</summary>{table}</details>
</section>"""


def _details_section(results: dict[str, Any]) -> str:
    data, settings = results["data"], results["settings"]
    height, width = data["picture"]
    seconds = [(name, [f"{value:.1f} s"], "") for name, value in results["seconds"].items()]
    return f"""<section aria-labelledby="made">
<h2 id="made">How this was made, and what to try next</h2>
<p>{data["train"]:,} training and {data["held_out"]:,} held-out pictures of {height} × {width}
pixels in {data["classes"]} classes ({escape(data["origin"])}). The training part counts as public.
A beta-VAE with {settings["embedder"]["latent_dimension"]} latents makes the embedding; obfuscators
release {settings["outputs"]} numbers per picture. Server and attacker learn from the same released
training pictures.</p>
<p>The folder of this page holds the fitted bundle and the held-out pictures, so this works at once
in that folder:</p>
<pre><code>reticent card bundle
reticent release bundle --input held-out.npy --output released.npz
reticent certify bundle --input held-out.npy --radius {settings["radius"]:g}</code></pre>
<details><summary>Where the time went</summary>
{figure_table("", "stage", ("wall time",), seconds)}</details>
</section>"""


def _picture_table(
    caption: str,
    rows: Sequence[tuple[str, str, npt.NDArray[np.float32], str]],
    names: Sequence[str],
    invert: bool,
) -> str:
    lines = [
        (
            f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0"><table '
            'class="pictures">'
        )
    ]
    lines.append(f"<caption>{escape(caption)}</caption><tbody>")
    height, width = rows[0][2].shape[1:]
    shape = f' style="--shape:{width}/{height}"' if width != height else ""
    for index, (name, note, pictures, meaning) in enumerate(rows):
        small = f"<small>{escape(note)}</small>" if note else ""
        cells = "".join(
            f'<td><img{shape} alt="{escape(f"{meaning} of {label}")}" '
            f'src="{_data_address(picture, invert)}"></td>'
            for picture, label in zip(pictures, names, strict=True)
        )
        gap = ' class="gap"' if index == 1 else ""
        lines.append(f'<tr{gap}><th scope="row">{escape(name)}{small}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def _data_address(picture: npt.NDArray[np.float32], invert: bool) -> str:
    shade = np.clip(picture, 0.0, 1.0)
    buffer = io.BytesIO()
    Image.fromarray(np.round(255 * (1.0 - shade if invert else shade)).astype(np.uint8)).save(
        buffer, format="PNG", optimize=True
    )
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
