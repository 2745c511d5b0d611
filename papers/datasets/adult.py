"""Adult (census income): 48,842 records of 14 columns, and whether a person earns more than 50,000
dollars a year.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.datasets.files import DATA_VARIABLE, data_folder
from reticent.core.arrays import Integers
from reticent.core.errors import DataUnavailable, InvalidInput
from reticent.core.files import unpacked
from reticent.datasets.adult import CLASSES, COLUMNS, ORIGIN, typed
from reticent.datasets.table import Rows, Table

_FILES = {"adult.data.gz": (32561, 7841), "adult.test.gz": (16281, 3846)}


def load_adult(folder: str | Path | None = None) -> Table:
    """Return census records with the official held-out part. "?" stands where a word is missing.

    Args:
        folder: folder with ``adult.data.gz`` and ``adult.test.gz``. The default is the one that
            ``RETICENT_DATA`` names, and without one a download from OpenML.

    Returns:
        32,561 training and 16,281 held-out records. Numeric columns hold floats, the others words.

    Raises:
        DataUnavailable: files are missing, damaged or not the expected ones, or the download
            failed.
    """
    place = data_folder(folder)
    if place is None:
        rows, labels = _from_openml()
        first = _FILES["adult.data.gz"][0]
        parts = [(rows[:first], labels[:first]), (rows[first:], labels[first:])]
    else:
        parts = [_from_file(place / name) for name in _FILES]
    for (found, target), (name, (count, rich)) in zip(parts, _FILES.items(), strict=True):
        if len(found) != count or int(target.sum()) != rich:
            raise DataUnavailable(
                f"{name}: expected {count} records, {rich} of them above 50K, got {len(found)} "
                f"and {int(target.sum())}; "
                "fetch the file again"
            )
    (train_rows, train_labels), (test_rows, test_labels) = parts
    return Table(
        "adult", COLUMNS, train_rows, train_labels, test_rows, test_labels, CLASSES, ORIGIN
    )


def adult_fields(path: Path) -> list[list[str]]:
    """Return the records of one of Adult's files as they stand there: 15 words each, the label
    last.

    Raises:
        DataUnavailable: the file is missing, damaged, or holds other records.
    """
    if not path.is_file():
        raise DataUnavailable(
            f"adult: expected {path.name} in {str(path.parent)!r}; copy the file there, or "
            f"unset {DATA_VARIABLE} to download"
        )
    try:
        lines = unpacked(path.read_bytes()).decode("ascii").splitlines()
    except (OSError, InvalidInput, UnicodeDecodeError) as error:
        raise DataUnavailable(
            f"{path.name}: expected a whole gzip file of text; fetch the file again"
        ) from error
    fields = [line.split(", ") for line in lines if line and not line.startswith("|")]
    if any(len(record) != len(COLUMNS) + 1 for record in fields):
        raise DataUnavailable(
            f"{path.name}: expected {len(COLUMNS) + 1} fields in every line; fetch the file again"
        )
    return fields


def _from_file(path: Path) -> tuple[Rows, Integers]:
    table = np.array(adult_fields(path), dtype=object)
    return typed(table[:, :-1]), np.array(
        [label.startswith(">50K") for label in table[:, -1]], dtype=np.int64
    )


def _from_openml() -> tuple[Rows, Integers]:
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml("adult", version=2, as_frame=True, parser="pandas")
    except (OSError, ValueError, ImportError) as error:
        raise DataUnavailable(
            f"adult: expected {DATA_VARIABLE} to name a folder with adult.data.gz and "
            "adult.test.gz, or a network and pandas to "
            f"download it from OpenML; the download failed with {type(error).__name__}"
        ) from error
    frame = bunch.data.loc[:, list(COLUMNS)].astype(object)
    rows = frame.where(frame.notna(), "?").to_numpy(dtype=object)
    return typed(rows), np.array(
        [str(label).startswith(">50K") for label in bunch.target], dtype=np.int64
    )
