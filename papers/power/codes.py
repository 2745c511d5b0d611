"""Score bins beside their rungs, any two records: ``python -m papers.power.codes``.

Each method is fitted on public rows; a server that knows the channel learns from released private
rows, and is scored on released held-out ones. Noise of the latter is summed over exactly, and that of
the former averaged over several draws: with a hundred held-out rows one draw of both moves the
accuracy by 4 %, more than the methods differ. Differences from the booster's nats are paired by cut.
With ``--tuning`` a fifth of the training rows is held out, and the test rows are not read.
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
from reticent.demos.power.demo import demo_table
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
DRAWS = 10
"""Of the private rows' noise, for each cut."""


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
    schema = (
        demo_table("breast-cancer")[1]
        if data == "breast-cancer"
        else TabularSchema.numbers(rows.shape[1], 0, 16)
    )
    return Split(
        schema,
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        (rows[test], labels[test]),
        seed,
    )


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
    private, tested = encoder.exact(part.private[0]), encoder.exact(part.test[0])
    query = encoder.query_
    if isinstance(query, PowerQuery):  # whose codes are exact before the response
        channel = randomised_response(len(query.plan.codes), epsilon=epsilon)
        private, tested = private @ channel, tested @ channel
    else:
        channel = encoder.channel_
    plan = encoder.considered_[0]
    return {
        **scored(private, tested, part, channel),
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

    channel = randomised_response(len(share), epsilon=epsilon)

    def chances(table: npt.NDArray[Any]) -> Array:
        found = booster.predict_proba(part.schema.encode(table))
        codes = (found / share if len(share) == 2 else found).argmax(axis=1)
        return np.asarray(channel[codes])

    seconds = time.process_time() - begin
    return {
        **scored(chances(part.private[0]), chances(part.test[0]), part, channel),
        "seconds": seconds,
        "chosen": "booster",
    }


def scored(private: Array, tested: Array, part: Split, channel: Array) -> Results:
    """The four scores of a server on held-out rows, averaged over draws of what it learns from.

    Args:
        private: shape (n, outputs), probability of each output about each private row.
        tested: the same of the held-out rows.
        part: their labels.
        channel: shape (bins, outputs), known to the server.
    """
    outputs = np.eye(channel.shape[1])
    runs = []
    for draw in range(DRAWS):
        drawn = SeededSampler(DRAWS * part.seed + draw).categorical(private)
        server = train_server(
            "channel", outputs[drawn], part.private[1], seed=part.seed, channel=channel
        )
        right = (part.test[1][:, None] == server.classes).astype(np.float64)
        runs.append(
            asdict(
                prediction_scores(
                    server.predict_proba(outputs), tested.T @ right, shares=server.shares
                )
            )
        )
    return combined(runs)[0]


RUNG = "booster + randomised response at prevalence"
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
    RUNG: rung,
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
    print(
        "| table | epsilon | method | accuracy | balanced | AUC | nats | nats above the booster "
        "| fit, s | chosen |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for data in chosen.data:
        splits = [split(data, seed=seed, tuning=chosen.tuning) for seed in range(chosen.seeds)]
        for epsilon in chosen.epsilons:
            simple = [rung(part, epsilon) for part in splits]
            for name in chosen.methods:
                runs = simple if name == RUNG else [METHODS[name](part, epsilon) for part in splits]
                print(f"| {data} | {epsilon:g} | {name} | {_cells(runs, simple)} |", flush=True)


def _cells(runs: list[Results], simple: list[Results]) -> str:
    """Means and standard errors over cuts; those of differences are of pairs."""
    gains = [
        {**run, "gain": run["information"] - other["information"]}
        for run, other in zip(runs, simple, strict=True)
    ]
    means, errors = combined(gains)
    numbers = [
        f"{means[score]:.4f} ± {errors[score]:.4f}"
        for score in ("accuracy", "balanced_accuracy", "auc", "information", "gain")
    ]
    return " | ".join([*numbers, f"{means['seconds']:.1f}", means["chosen"]])


if __name__ == "__main__":
    main()
