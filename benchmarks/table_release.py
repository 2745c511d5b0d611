"""What releasing table rows costs beside scoring them: ``PowerEncoder.release`` over XGBoost's
``predict_proba``, one thread.

Rows of Adult (8 columns of words, 6 of numbers; two labels) and Forest Cover (54 numbers; seven
labels), repeated where there are fewer. XGBoost has its 100 trees of default shape and gets a
finished float32 matrix, so reading words costs it nothing; release gets an Arrow table. Columns:
CPU time of release over that of XGBoost, the same without drawing noise, rows per CPU second, and
the peak of allocated bytes per row (tracemalloc, which sees numpy's arrays; the table itself not
counted). At the end the same rows come from each library and file, those of Adult and such with
four numbers and a word of 10,000, and are released by a code.

    RETICENT_DATA=... python benchmarks/table_release.py [--rows 100000]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import torch
import xgboost
from figures import Figure, processor_seconds

from papers.datasets import covertype_schema, load_adult, load_covertype
from reticent.mechanisms import AdditiveMechanism
from reticent.systems import PowerEncoder, VectorTraining
from reticent.tables import Categorical, Numeric, TabularSchema, adult_schema

PUBLIC = 10_000
SETTINGS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("k-norm-l2, 1", 1, {"mechanism": "k-norm-l2", "delta": 0.0}),
    ("k-norm-l2, 4", 4, {"mechanism": "k-norm-l2", "delta": 0.0}),
    ("gaussian, 4", 4, {"mechanism": "gaussian", "delta": 1e-6}),
    ("code", 1, {"mechanism": "code", "delta": 0.0}),
)


def seconds(action: Callable[[], object], *, repeats: int = 3) -> float:
    """The median CPU time of some runs."""
    return statistics.median(processor_seconds(action, runs=repeats))


def peak(action: Callable[[], object]) -> int:
    """Most bytes that were allocated at once."""
    tracemalloc.start()
    action()
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


def zeros(self: AdditiveMechanism, rows: int, *, sampler: object) -> np.ndarray:
    return np.zeros((rows, self.dimension), dtype=np.int64)


def towns(number: int) -> tuple[pa.Table, np.ndarray, TabularSchema]:
    """Rows of four numbers and one of 10,000 words, their labels, and their schema."""
    random = np.random.default_rng(0)
    words = np.array([f"town-{place:05d}" for place in range(10_000)])
    columns = {f"x{place}": random.random(number).round(6) for place in range(4)}
    columns["town"] = words[random.integers(0, len(words), number)]
    attributes = [Numeric(name, 0.0, 1.0) for name in columns if name != "town"]
    schema = TabularSchema((*attributes, Categorical("town", tuple(words.tolist()))))
    return pa.table(columns), (columns["x0"] + columns["x1"] > 1).astype(int), schema


def sources(what: str, rows: pa.Table, labels: np.ndarray, schema: TabularSchema) -> None:
    """Releases the same rows from every library and file."""
    encoder = PowerEncoder(
        epsilon=1.0, delta=0.0, radius=None, schema=schema, mechanism="code", random_state=0
    ).fit(rows.slice(0, PUBLIC), labels[:PUBLIC])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(rows, folder / "rows.parquet")
        pc.write_csv(rows, folder / "rows.csv", pc.WriteOptions(quoting_style="none"))
        given = {"pyarrow": rows, "pandas": rows.to_pandas(), "polars": pl.from_arrow(rows)}
        for source, frame in given.items():
            runs = processor_seconds(
                lambda frame=frame: encoder.release(frame), runs=3, each=len(rows)
            )
            Figure.of(f"a row of {what}, a code, from {source}", runs).keep()
        for source in ("parquet", "csv"):
            tries = iter(range(3))
            runs = processor_seconds(
                lambda file=folder / f"rows.{source}", tries=tries: sum(
                    map(len, encoder.release_stream(file, f"{file}-{next(tries)}"))
                ),
                runs=3,
                each=len(rows),
            )
            Figure.of(f"a row of {what}, a code, from {source} into files", runs).keep()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    number = parser.parse_args().rows
    torch.set_num_threads(1)
    for name, table, schema in (
        ("adult", load_adult(), adult_schema()),
        ("covertype", load_covertype(), covertype_schema()),
    ):
        rows = np.resize(table.train_rows, (number, schema.columns))
        labels = np.unique(np.resize(table.train_labels, number), return_inverse=True)[1]
        matrix = schema.encode(rows).astype(np.float32) if rows.dtype == object else rows
        columns = zip(schema.column_names, rows.T, strict=True)
        rows = pa.table({name: pa.array(cells.tolist()) for name, cells in columns})
        if name == "adult":
            sources("Adult", rows, labels, schema)
        model = xgboost.XGBClassifier(n_jobs=1, tree_method="hist").fit(
            matrix[: number // 2], labels[: number // 2]
        )
        scores = processor_seconds(
            lambda model=model, matrix=matrix: model.predict_proba(matrix), runs=5
        )
        scored = statistics.median(scores)
        reading = seconds(lambda schema=schema, rows=rows: schema.code(rows))
        print(
            f"{name}: predict_proba {scored:.3f} s for {number} rows; reading the table alone "
            f"{reading / scored:.2f} times that"
        )
        print(
            f"  {'mechanism, outputs':<14} {'release':>8} {'but noise':>10} {'rows/s':>8} "
            f"{'bytes/row':>10}"
        )
        for title, outputs, settings in SETTINGS:
            encoder = PowerEncoder(
                epsilon=1.0,
                radius=0.1,
                schema=schema,
                random_state=0,
                **settings,
                training=VectorTraining(outputs=outputs, epochs=1, head_epochs=1),
            ).fit(rows.slice(0, PUBLIC), labels[:PUBLIC])
            runs = processor_seconds(
                lambda encoder=encoder, rows=rows: encoder.release(rows), runs=3
            )
            whole = statistics.median(runs)
            Figure.of(
                f"release of {number:,} rows of {name}, {title}",
                runs,
                peer="XGBoost, scoring them",
                theirs=scores,
            ).keep()
            mechanism = type(encoder.query_.mechanism)
            if issubclass(mechanism, AdditiveMechanism):
                with patch.object(mechanism, "draw", zeros):
                    noiseless = seconds(lambda encoder=encoder, rows=rows: encoder.release(rows))
                rest = f"{noiseless / scored:.2f}"
            else:
                rest = "-"
            memory = peak(lambda encoder=encoder, rows=rows: encoder.release(rows)) / number
            print(
                f"  {title:<14} {whole / scored:>8.2f} {rest:>10} {number / whole:>8.0f} "
                f"{memory:>10.0f}",
                flush=True,
            )

    sources("4 numbers and one of 10,000 words", *towns(number))


if __name__ == "__main__":
    main()
