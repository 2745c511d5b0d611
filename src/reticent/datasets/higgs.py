"""Two *samples* of Higgs tables: 25,973 of UCI's eleven million rows, and 9,998 of the ATLAS
challenge's 250,000.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import DataUnavailable
from reticent.datasets.files import needed_file, opened_npz
from reticent.datasets.table import Table, last_fifth_held_out

UCI_FILE = "higgs_uci_subset26k.npz"
ATLAS_FILE = "atlas_higgs_kaggle10k.npz"
MISSING = -999.0
"""The value of the ATLAS table where a quantity does not exist."""

_CLASSES = ("background", "signal")


def load_higgs(folder: str | Path | None = None) -> Table:
    """Return the UCI sample: 28 quantities of simulated collisions. Rows of source 2 are held out.

    Args:
        folder: folder with ``higgs_uci_subset26k.npz``. The default is the one that
            ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing, damaged or another one.
    """
    stored = _read(folder, UCI_FILE, ("X", "y", "src", "feature_names"), (25973, 28))
    held_out = stored["src"] == 2
    rows, labels = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    return Table(
        name="higgs",
        columns=tuple(str(name) for name in stored["feature_names"]),
        train_rows=rows[~held_out],
        train_labels=labels[~held_out],
        test_rows=rows[held_out],
        test_labels=labels[held_out],
        class_names=_CLASSES,
        origin="a sample of HIGGS, Whiteson 2014, UCI (CC BY 4.0)",
    )


def load_atlas(folder: str | Path | None = None) -> Table:
    """Return the ATLAS challenge sample: 30 quantities, -999 where one does not exist. It is
    balanced, unlike the whole.

    Args:
        folder: folder with ``atlas_higgs_kaggle10k.npz``. The default is the one that
            ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing, damaged or another one.
    """
    stored = _read(folder, ATLAS_FILE, ("X", "y", "feature_names"), (9998, 30))
    rows, labels = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    train, test = last_fifth_held_out(len(rows))
    return Table(
        name="atlas",
        columns=tuple(str(name) for name in stored["feature_names"]),
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        class_names=_CLASSES,
        origin="a sample of the ATLAS Higgs challenge, CERN open data (CC0)",
    )


def _read(
    folder: str | Path | None, file: str, names: tuple[str, ...], shape: tuple[int, int]
) -> dict[str, npt.NDArray[Any]]:
    path = needed_file(folder, file, about="docs/power.md says how it is made")
    with opened_npz(path, holds=", ".join(names)) as stored:
        arrays = {name: stored[name] for name in names}
    if arrays["X"].shape != shape or arrays["y"].shape != shape[:1]:
        raise DataUnavailable(
            f"{file}: expected X of shape={shape}, got shape={arrays['X'].shape}; fetch the "
            "file again"
        )
    return arrays
