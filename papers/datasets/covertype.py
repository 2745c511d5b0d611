"""Covertype: 581,012 cells of forest with 54 columns, and which of seven kinds of trees grows
there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.datasets.files import DATA_VARIABLE, data_folder, opened_npz
from reticent.core.arrays import Integers
from reticent.core.errors import DataUnavailable
from reticent.datasets.table import Rows, Table, last_fifth_held_out
from reticent.tables import Numeric, OneHot, TabularSchema

FILE = "covtype_581012.npz"
QUANTITIES = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
)
WILDERNESS = tuple(f"Wilderness_Area{index}" for index in range(1, 5))
SOIL = tuple(f"Soil_Type{index}" for index in range(1, 41))

_COUNTS = (211840, 283301, 35754, 2747, 9493, 17367, 20510)
_CLASSES = (
    "spruce/fir",
    "lodgepole pine",
    "ponderosa pine",
    "cottonwood/willow",
    "aspen",
    "Douglas-fir",
    "krummholz",
)
_QUANTITY_RANGES = (
    (1800, 3900),
    (0, 360),
    (0, 70),
    (0, 1400),
    (-200, 650),
    (0, 7200),
    (0, 255),
    (0, 255),
    (0, 255),
    (0, 7200),
)


def load_covertype(folder: str | Path | None = None) -> Table:
    """Return forest cells: ten quantities, then wilderness area and soil type as one-hot columns.

    No held-out part is official. The last fifth of ``RandomState(0).permutation`` is held out.

    Args:
        folder: folder with ``covtype_581012.npz``. The default is the one that ``RETICENT_DATA``
            names, and without one scikit-learn's download.

    Returns:
        464,810 training and 116,202 held-out rows of float32.

    Raises:
        DataUnavailable: the file is missing, damaged or another one, or the download failed.
    """
    place = data_folder(folder)
    rows, labels = _from_sklearn() if place is None else _from_file(place / FILE)
    counts = tuple(int(count) for count in np.bincount(labels, minlength=7))
    if rows.shape != (sum(_COUNTS), 54) or counts != _COUNTS:
        raise DataUnavailable(
            f"{FILE}: expected {sum(_COUNTS)} x 54 values with the published class counts; "
            "fetch it again"
        )
    train, test = last_fifth_held_out(len(rows))
    return Table(
        name="covertype",
        columns=(*QUANTITIES, *WILDERNESS, *SOIL),
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        class_names=_CLASSES,
        origin="Covertype, Blackard 1998, UCI (CC BY 4.0)",
    )


def _from_file(path: Path) -> tuple[Rows, Integers]:
    if not path.is_file():
        raise DataUnavailable(
            f"covertype: expected {FILE} in {str(path.parent)!r}; copy the file there, or "
            f"unset {DATA_VARIABLE} to download"
        )
    with opened_npz(path, holds="X and y") as stored:
        return stored["X"].astype(np.float32), stored["y"].astype(np.int64) - 1


def _from_sklearn() -> tuple[Rows, Integers]:
    from sklearn.datasets import fetch_covtype

    try:
        bunch = fetch_covtype()
    except OSError as error:
        raise DataUnavailable(
            f"covertype: expected {DATA_VARIABLE} to name a folder with {FILE}, or a network "
            "for scikit-learn's download; "
            f"it failed with {type(error).__name__}"
        ) from error
    return np.asarray(bunch.data, dtype=np.float32), np.asarray(bunch.target, dtype=np.int64) - 1


def covertype_schema() -> TabularSchema:
    """Return UCI's ranges, rounded outward. Hillshades are indices 0 to 255, angles degrees."""
    numbers = (
        Numeric(name, *bounds) for name, bounds in zip(QUANTITIES, _QUANTITY_RANGES, strict=True)
    )
    return TabularSchema(
        (*numbers, OneHot("Wilderness_Area", WILDERNESS), OneHot("Soil_Type", SOIL))
    )
