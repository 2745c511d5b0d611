"""Memory and rows a second of processor time of every front door, at three sizes: rows of a Parquet
or a CSV file through `release_stream`, a frame, a service's body, and fits.

    python benchmarks/streams.py [--rows 10000000] [--columns 16]

The claim of streams is constant memory: the peak above the fitted model must not depend on the
number of rows, and is below 1 GiB. The claim of all others is linear memory: the peak above model
and input, by so many bytes a row. A frame is an Arrow table of four numbers and a word, a body is
JSON of the same (``most_rows`` bounds it), and fits have ``--columns`` float64 numbers a row
and a label.
Everything runs in a process of its own, whose peak is its own. Servers of a fleet:
``RETICENT_FLEET=100000 pytest --soak -s -k test_a_million_reports tests/fleet`` prints theirs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from figures import Figure

from reticent import (
    CertifiedClassifier,
    ClippedDescent,
    NoiseAware,
    NoisyGradientClassifier,
    PosthocEncoder,
    PowerEncoder,
    PrivateKNNClassifier,
)
from reticent.service.bodies import answer_body
from reticent.service.requests import Answers, parsed
from reticent.systems import Features, Neighbours, VectorTraining
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.tables.frames import NamedRows

NUMBERS = ["age", "weight", "height", "pulse"]
WORDS = ("office", "field", "sea")
SCHEMA = TabularSchema((*(Numeric(name, 0.0, 1.0) for name in NUMBERS), Categorical("work", WORDS)))
BATCH = 2**20
"""Rows of a row group, as pyarrow writes them unless it is told otherwise."""
STREAMS = ("power", "posthoc", "csv")
WHOLE = ("frame", "body")
ENDINGS = {"csv": "csv", "body": "json"}
"""Those of files that are not Parquet."""

FITS: dict[str, Callable[[int], Any]] = {
    "neighbours": lambda rows: PrivateKNNClassifier(
        epsilon=1.0,
        delta=1e-8,
        queries=100,
        classes=(0, 1),
        neighbours=Neighbours(number=300, sampling_probability=0.15),
        features=Features(range=(0.0, 1.0)),
    ),
    "gradients": lambda rows: NoisyGradientClassifier(
        epsilon=1.0, delta=1e-8, classes=(0, 1), steps=5, records=rows
    ),
    "certified": lambda rows: CertifiedClassifier(
        epsilon=1.0, classes=(0, 1), k_max=2, training=ClippedDescent(epochs=1)
    ),
}
KINDS = (*STREAMS, *WHOLE, *FITS)
SOURCES = {
    **dict.fromkeys(STREAMS, "a Parquet file of "),
    **{"csv": "a CSV file of ", "frame": "", "body": "a body of "},
}


def write(path: Path, rows: int) -> None:
    """A Parquet file of ``rows`` rows, or CSV or JSON by its ending, written batch by batch."""
    random = np.random.default_rng(0)
    words = np.array(WORDS)
    schema = pa.schema([*((name, pa.float64()) for name in NUMBERS), ("work", pa.string())])
    with ExitStack() as open_:
        if path.suffix == ".json":
            file = open_.enter_context(path.open("w"))
            file.write('{"rows": [')
        else:
            kind = pc.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
            writer = open_.enter_context(kind(path, schema))
        for start in range(0, rows, BATCH):
            size = min(BATCH, rows - start)
            columns = {name: random.random(size).round(6) for name in NUMBERS}
            columns["work"] = words[random.integers(0, 3, size)]
            table = pa.table(columns, schema=schema)
            if path.suffix == ".json":
                lines = map(json.dumps, zip(*table.to_pydict().values(), strict=True))
                file.write(("," if start else "") + ",".join(lines))
            else:
                writer.write_table(table)
        if path.suffix == ".json":
            file.write("]}")


def read(kind: str, source: Path) -> Any:
    """A body, or a frame."""
    return source.read_bytes() if kind == "body" else pq.read_table(source)


def fitted(kind: str) -> PowerEncoder | PosthocEncoder:
    """A small encoder of the table's rows."""
    random = np.random.default_rng(1)
    X = random.random((2000, 4))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    frame = {name: X[:, place] for place, name in enumerate(NUMBERS)}
    if kind == "power":
        rows = pa.table({**frame, "work": random.choice(WORDS, 2000)})
        return PowerEncoder(
            epsilon=4.0,
            delta=0.0,
            radius=0.2,
            schema=SCHEMA,
            random_state=0,
            training=VectorTraining(epochs=3),
        ).fit(rows, y)
    return PosthocEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=0.1,
        embedder="identity",
        obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=3),
        random_state=0,
    ).fit(pa.table(frame), y)


def fit(kind: str, rows: int, columns: int) -> None:
    """A fit of ``rows`` random rows."""
    random = np.random.default_rng(2)
    X = random.random((rows, columns))
    more = {"public_X": random.random((2000, columns))} if kind == "gradients" else {}
    FITS[kind](rows).fit(X, (X[:, 0] > 0.5).astype(int), **more)


def body(encoder: PowerEncoder, content: bytes) -> bytes:
    """The answer to a request, as a service makes it."""
    cells = np.array(parsed(content, Answers).rows, dtype=object)
    found = encoder.release(NamedRows(cells, tuple(SCHEMA.column_names)))
    return answer_body(found, "bundle", 64, request="", signed=lambda receipt: {})


def released(kind: str, source: Path, output: Path, rows: int | None) -> int:
    """Rows that were released from a file; the first thousand where ``rows`` is one."""
    some = {} if rows is None else {"rows": rows}
    ignore = ["work"] if kind == "posthoc" else []
    stream = fitted_once(kind).release_stream(source, output, ignore=ignore, **some)
    if rows is not None:
        return len(next(stream))
    return sum(map(len, stream))


@cache
def fitted_once(kind: str) -> PowerEncoder | PosthocEncoder:
    """The encoder of a door."""
    return fitted("posthoc" if kind == "posthoc" else "power")


def measure(kind: str, source: Path, output: Path, columns: int) -> dict[str, float]:
    """Peak memory above model and input in MiB, and rows a second."""
    rows, given = int(source.stem), 0
    if kind in FITS:
        given = row_bytes(columns) * rows
        warm, task = partial(fit, kind, 2000, columns), partial(fit, kind, rows, columns)
    elif kind in WHOLE:
        table = read(kind, source)
        encoder: Any = fitted_once(kind)
        work = partial(body, encoder) if kind == "body" else encoder.release
        warm, task = partial(work, read(kind, source.with_stem("1000"))), partial(work, table)
    else:
        warm = partial(released, kind, source, output / "warm", 1000)
        task = partial(released, kind, source, output / "out", None)
    warm()  # what is loaded once
    Path("/proc/self/clear_refs").write_text("5")  # loading it took more than small fits do
    before = peak()
    start = time.process_time()
    task()
    seconds = time.process_time() - start
    above = max(0.0, (peak() - before) / 2**10 - given / 2**20)
    return {"rows": rows, "seconds": seconds, "mebibytes": above}


def row_bytes(columns: int) -> int:
    """Bytes of the numbers and the label of a row that is fitted."""
    return 8 * columns + 8


def peak() -> int:
    """Most KiB of memory since the mark that Linux keeps was last set back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Prints a line for each encoder and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="at least 20,000")
    parser.add_argument("--columns", type=int, default=64, help="numbers of a row that is fitted")
    parser.add_argument("--encoders", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--measure", nargs=3, metavar=("KIND", "SOURCE", "OUTPUT"))
    words = parser.parse_args()
    if words.measure:
        kind, source, output = words.measure
        print(json.dumps(measure(kind, Path(source), Path(output), words.columns)))
        return
    print("what  rows  rows/s of processor time  peak memory above the model or input, MiB")
    kept: dict[str, list[float]] = {kind: [] for kind in words.encoders}
    with tempfile.TemporaryDirectory() as folder:
        for rows in (words.rows // 10, words.rows // 3, words.rows):
            for kind in words.encoders:
                source = Path(folder) / f"{rows}.{ENDINGS.get(kind, 'parquet')}"
                for size in (rows, 1000):
                    if kind not in FITS and not source.with_stem(str(size)).exists():
                        write(source.with_stem(str(size)), size)
                output = Path(folder) / f"{kind}-{rows}"
                command = [sys.executable, __file__, "--columns", str(words.columns)]
                done = subprocess.run(
                    [*command, "--measure", kind, str(source), str(output)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                found = json.loads(done.stdout)
                rate = found["rows"] / found["seconds"]
                kept[kind].append(found["mebibytes"])
                print(f"{kind:10} {found['rows']:>9,.0f}  {rate:>9,.0f}  {found['mebibytes']:.0f}")
                if rows == words.rows:
                    size = f"{rows:,} x {words.columns}" if kind in FITS else f"{rows:,}"
                    what = f"rows of {SOURCES.get(kind, 'a fit of ')}{size}, {kind}, a processor"
                    Figure.of(what, [rate], unit="a second").keep()
    for kind, above in kept.items():
        slope = 2**20 * (above[-1] - above[0]) / (words.rows - words.rows // 10)
        times = 1 + slope / row_bytes(words.columns)
        beside = f", {times:.2f} times the input with it" if kind in FITS else ""
        print(f"{kind:10} {slope:.0f} bytes a row{beside}")


if __name__ == "__main__":
    main()
