"""The Power Mechanism's tables as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from papers.power.attacks import RADIUS
from papers.power.convergence import CLIENTS
from papers.power.published_mode import DP_ADAM_DELTA
from papers.power.settings import SERVERS
from papers.seeded_command import over
from papers.seeds import with_error

Results = dict[str, Any]


def markdown(means: Results, errors: Results, *, seeds: int, command: str) -> str:
    """All tables of one data set.

    Args:
        means: results of ``table.run``, averaged over seeds.
        errors: their standard errors, NaN throughout for one seed.
        seeds: how many there were.
        command: that prints them.
    """
    sections = [_published, _attacks, _reconstruction, _costs]
    parts = [_heading(means, errors, seeds, command)]
    parts += [section(means, errors) for section in sections]
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _heading(means: Results, errors: Results, seeds: int, command: str) -> list[str]:
    plain, beside = means["not private"], errors["not private"]
    numbers = {name: round(value) for name, value in means["rows"].items()}
    accuracies = ", ".join(f"{name} {_percent(plain[name], beside[name])}" for name in SERVERS)
    return [
        f"# The Power Mechanism paper's tables on {means['data']}: accuracy in percent",
        "",
        f"Printed by `{command}`.",
        "",
        "![The paper's figures 4 to 11](published.png)",
        "",
        (
            f"{means['origin']}. {numbers['private']} private rows, {numbers['public']} rows of "
            f"the attackers, {numbers['test']} held-out rows. Figures are "
            f"{over(seeds, embedders='cut, training and noise')}"
        ),
        (
            f"Majority rate {_percent(plain['majority'], beside['majority'])}. Not private, on the "
            f"encoded rows: {accuracies}."
        ),
        "The noise was seeded: these releases were not private.",
    ]


def _published(means: Results, errors: Results) -> list[str]:
    lines = [
        "## Published mode: rows filtered by the paper's score, which is not a privacy guarantee",
        "",
        (
            "Accuracy on all held-out rows; in brackets on those that the filter lets pass. "
            f"DP-Adam: weights at this epsilon and delta {DP_ADAM_DELTA:g}, which protects "
            "*training* rows. Paper: its Table 3."
        ),
        "",
        *_heads(
            "score",
            "train rows released",
            "test rows released",
            *SERVERS,
            "DP-Adam",
            "paper: NN, RF, XGB, DP-Adam",
        ),
    ]
    for name, figures in means["published"]["rows"].items():
        spread = errors["published"]["rows"][name]
        all_rows, off = figures["on all test rows"], spread["on all test rows"]
        passing = figures["on released test rows"]
        cells = [
            f"{_percent(all_rows[server], off[server])} ({_percent(passing[server])})"
            for server in SERVERS
        ]
        paper = ", ".join(f"{value:g}" for value in means["paper"].get(name, []))
        shares = [f"{figures['released']:.1%}", f"{figures['test released']:.1%}"]
        private = _percent(means["dp-adam"][name]["accuracy"], errors["dp-adam"][name]["accuracy"])
        lines.append(_row([name, *shares, *cells, private, paper]))
    lines += [
        "",
        *_heads("inverted with", "relative error below 1e-3", "median error", "largest error"),
    ]
    for name, found in means["inversion"].items():
        lines.append(
            _row(
                [name, f"{found['found']:.1%}", f"{found['median']:.1e}", f"{found['largest']:.1e}"]
            )
        )
    return lines


def _attacks(means: Results, errors: Results) -> list[str]:
    lines = [
        "## Hijacking: a decoder trained on public rows (paper's Table 5)",
        "",
        (
            "In the paper all categories came back for 0.36 % of the rows with its loss (MSE "
            "0.2416), 3.63 % without (0.0008), 4.5 % under DP-Adam (0.0019)."
        ),
        "Correlation: of all true and drawn coordinates, which the paper speaks of and prints not.",
        "",
        *_heads(
            "embedding",
            "all categories right, %",
            "categories right, %",
            "MSE",
            "correlation",
            "squared error of a row",
        ),
    ]
    for name, quality in means["hijacking"].items():
        beside = errors["hijacking"][name]
        cells = [
            _percent(quality["all_categories"], beside["all_categories"]),
            _percent(quality["category"], beside["category"]),
            *(
                with_error(quality[key], beside[key], digits=digits)
                for key, digits in (
                    ("mean_squared_error", 4),
                    ("correlation", 3),
                    ("squared_error", 3),
                )
            ),
        ]
        lines.append(_row([name, *cells]))
    return lines


def _reconstruction(means: Results, _: Results) -> list[str]:
    lines = [
        (
            "## Reconstruction: proved lower bound, measured attack, blind guess (mean squared l2 "
            "error of a row)"
        ),
        "",
        (
            "Rows drawn from the density estimate of the public rows, which is the prior that "
            "the bound assumes. *Record known*: "
            "the error of someone who knows which public record the draw was made from; the "
            "bound can never be above it."
        ),
        "",
        *_heads(f"epsilon within {RADIUS:g}", "bound", "record known", "attack", "blind guess"),
    ]
    for name, found in means["bounds"].items():
        keys = ("bound", "record known", "attack", "blind guess")
        lines.append(_row([name, *(f"{found[key]:.3f}" for key in keys)]))
    return lines


def _costs(means: Results, errors: Results) -> list[str]:
    """Table 4: memory of a step times number of steps until an accuracy is reached, on client
    and server.
    """
    lines = [
        (
            "## Cost to reach an accuracy (the paper's Table 4): peak memory of a step times "
            "steps, in GB; in brackets TFLOP"
        ),
        "",
        (
            "The server is a network of two layers of 64. DP-Adam trains the same network on "
            "the client. Batches, rates and most steps are the paper's: server "
            f"{_schedule(means['server'])}, DP-Adam {_schedule(means['DP-Adam'])}. *Score* is the "
            "filter's threshold and no guarantee. Scored on all held-out rows, after steps in "
            "growing strides."
        ),
        "",
        *_heads("method", "accuracy", "steps", "client", "server", "total"),
    ]
    for name, curve in means["servers"].items():
        client = means["clients"].get(name.split(",")[0])
        for target, steps in curve["reached"].items():
            wanted = f"{100 * float(target):g}"
            if math.isnan(steps):
                reached = f"not in every seed (at best {100 * curve['best']:.1f})"
                lines.append(_row([name, wanted, reached, "", "", ""]))
                continue
            followed, nothing = _cost(curve, steps), (0.0, 0.0)
            # DP-Adam trains what is followed on the client, and sends it.
            here, there = (
                (followed, nothing)
                if client is None
                else (_cost(client, client["steps"]), followed)
            )
            total = (here[0] + there[0], here[1] + there[1])
            costs = [
                f"{memory:.3g} ({operations:.2g})" for memory, operations in (here, there, total)
            ]
            error = errors["servers"][name]["reached"][target]
            lines.append(_row([name, wanted, with_error(steps, error, digits=0), *costs]))
    clients = ", ".join(
        [
            *(f"{name} batches of {size}" for name, size in CLIENTS.items()),
            "NonPriv no privacy loss",
        ]
    )
    return [*lines, "", f"Clients: {clients}."]


def _schedule(given: Sequence[float]) -> str:
    batch, steps, rate = given
    return f"{steps:,.0f} steps of {batch:,.0f} at {rate:g}"


def _cost(figures: Results, steps: float) -> tuple[float, float]:
    """Gigabytes times steps, and tera-operations, of ``steps`` steps."""
    return figures["bytes"] * steps / 1e9, figures["operations"] * steps / 1e12


def _heads(*names: str) -> list[str]:
    """The first two lines of a table."""
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(share: float, error: float = math.nan) -> str:
    """Percent with one digit; with its standard error where there is one; a dash where there is
    nothing.
    """
    if math.isnan(share):
        return "-"
    return f"{100 * share:.1f}" + ("" if math.isnan(error) else f" ± {100 * error:.1f}")
