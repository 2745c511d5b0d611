"""A booster that learns from a synthetic table: ``python -m papers.power.synthetic --python PATH``,
with the path of an interpreter that has dpmm.

The promise is another one: adding or removing one *training* record is hidden, at (epsilon, delta),
whatever is learnt from the table. The rows that are predicted are sent as they are. Numbers are cut
into equal parts of their public range (of its logarithm, where the schema says so), so nothing is
taken from the rows outside the budget. A booster learns from the synthetic rows, its shape chosen
on a fifth of them, and is scored on held-out rows in the same parts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas  # type: ignore[import-untyped]

from papers.power.code_splits import DATA, Rows, Split, split
from papers.power.within import Released, learnt
from papers.result_files import write_result
from papers.seeds import combined
from reticent.tables.schema import TabularSchema

Results = dict[str, Any]

EPSILONS = (1.0, 2.0, 5.0)
DELTA = 1e-5
PARTS = 24
LABEL = "label"
SCRIPT = Path(__file__).with_name("synthetic_rows.py")
_SCORES = ("accuracy", "balanced_accuracy", "auc", "information")


def coded(
    schema: TabularSchema, rows: Rows, *, labels: int
) -> tuple[pandas.DataFrame, dict[str, int]]:
    """Codes from 0 of each attribute and of the label, and how many values each may have.

    Args:
        schema: public.
        rows: of a table, and their labels, from 0 to ``labels`` - 1.
        labels: how many there are.
    """
    encoded = schema.encode(rows[0])
    columns: dict[str, npt.NDArray[np.int64]] = {}
    sizes: dict[str, int] = {}
    for place, (_, part, one_hot) in enumerate(schema.groups):
        name, values = f"a{place}", encoded[:, part]
        if one_hot:
            columns[name], sizes[name] = values.argmax(axis=1), part.stop - part.start
        else:
            parts = np.minimum((values[:, 0] * PARTS).astype(np.int64), PARTS - 1)
            missing = values[:, 1] > 0 if values.shape[1] > 1 else np.zeros(len(values), np.bool_)
            columns[name] = np.where(missing, PARTS, parts)
            sizes[name] = PARTS + (values.shape[1] > 1)
    columns[LABEL], sizes[LABEL] = rows[1], labels
    return pandas.DataFrame(columns), sizes


def synthetic(
    part: Split, epsilon: float, *, python: Path
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Synthetic rows in place of the private ones, and the held-out rows, both in codes."""
    labels = int(part.public[1].max()) + 1
    private, sizes = coded(part.schema, part.private, labels=labels)
    tested, _ = coded(part.schema, part.test, labels=labels)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        private.to_csv(folder / "coded.csv", index=False)
        (folder / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
        command = [folder / "coded.csv", folder / "sizes.json", folder / "made.csv"]
        subprocess.run(
            [python, SCRIPT, *command, str(epsilon), str(DELTA), str(part.seed)], check=True
        )
        made = pandas.read_csv(folder / "made.csv")
    return made[private.columns], tested


def scored(part: Split, made: pandas.DataFrame, tested: pandas.DataFrame) -> Results:
    """The four scores of a booster that learnt from ``made``."""
    values = [table.drop(columns=LABEL).to_numpy(dtype=np.float64) for table in (made, tested)]
    rows = replace(part, private=(values[0], made[LABEL].to_numpy()))
    return learnt(Released(values[0], values[1], chosen="MST"), rows)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--python", type=Path, required=True, help="an interpreter that has dpmm")
    parser.add_argument("--data", choices=DATA, nargs="+", default=["adult"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-synthetic")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    if not chosen.python.is_file():
        parser.error(f"--python: expected an interpreter that has dpmm, got {chosen.python}")
    lines = [
        f"| table | epsilon (delta {DELTA:g}) | method | accuracy | balanced | AUC | nats |",
        "|---|---|---|---|---|---|---|",
    ]
    for data in chosen.data:
        for epsilon in chosen.epsilons:
            runs = []
            for seed in range(chosen.seeds):
                path = chosen.folder / f"{data}-{epsilon:g}-{seed}.json"
                if not path.is_file():
                    part = split(data, seed=seed, tuning=False)
                    made, tested = synthetic(part, epsilon, python=chosen.python)
                    write_result(path, json.dumps(scored(part, made, tested)))
                runs.append(json.loads(path.read_text(encoding="utf-8")))
            means, errors = combined(runs)
            numbers = [f"{means[score]:.4f} ± {errors[score]:.4f}" for score in _SCORES]
            lines.append(f"| {data} | {epsilon:g} | MST | {' | '.join(numbers)} |")
    text = "\n".join(lines)
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
