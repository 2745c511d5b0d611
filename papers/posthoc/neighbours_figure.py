"""Decoded neighbours at several radii, the paper's Figure 3: ``python -m
papers.posthoc.neighbours_figure --data mnist``.

One column for each class: a training picture, what its embedding decodes to, and for every radius
the corner of its neighbourhood whose decoded picture is farthest from that, of all corners that are
tried. What the pictures of a column have in common is what the guarantee at that radius leaves to
be seen.

Reference: Posthoc privacy guarantees for neural network queries, Figure 3.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from papers.datasets import load
from papers.drawings import empty_drawing, png
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import SETTINGS, settings_of
from papers.result_files import write_result
from reticent.datasets import Dataset
from reticent.training.embedder import Embedder
from reticent.training.progress import bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Images = npt.NDArray[np.float32]

RADII = (0.1, 0.2, 0.5, 1.0)

_CORNERS = 256


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pictures of neighbourhoods.

    Attributes:
        originals: one training picture of each class, shape (classes, height, width).
        decoded: what their embeddings decode to, same shape.
        farthest: for each radius, the decoded corner that is farthest from ``decoded`` in mean
            squared difference, same shape.
        distances: that difference, mean over classes, by radius.
    """

    originals: Images
    decoded: Images
    farthest: dict[float, Images]
    distances: dict[float, float]


def neighbours(
    data: Dataset, embedder: Embedder, *, radii: Sequence[float], seed: int
) -> Neighbours:
    """Decoded neighbours of one training picture of each class.

    Args:
        data: its training part counts as public.
        embedder: decodes, too.
        radii: l-infinity distances of the corners from the embedding.
        seed: of the corners that are tried where there are more than 256.
    """
    shown = [int(np.flatnonzero(data.train_labels == label)[0]) for label in range(data.classes)]
    originals = data.train_images[shown]
    points = embedder.embed(originals).astype(np.float64)
    decoded = embedder.pictures(points)
    corners = _corners(points.shape[1], seed)
    farthest: dict[float, Images] = {}
    distances: dict[float, float] = {}
    for radius in radii:
        around = points[:, None, :] + radius * corners
        pictures = embedder.pictures(around.reshape(-1, points.shape[1])).reshape(
            len(points), len(corners), *originals.shape[1:]
        )
        difference = np.square(pictures - decoded[:, None]).mean(axis=(2, 3))
        best = difference.argmax(axis=1)
        rows = np.arange(len(points))
        farthest[radius] = pictures[rows, best]
        distances[radius] = float(difference[rows, best].mean())
    return Neighbours(originals, decoded, farthest, distances)


def _corners(size: int, seed: int) -> npt.NDArray[np.float64]:
    """Signs of all corners of a cube, or of 256 random ones where there are more."""
    if 2**size <= _CORNERS:
        bits = np.arange(2**size)[:, None] >> np.arange(size) & 1
        return np.where(bits == 1, -1.0, 1.0)
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(_CORNERS, size))


def figure(found: Neighbours) -> Figure:
    """A row of pictures for each radius."""
    rows = [("picture", found.originals), ("decoded", found.decoded)]
    rows += [
        (f"R = {radius:g}\nmean error² {found.distances[radius]:.3f}", pictures)
        for radius, pictures in found.farthest.items()
    ]
    columns = len(found.originals)
    drawing = empty_drawing(1.6 + 0.75 * columns, 0.8 * len(rows))
    cells = drawing.subplots(len(rows), columns, squeeze=False)
    for line, (name, pictures) in zip(cells, rows, strict=True):
        for cell, picture in zip(line, pictures, strict=True):
            cell.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
            cell.set_xticks([])
            cell.set_yticks([])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return drawing


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, write the figure, print where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m papers.posthoc.neighbours_figure", description=__doc__.split("\n\n", 1)[0]
    )
    parser.add_argument("--data", choices=sorted(SETTINGS), default="mnist")
    parser.add_argument("--out", type=Path, help="folder (default: runs/neighbours-DATA)")
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    folder = chosen.out or Path("runs") / f"neighbours-{chosen.data}"
    folder.mkdir(parents=True, exist_ok=True)
    data = load(chosen.data)
    with bar() as report:
        embedder = cached_embedder(
            data, settings_of(chosen.data), folder, seed=chosen.seed, report=report
        )
    found = neighbours(data, embedder, radii=chosen.radius, seed=chosen.seed)
    path = folder / f"posthoc-neighbours-{chosen.data}.png"
    write_result(path, png(figure(found), dpi=130))
    print(path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
