"""Releases of a row under which any two records are neighbours: score bins and their rungs, each
scored by a server that knows its channel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

from papers.power.code_splits import Split
from papers.seeds import combined
from reticent.demos.power import raw_columns
from reticent.networks import Network
from reticent.noise import SeededSampler
from reticent.systems.power.channels import randomised_response
from reticent.systems.power.fitting import code_networks, code_query
from reticent.systems.power.mechanism_choice import FitSettings, PublicRows
from reticent.systems.power.query import PowerSetting, rank
from reticent.systems.power.score_choice import FittedScores
from reticent.systems.power.score_fitting import best_score_code, public_models
from reticent.systems.power.servers import train_server
from reticent.systems.scores import prediction_scores
from reticent.training.progress import silent

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

DRAWS = 10
"""Of the private rows' noise, for each cut."""

HELD = 0.2
"""Share of the public rows that networks' codes are compared on, as ``PowerEncoder`` has it."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What does not depend on epsilon, learnt once from the public rows of a cut.

    Attributes:
        part: the cut.
    """

    part: Split

    @property
    def classes(self) -> int:
        """Labels of the public rows, 0 to this less one."""
        return int(self.part.public[1].max()) + 1

    @cached_property
    def models(self) -> tuple[list[FittedScores], float]:
        """Our public models, and the process seconds that they took."""
        begin = time.process_time()
        rows, labels = self.part.schema.encode(self.part.public[0]), self.part.public[1]
        found = list(public_models(rows, labels, seed=self.part.seed, report=silent))
        return found, time.process_time() - begin

    @cached_property
    def scores(self) -> dict[str, tuple[Array, Array]]:
        """Scores of private and held-out rows by each kind of model."""
        tables = [self.part.schema.code(rows) for rows, _ in (self.part.private, self.part.test)]
        first, second = tables
        return {
            fitted.model.kind: (fitted.model.scores(first), fitted.model.scores(second))
            for fitted in self.models[0]
        }

    @cached_property
    def networks(self) -> tuple[list[Network], PublicRows, float]:
        """Classifiers behind codes, the rows that they learnt from and are compared on, and the
        process seconds that they took.
        """
        begin = time.process_time()
        (table, labels), seed = self.part.public, self.part.seed
        order = np.random.default_rng(seed).permutation(len(labels))
        encoded, labels = self.part.schema.encode(table[order]), labels[order]
        held = round(HELD * len(labels))
        rows = PublicRows(encoded[held:], encoded[:held], labels[held:], labels[:held])
        settings = FitSettings(outputs=(1,), hidden=(64,), epochs=12, head_epochs=1, seed=seed)
        with torch.random.fork_rng(devices=[]):
            networks = code_networks(self.part.schema, rows, settings=settings, report=silent)
            return list(networks), rows, time.process_time() - begin

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


def score_bins(fit: Fitted, epsilon: float, *, scoring: str) -> tuple[Results, PowerSetting]:
    """What ``PowerEncoder(mechanism="score-code")`` releases, and its plan."""
    part = fit.part
    required = PowerSetting(
        mechanism="k-norm-l2", epsilon=epsilon, delta=0.0, radius=None, scoring=scoring
    )
    models, seconds = fit.models
    begin = time.process_time()
    query, plans = best_score_code(part.schema, required, models, part.public[1])
    seconds += time.process_time() - begin
    channel = query.mechanism.matrix
    private, tested = (channel[query.bins.of(scores)] for scores in fit.scores[query.model.kind])
    return {**scored(private, tested, part, channel), "seconds": seconds}, plans[0]


def network_code(fit: Fitted, epsilon: float) -> tuple[Results, PowerSetting]:
    """What ``PowerEncoder(mechanism="code")`` releases, and its plan."""
    part = fit.part
    networks, rows, seconds = fit.networks
    begin = time.process_time()
    required = PowerSetting(mechanism="code", codes=(0, 1), epsilon=epsilon, delta=0.0, radius=None)
    queries = [code_query(part.schema, required, network, rows) for network in networks]
    query = min(queries, key=lambda query: rank(query.plan))
    seconds += time.process_time() - begin
    channel = randomised_response(len(query.plan.codes), epsilon=epsilon)
    # Its codes are exact before the response.
    private, tested = (
        query.exact(query.encode(table)) @ channel for table, _ in (part.private, part.test)
    )
    return {**scored(private, tested, part, channel), "seconds": seconds}, query.plan


def response(fit: Fitted, epsilon: float, *, prevalence: bool) -> Results:
    """Randomised response on the tuned booster's likeliest label, or, of two labels, on the one
    whose probability exceeds its share.
    """
    found, seconds = fit.booster
    share = np.bincount(fit.part.public[1]) / len(fit.part.public[1])
    channel = randomised_response(len(share), epsilon=epsilon)
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


AUTO = '"auto", by information'
RUNG = "booster + randomised response at prevalence"
_SCORINGS = {
    "information": "information",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
}

RUNGS: dict[str, Callable[[Fitted, float], Results]] = {
    RUNG: lambda fit, epsilon: response(fit, epsilon, prevalence=True),
    "booster + randomised response": lambda fit, epsilon: response(fit, epsilon, prevalence=False),
    "raw columns": raw,
}


def all_methods(fit: Fitted, epsilon: float) -> dict[str, Results]:
    """Scores of every method on one cut; "auto" is the better of the two codes by the public
    rows, as ``PowerEncoder`` takes it.
    """
    results: dict[str, Results] = {}
    codes = []
    for scoring, name in _SCORINGS.items():
        found, plan = score_bins(fit, epsilon, scoring=scoring)
        found["chosen"] = f"{plan.model}, {plan.response}"
        results[f"score bins, by {name}"] = found
        if scoring == "information":
            codes.append((rank(plan), {**found, "chosen": f"score-code {plan.model}"}))
    found, plan = network_code(fit, epsilon)
    found["chosen"] = f"{len(plan.codes)} classes"
    results["network's class + randomised response"] = found
    codes.append((rank(plan), {**found, "chosen": "code"}))
    best = min(codes, key=lambda pair: pair[0])[1]
    auto = {**best, "seconds": sum(code["seconds"] for _, code in codes)}
    rungs = {name: {**method(fit, epsilon), "chosen": ""} for name, method in RUNGS.items()}
    return {AUTO: auto, **results, **rungs}
