"""The meaning of a radius as one HTML page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from reticent.accounting.telling_apart import beyond, which_of_two_cap
from reticent.pages.line_chart import Series
from reticent.pages.parts import document, figure_table, percent
from reticent.plots import one_panel, png
from reticent.plots import radius as radius_plot
from reticent.radius.survey import RadiusSurvey

Images = npt.NDArray[np.float32]

_STYLES = ("ours", "plain", "label", "best", "published")
_MOST_STEPS = 20
_ANSWERED = (
    "Every number and picture on this page was computed by the run that wrote it, on public rows. "
    "Nothing was released, and no budget was charged."
)
_SIDE = 64


def radius_page(survey: RadiusSurvey, pictures: tuple[Images, Images] | None = None) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing.

    Args:
        survey: the survey.
        pictures: decoded rows and their farthest neighbours, which ``farthest_neighbours`` gives.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    body = [
        f"""<header><p class="name-of">reticent · radius</p>
<h1>What a radius means for these rows</h1>
<p class="lead">A guarantee for neighbours within R hides an input among those within R of it. It
says less about inputs that are farther apart. The figures are from {survey.rows:,} public rows of
{survey.dimension} numbers, with {escape(survey.norm.value)} distance.</p></header>""",
        "<main>",
        _facts(survey),
        _counts(survey),
        _caps(survey),
        _rules(survey),
        "" if pictures is None else _pictures(*pictures),
        "</main>",
    ]
    return document(
        title="What a radius means",
        about="Which public rows lie within a radius, and what a guarantee says about them",
        body=body,
        answered=_ANSWERED,
    )


def shown(value: float) -> str:
    """Return a distance, or a dash if there is none."""
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _facts(survey: RadiusSurvey) -> str:
    facts = [
        (shown(survey.first[0]), "median distance of a row to the nearest other row"),
        *(
            (shown(spread[0]), f"median distance to the nearest row with another {escape(name)}")
            for name, spread in survey.other.items()
        ),
        (shown(survey.random_pair), "median distance of two random rows"),
    ]
    items = "".join(f"<li><b>{value}</b><span>{text}</span></li>" for value, text in facts)
    return f'<ul class="facts" aria-label="Main results">{items}</ul>'


def _counts(survey: RadiusSurvey) -> str:
    rows = [
        (
            f"{at.radius:g}",
            [
                f"{at.with_neighbour:,}",
                f"{at.pairs:,}",
                f"{at.median_neighbours:g}",
                *(percent(share) for share in at.counterfactuals.values()),
                f"{at.median_hops:,}",
            ],
            "",
        )
        for at in survey.at
    ]
    heads = (
        "rows with another within R",
        "pairs within R",
        "others within R, median",
        *(f"another {name} within R" for name in survey.other),
        "steps of R between random rows, median",
    )
    table = figure_table("", "R", heads, rows)
    return f"""<section aria-labelledby="counts"><h2 id="counts">Who lies within R</h2>
<p>An answer about an input could also be about any point within R of it. Only points that are real
inputs hide anybody. If hardly any row has another one within R, then R is small against the
differences of inputs. Counts are exact, over all rows.</p>
{_shares(survey)}{table}
{"".join(f"<p>{escape(said)}</p>" for said in survey.advice())}</section>"""


def _shares(survey: RadiusSurvey) -> str:
    """Return a chart of the empirical distributions of distances, and of the rules' radii."""
    series = [
        Series(
            f"{name} within R",
            tuple((radius, share, 0.0) for radius, share in steps),
            _STYLES[place % len(_STYLES)],
            steps=True,
        )
        for place, (name, steps) in enumerate(survey.shares.items())
        if steps
    ]
    chosen = {
        f"rule {number}": rule.radius
        for number, rule in enumerate(survey.rules, 1)
        if math.isfinite(rule.radius) and rule.radius > 0
    }
    caption = (
        "Upright lines are the radii of the rules below. A rule that speaks of half of the rows "
        "stands where its curve passes 50 %."
    )
    return _figure(series, chosen, "share of public rows", caption)


def _figure(series: Sequence[Series], chosen: dict[str, float], y_name: str, caption: str) -> str:
    if not series:
        return ""
    drawing, axes = one_panel()
    radius_plot(axes, series, chosen=chosen, y_name=y_name)
    code = base64.b64encode(png(drawing, dpi=110)).decode()
    names = " and ".join(one.name for one in series)
    return (
        f'<figure><img alt="{escape(y_name)} against R: {escape(names)}" '
        f'src="data:image/png;base64,{code}"><figcaption>{caption}</figcaption></figure>'
    )


def _caps(survey: RadiusSurvey) -> str:
    rows = [
        (
            f"{caps.radius:g}, {caps.epsilon:g}",
            [
                f"{caps.factor:,.4g}",
                *(f"{cap:.3f}" for cap in (caps.neighbours, caps.median_pair, caps.farthest)),
            ],
            "",
        )
        for caps in survey.caps
    ]
    heads = ("e^ε", "neighbours", "median pair", "99 of 100 pairs")
    chart = _chart(survey) if survey.caps else ""
    delta = f", δ = {survey.delta:g}" if survey.delta else ""
    return f"""<section aria-labelledby="caps"><h2 id="caps">Which of two: proved caps</h2>
<p>An attacker knows two equally likely inputs and sees one answer. The attacker names the right one
with probability at most 1/(1 + e^(-ε h)){delta and " (and a term for δ)"}, where h is the number of
steps of R between them. At .5 the guarantee hides which it was. At 1 it says nothing about
them.</p>
{chart}{figure_table("", "R, ε" + delta, heads, rows)}</section>"""


def _chart(survey: RadiusSurvey) -> str:
    """Return a chart of the cap for the median pair, which falls in steps as R grows."""
    apart = survey.random_pair
    if not apart > 0:
        return ""
    hops = list(range(_MOST_STEPS, 0, -1))
    series = []
    for epsilon, style in zip(
        sorted({caps.epsilon for caps in survey.caps}), _STYLES, strict=False
    ):
        caps = which_of_two_cap(*beyond(epsilon=epsilon, delta=survey.delta, hops=hops)).tolist()
        points = [(apart / h, cap, 0.0) for h, cap in zip(hops, caps, strict=True)]
        points.append((2.0 * apart, caps[-1], 0.0))
        series.append(Series(f"ε = {epsilon:g}", tuple(points), style, steps=True))
    caption = "Two rows at the median distance of random pairs. To the right of it R buys nothing."
    return _figure(series, {"random pair": apart}, "cap, median pair", caption)


def _rules(survey: RadiusSurvey) -> str:
    rows = [
        (f"{number}. {rule.name}", [shown(rule.radius)], "")
        for number, rule in enumerate(survey.rules, 1)
    ]
    return f"""<section aria-labelledby="rules"><h2 id="rules">Rules that choose R</h2>
<p>Each rule gives the least R for which its statement is true of these rows. A dash means that no R
makes it true.</p>
{figure_table("", "statement", ("R",), rows)}</section>"""


def _pictures(decoded: Images, neighbours: Images) -> str:
    rows = "".join(
        "<tr>"
        + _image(picture, "decoded row")
        + "".join(_image(other, "decoded neighbour") for other in others)
        + "</tr>"
        for picture, others in zip(decoded, neighbours, strict=True)
    )
    return f"""<section aria-labelledby="pictures"><h2 id="pictures">Neighbours at distance R</h2>
<p>On the left are rows, decoded from their embeddings. On the right are points at distance R from
them: of those that were tried, the ones whose pictures differ most. The guarantee hides which
picture of a line was the input.</p>
<div class="scroll" role="region" aria-label="pictures" tabindex="0"><table class="pictures">
{rows}</table></div></section>"""


def _image(picture: Images, name: str) -> str:
    from PIL import Image

    pixels = np.rint(255 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    code = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<td><img alt="{escape(name)}" width="{_SIDE}" height="{_SIDE}" '
        f'src="data:image/png;base64,{code}"></td>'
    )


def lines(survey: RadiusSurvey) -> Sequence[str]:
    """Return the lines that the command line prints below its tables."""
    return [
        f"{survey.rows:,} public rows of {survey.dimension} numbers, {survey.norm.value} distance",
        f"median distance to the nearest other row: {shown(survey.first[0])}",
        *(
            f"median distance to the nearest row with another {name}: {shown(spread[0])}"
            for name, spread in survey.other.items()
        ),
        f"median distance of two random rows: {shown(survey.random_pair)}",
        *survey.advice(),
    ]
