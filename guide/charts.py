"""The charts of *how to choose*, as SVG files that stand alone."""

from __future__ import annotations

from guide.methods_table import CROSSING, rungs
from guide.odds import gaussian_right_guess, posterior
from reticent.accounting.telling_apart import which_of_two_cap
from reticent.pages.line_chart import Level, Series, line_chart

_STYLE = """<style>
svg { background: #fff; font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
text { fill: #4a555c; } .grid { stroke: #dcdad3; } .axis { stroke: #58646c; }
.level { stroke: #58646c; stroke-dasharray: 2 4; }
.first { --shade: #0b63a5; } .second { --shade: #b8480c; }
.third { --shade: #00755a; } .fourth { --shade: #6b3fa0; } .fifth { --shade: #58646c; }
.series { stroke: var(--shade); fill: var(--shade); } polyline { fill: none; stroke-width: 2.5; }
.mark { stroke: #fff; stroke-width: 1.2; } .end { font-weight: 600; fill: var(--shade, #58646c); }
.end.level-name { font-weight: 400; } .spread { stroke-width: 1.5; opacity: .5; }
</style>"""

_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def odds_chart() -> str:
    """What an attacker knows at most, against epsilon."""
    lines = [
        ("was 1 in 1,000", 0.001, "third", "triangle"),
        ("was 1 in 100", 0.01, "second", "square"),
        ("was 1 in 10", 0.1, "fourth", "diamond"),
    ]
    series = [
        Series(
            name,
            tuple((e, posterior(prior, epsilon=e), 0.0) for e in _EPSILONS),
            style,
            marker,
        )
        for name, prior, style, marker in lines
    ]
    gauss = tuple((e, gaussian_right_guess(epsilon=e, delta=1e-5), 0.0) for e in _EPSILONS)
    series.append(Series("1 in 2, Gaussian", gauss, "fifth", "circle"))
    half = tuple((e, float(which_of_two_cap(e, 0.0)), 0.0) for e in _EPSILONS)
    series.append(Series("was 1 in 2", half, "first", "circle"))
    return _alone(
        line_chart(
            series,
            [],
            title="What an attacker can be sure of",
            description="The largest probability that an attacker can arrive at against epsilon, "
            "by what he believed before; and the share of right guesses about one record against "
            "Gaussian noise at delta 1e-5.",
            x_name="ε of everything that he sees",
            y_name="sure of it, at most",
        )
    )


def crossing_chart() -> str:
    """Accuracy against the number of answers at a total, and where private training is ahead."""
    data, total = CROSSING
    means, errors = (rungs(data)[part] for part in ("means", "standard errors"))
    names = {
        "certified intervals, by the number of answers": ("certified intervals", "first", "circle"),
        "clipped linear vote": ("linear vote", "second", "square"),
        "convex certificate, by the number of answers": ("convex", "third", "triangle"),
    }
    series = [
        Series(
            short,
            tuple(
                (float(answers), accuracy, 1.96 * errors["answers"][name][answers])
                for answers, accuracy in means["answers"][name].items()
            ),
            style,
            marker,
        )
        for name, (short, style, marker) in names.items()
    ]
    trained = means["private training: start from public models"][str(total)]
    return _alone(
        line_chart(
            series[::-1],
            [Level("private training", trained)],
            title="Accuracy against the number of answers",
            description=f"Accuracy of answers that are paid for one by one at a total of {total:g},"
            " against their number; beside a privately trained model, which answers any number.",
            x_name=f"answers for a total of ε = {total:g}, δ = 1e-5",
            y_name="right",
            y_range=(0.9, 1.0),
        )
    )


def _alone(svg: str) -> str:
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n{_STYLE}\n{rest.lstrip()}\n'
