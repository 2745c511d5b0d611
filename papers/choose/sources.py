"""Data sets of labelled rows: those at hand, scikit-learn's, and tables in a folder."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.datasets import Table, load, load_adult, load_covertype, load_higgs, load_imdb
from reticent.tables import NamedRows, TabularSchema, adult_schema, covertype_schema
from reticent.training.hog import oriented_gradients


@dataclass(frozen=True, eq=False)
class Source:
    """Rows as they were published, and their labels.

    Attributes:
        rows: shape (n, ...).
        labels: shape (n,), places of labels.
        columns: names of columns, or () for rows of numbers.
        numbers: the public map to numbers by what the data's documentation says, or None.
        pictures: whether rows are nothing before that map.
    """

    rows: npt.NDArray[Any]
    labels: Integers
    columns: tuple[str, ...] = ()
    numbers: Callable[[npt.NDArray[Any]], Array] | None = None
    pictures: bool = False

    def as_numbers(self, places: Integers) -> Array:
        """Return some rows as numbers, by a map that public rows have no part in."""
        rows = self.rows[places]
        return np.asarray(rows, dtype=float) if self.numbers is None else self.numbers(rows)

    def frame(self, places: Integers) -> Any:
        """Return some rows as a plan takes them."""
        if self.pictures:
            return self.as_numbers(places)
        rows = self.rows[places]
        return NamedRows(rows, self.columns) if self.columns else np.asarray(rows, dtype=float)


def _named(table: Table) -> Source:
    return Source(table.train_rows, np.asarray(table.train_labels), tuple(table.columns))


def _by_schema(table: Table, schema: TabularSchema) -> Source:
    labels = np.asarray(table.train_labels)
    return Source(table.train_rows, labels, tuple(table.columns), schema.encode)


def _two_covers() -> Source:
    """Forest Cover, of which the second class is told from the others."""
    found = _by_schema(load_covertype(), covertype_schema())
    return Source(found.rows, (found.labels == 1).astype(np.int64), found.columns, found.numbers)


def _imdb() -> Source:
    table = load_imdb()
    return Source(np.asarray(table.train_rows), np.asarray(table.train_labels))


def _mnist() -> Source:
    """Histograms of gradients of handwritten digits."""
    pictures = load("mnist")

    def histograms(planes: npt.NDArray[Any]) -> Array:
        found = oriented_gradients(planes, orientations=8, cell=4)
        return np.asarray(found.reshape(len(planes), -1))

    return Source(pictures.train_images, pictures.train_labels, numbers=histograms, pictures=True)


def _breast_cancer() -> Source:
    from sklearn.datasets import load_breast_cancer

    return Source(*load_breast_cancer(return_X_y=True))


DATA: dict[str, Callable[[], Source]] = {
    "adult": lambda: _by_schema(load_adult(), adult_schema()),
    "covertype": _two_covers,
    "higgs": lambda: _named(load_higgs()),
    "imdb": _imdb,
    "mnist": _mnist,
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
