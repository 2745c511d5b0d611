"""What releasing table rows costs beside scoring them: ``PowerEncoder.release`` over XGBoost's
``predict_proba``, one thread.

Rows of Adult (8 columns of words, 6 of numbers; two labels) and Forest Cover (54 numbers; seven
labels), repeated where there are fewer. XGBoost has its 100 trees of default shape and gets a
finished float32 matrix, so reading words costs it nothing; release gets an Arrow table. Columns:
CPU time of release over that of XGBoost, the same without drawing noise, rows per CPU second, and
the peak of allocated bytes per row (tracemalloc, which sees numpy's arrays; the table itself not
counted).

    RETICENT_DATA=... python benchmarks/table_release.py [--rows 100000]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import torch
import xgboost
from figures import Figure, processor_seconds

from papers.datasets import covertype_schema, load_adult, load_covertype
from reticent.mechanisms import AdditiveMechanism
from reticent.systems import PowerEncoder, VectorTraining
from reticent.tables import adult_schema

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


if __name__ == "__main__":
    main()
