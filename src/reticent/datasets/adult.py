"""A sample of Adult (census income): records of 14 columns, and whether a person earns more than
50,000 dollars a year.
"""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from reticent.core.errors import DataUnavailable, InvalidInput
from reticent.core.files import unpacked
from reticent.datasets.table import Rows, Table, last_fifth_held_out

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")

CLASSES = ("<=50K", ">50K")
ORIGIN = "Adult, Becker and Kohavi 1996, UCI (CC BY 4.0)"

SAMPLE_FILE = "adult_sample.csv.gz"
SAMPLE_ROWS = 8000
SAMPLE_LABEL = "income"
"""Name of the sample's last column. The others are ``COLUMNS``."""


def load_adult_sample() -> Table:
    """Return a random sample of Adult that comes with the package, so nothing is downloaded. A
    fixed fifth of it is held out.

    All 8,000 records are from the official *training* part (``papers.draw_adult_sample``
    draws them again), so figures from this sample's held-out part are not figures on Adult's
    official one.

    Returns:
        6,400 training and 1,600 held-out records, Numeric columns hold floats, the others words.

    Raises:
        DataUnavailable: the file is missing from the installation, or damaged.

    Example:
        >>> table = load_adult_sample()
        >>> table.train_rows.shape, table.test_rows.shape
        ((6400, 14), (1600, 14))
    """
    try:
        lines = (
            unpacked(files("reticent.datasets").joinpath(SAMPLE_FILE).read_bytes())
            .decode("ascii")
            .splitlines()
        )
    except (OSError, InvalidInput, UnicodeDecodeError) as error:
        raise DataUnavailable(
            f"{SAMPLE_FILE}: expected a whole gzip file of text; install the package again"
        ) from error
    header, *records = csv.reader(lines)
    if (
        header != [*COLUMNS, SAMPLE_LABEL]
        or len(records) != SAMPLE_ROWS
        or {len(record) for record in records} != {len(header)}
    ):
        raise DataUnavailable(
            f"{SAMPLE_FILE}: expected {SAMPLE_ROWS} records of {len(COLUMNS) + 1} fields; "
            "install the package again"
        )
    table = np.array(records, dtype=object)
    rows, labels = (
        typed(table[:, :-1]),
        np.array([label == CLASSES[1] for label in table[:, -1]], dtype=np.int64),
    )
    train, test = last_fifth_held_out(SAMPLE_ROWS)
    origin = f"a random sample of {SAMPLE_ROWS:,} training records of {ORIGIN}"
    return Table(
        "adult-sample",
        COLUMNS,
        rows[train],
        labels[train],
        rows[test],
        labels[test],
        CLASSES,
        origin,
    )


def typed(rows: npt.NDArray[np.object_]) -> Rows:
    """Return floats in numeric columns, and words elsewhere."""
    try:
        for index, name in enumerate(COLUMNS):
            if name in NUMERIC:
                rows[:, index] = rows[:, index].astype(np.float64)
    except ValueError as error:
        raise DataUnavailable(
            "adult: expected numbers in the numeric columns; fetch the files again"
        ) from error
    return rows
