"""The Power Mechanism's tables as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from papers.power.convergence import CLIENTS, steps_to
from papers.power.default_mode import DP_ADAM_DELTA
from papers.power.settings import SERVERS

Results = dict[str, Any]


def markdown(means: Results, errors: Results) -> str:
    """All tables of one data set.

    Args:
        means: results of ``table.run``, averaged over seeds.
        errors: their standard errors, NaN throughout for one seed.
    """
    sections = [_heading, _default, _published, _attacks, _reconstruction, _costs]
    return "\n".join("\n".join(section(means, errors)) + "\n" for section in sections)


def neighbours(radius: str) -> str:
    """The adjacency that a key of the results names."""
    return "any two records" if radius == "any" else f"within {radius}"


def _heading(means: Results, errors: Results) -> list[str]:
    rows, plain, beside = means["rows"], means["non-private"], errors["non-private"]
    numbers = {name: round(value) for name, value in rows.items()}
    seeds = round(means["seeds"])
    accuracies = ", ".join(f"{name} {_percent(plain[name], beside[name])}" for name in SERVERS)
    public = ", ".join(
        f"{name} {_percent(plain['public rows'][name], beside['public rows'][name])}"
        for name in SERVERS
    )
    return [
        f"# Power encoder on {means['data']}: accuracy in percent",
        "",
        "The output of",
        "",
        f"    RETICENT_DATA=... python -m papers.power.table {means['arguments']}",
        "",
        (
            "![Accuracy of the best server against the proved epsilon, ours and raw "
            "columns](default.png)"
        ),
        "",
        "![The paper's figures 4 to 11](published.png)",
        "",
        (
            f"{means['origin']}. {numbers['public']} public rows, {numbers['private']} private "
            "rows (published mode "
            f"{numbers['published']}), {numbers['test']} held-out rows; "
            + (
                f"means and standard errors over {seeds} seeds, which draw the cut, training "
                "and noise"
                if seeds > 1
                else "one seed"
            )
            + f". Majority rate {_percent(plain['majority'], beside['majority'])}. Not "
            "private, on the encoded rows: "
            f"{accuracies}. Learnt from the public rows alone, for rows that need no "
            f"protection: {public}. "
            "The noise was seeded: these releases were not private."
        ),
    ]


def _default(means: Results, errors: Results) -> list[str]:
    lines = [
        (
            "## Default mode, at a proved budget (delta 0); in brackets raw columns under the same "
            "budget and adjacency"
        ),
        "",
        *_heads("neighbours", "epsilon", "mechanism and values", *SERVERS),
    ]
    for name, figures in means["default"].items():
        radius, epsilon = name.rsplit("-", 1)
        cells = [
            f"{_percent(figures[server], errors['default'][name][server])} "
            f"({_percent(means['raw'][name][server], errors['raw'][name][server])})"
            for server in SERVERS
        ]
        lines.append(_row([neighbours(radius), epsilon, figures["mechanism"], *cells]))
    accuracies = ", ".join(
        f"epsilon {name} {_percent(found['accuracy'], errors['dp-adam'][name]['accuracy'])}"
        for name, found in means["dp-adam"].items()
    )
    return [
        *lines,
        "",
        (
            f"DP-Adam on the same private rows (delta {DP_ADAM_DELTA:g}; adding or removing "
            "one *training* record; the rows "
            f"that are predicted are sent as they are, so this is another promise): {accuracies}."
        ),
    ]


def _published(means: Results, errors: Results) -> list[str]:
    lines = [
        "## Published mode: rows filtered by the paper's score, which is not a privacy guarantee",
        "",
        (
            "Accuracy on all held-out rows; in brackets on those that the filter lets pass. Paper: "
            "its Table 3."
        ),
        "",
        *_heads(
            "score",
            "train rows released",
            "test rows released",
            *SERVERS,
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
        lines.append(_row([name, *shares, *cells, paper]))
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


def _attacks(means: Results, _: Results) -> list[str]:
    lines = [
        "## Hijacking: a decoder trained on public rows (paper's Table 5)",
        "",
        (
            "*Default*: epsilon 1 within the smallest radius. In the paper all categories came "
            "back for 0.36 % of the rows with "
            "its loss, 3.63 % without, 4.5 % under DP-Adam."
        ),
        "",
        *_heads(
            "embedding", "all categories right", "categories right", "MSE", "squared error of a row"
        ),
    ]
    for name, quality in means["hijacking"].items():
        errors = [f"{quality['mean_squared_error']:.4f}", f"{quality['squared_error']:.3f}"]
        lines.append(
            _row(
                [
                    name,
                    _share(quality["all_categories"], 2),
                    _share(quality["category"], 1),
                    *errors,
                ]
            )
        )
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
        *_heads("epsilon, smallest radius", "bound", "record known", "attack", "blind guess"),
    ]
    for name, found in means["bounds"].items():
        keys = ("bound", "record known", "attack", "blind guess")
        lines.append(_row([name, *(f"{found[key]:.3f}" for key in keys)]))
    return lines


def _costs(means: Results, _: Results) -> list[str]:
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
            "The server is a network of two layers of 64; DP-Adam trains the same network on "
            "the client. *Score* is the filter's "
            "threshold and no guarantee. Scored on all held-out rows, after steps in growing "
            "strides."
        ),
        "",
        *_heads("method", "accuracy", "steps", "client", "server", "total"),
    ]
    for name, curve in means["servers"].items():
        client = means["clients"].get(name.split(",")[0])
        for target in means["cost targets"]:
            steps = steps_to(curve, target)
            if steps is None:
                reached = f"not reached (at most {100 * max(curve['accuracy']):.1f})"
                lines.append(_row([name, f"{100 * target:g}", reached, "", "", ""]))
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
            lines.append(_row([name, f"{100 * target:g}", str(steps), *costs]))
    clients = ", ".join(
        [
            *(f"{name} batches of {size}" for name, size in CLIENTS.items()),
            "NonPriv no privacy loss",
        ]
    )
    return [*lines, "", f"Clients: {clients}."]


def _cost(figures: Results, steps: float) -> tuple[float, float]:
    """Gigabytes times steps, and tera-operations, of ``steps`` steps."""
    return figures["bytes"] * steps / 1e9, figures["operations"] * steps / 1e12


def _heads(*names: str) -> list[str]:
    """The first two lines of a table."""
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _share(value: float, digits: int) -> str:
    """A percentage; a dash for tables that have no categories."""
    return "-" if math.isnan(value) else f"{value:.{digits}%}"


def _percent(share: float, error: float = math.nan) -> str:
    """Percent with one digit; with its standard error where there is one; a dash where there is
    nothing.
    """
    if math.isnan(share):
        return "-"
    return f"{100 * share:.1f}" + ("" if math.isnan(error) else f" ± {100 * error:.1f}")
