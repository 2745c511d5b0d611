"""The meaning of a radius as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reticent.accounting.telling_apart import beyond, which_of_two_cap
from reticent.pages.line_chart import Series
from reticent.pages.page import Chart, Fact, Pictures, Section, Table, page, paragraphs
from reticent.radius.survey import RadiusSurvey

Images = npt.NDArray[np.float32]

_STYLES = ("ours", "plain", "label", "best", "published")
_MOST_STEPS = 20
_ANSWERED = (
    "Every number and picture on this page was computed by the run that wrote it, on public rows. "
    "Nothing was released, and no budget was charged."
)


def radius_page(survey: RadiusSurvey, pictures: tuple[Images, Images] | None = None) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing.

    Args:
        survey: the survey.
        pictures: decoded rows and their farthest neighbours, which ``farthest_neighbours`` gives.
    """
    return page(
        "What a radius means for these rows",
        f"""A guarantee for neighbours within R hides an input among those within R of it. It says
        less about inputs that are farther apart. The figures are from {survey.rows:,} public rows
        of {survey.dimension} numbers, with {survey.norm.value} distance.""",
        [
            Fact(shown(survey.first[0]), "median distance of a row to the nearest other row"),
            *(
                Fact(shown(spread[0]), f"median distance to the nearest row with another {name}")
                for name, spread in survey.other.items()
            ),
            Fact(shown(survey.random_pair), "median distance of two random rows"),
        ],
        [*_sections(survey), *(() if pictures is None else (_pictures(*pictures),))],
        name="radius",
        about="Which public rows lie within a radius, and what a guarantee says about them",
        window="What a radius means",
        answered=_ANSWERED,
    )


def shown(value: float) -> str:
    """Return a distance, or a dash if there is none."""
    return f"{value:.4g}" if math.isfinite(value) else "–"


def tables(survey: RadiusSurvey) -> tuple[Table, Table, Table]:
    """Return who lies within each radius, caps on naming the right one of two, and the rules."""
    counts = [
        (
            f"{at.radius:g}",
            [
                f"{at.with_neighbour:,}",
                f"{at.pairs:,}",
                f"{at.median_neighbours:g}",
                *(f"{share:.1%}" for share in at.counterfactuals.values()),
                f"{at.median_hops:,}",
            ],
        )
        for at in survey.at
    ]
    caps = [
        (
            f"{cap.radius:g}, {cap.epsilon:g}",
            [
                f"{cap.factor:,.4g}",
                *(f"{value:.3f}" for value in (cap.neighbours, cap.median_pair, cap.farthest)),
            ],
        )
        for cap in survey.caps
    ]
    rules = [
        (f"{at}. {rule.name}", [shown(rule.radius)]) for at, rule in enumerate(survey.rules, 1)
    ]
    others = [f"another {name} within R" for name in survey.other]
    within = ("rows with another within R", "pairs within R", "others within R, median", *others)
    delta = f", δ = {survey.delta:g}" if survey.delta else ""
    bounds = ("e^ε", "neighbours", "median pair", "99 of 100 pairs")
    return (
        Table("R", (*within, "steps of R between random rows, median"), counts),
        Table("R, ε" + delta, bounds, caps),
        Table("statement", ("R",), rules),
    )


def _sections(survey: RadiusSurvey) -> list[Section]:
    counts, caps, rules = tables(survey)
    return [
        Section(
            "Who lies within R",
            """An answer about an input could also be about any point within R of it. Only points
            that are real inputs hide anybody. If hardly any row has another one within R, then R is
            small against the differences of inputs. Counts are exact, over all rows.""",
            [*_shares(survey), counts, paragraphs("\n\n".join(survey.advice()))],
        ),
        Section(
            "Which of two: proved caps",
            f"""An attacker knows two equally likely inputs and sees one answer. The attacker names
            the right one with probability at most 1/(1 + e^(-ε h))
            {"(and a term for δ)" if survey.delta else ""}, where h is the number of steps of R
            between them. At .5 the guarantee hides which it was. At 1 it says nothing about
            them.""",
            [*(_chart(survey) if survey.caps else ()), caps],
        ),
        Section(
            "Rules that choose R",
            """Each rule gives the least R for which its statement is true of these rows. A dash
            means that no R makes it true.""",
            [rules],
        ),
    ]


def _shares(survey: RadiusSurvey) -> list[Chart | str]:
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


def _figure(
    series: list[Series], chosen: dict[str, float], y_name: str, caption: str
) -> list[Chart | str]:
    if not series:
        return []
    chart = Chart(f"{y_name} against R", "radius R", series, y_name=y_name, marks=chosen)
    return [chart, paragraphs(caption)]


def _chart(survey: RadiusSurvey) -> list[Chart | str]:
    """Return a chart of the cap for the median pair, which falls in steps as R grows."""
    apart = survey.random_pair
    if not apart > 0:
        return []
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


def _pictures(decoded: Images, neighbours: Images) -> Section:
    words = """On the left are rows, decoded from their embeddings. On the right are points at
    distance R from them: of those that were tried, the ones whose pictures differ most. The
    guarantee hides which picture of a line was the input."""
    names = ["itself", *(f"neighbour {at}" for at in range(1, neighbours.shape[1] + 1))]
    rows = [
        (f"row {at}", "", np.concatenate([picture[None], others]))
        for at, (picture, others) in enumerate(zip(decoded, neighbours, strict=True), 1)
    ]
    caption = "Decoded rows, and decoded neighbours."
    return Section(
        "Neighbours at distance R", words, [Pictures(caption, names, rows, inverted=False)]
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
