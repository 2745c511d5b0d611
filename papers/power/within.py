"""Releases within an l2 radius beside their rungs: ``python -m papers.power.within``.

Neighbours are rows at most the radius apart in the encoded space, so they share every category, and
sending those along costs nothing: with our releases, with K-norm noise on the rest (a rung, which
draws the noise that "clear-noise" draws from the same seed), with one bit by randomised response
(another), or alone. Of each release a booster, its shape chosen on a fifth of the released private
rows, learns from all of them and is scored on released held-out ones; one draw of the noise. A
second table has by how much "auto" is above each rung, paired by
cut. With ``--tuning`` the test rows are not read. Every cut and budget is kept in the folder, so an
interrupted run continues.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from papers.power.code_splits import DATA, Split, split
from papers.result_files import cached_result, write_result
from papers.seeds import combined
from reticent.core.arrays import Integers
from reticent.core.norms import Norm
from reticent.demos.power import raw_columns
from reticent.mechanisms import KNormMechanism, StabilityResponse
from reticent.noise import SeededSampler
from reticent.systems import VectorTraining
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.protection import UNIT, Protection
from reticent.systems.power.query import MECHANISMS as OWN
from reticent.systems.power.query import neighbours_within
from reticent.systems.scores import prediction_scores
from reticent.training.noise import training_noise

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

RADIUS = 0.1
EPSILONS = (1.0, 2.0, 5.0)
MECHANISMS = ("auto", *OWN)
_SCORES = ("accuracy", "balanced_accuracy", "auc", "information")
_EPOCHS = 12
_DELTA = 1e-6  # of Gaussian noise
_LEAST = 1e-12
SHAPES: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.1, "max_leaf_nodes": 4, "max_iter": 100},
    {"learning_rate": 0.1, "max_leaf_nodes": 8, "max_iter": 80},
    {"learning_rate": 0.1, "max_leaf_nodes": 31, "max_iter": 60},
)
"""Of servers, small trees for noisy columns and large ones for clear ones."""
GIVEN: dict[str, Any] = {"learning_rate": 0.1, "max_leaf_nodes": 8, "max_iter": 30}
FOREST: dict[str, Any] = {"n_estimators": 200, "max_features": 0.37}
"""Of ``sided``'s public models, tried on a part of Forest Cover's training rows alone."""


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


def raw_vector(rows: Array, *, epsilon: float, radius: float, seed: int) -> Array:
    """Encoded rows plus one vector of K-norm noise in l2 that covers ``radius``; shape kept.

    Plain float noise, because the exact distribution ends at 64 coordinates: for experiments only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        noise = training_noise(len(rows), rows.shape[1], output_norm=Norm.L2).double().numpy()
    return np.asarray(rows + radius / epsilon * noise)


def ours(part: Split, epsilon: float, *, mechanism: str) -> Released:
    """``PowerEncoder`` within ``RADIUS``."""
    begin = time.process_time()
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=_DELTA if mechanism == "gaussian" else 0.0,
        radius=RADIUS,
        schema=part.schema,
        mechanism=mechanism,
        random_state=part.seed,
        training=VectorTraining(epochs=_EPOCHS),
    ).fit(*part.public)
    seconds = time.process_time() - begin
    values = [
        np.column_stack(
            [free_columns(part, rows), encoder.simulate(rows, seed=2 * part.seed + side).values]
        )
        for side, (rows, _) in enumerate((part.private, part.test))
    ]
    return Released(values[0], values[1], seconds, encoder.mechanism_)


def free_columns(part: Split, rows: Any) -> Array:
    """A one, and the encoded coordinates in which neighbours agree, shape (n, 1 + free)."""
    return Protection(part.schema, RADIUS).given(part.schema.encode(rows))


def sided(part: Split, epsilon: float) -> Released:
    """Of the two labels that are likeliest given what is free, the one that a public forest finds
    likelier given all, by randomised response; not one of ``PowerEncoder``'s mechanisms.
    """
    begin = time.process_time()
    rows, labels = part.schema.encode(part.public[0]), part.public[1]
    given = booster(GIVEN, part.seed).fit(free_columns(part, part.public[0]), labels)
    forest = ExtraTreesClassifier(**FOREST, random_state=part.seed).fit(rows, labels)
    seconds = time.process_time() - begin
    response = StabilityResponse(
        classes=2, epsilon=epsilon, adjacency=neighbours_within(RADIUS, part.schema)
    )
    values = []
    for side, (table, _) in enumerate((part.private, part.test)):
        free, places = free_columns(part, table), np.arange(len(table))
        chances = given.predict_proba(free)
        pair = np.argsort(-chances, axis=1, kind="stable")[:, :2]
        whole = forest.predict_proba(part.schema.encode(table))[places[:, None], pair]
        told = response.release(
            whole.argmax(axis=1),
            np.zeros(len(table), dtype=np.int64),
            sampler=SeededSampler(2 * part.seed + side),
        )
        named = np.eye(len(given.classes_))[pair[places, told]]
        values.append(np.column_stack([free, np.log(np.maximum(chances, _LEAST)), named]))
    return Released(values[0], values[1], seconds)


def rung(part: Split, epsilon: float, *, name: str) -> Released:
    """A baseline that needs no fit."""
    ways: dict[str, Callable[[Array, int], Array]] = {
        "clear + noise": lambda rows, seed: noisy_columns(part, rows, epsilon=epsilon, seed=seed),
        "raw columns": lambda rows, seed: raw_columns(
            part.schema, rows, epsilon=epsilon, seed=seed
        ),
        "raw columns, one noise vector": lambda rows, seed: raw_vector(
            rows, epsilon=epsilon, radius=RADIUS, seed=seed
        ),
    }
    if name == "clear alone":
        return Released(free_columns(part, part.private[0]), free_columns(part, part.test[0]))
    values = [
        ways[name](part.schema.encode(rows), 2 * part.seed + side)
        for side, (rows, _) in enumerate((part.private, part.test))
    ]
    return Released(values[0], values[1])


def noisy_columns(part: Split, rows: Array, *, epsilon: float, seed: int) -> Array:
    """What is free in clear, and K-norm noise on the rest, in radii, shape (n, 1 + dimension).

    Args:
        part: whose schema it is.
        rows: shape (n, dimension), encoded.
        epsilon: budget of a record.
        seed: of the noise, the same noise as ``PowerEncoder.simulate`` adds to all numbers.
    """
    protection = Protection(part.schema, RADIUS)
    mechanism = KNormMechanism(
        sensitivity=protection.largest_step / UNIT,
        epsilon=epsilon,
        dimension=len(protection.protected),
        adjacency=neighbours_within(RADIUS, part.schema),
        output_norm=protection.norm,
    )
    noisy = mechanism.release(protection.steps(rows) / UNIT, sampler=SeededSampler(seed))
    return np.column_stack([protection.given(rows), noisy])


RUNGS = ("clear alone", "clear + noise", "raw columns", "raw columns, one noise vector")
SIDED = "likelier of two labels"
METHODS: dict[str, Callable[[Split, float], Released]] = {
    SIDED: sided,
    **{name: partial(ours, mechanism=name) for name in MECHANISMS},
    **{name: partial(rung, name=name) for name in RUNGS},
}


def learnt(found: Released, part: Split) -> Results:
    """The four scores of a booster that learnt from ``found``, and what it took."""
    begin = time.process_time()
    labels = part.private[1]
    order = np.random.default_rng(part.seed).permutation(len(labels))
    held, rest = np.split(order, [len(order) // 5])
    model = min(
        (booster(shape, part.seed).fit(found.private[rest], labels[rest]) for shape in SHAPES),
        key=lambda model: _loss(model, found.private[held], labels[held]),
    )
    model = clone(model).fit(found.private, labels)
    seconds = time.process_time() - begin
    right = (part.test[1][:, None] == model.classes_).astype(np.float64)
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    scores = prediction_scores(model.predict_proba(found.tested), right, shares=shares)
    return {
        **asdict(scores),
        "seconds": found.seconds,
        "server": seconds,
        "chosen": found.chosen,
    }


def booster(shape: dict[str, Any], seed: int) -> HistGradientBoostingClassifier:
    """A booster of one of ``SHAPES``."""
    return HistGradientBoostingClassifier(
        **shape, l2_regularization=1.0, early_stopping=False, random_state=seed
    )


def _loss(model: HistGradientBoostingClassifier, rows: Array, labels: Integers) -> float:
    """Mean negative log probability of the right label; of one that was not seen, the least."""
    chances = np.column_stack([model.predict_proba(rows), np.zeros(len(rows))])
    places = np.searchsorted(model.classes_, labels).clip(max=len(model.classes_) - 1)
    seen = model.classes_[places] == labels
    right = chances[np.arange(len(rows)), np.where(seen, places, len(model.classes_))]
    return -float(np.log(np.maximum(right, _LEAST)).mean())


def cell(
    data: str, epsilon: float, method: str, *, seed: int, tuning: bool, folder: Path
) -> Results:
    """Scores of one method on one cut; read from ``folder`` where they stand."""
    name = f"{data}-{epsilon:g}-{method.replace(' ', '-')}-{seed}{'-tuning' if tuning else ''}"

    def compute() -> Results:
        part = split(data, seed=seed, tuning=tuning)
        print(name, flush=True)
        return learnt(METHODS[method](part, epsilon), part)

    return cached_result(folder / f"{name}.json", compute)


_COMPARED = (
    "| table, within {radius:g} | epsilon | auto above | accuracy | balanced | AUC | nats |\n"
    "|---|---|---|---|---|---|---|"
)


def compared(data: str, epsilon: float, cells: dict[str, list[Results]]) -> list[str]:
    """Rows of markdown: by how much "auto" is above each rung, mean and standard error of the
    differences by cut.

    Args:
        data, epsilon: as in the table.
        cells: results of each method, one for each cut.
    """
    if "auto" not in cells:
        return []
    lines = []
    for name in (name for name in (*RUNGS, SIDED) if name in cells):
        pairs = zip(cells["auto"], cells[name], strict=True)
        runs = [{score: ours[score] - other[score] for score in _SCORES} for ours, other in pairs]
        means, errors = combined(runs)
        numbers = [f"{means[score]:+.4f} ± {errors[score]:.4f}" for score in _SCORES]
        lines.append(f"| {data} | {epsilon:g} | {name} | {' | '.join(numbers)} |")
    return lines


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
            "| fit, s | server, s | chosen |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    verdicts = ["", _COMPARED.format(radius=RADIUS)]
    for data in chosen.data:
        for epsilon in chosen.epsilons:
            found: dict[str, list[Results]] = {}
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
                found[method] = runs
                means, errors = combined(runs)
                numbers = [f"{means[score]:.4f} ± {errors[score]:.4f}" for score in _SCORES]
                last = [f"{means['seconds']:.1f}", f"{means['server']:.1f}", means["chosen"]]
                lines.append(
                    f"| {data} | {epsilon:g} | {method} | {' | '.join([*numbers, *last])} |"
                )
            verdicts += compared(data, epsilon, found)
    text = "\n".join([*lines, *verdicts])
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
