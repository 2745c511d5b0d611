"""Tables of the experiments on any two records, cut into public, private and held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from papers.datasets import load_fashion
from papers.power.parts import Parts
from papers.power.settings import TABLES, settings_of
from reticent.core.errors import UnknownName
from reticent.tables.attributes import Numeric
from reticent.tables.schema import TabularSchema

Rows = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]

_CANCER = (
    *(30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1),
    *(3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.1, 0.04),
    *(40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25),
)
"""Public upper ends of the columns of breast-cancer: mean, error and worst of ten measures."""

_WINE = (
    ("alcohol", 10, 16),
    ("malic_acid", 0, 8),
    ("ash", 1, 4),
    ("alcalinity_of_ash", 5, 35),
    ("magnesium", 50, 200),
    ("total_phenols", 0, 5),
    ("flavanoids", 0, 6),
    ("nonflavanoid_phenols", 0, 1),
    ("proanthocyanins", 0, 5),
    ("color_intensity", 0, 15),
    ("hue", 0, 2),
    ("od280/od315_of_diluted_wines", 1, 5),
    ("proline", 0, 2_000),
)
"""Round numbers around what such wines are known to have; no row was looked at."""


def cancer_schema() -> TabularSchema:
    """Return the schema of scikit-learn's breast cancer."""
    names = load_breast_cancer().feature_names
    return TabularSchema(
        tuple(Numeric(str(name), 0, limit) for name, limit in zip(names, _CANCER, strict=True))
    )


def wine_schema() -> TabularSchema:
    """Public ranges of the chemical analyses of wines."""
    return TabularSchema(tuple(Numeric(name, lower, upper) for name, lower, upper in _WINE))


_SHIPPED: dict[str, tuple[Callable[..., Any], Callable[[], TabularSchema]]] = {
    "breast-cancer": (load_breast_cancer, cancer_schema),
    "digits": (load_digits, lambda: TabularSchema.numbers(64, 0, 16)),
    "wine": (load_wine, wine_schema),
}

PULLOVERS = "pullovers"
"""Fashion-MNIST as a table of 49 numbers, the means of cells of 4 x 4 pixels: is it a pullover? The
ankle boots, the last class, are left out, so one row in nine is. Of settings only the
tolerance of accuracy was looked at on a part of its training rows."""

DATA = (*TABLES, *_SHIPPED, PULLOVERS)
"""Tables with settings, those that scikit-learn ships, and ``PULLOVERS``."""

_PULLOVER, _BOOT = 2, 9
_CELLS = 7
_PULLOVER_ROWS = 4_000  # public ones, and as many private


@dataclass(frozen=True, eq=False)
class Split:
    """One table, cut in three.

    Attributes:
        schema: public.
        public, private, test: rows and labels of each part.
        seed: of the cut, of fits and of the noise.
    """

    schema: TabularSchema
    public: Rows
    private: Rows
    test: Rows
    seed: int


def split(data: str, *, seed: int, tuning: bool) -> Split:
    """The table called ``data``; scikit-learn's are cut 2 : 2 : 1 at random, and of the pullovers
    the official test part is held out.

    Raises:
        UnknownName: there is no such table.
    """
    if data in TABLES:
        parts = Parts.of(settings_of(data), seed=seed, tuning=tuning)
        count = parts.settings.private_rows
        return Split(
            parts.schema,
            (parts.public_rows, parts.public_labels),
            (parts.private_rows[:count], parts.private_labels[:count]),
            (parts.test_rows, parts.test_labels),
            seed,
        )
    if data == PULLOVERS:
        return _pullovers(seed=seed, tuning=tuning)
    if data not in _SHIPPED:
        raise UnknownName(f"data={data!r}: expected one of {', '.join(DATA)}")
    load, schema = _SHIPPED[data]
    rows, labels = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    if tuning:
        order = order[: 4 * len(order) // 5]
    public, private, test = np.split(order, (2 * len(order) // 5, 4 * len(order) // 5))
    return Split(
        schema(),
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        (rows[test], labels[test]),
        seed,
    )


def _pullovers(*, seed: int, tuning: bool) -> Split:
    """Public and private rows of the training part, and the whole test part; for tuning the rest of
    the training part in place of it.
    """
    source = load_fashion()
    count = _PULLOVER_ROWS
    rows, labels = _cells(source.train_images, source.train_labels)
    order = np.random.default_rng(seed).permutation(len(rows))
    public, private, rest = np.split(order, (count, 2 * count))
    held = (
        (rows[rest[:count]], labels[rest[:count]])
        if tuning
        else _cells(source.test_images, source.test_labels)
    )
    return Split(
        TabularSchema.numbers(_CELLS**2, 0, 1),
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        held,
        seed,
    )


def _cells(images: npt.NDArray[Any], classes: npt.NDArray[np.int64]) -> Rows:
    kept = classes != _BOOT
    side = images.shape[-1] // _CELLS
    cells = images[kept].reshape(-1, _CELLS, side, _CELLS, side).mean(axis=(2, 4))
    rows = cells.reshape(len(cells), -1).astype(np.float64)
    return rows, (classes[kept] == _PULLOVER).astype(np.int64)
