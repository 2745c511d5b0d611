"""Score bins beside their rungs, any two records: ``python -m papers.power.codes``.

Each method is fitted on public rows, releases private and held-out rows with a seed, and a server
that knows the channel learns from the private ones. All four scores are of the held-out rows. With
``--tuning`` a fifth of the training rows is held out, and the test rows are not read.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

from papers.power.parts import Parts
from papers.power.settings import settings_of
from papers.seeds import combined
from reticent.noise import SeededSampler
from reticent.systems.power.channels import randomised_response
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.query import PowerQuery
from reticent.systems.power.scoring import prediction_scores
from reticent.systems.power.servers import train_server
from reticent.tables.schema import TabularSchema

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

EPSILONS = (1.0, 2.0, 5.0)
DATA = ("adult", "breast-cancer", "digits")


@dataclass(frozen=True, eq=False)
class Split:
    """One table, cut in three.

    Attributes:
        schema: public.
        public, private, test: rows and labels of each part.
        seed: of the cut, of fits and of the noise.
    """

    schema: TabularSchema
    public: tuple[npt.NDArray[Any], npt.NDArray[np.int64]]
    private: tuple[npt.NDArray[Any], npt.NDArray[np.int64]]
    test: tuple[npt.NDArray[Any], npt.NDArray[np.int64]]
    seed: int


def split(data: str, *, seed: int, tuning: bool) -> Split:
    """The table called ``data``; scikit-learn's are cut 2 : 2 : 1 at random."""
    if data == "adult":
        parts = Parts.of(settings_of("adult"), seed=seed, tuning=tuning)
        count = parts.settings.private_rows
        return Split(
            parts.schema,
            (parts.public_rows, parts.public_labels),
            (parts.private_rows[:count], parts.private_labels[:count]),
            (parts.test_rows, parts.test_labels),
            seed,
        )
    rows, labels = {"breast-cancer": load_breast_cancer, "digits": load_digits}[data](
        return_X_y=True
    )
    order = np.random.default_rng(seed).permutation(len(rows))
    if tuning:
        order = order[: 4 * len(order) // 5]
    ends = (2 * len(order) // 5, 4 * len(order) // 5)
    public, private, test = np.split(order, ends)
    # Ranges of the whole table stand in for those that are known of the measuring device.
    lower, upper = float(rows.min()), float(rows.max())
    schema = TabularSchema.numbers(rows.shape[1], lower, upper)
    if data == "breast-cancer":
        schema = TabularSchema.from_frame(_named(rows), missing=False)
    return Split(
        schema,
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        (rows[test], labels[test]),
        seed,
    )


def _named(rows: Array) -> Any:
    from reticent.tables.frames import NamedRows

    return NamedRows(rows, tuple(f"x{index}" for index in range(rows.shape[1])))


def ours(part: Split, epsilon: float, *, mechanism: str, scoring: str = "information") -> Results:
    """``PowerEncoder`` with one mechanism, and the server that its channel allows."""
    begin = time.process_time()
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=None,
        schema=part.schema,
        mechanism=mechanism,
        scoring=scoring,
        epochs=12,
        random_state=part.seed,
    ).fit(*part.public)
    seconds = time.process_time() - begin
    released = encoder.simulate(part.private[0], seed=2 * part.seed).values
    tested = encoder.simulate(part.test[0], seed=2 * part.seed + 1).values
    query = encoder.query_
    channel = (
        randomised_response(len(query.plan.codes), epsilon=epsilon)
        if isinstance(query, PowerQuery)
        else encoder.channel_
    )
    plan = encoder.considered_[0]
    return {
        **scored(released, tested, part, channel),
        "seconds": seconds,
        "chosen": f"{plan.mechanism} {plan.model} {plan.response}".strip(),
    }


def rung(part: Split, epsilon: float) -> Results:
    """A booster tuned by cross-validation; randomised response on its answer, with the threshold at
    the share of the second label (two labels), or on the likeliest label.
    """
    begin = time.process_time()
    rows, labels = part.schema.encode(part.public[0]), part.public[1]
    grid = {"learning_rate": (0.05, 0.1), "max_leaf_nodes": (4, 8, 31)}
    booster = GridSearchCV(
        HistGradientBoostingClassifier(random_state=part.seed), grid, scoring="neg_log_loss", cv=4
    ).fit(rows, labels)
    share = np.bincount(labels) / len(labels)

    def answers(table: npt.NDArray[Any], seed: int) -> Array:
        found = booster.predict_proba(part.schema.encode(table))
        codes = (found / share if len(share) == 2 else found).argmax(axis=1)
        channel = randomised_response(len(share), epsilon=epsilon)
        drawn = SeededSampler(seed).categorical(channel[codes])
        return np.asarray(np.eye(len(share))[drawn])

    seconds = time.process_time() - begin
    released = answers(part.private[0], 2 * part.seed)
    tested = answers(part.test[0], 2 * part.seed + 1)
    channel = randomised_response(len(share), epsilon=epsilon)
    return {**scored(released, tested, part, channel), "seconds": seconds, "chosen": "booster"}


def scored(released: Array, tested: Array, part: Split, channel: Array) -> Results:
    """The four scores of a server on held-out rows."""
    server = train_server("channel", released, part.private[1], seed=part.seed, channel=channel)
    right = part.test[1][:, None] == server.classes
    return asdict(
        prediction_scores(
            server.predict_proba(tested), right.astype(np.float64), shares=server.shares
        )
    )


METHODS: dict[str, Callable[[Split, float], Results]] = {
    "score bins, by information": lambda part, epsilon: ours(part, epsilon, mechanism="score-code"),
    "score bins, by accuracy": lambda part, epsilon: ours(
        part, epsilon, mechanism="score-code", scoring="accuracy"
    ),
    "score bins, by AUC": lambda part, epsilon: ours(
        part, epsilon, mechanism="score-code", scoring="auc"
    ),
    "network's class + randomised response": lambda part, epsilon: ours(
        part, epsilon, mechanism="code"
    ),
    "booster + randomised response at prevalence": rung,
}


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and print a table for each data set, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=DATA, nargs="+", default=list(DATA))
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=3, help="how many runs are averaged")
    parser.add_argument("--methods", choices=tuple(METHODS), nargs="+", default=list(METHODS))
    parser.add_argument("--tuning", action="store_true", help="leave the test rows alone")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    print("| table | epsilon | method | accuracy | balanced | AUC | nats | fit, s | chosen |")
    print("|---|---|---|---|---|---|---|---|---|")
    for data in chosen.data:
        splits = [split(data, seed=seed, tuning=chosen.tuning) for seed in range(chosen.seeds)]
        for epsilon in chosen.epsilons:
            for name in chosen.methods:
                means, errors = combined([METHODS[name](part, epsilon) for part in splits])
                cells = " | ".join(
                    f"{means[score]:.4f} ± {errors[score]:.4f}"
                    for score in ("accuracy", "balanced_accuracy", "auc", "information")
                )
                print(
                    f"| {data} | {epsilon:g} | {name} | {cells} | {means['seconds']:.1f} "
                    f"| {means['chosen']} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
