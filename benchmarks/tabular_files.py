"""Reading a CSV file into rows of a schema, beside what the standard library and numpy need for the
same bytes.

Prints processor seconds (median of three, one thread) of ``read_rows`` on a table of numbers and on
one of numbers and words, plain and gzipped, and its ratios to a bare pass of ``csv.reader`` (no
cell is looked at), to that pass with ``float`` of every number, and to ``numpy.loadtxt``.

    python benchmarks/tabular_files.py [--rows 50000]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
from figures import Figure, processor_seconds

from reticent.tables.attributes import Attribute, Categorical, Numeric
from reticent.tables.files import read_rows
from reticent.tables.schema import TabularSchema

NUMBERS, WORDS = 54, 8
CATEGORIES = tuple(f"category {place}" for place in range(16))


def table(rows: int, *, numbers: int, words: int) -> tuple[TabularSchema, bytes]:
    """A schema, and a file of ``rows`` random rows of it: numbers with six digits, words of
    sixteen categories.
    """
    random = np.random.default_rng(0)
    attributes: list[Attribute] = [Numeric(f"x{place}", 0, 1000) for place in range(numbers)]
    attributes += [Categorical(f"w{place}", CATEGORIES) for place in range(words)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([attribute.name for attribute in attributes])
    drawn, chosen = (
        random.random((rows, numbers)) * 1000,
        random.integers(0, len(CATEGORIES), (rows, words)),
    )
    for row, places in zip(drawn.tolist(), chosen.tolist(), strict=True):
        writer.writerow([f"{value:.6g}" for value in row] + [CATEGORIES[place] for place in places])
    return TabularSchema(tuple(attributes)), text.getvalue().encode()


def seconds(action: Callable[[], object]) -> float:
    """Processor time of one call, the median of three."""
    return statistics.median(processor_seconds(action, runs=3))


def bare(content: bytes) -> None:
    """Every cell as text, none looked at."""
    for _ in csv.reader(io.StringIO(content.decode(), newline="")):
        pass


def with_floats(content: bytes, numbers: int) -> None:
    """Every cell as text, and the first ``numbers`` of a line as floats."""
    lines = csv.reader(io.StringIO(content.decode(), newline=""))
    next(lines)
    for cells in lines:
        [float(cell) for cell in cells[:numbers]]


def by_numpy(content: bytes) -> None:
    """A table of numbers alone, by numpy's own reader."""
    np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=50_000)
    rows = parser.parse_args().rows
    print(f"{rows} rows, processor seconds; in brackets read_rows in units of each")
    print(
        f"{'table':<26} {'read_rows':>9} {'gzipped':>9} {'csv.reader':>16} {'and float':>16} "
        f"{'loadtxt':>16}"
    )
    for name, numbers, words in (
        (f"{NUMBERS} numbers", NUMBERS, 0),
        (f"6 numbers, {WORDS} words", 6, WORDS),
    ):
        schema, content = table(rows, numbers=numbers, words=words)
        packed = gzip.compress(content)
        runs = processor_seconds(partial(read_rows, content, schema), runs=3)
        ours, zipped = statistics.median(runs), seconds(partial(read_rows, packed, schema))
        others = [seconds(partial(bare, content)), seconds(partial(with_floats, content, numbers))]
        if not words:
            theirs = processor_seconds(partial(by_numpy, content), runs=3)
            others.append(statistics.median(theirs))
            Figure.of(
                f"reading {rows:,} rows of {numbers} numbers, checked",
                runs,
                peer="numpy.loadtxt",
                theirs=theirs,
            ).keep()
        cells = " ".join(f"{other:>8.2f} ({ours / other:>4.1f}x)" for other in others)
        print(f"{name:<26} {ours:>9.2f} {zipped:>9.2f} {cells}")


if __name__ == "__main__":
    main()
