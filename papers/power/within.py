"""Releases within an l2 radius beside their rungs: ``python -m papers.power.within``.

Neighbours are rows at most the radius apart in the encoded space, so they share every category. A
rung may use that too: what the radius leaves unprotected in clear, and K-norm noise on the rest. Of
each release a booster learns from released private rows and is scored on released held-out ones;
one draw of the noise. With ``--tuning`` the test rows are not read. Every cut and budget is kept in
the folder, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.power.code_splits import DATA, Split, split
from papers.result_files import write_result
from papers.seeds import combined
from reticent.demos.power.baselines import clear_columns, raw_columns, raw_vector
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.query import PROTECTED
from reticent.systems.power.scoring import prediction_scores
from reticent.systems.power.servers import train_server

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

RADIUS = 0.1
EPSILONS = (1.0, 2.0, 5.0)
MECHANISMS = ("auto", *PROTECTED)
_SCORES = ("accuracy", "balanced_accuracy", "auc", "information")
_EPOCHS = 12


@dataclass(frozen=True, eq=False)
class Released:
    """Private and held-out rows as a server sees them.

    Attributes:
        private, tested: shapes (n, m) and (k, m).
        seconds: process time of the fit.
        chosen: what was chosen on public rows.
    """

    private: Array
    tested: Array
    seconds: float = 0.0
    chosen: str = ""


def ours(part: Split, epsilon: float, *, mechanism: str) -> Released:
    """``PowerEncoder`` within ``RADIUS``."""
    begin = time.process_time()
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=RADIUS,
        schema=part.schema,
        mechanism=mechanism,
        epochs=_EPOCHS,
        random_state=part.seed,
    ).fit(*part.public)
    seconds = time.process_time() - begin
    values = [
        np.asarray(encoder.simulate(rows, seed=2 * part.seed + side).values)
        for side, (rows, _) in enumerate((part.private, part.test))
    ]
    return Released(values[0], values[1], seconds, encoder.considered_[0].mechanism)


def rung(part: Split, epsilon: float, *, name: str) -> Released:
    """A baseline that needs no fit."""
    ways: dict[str, Callable[[Array, int], Array]] = {
        "clear + noise": lambda rows, seed: clear_columns(
            part.schema, rows, epsilon=epsilon, radius=RADIUS, seed=seed
        ),
        "raw columns": lambda rows, seed: raw_columns(
            part.schema, rows, epsilon=epsilon, seed=seed
        ),
        "raw columns, one noise vector": lambda rows, seed: raw_vector(
            rows, epsilon=epsilon, radius=RADIUS, seed=seed
        ),
    }
    values = [
        ways[name](part.schema.encode(rows), 2 * part.seed + side)
        for side, (rows, _) in enumerate((part.private, part.test))
    ]
    return Released(values[0], values[1])


RUNGS = ("clear + noise", "raw columns", "raw columns, one noise vector")
METHODS: dict[str, Callable[[Split, float], Released]] = {
    **{name: partial(ours, mechanism=name) for name in MECHANISMS},
    **{name: partial(rung, name=name) for name in RUNGS},
}


def learnt(found: Released, part: Split) -> Results:
    """The four scores of a booster that learnt from ``found``."""
    server = train_server("boosted", found.private, part.private[1], seed=part.seed)
    right = (part.test[1][:, None] == server.classes).astype(np.float64)
    scores = prediction_scores(server.predict_proba(found.tested), right, shares=server.shares)
    return {**asdict(scores), "seconds": found.seconds, "chosen": found.chosen}


def cell(
    data: str, epsilon: float, method: str, *, seed: int, tuning: bool, folder: Path
) -> Results:
    """Scores of one method on one cut; read from ``folder`` where they stand."""
    name = f"{data}-{epsilon:g}-{method.replace(' ', '-')}-{seed}{'-tuning' if tuning else ''}"
    path = folder / f"{name}.json"
    if not path.is_file():
        part = split(data, seed=seed, tuning=tuning)
        write_result(path, json.dumps(learnt(METHODS[method](part, epsilon), part)))
        print(name, flush=True)
    kept: Results = json.loads(path.read_text(encoding="utf-8"))
    return kept


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=DATA, nargs="+", default=["adult", "covertype"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--methods", choices=tuple(METHODS), nargs="+", default=list(METHODS))
    parser.add_argument("--tuning", action="store_true", help="leave the test rows alone")
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-within")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    lines = [
        (
            f"| table, within {RADIUS:g} | epsilon | method | accuracy | balanced | AUC | nats "
            "| fit, s | chosen |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for data in chosen.data:
        for epsilon in chosen.epsilons:
            for method in chosen.methods:
                runs = [
                    cell(
                        data,
                        epsilon,
                        method,
                        seed=seed,
                        tuning=chosen.tuning,
                        folder=chosen.folder,
                    )
                    for seed in range(chosen.seeds)
                ]
                means, errors = combined(runs)
                numbers = [f"{means[score]:.4f} ± {errors[score]:.4f}" for score in _SCORES]
                last = [f"{means['seconds']:.1f}", means["chosen"]]
                lines.append(
                    f"| {data} | {epsilon:g} | {method} | {' | '.join([*numbers, *last])} |"
                )
    text = "\n".join(lines)
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
