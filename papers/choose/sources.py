"""Data sets of labelled rows: those at hand, scikit-learn's, and tables in a folder."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.datasets import load_adult, load_covertype, load_higgs, load_imdb
from reticent.core.arrays import Integers
from reticent.datasets import Table
from reticent.tables import NamedRows


@dataclass(frozen=True, eq=False)
class Source:
    """Rows as they were published, and their labels.

    Attributes:
        rows: shape (n, columns).
        labels: shape (n,), places of labels.
        columns: names of columns, or () for rows of numbers.
    """

    rows: npt.NDArray[Any]
    labels: Integers
    columns: tuple[str, ...] = ()

    def frame(self, places: Integers) -> Any:
        """Return some rows as a plan takes them."""
        rows = self.rows[places]
        return NamedRows(rows, self.columns) if self.columns else np.asarray(rows, dtype=float)


def _named(table: Table) -> Source:
    return Source(table.train_rows, np.asarray(table.train_labels), tuple(table.columns))


def _two_covers() -> Source:
    """Forest Cover, of which the second class is told from the others."""
    found = _named(load_covertype())
    return Source(found.rows, (found.labels == 1).astype(np.int64), found.columns)


def _imdb() -> Source:
    table = load_imdb()
    return Source(np.asarray(table.train_rows), np.asarray(table.train_labels))


def _breast_cancer() -> Source:
    from sklearn.datasets import load_breast_cancer

    return Source(*load_breast_cancer(return_X_y=True))


DATA: dict[str, Callable[[], Source]] = {
    "adult": lambda: _named(load_adult()),
    "covertype": _two_covers,
    "higgs": lambda: _named(load_higgs()),
    "imdb": _imdb,
    "breast cancer": _breast_cancer,
}


def table_of(path: Path) -> Source:
    """Return a table in CSV whose column "label" holds the labels; see ``export_outcomes``.

    A column is of numbers where every cell is one or empty, and of words otherwise.
    """
    with path.open(encoding="utf-8", newline="") as file:
        names, *lines = list(csv.reader(file))
    columns = [[line[place] for line in lines] for place in range(len(names))]
    place = names.index("label")
    labels = np.unique(columns.pop(place), return_inverse=True)[1].astype(np.int64)
    names.pop(place)
    rows = np.empty((len(lines), len(names)), dtype=object)
    for at, cells in enumerate(columns):
        rows[:, at] = _cells(cells)
    return Source(rows, labels, tuple(names))


def _cells(cells: list[str]) -> list[Any]:
    try:
        return [None if cell == "" else float(cell) for cell in cells]
    except ValueError:
        return [None if cell == "" else cell for cell in cells]
