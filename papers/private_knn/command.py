"""What the pages of the Private-kNN supplement share: the command line and the axis of totals."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def total_axis(axes: Axes, epsilons: Iterable[float], *, delta: float) -> None:
    """Makes the x axis one of proved totals: logarithmic, with a tick at each of ``epsilons``."""
    values = list(epsilons)
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{epsilon:g}" for epsilon in values])
    axes.set_xlabel(f"proved total epsilon at delta {delta:g}")


@dataclass(frozen=True)
class Chosen:
    """What the command line asks for.

    Attributes:
        data: name of the data set.
        folder: where the page goes; there already.
        seed: of noise and samples.
    """

    data: str
    folder: Path
    seed: int


def read_command(
    arguments: list[str] | None, *, about: str | None, data: Iterable[str], folder: str
) -> Chosen:
    """The command line of a page on one data set.

    Args:
        arguments: words of the command line, or None for those of the process.
        about: docstring of the module; its first line says what the command does.
        data: names to choose from.
        folder: of the page below ``runs``, unless ``--out`` names another.
    """
    parser = argparse.ArgumentParser(description=(about or "").split("\n", 1)[0])
    parser.add_argument("--data", choices=sorted(data), required=True)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs") / folder,
        help="output folder (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0)
    read = parser.parse_args(arguments)
    read.out.mkdir(parents=True, exist_ok=True)
    return Chosen(read.data, read.out, read.seed)
