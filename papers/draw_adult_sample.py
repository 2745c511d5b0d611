"""Draws the sample of Adult that comes with the package again, from the full training file, byte
for byte.

    RETICENT_DATA=... python -m papers.draw_adult_sample adult_sample.csv.gz

Only ``adult.data.gz`` is read, so the official held-out part is not in the sample.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
from pathlib import Path

import numpy as np

from papers.datasets.adult import adult_fields
from papers.datasets.files import DATA_VARIABLE, data_folder
from reticent.core.errors import DataUnavailable
from reticent.core.files import output_file
from reticent.datasets.adult import COLUMNS, SAMPLE_FILE, SAMPLE_LABEL, SAMPLE_ROWS

_SEED = 1996


def sample_text(folder: str | Path | None = None) -> str:
    """Return the sample as comma-separated text with a header, one record a line, words and numbers
    as in the full file.

    The records are the first 8,000 of ``RandomState(1996).permutation`` of the training file's
    lines, in that order.

    Args:
        folder: folder with ``adult.data.gz``. The default is the one that ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing or damaged.
    """
    place = data_folder(folder)
    if place is None:
        raise DataUnavailable(
            f"adult: expected {DATA_VARIABLE} to name a folder with adult.data.gz"
        )
    records = adult_fields(place / "adult.data.gz")
    order = np.random.RandomState(_SEED).permutation(len(records))[:SAMPLE_ROWS]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, SAMPLE_LABEL])
    writer.writerows(records[index] for index in order)
    return text.getvalue()


def sample_content(folder: str | Path | None = None) -> bytes:
    """Return ``sample_text`` as a gzip file without a time or a name in it, so that it comes out
    the same every time.
    """
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(sample_text(folder).encode("ascii"))
    return buffer.getvalue()


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=Path, nargs="?", default=Path(SAMPLE_FILE))
    chosen = parser.parse_args(arguments)
    content = sample_content()
    with output_file(chosen.out, size=len(content), overwrite=True) as put:
        put(content)
    print(f"{chosen.out}: {SAMPLE_ROWS} records, {len(content)} bytes")


if __name__ == "__main__":
    main()
