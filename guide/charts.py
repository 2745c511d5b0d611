"""The charts of *how to choose*, as SVG files that stand alone."""

from __future__ import annotations

from guide.methods_table import CROSSING, rungs
from guide.odds import gaussian_right_guess, posterior
from reticent.accounting.telling_apart import which_of_two_cap
from reticent.pages.line_chart import Level, Series, alone, line_chart

_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def odds_chart() -> str:
    """What an attacker knows at most, against epsilon."""
    lines = [
        ("was 1 in 1,000", 0.001, "label", "triangle"),
        ("was 1 in 100", 0.01, "best", "square"),
        ("was 1 in 10", 0.1, "plain", "diamond"),
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
    series.append(Series("1 in 2, Gaussian", gauss, "published", "circle"))
    half = tuple((e, float(which_of_two_cap(e, 0.0)), 0.0) for e in _EPSILONS)
    series.append(Series("was 1 in 2", half, "ours", "circle"))
    return alone(
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
        "certified intervals, by the number of answers": ("certified intervals", "ours", "circle"),
        "clipped linear vote": ("linear vote", "best", "square"),
        "convex certificate, by the number of answers": ("convex", "label", "triangle"),
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
    return alone(
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
