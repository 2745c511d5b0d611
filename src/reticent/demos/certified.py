"""The certified demonstration: labels of a model that was trained without noise, with certificates.

The released labels are real ones, with noise from the operating system. Our line is an exact
expectation over that noise. Rivals are scored with noise from seeds, because nobody releases them
here. They read the same features and keep their default settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive
from reticent.core.errors import UnknownName
from reticent.core.guarantees import AddRemove
from reticent.datasets import load_adult_sample, load_digits, load_imdb
from reticent.demos.page import Chart, Demonstration, Fact, Section, comparison, line, npy
from reticent.mechanisms import StabilityResponse
from reticent.pages.line_chart import Level
from reticent.release.fits import not_counted
from reticent.systems import CertifiedClassifier, ClippedDescent
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.tables.known_schemas import adult_schema
from reticent.training.progress import Report, silent

DELTA = 1e-5
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SUGGESTED = {"adult-sample": 0.1, "digits": 1.0, "imdb": 0.1}

OURS = "ours: certified labels"
VOTE = "linear vote"
DESCENT = "noisy gradient descent, any number of answers"
PUBLIC = "public rows alone"
CONSTANT = "constant"
BARE = "no protection"
_SEEDS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Private records, public queries with their true labels, and the training of a model.

    Everything but the model is learned from public data, and settings were chosen there too. Public
    data are another data set, or a part that is declared public and is no private record.

    Attributes:
        name: name for files and titles.
        X, y: private records, shape (n, d), and their labels 0 .. classes - 1.
        queries, truth: held-out queries and their labels, which only score answers.
        classes: number of labels.
        training: arguments of ``CertifiedClassifier`` that decide the run.
        k_max: largest certified distance.
        about: text on the data and their public part.
        public_rows, public_labels: labelled public rows in the same features, shapes (p, d) and
            (p,), empty if no part is public.
    """

    name: str
    X: Array
    y: Integers
    queries: Array
    truth: Integers
    classes: int = 2
    training: dict[str, Any] = field(default_factory=dict)
    k_max: int = 300
    about: str = ""
    public_rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    public_labels: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


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


def _adult() -> Problem:
    table, schema = load_adult_sample(), adult_schema()
    order = np.random.default_rng(0).permutation(len(table.train_rows))
    public, private = order[:25], order[25:]
    rows, queries = schema.encode(table.train_rows), schema.encode(table.test_rows)
    white = whitening(rows[public], 20, floor=0.02)
    return Problem(
        name="adult-sample",
        X=white(rows[private]),
        y=table.train_labels[private],
        queries=white(queries),
        truth=table.test_labels,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.3, "clip": 0.2},
        public_rows=white(rows[public]),
        public_labels=table.train_labels[public],
        about="Does a person of the 1994 census earn more than 50,000 dollars? 20 principal "
        "components of 25 public rows. Logistic regression from zero weights, 4 epochs.",
    )


def digits(public: int) -> Problem:
    """Return scikit-learn's digits, with the last ``public`` training pictures as public ones.

    Example:
        >>> opened = digits(200)
        >>> len(opened.X), len(opened.public_rows)
        (1238, 200)
    """
    data = load_digits()
    cut = len(data.train_rows) - public
    rows, queries = (2.0 * part - 0.65 for part in (data.train_rows, data.test_rows))
    return Problem(
        name="digits",
        X=rows[:cut],
        y=data.train_labels[:cut],
        queries=queries,
        truth=data.test_labels,
        classes=10,
        k_max=30,
        training={"epochs": 1, "clip": 0.1},
        public_rows=rows[cut:],
        public_labels=data.train_labels[cut:],
        about="scikit-learn's digits, pixels scaled to -0.65 .. 1.35; ten classes, one "
        "full-batch step of softmax regression.",
    )


def imdb() -> Problem:
    """Return good and bad film reviews as sentence embeddings, from files below RETICENT_DATA."""
    data = load_imdb()
    order = np.random.default_rng(0).permutation(len(data.train_rows))
    public, private = order[:2000], order[2000:]
    white = whitening(data.train_rows[public], 50, floor=0.0)
    return Problem(
        name="imdb",
        X=white(data.train_rows[private]),
        y=data.train_labels[private],
        queries=white(data.test_rows),
        truth=data.test_labels,
        training={"epochs": 3, "learning_rate": 1.0, "rate_decay": 0.5, "clip": 0.05},
        public_rows=white(data.train_rows[public]),
        public_labels=data.train_labels[public],
        about="IMDB reviews as frozen public sentence embeddings (all-MiniLM-L6-v2): 17,924 "
        "private records, 4,980 held-out queries. 50 principal components of 2,000 other reviews, "
        "which count as public. Logistic regression from zero weights, 3 epochs.",
    )


_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "adult-sample": _adult,
    "digits": lambda: digits(200),
    "imdb": imdb,
}


def run_demo(data: str, *, epsilon: float | None = None, report: Report = silent) -> Demonstration:
    """Train on private records, certify, release labels of held-out queries, and compare methods.

    Args:
        data: "adult-sample", "digits" or "imdb".
        epsilon: epsilon of one answer, above 0, or None for one that suits the data.
        report: receiver of the progress, called after each stage.

    Raises:
        UnknownName: no demonstration for that data.
        DataUnavailable: its files are missing.
    """
    if data not in SUGGESTED:
        raise UnknownName(f"data={data!r}: expected one of {', '.join(SUGGESTED)}")
    chosen = SUGGESTED[data] if epsilon is None else positive(epsilon, name="epsilon")
    problem = _PROBLEMS[data]()
    report("certified demonstration", 1, 3, float("nan"))
    system = CertifiedClassifier(
        epsilon=chosen,
        k_max=problem.k_max,
        classes=range(problem.classes),
        training=ClippedDescent(**problem.training, random_state=0),
    ).fit(problem.X, problem.y)
    labels, distances = system.stable_distances(problem.queries)
    released = system.release(problem.queries)
    report("certified demonstration", 2, 3, float("nan"))
    epsilons = sorted({*EPSILONS, chosen})
    right = labels == problem.truth
    ours = {at: _expected(problem.classes, right, distances, epsilon=at) for at in epsilons}
    vote = _vote(problem, epsilons)
    ways = {
        OURS: ours[chosen],
        VOTE: vote[chosen],
        DESCENT: _descent(problem, chosen),
        **_without_private_rows(problem),
        BARE: float(right.mean()),
    }
    report("certified demonstration", 3, 3, float("nan"))
    results: dict[str, Any] = {
        "data": data,
        "records": len(problem.X),
        "queries": len(labels),
        "epsilon": chosen,
        "accuracy_released": float((np.asarray(released.values) == problem.truth).mean()),
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
        data=data,
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
                f"are right if only the {len(problem.public_rows)} public rows are used",
                "best",
            ),
            Fact(ways[CONSTANT], "are right if the answer is always the same class"),
            Fact(ways[BARE], "are right without any protection"),
        ],
        notes=_notes(results, problem),
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
        files={"queries.npy": npy(problem.queries)},
    )


def _expected(classes: int, right: Array, distances: Integers, *, epsilon: float) -> float:
    """Return the exact expected accuracy of one answer."""
    response = StabilityResponse(classes=classes, epsilon=epsilon, adjacency=AddRemove(1))
    level = np.minimum(distances, response.max_level)
    told = np.where(right, response.right_probabilities[level], response.wrong_probabilities[level])
    return float(told.mean())


def _vote(problem: Problem, epsilons: list[float]) -> dict[float, float]:
    """Return the mean accuracy over seeds of one answer by the linear vote at each epsilon."""
    vote = LinearVoteClassifier(
        epsilon=epsilons[0], delta=0.0, answers=1, classes=range(problem.classes)
    )
    with not_counted("a comparison on a public data set, of which a user releases one"):
        vote.fit(problem.X, problem.y, public_X=problem.public_rows)
    drawn = vote.simulate_totals(
        problem.queries, totals=[(at, 0.0, 1) for at in epsilons], seeds=_SEEDS
    )
    return {
        at: float(np.mean([(labels == problem.truth).mean() for labels in draws]))
        for at, draws in zip(epsilons, drawn, strict=True)
    }


def _descent(problem: Problem, epsilon: float) -> float:
    with not_counted("a comparison on a public data set, of which a user releases one"):
        model = NoisyGradientClassifier(
            epsilon=epsilon, delta=DELTA, classes=range(problem.classes)
        ).fit(problem.X, problem.y, public_X=problem.public_rows)
    return float((model.predict(problem.queries) == problem.truth).mean())


def _without_private_rows(problem: Problem) -> dict[str, float]:
    """Return the accuracy of logistic regression on public rows, and of their commonest label."""
    model = LogisticRegression(max_iter=1000).fit(problem.public_rows, problem.public_labels)
    frequent = np.bincount(problem.public_labels).argmax()
    return {
        PUBLIC: float((model.predict(problem.queries) == problem.truth).mean()),
        CONSTANT: float((problem.truth == frequent).mean()),
    }


def _notes(results: dict[str, Any], problem: Problem) -> str:
    one, some, many = results["totals"].values()
    return f"""{problem.about} There are {results["records"]:,} private records and
    {results["queries"]:,} held-out queries. Training was repeated on intervals: one pass bounds
    every model that could have come out, had k records been added or removed. For half of the
    labels the proof covers {results["median_distance"]:g} changed records or more. It never looks
    beyond {problem.k_max}.

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
