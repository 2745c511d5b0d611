"""Releases of a row under which any two records are neighbours: codes and their rungs, each scored
by a server that knows its channel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

from papers.power.code_splits import Split
from papers.seeds import combined
from reticent.demos.power import raw_columns
from reticent.noise import SeededSampler
from reticent.systems import CodeEncoder
from reticent.systems.power.code_fitting import NODES, CodeNodes, code_nodes
from reticent.systems.power.servers import train_server
from reticent.systems.scores import prediction_scores
from reticent.training.staircases import response_on

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

DRAWS = 10
"""Of the private rows' noise, for each cut."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What does not depend on epsilon, learnt once from the public rows of a cut.

    Attributes:
        part: the cut.
    """

    part: Split

    @cached_property
    def nodes(self) -> tuple[CodeNodes, float]:
        """Nodes that serve every epsilon and scoring, and the process seconds that they took."""
        begin = time.process_time()
        encoder = CodeEncoder(epsilon=1.0, schema=self.part.schema, random_state=self.part.seed)
        public, _ = encoder.public(*self.part.public)
        return code_nodes(public, None, most=NODES), time.process_time() - begin

    @cached_property
    def booster(self) -> tuple[tuple[Array, Array], float]:
        """Probabilities of private and held-out rows by a booster tuned by cross-validation, and
        the process seconds that it took.
        """
        begin = time.process_time()
        rows, labels = self.part.schema.encode(self.part.public[0]), self.part.public[1]
        grid = {"learning_rate": (0.05, 0.1), "max_leaf_nodes": (4, 8, 31)}
        model = HistGradientBoostingClassifier(random_state=self.part.seed)
        search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=4).fit(rows, labels)
        seconds = time.process_time() - begin
        found = [
            search.predict_proba(self.part.schema.encode(table))
            for table, _ in (self.part.private, self.part.test)
        ]
        return (found[0], found[1]), seconds


def code(fit: Fitted, epsilon: float, *, scoring: str) -> Results:
    """What ``CodeEncoder`` releases for the one label."""
    nodes, seconds = fit.nodes
    begin = time.process_time()
    public = replace(nodes.public, scoring=scoring)
    vars(public)["known"] = nodes.public.known  # the models are those of every scoring
    query = replace(nodes, public=public).best(epsilon)
    seconds += time.process_time() - begin
    private, tested = (
        query.exact(fit.part.schema.code(rows)) for rows in (fit.part.private[0], fit.part.test[0])
    )
    found = scored(private, tested, fit.part, query.mechanism.matrix)
    return {**found, "seconds": seconds, "chosen": f"{query.outputs} codes"}


def response(fit: Fitted, epsilon: float, *, prevalence: bool) -> Results:
    """Randomised response on the tuned booster's likeliest label, or, of two labels, on the one
    whose probability exceeds its share.
    """
    found, seconds = fit.booster
    share = np.bincount(fit.part.public[1]) / len(fit.part.public[1])
    channel = response_on(np.arange(len(share)), epsilon=epsilon)
    balanced = prevalence and len(share) == 2
    private, tested = (
        channel[(chances / share if balanced else chances).argmax(axis=1)] for chances in found
    )
    return {**scored(private, tested, fit.part, channel), "seconds": seconds}


def raw(fit: Fitted, epsilon: float) -> Results:
    """Every column by itself with an equal share of epsilon; the server is a booster. One draw."""
    part, schema, seed = fit.part, fit.part.schema, 2 * fit.part.seed
    released, tested = (
        raw_columns(schema, schema.encode(rows), epsilon=epsilon, seed=seed + side)
        for side, (rows, _) in enumerate((part.private, part.test))
    )
    server = train_server("boosted", released, part.private[1], seed=part.seed)
    right = (part.test[1][:, None] == server.classes).astype(np.float64)
    found = prediction_scores(server.predict_proba(tested), right, shares=server.shares)
    return {**asdict(found), "seconds": 0.0}


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


AUTO = "code, by information"
RUNG = "booster + randomised response at prevalence"
_SCORINGS = {
    "information": AUTO,
    "accuracy": "code, by accuracy",
    "balanced_accuracy": "code, by balanced accuracy",
    "auc": "code, by AUC",
}

RUNGS: dict[str, Callable[[Fitted, float], Results]] = {
    RUNG: lambda fit, epsilon: response(fit, epsilon, prevalence=True),
    "booster + randomised response": lambda fit, epsilon: response(fit, epsilon, prevalence=False),
    "raw columns": raw,
}


def all_methods(fit: Fitted, epsilon: float) -> dict[str, Results]:
    """Scores of every method on one cut."""
    results = {name: code(fit, epsilon, scoring=scoring) for scoring, name in _SCORINGS.items()}
    rungs = {name: {**method(fit, epsilon), "chosen": ""} for name, method in RUNGS.items()}
    return {**results, **rungs}
