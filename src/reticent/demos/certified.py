"""The certified demonstration: labels of a model that was trained without noise, with certificates.

The released labels are real ones, with noise from the operating system. Our line is an exact
expectation over that noise. Rivals are scored with noise from seeds, because nobody releases them
here. They read the same features and keep their default settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive
from reticent.core.guarantees import AddRemove
from reticent.datasets import load_adult_sample
from reticent.demos.page import Demonstration, comparison, line, npy
from reticent.mechanisms import StabilityResponse
from reticent.pages.line_chart import Level
from reticent.pages.page import Chart, Fact, Section
from reticent.release.fits import not_counted
from reticent.systems import CertifiedClassifier, ClippedDescent
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.tables.known_schemas import adult_schema
from reticent.training.progress import Report, silent

DELTA = 1e-5
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_K_MAX = 300
_CLASSES = (0, 1)

OURS = "ours: certified labels"
VOTE = "linear vote"
DESCENT = "noisy gradient descent, any number of answers"
PUBLIC = "public rows alone"
CONSTANT = "constant"
BARE = "no protection"
_SEEDS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Census:
    """Private records, public queries, and labelled public rows, which alone say what is learned.

    Attributes:
        X, y: private records, shape (n, d), and their labels.
        queries, truth: held-out queries and their labels, which only score answers.
        public_rows, public_labels: public rows in the same features, and their labels.
    """

    X: Array
    y: Integers
    queries: Array
    truth: Integers
    public_rows: Array
    public_labels: Integers


def whitening(public: Array, components: int, *, floor: float) -> Callable[[Array], Array]:
    """Return the map to the leading principal components of public rows.

    Each component gets about unit variance.

    Args:
        public: public rows, shape (n, d).
        components: number of components, at most d.
        floor: share of the largest standard deviation that is added to each, so that no small one
            is blown up.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 1.0, 0.1] + 7.0
        >>> whitening(rows, 2, floor=0.0)(rows).std(axis=0).round(6).tolist()
        [1.0, 1.0]
    """
    center = public.mean(axis=0)
    _, spreads, axes = np.linalg.svd((public - center) / np.sqrt(len(public)), full_matrices=False)
    matrix = axes[:components].T / (spreads[:components] + floor * spreads[0])

    def map_rows(rows: Array) -> Array:
        # Not one matrix product: a record's features must not depend on the other records.
        return np.stack([((row - center)[:, None] * matrix).sum(axis=0) for row in rows])

    return map_rows


def _census() -> _Census:
    table, schema = load_adult_sample(), adult_schema()
    order = np.random.default_rng(0).permutation(len(table.train_rows))
    public, private = order[:25], order[25:]
    rows, queries = schema.encode(table.train_rows), schema.encode(table.test_rows)
    white = whitening(rows[public], 20, floor=0.02)
    return _Census(
        X=white(rows[private]),
        y=table.train_labels[private],
        queries=white(queries),
        truth=table.test_labels,
        public_rows=white(rows[public]),
        public_labels=table.train_labels[public],
    )


def run_demo(*, epsilon: float = 0.1, report: Report = silent) -> Demonstration:
    """Train on private records, certify, release labels of held-out queries, and compare methods.

    Args:
        epsilon: epsilon of one answer, above 0.
        report: receiver of the progress, called after each stage.
    """
    chosen, data = positive(epsilon, name="epsilon"), _census()
    report("certified demonstration", 1, 3, float("nan"))
    system = CertifiedClassifier(
        epsilon=chosen,
        k_max=_K_MAX,
        classes=_CLASSES,
        training=ClippedDescent(
            epochs=4, learning_rate=1.0, rate_decay=0.3, clip=0.2, random_state=0
        ),
    ).fit(data.X, data.y)
    labels, distances = system.stable_distances(data.queries)
    released = system.release(data.queries)
    report("certified demonstration", 2, 3, float("nan"))
    epsilons = sorted({*EPSILONS, chosen})
    right = labels == data.truth
    ours = {at: _expected(right, distances, epsilon=at) for at in epsilons}
    vote = _vote(data, epsilons)
    ways = {
        OURS: ours[chosen],
        VOTE: vote[chosen],
        DESCENT: _descent(data, chosen),
        **_without_private_rows(data),
        BARE: float(right.mean()),
    }
    report("certified demonstration", 3, 3, float("nan"))
    results: dict[str, Any] = {
        "data": "adult-sample",
        "records": len(data.X),
        "queries": len(labels),
        "epsilon": chosen,
        "accuracy_released": float((np.asarray(released.values) == data.truth).mean()),
        "accuracy_at_epsilon": ways,
        "accuracy": {OURS: ours, VOTE: vote},
        "median_distance": float(np.median(distances)),
        "guarantee": system.guarantee.to_dict(),
        "totals": {
            asked: system.total(answers=asked, delta=DELTA).epsilon for asked in (1, 100, 10_000)
        },
        "sampler": released.receipt.sampler,
    }
    return Demonstration(
        data="adult-sample",
        title="A label whose chances one record changes by at most a factor",
        lead="""A guarantee limits what the answers tell anyone about a single training record,
        whatever else they know. A model was trained on the records without noise, so its answers
        could give a record away. For each answer, a proof counts how many records can be added or
        removed without changing it. The more records, the less the answer is randomised.""",
        facts=[
            Fact(
                results["accuracy_released"],
                f"of the released labels are right, at ε = {chosen:g} each",
                "ours",
            ),
            Fact(
                ways[PUBLIC],
                f"are right if only the {len(data.public_rows)} public rows are used",
                "best",
            ),
            Fact(ways[CONSTANT], "are right if the answer is always the same class"),
            Fact(ways[BARE], "are right without any protection"),
        ],
        notes=_notes(results),
        sections=[
            comparison(
                "Other ways, at the same guarantee",
                f"""The table shows the expected accuracy of one answer at ε = {chosen:g}. Noisy
                gradient descent needs a δ ({DELTA:g} here), and its ε covers any number of
                answers.""",
                ways,
                ours=OURS,
            ),
            _against_epsilon(results),
        ],
        system=system,
        results=results,
        summary=f"released labels {results['accuracy_released']:.1%} right at epsilon {chosen:g} "
        f"each, {ways[PUBLIC]:.1%} by public rows alone, {ways[CONSTANT]:.1%} by a constant, "
        f"{ways[BARE]:.1%} without protection",
        files={"queries.npy": npy(data.queries)},
    )


def _expected(right: Array, distances: Integers, *, epsilon: float) -> float:
    """Return the exact expected accuracy of one answer."""
    response = StabilityResponse(classes=len(_CLASSES), epsilon=epsilon, adjacency=AddRemove(1))
    level = np.minimum(distances, response.max_level)
    told = np.where(right, response.right_probabilities[level], response.wrong_probabilities[level])
    return float(told.mean())


def _vote(data: _Census, epsilons: list[float]) -> dict[float, float]:
    """Return the mean accuracy over seeds of one answer by the linear vote at each epsilon."""
    vote = LinearVoteClassifier(epsilon=epsilons[0], delta=0.0, answers=1, classes=_CLASSES)
    with not_counted("a comparison on a public data set, of which a user releases one"):
        vote.fit(data.X, data.y, public_X=data.public_rows)
    drawn = vote.simulate_totals(
        data.queries, totals=[(at, 0.0, 1) for at in epsilons], seeds=_SEEDS
    )
    return {
        at: float(np.mean([(labels == data.truth).mean() for labels in draws]))
        for at, draws in zip(epsilons, drawn, strict=True)
    }


def _descent(data: _Census, epsilon: float) -> float:
    with not_counted("a comparison on a public data set, of which a user releases one"):
        model = NoisyGradientClassifier(epsilon=epsilon, delta=DELTA, classes=_CLASSES).fit(
            data.X, data.y, public_X=data.public_rows
        )
    return float((model.predict(data.queries) == data.truth).mean())


def _without_private_rows(data: _Census) -> dict[str, float]:
    """Return the accuracy of logistic regression on public rows, and of their commonest label."""
    model = LogisticRegression(max_iter=1000).fit(data.public_rows, data.public_labels)
    frequent = np.bincount(data.public_labels).argmax()
    return {
        PUBLIC: float((model.predict(data.queries) == data.truth).mean()),
        CONSTANT: float((data.truth == frequent).mean()),
    }


def _notes(results: dict[str, Any]) -> str:
    one, some, many = results["totals"].values()
    return f"""Does a person of the 1994 census earn more than 50,000 dollars? 20 principal
    components of 25 public rows. Logistic regression from zero weights, 4 epochs. There are
    {results["records"]:,} private records and {results["queries"]:,} held-out queries.
    Training was repeated on intervals: one pass bounds
    every model that could have come out, had k records been added or removed. For half of the
    labels the proof covers {results["median_distance"]:g} changed records or more. It never looks
    beyond {_K_MAX}.

    Each answer costs budget. One costs ε = {one:.3g} in all, 100 cost {some:.3g} and 10,000 cost
    {many:.3g}, at δ = {DELTA:g}. A ledger enforces the total. If you want many answers, release a
    model instead, such as that of noisy gradient descent. The command reticent plan compares both
    on public rows."""


def _against_epsilon(results: dict[str, Any]) -> Section:
    ways, lines = results["accuracy_at_epsilon"], results["accuracy"]
    chart = Chart(
        "Accuracy against epsilon",
        "ε of one answer (smaller protects more)",
        [line("vote", lines[VOTE], "label", "diamond"), line("ours", lines[OURS], "ours")],
        [Level(name, ways[name]) for name in (BARE, PUBLIC, CONSTANT)],
    )
    words = """The chart shows the accuracy of one answer. Public rows alone and the constant use no
    private record, so ε does not change them."""
    return Section("What protection costs in accuracy", words, [chart])
