"""Memory and rows a second of processor time, at three sizes: rows of a Parquet file through
`release_stream`, and fits.

    python benchmarks/streams.py [--rows 10000000]

The claim of streams is constant memory: the peak above the fitted model must not depend on the
number of rows, and is below 1 GiB. The claim of fits is linear memory: the peak above their input,
16 float64 numbers a row, by so many bytes a row. Everything runs in a process of its own, whose
peak is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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
from reticent.systems import Features, Neighbours, VectorTraining
from reticent.tables import Categorical, Numeric, TabularSchema

NUMBERS = ["age", "weight", "height", "pulse"]
WORDS = ("office", "field", "sea")
SCHEMA = TabularSchema((*(Numeric(name, 0.0, 1.0) for name in NUMBERS), Categorical("work", WORDS)))
BATCH = 2**20
"""Rows of a row group, as pyarrow writes them unless it is told otherwise."""
STREAMS = ("power", "posthoc")
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
KINDS = (*STREAMS, *FITS)


def write(path: Path, rows: int) -> None:
    """A Parquet file of ``rows`` rows, written batch by batch."""
    random = np.random.default_rng(0)
    words = np.array(WORDS)
    schema = pa.schema([*((name, pa.float64()) for name in NUMBERS), ("work", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            size = min(BATCH, rows - start)
            columns = {name: random.random(size) for name in NUMBERS}
            columns["work"] = words[random.integers(0, 3, size)]
            writer.write_table(pa.table(columns, schema=schema))


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


def fit(kind: str, rows: int) -> None:
    """A fit of ``rows`` random rows."""
    random = np.random.default_rng(2)
    X = random.random((rows, 16))
    more = {"public_X": random.random((2000, 16))} if kind == "gradients" else {}
    FITS[kind](rows).fit(X, (X[:, 0] > 0.5).astype(int), **more)


def measure_fit(kind: str, rows: int) -> dict[str, float]:
    """Peak memory above the input in MiB, and rows a second."""
    fit(kind, 2000)  # what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    fit(kind, rows)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    above = max(0.0, (after - before) / 1024 - rows / 2**13)  # of a small input nothing is seen
    return {"rows": rows, "seconds": seconds, "mebibytes": above}


def measure(kind: str, source: Path, output: Path) -> dict[str, float]:
    """Peak memory above the model in MiB, and rows a second."""
    if kind in FITS:
        return measure_fit(kind, int(source.stem))
    system = fitted(kind)
    ignore = ["work"] if kind == "posthoc" else []
    for _ in system.release_stream(source, output / "warm", rows=1000, ignore=ignore):
        break  # what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, rows = time.process_time(), 0
    for release in system.release_stream(source, output / "out", ignore=ignore):
        rows += len(release)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"rows": rows, "seconds": seconds, "mebibytes": (after - before) / 1024}


def main() -> None:
    """Prints a line for each encoder and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="at least 20,000")
    parser.add_argument("--encoders", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--measure", nargs=3, metavar=("KIND", "SOURCE", "OUTPUT"))
    words = parser.parse_args()
    if words.measure:
        kind, source, output = words.measure
        print(json.dumps(measure(kind, Path(source), Path(output))))
        return
    print("what  rows  rows/s of processor time  peak memory above the model or input, MiB")
    kept: dict[str, list[float]] = {kind: [] for kind in words.encoders}
    with tempfile.TemporaryDirectory() as folder:
        for rows in (words.rows // 10, words.rows // 3, words.rows):
            source = Path(folder) / f"{rows}.parquet"
            write(source, rows)
            for kind in words.encoders:
                output = Path(folder) / f"{kind}-{rows}"
                command = [sys.executable, __file__, "--measure", kind]
                done = subprocess.run(
                    [*command, str(source), str(output)], check=True, capture_output=True, text=True
                )
                found = json.loads(done.stdout)
                rate = found["rows"] / found["seconds"]
                kept[kind].append(found["mebibytes"])
                print(f"{kind:10} {found['rows']:>9,.0f}  {rate:>9,.0f}  {found['mebibytes']:.0f}")
                if rows == words.rows:
                    source_of = "a Parquet file of " if kind in STREAMS else "a fit of "
                    what = f"rows of {source_of}{rows:,}, {kind}, a processor"
                    Figure.of(what, [rate], unit="a second").keep()
    for kind, above in kept.items():
        slope = 2**20 * (above[-1] - above[0]) / (words.rows - words.rows // 10)
        print(f"{kind:10} {slope:.0f} bytes a row")


if __name__ == "__main__":
    main()
