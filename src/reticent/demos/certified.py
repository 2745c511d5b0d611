"""The certified demonstration: labels of a model that was trained without noise, and what the
certificates of its records are worth.

Lines of accuracy are exact expectations over the noise, those of rivals means over seeds. The
released labels are real ones, with noise from the operating system. Rivals have the guarantee of
the certified answers, read the same features, and get their settings on halves of the public rows.
Their noise is drawn from seeds, because nobody releases them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive
from reticent.core.errors import UnknownName
from reticent.core.extras import require
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.datasets import load_blobs, load_digits, load_fashion, load_imdb, load_pneumonia
from reticent.demos.page import Chart, Demonstration, Fact, Section, Table, line, npy
from reticent.mechanisms import SignedDistanceRelease, StabilityResponse
from reticent.pages.line_chart import Level
from reticent.pages.parts import percent
from reticent.planning.candidates import Candidate
from reticent.planning.query_votes import QueryVotesCandidate
from reticent.planning.released_models import ReleasedModelCandidate
from reticent.planning.tasks import StandIns, Task
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy
from reticent.systems import CertifiedClassifier, ClippedDescent
from reticent.systems.certified.choosing import calibrated_choice
from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier
from reticent.training.progress import Report, silent

Curve = dict[float, float]
"""Accuracy by epsilon, or by the number of answers."""

ADJACENCY = AddRemove(1)
DELTA = 1e-5
TOTAL = 1.0
"""Epsilon of many answers together."""
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ANSWERS = (1, 10, 100, 1000, 10_000, 100_000)
SUGGESTED = {"blobs": 0.03, "blobs-close": 0.03, "digits": 1.0, "pneumonia": 0.1, "imdb": 0.1}

OURS = "ours: stability response"
PUBLISHED = "published: smooth sensitivity, Cauchy"
GLOBAL = "published: global sensitivity, Laplace"
CERTIFIED = "ours: certified"
VOTE = "linear vote"
DESCENT = "noisy gradient descent"
CONVEX = "convex certificate"
PUBLIC = "public rows alone"
CONSTANT = "constant"
_LOOKS = {
    GLOBAL: ("published", "circle"),
    PUBLISHED: ("published", "triangle"),
    DESCENT: ("best", "square"),
    VOTE: ("label", "diamond"),
    CERTIFIED: ("ours", "circle"),
    OURS: ("ours", "circle"),
}
_SHORT = {OURS: "ours", CERTIFIED: "ours", DESCENT: "gradient descent"}

_OPENED = 200
"""Records that are made public where a problem has no public rows of its own."""
_CLOSE = 0.005


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Private records, public queries with their true labels, and how a model is trained.

    What is learned beside the model is learned from public data: another data set, or a part that
    is said to be public and is not among the private records. Settings were chosen there too.

    Attributes:
        name: for files and titles.
        X, y: private records, shape (n, d), and their labels 0 .. classes - 1.
        queries, truth: held-out queries and their labels, which only score answers.
        classes: number of labels.
        training: arguments of ``CertifiedClassifier`` that decide the run.
        k_max: largest certified distance.
        about: what it is and what was public, in words.
        public_rows, public_labels: labelled public rows in the same features, shapes (p, d) and
            (p,); none where no part is public yet.
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

    def opened(self, rows: int) -> Problem:
        """Return the same problem, its last ``rows`` records public and private no more.

        Example:
            >>> opened = problem_of("digits").opened(200)
            >>> len(opened.X), len(opened.public_rows)
            (1238, 200)
        """
        return replace(
            self,
            X=self.X[:-rows],
            y=self.y[:-rows],
            public_rows=self.X[-rows:],
            public_labels=self.y[-rows:],
            about=f"{self.about} The last {rows} records count as public.",
        )

    def halves(self) -> Problem:
        """Return a problem of public rows: half of them take the place of private records, the
        others ask.
        """
        half = len(self.public_rows) // 2
        return replace(
            self,
            X=self.public_rows[:half],
            y=self.public_labels[:half],
            queries=self.public_rows[half:],
            truth=self.public_labels[half:],
        )


def whitening(public: Array, components: int, *, floor: float) -> Callable[[Array], Array]:
    """Return the map to the leading principal components of public rows, each brought to about
    unit variance.

    Args:
        public: shape (n, d).
        components: how many, at most d.
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
        # Multiplied element by element and summed row by row: a record's features must not depend
        # on the other records.
        return np.stack([((row - center)[:, None] * matrix).sum(axis=0) for row in rows])

    return map_rows


def _blobs(kind: str, points: int) -> Problem:
    data, other = load_blobs(kind, points=points), load_blobs(kind, points=200, seed=10_000)
    return Problem(
        name="blobs" if kind == "separable" else f"blobs-{kind}",
        X=data.train_rows,
        y=data.train_labels,
        queries=data.test_rows,
        truth=data.test_labels,
        k_max=600,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.6, "clip": 0.06},
        public_rows=other.train_rows,
        public_labels=other.train_labels,
        about=f"{points:,} points, {data.origin}; {kind}. Logistic regression from zero weights "
        "with the paper's settings: 4 epochs, full batch. 200 more points, with labels, are "
        "public.",
    )


def _digits() -> Problem:
    data = load_digits()
    return Problem(
        name="digits",
        X=2.0 * data.train_rows - 0.65,
        y=data.train_labels,
        queries=2.0 * data.test_rows - 0.65,
        truth=data.test_labels,
        classes=10,
        k_max=30,
        training={"epochs": 1, "clip": 0.1},
        about="scikit-learn's digits, pixels scaled to -0.65 .. 1.35; ten classes, one "
        "full-batch step of softmax regression.",
    )


@cache
def xray_features() -> tuple[Array, Integers, Array, Integers]:
    """Return PneumoniaMNIST as frozen convolutions that pictures of clothing taught: rows and
    labels of the 4,708 training pictures followed by the 524 validation pictures, and of the 624
    test ones.

    Raises:
        DataUnavailable: its files are missing.
        MissingExtra: torch is not installed.
    """
    require("torch", extra="networks")
    from reticent.training.convolutional_features import (
        ConvolutionalConfig,
        train_convolutional_features,
    )

    clothing, some = load_fashion(), slice(0, 20_000)
    data, public = load_pneumonia(), load_pneumonia(held_out="validation")
    network = train_convolutional_features(
        clothing.train_images[some],
        clothing.train_labels[some],
        ConvolutionalConfig(image_shape=(28, 28)),
    )
    return (
        np.concatenate([network.features(data.train_images), network.features(public.test_images)]),
        np.concatenate([data.train_labels, public.test_labels]),
        network.features(data.test_images),
        data.test_labels,
    )


def _pneumonia() -> Problem:
    rows, labels, queries, truth = xray_features()
    private, public = slice(None, -524), slice(-524, None)
    white = whitening(rows[public], 30, floor=0.02)
    return Problem(
        name="pneumonia",
        X=white(rows[private]),
        y=labels[private],
        queries=white(queries),
        truth=truth,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.0, "clip": 0.1},
        public_rows=white(rows[public]),
        public_labels=labels[public],
        about="PneumoniaMNIST: 4,708 private X-rays, 624 official test pictures as queries. Two "
        "frozen convolutions of 16 and 32 filters, trained on 20,000 public pictures of clothing "
        "(Fashion-MNIST), 2 x 2 means, 30 principal components of the 524 official validation "
        "pictures, which count as public. Logistic regression from zero weights, 4 epochs.",
    )


def _imdb() -> Problem:
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
    "blobs": lambda: _blobs("separable", 5000),
    "blobs-close": lambda: _blobs("close", 3000),
    "digits": _digits,
    "pneumonia": _pneumonia,
    "imdb": _imdb,
}
PROBLEMS = tuple(_PROBLEMS)
"""Names that ``problem_of`` knows; blobs and digits need no file."""


def problem_of(name: str) -> Problem:
    """Return the problem called ``name``.

    Raises:
        UnknownName: no such problem.
        DataUnavailable: its files are missing.
        MissingExtra: its features are a network's ("pneumonia"), and torch is not installed.

    Example:
        >>> problem_of("digits").X.shape
        (1438, 64)
    """
    if name not in _PROBLEMS:
        raise UnknownName(f"data={name!r}: expected one of {', '.join(PROBLEMS)}")
    return _PROBLEMS[name]()


@dataclass(frozen=True, eq=False)
class Answers:
    """What a fitted system knows about every query. Private; experiments only score it.

    Attributes:
        labels: the noise-free label, shape (n,).
        distances: its certified stable distance, shape (n,).
        votes: label of every member, shape (members, n).
        truth: the true label, shape (n,).
        classes: number of labels.
    """

    labels: Integers
    distances: Integers
    votes: Integers
    truth: Integers
    classes: int

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether the noise-free label is true, shape (n,)."""
        return np.asarray(self.labels == self.truth)

    @property
    def noise_free(self) -> float:
        """Accuracy without noise."""
        return float(self.right.mean())


def _stability(answers: Answers, epsilon: float) -> float:
    response = StabilityResponse(classes=answers.classes, epsilon=epsilon, adjacency=ADJACENCY)
    level = np.minimum(answers.distances, response.max_level)
    given = np.where(
        answers.right, response.right_probabilities[level], response.wrong_probabilities[level]
    )
    return float(given.mean())


def _cauchy(answers: Answers, epsilon: float) -> float:
    """On the same certificates, of every distance: so it is private."""
    response = SmoothCauchy(epsilon=epsilon, adjacency=ADJACENCY)
    return accuracy_of_flips(answers, response.flip_probabilities(answers.distances))


def _laplace(answers: Answers, epsilon: float) -> float:
    response = GlobalSensitivityResponse(epsilon=epsilon, adjacency=ADJACENCY)
    return accuracy_of_flips(answers, response.flip_probabilities(answers.distances))


PURE: dict[str, Callable[[Answers, float], float]] = {
    OURS: _stability,
    PUBLISHED: _cauchy,
    GLOBAL: _laplace,
}
"""Exact expected accuracy of one answer of a pure epsilon, by mechanism; the last two answer two
labels only.
"""


def accuracy_of_flips(answers: Answers, flips: Array) -> float:
    """Return the expected accuracy on two labels where ``flips``, shape (n,), are the chances that
    the other one is told.
    """
    return float(np.where(answers.right, 1.0 - flips, flips).mean())


def certified(answers: Answers, epsilon: float, delta: float, asked: int) -> float:
    """Return the expected accuracy where ``asked`` answers cost (``epsilon``, ``delta``) together:
    by the stability response or by Gaussian noise on the signed distance, whichever the number
    asks for.
    """
    choice = calibrated_choice(
        "auto", classes=answers.classes, epsilon=epsilon, delta=delta, answers=asked
    )
    if choice.name == "stability":
        return _stability(answers, choice.epsilon)
    release = choice.mechanism(answers.classes, ADJACENCY)
    assert isinstance(release, SignedDistanceRelease)
    told = release.right_probabilities(answers.distances)
    given = np.where(answers.right, told, (1.0 - told) / (answers.classes - 1))
    return float(given.mean())


_VOTES = "reticent.systems.votes"
RIVALS: dict[str, Candidate] = {
    VOTE: QueryVotesCandidate(
        VOTE, "", f"{_VOTES}.linear_vote", "LinearVoteClassifier", grid=lambda grid: [{}, *grid]
    ),
    DESCENT: ReleasedModelCandidate(
        DESCENT, "", f"{_VOTES}.noisy_gradient", "NoisyGradientClassifier", counts=True
    ),
    "moments": ReleasedModelCandidate("", "", f"{_VOTES}.moment", "MomentClassifier"),
    "cells": ReleasedModelCandidate("", "", f"{_VOTES}.cells", "CellsClassifier"),
}
"""What the planner tries too, each with its whole grid of settings."""
_SINGLE = {VOTE: 0.0, DESCENT: DELTA}
"""Delta of one answer of the rivals that are scored for it."""


@dataclass(frozen=True)
class Rivals:
    """Accuracy on the queries of simpler methods.

    Attributes:
        one: of one answer by epsilon: the linear vote at a pure epsilon, and noisy gradient
            descent at ``DELTA``, whose epsilon covers any number of answers.
        many: by the number of answers at the total (``TOTAL``, ``DELTA``), the certified answers
            first.
        levels: of a classifier of the labelled public rows, and of the label that is most frequent
            among them; no epsilon changes these.
    """

    one: dict[str, Curve]
    many: dict[str, Curve]
    levels: dict[str, float]


def rivals_of(problem: Problem, answers: Answers, *, epsilons: Sequence[float]) -> Rivals:
    """Score every rival of the certified answers to the queries of ``problem``.

    Args:
        problem: with labelled public rows.
        answers: the certified ones.
        epsilons: of one answer.
    """
    together = [(TOTAL, DELTA, asked) for asked in ANSWERS]
    one: dict[str, Curve] = {}
    many = {CERTIFIED: [certified(answers, TOTAL, DELTA, asked) for asked in ANSWERS]}
    for name, candidate in RIVALS.items():
        single = [(at, _SINGLE[name], 1) for at in epsilons] if name in _SINGLE else []
        right = _tuned(candidate, problem, [*single, *together])
        many[name] = right[len(single) :]
        if single:
            one[name] = dict(zip(epsilons, right, strict=False))
    if problem.classes == 2:
        convex = _convex(problem)
        many[CONVEX] = [certified(convex, TOTAL, DELTA, asked) for asked in ANSWERS]
    frequent = np.bincount(problem.public_labels).argmax()
    return Rivals(
        one,
        {name: dict(zip(ANSWERS, right, strict=True)) for name, right in many.items()},
        {PUBLIC: _public(problem), CONSTANT: float((problem.truth == frequent).mean())},
    )


def _convex(problem: Problem) -> Answers:
    """Answers of the convex certificate, whose norm bound is that of the public rows."""
    convex = ConvexCertifiedClassifier(
        epsilon=TOTAL,
        classes=range(2),
        norm_bound=float(np.linalg.norm(problem.public_rows, axis=1).max()),
    ).fit(problem.X, problem.y)
    labels, distances = convex.stable_distances(problem.queries)
    return Answers(labels, distances, labels[None], problem.truth, problem.classes)


def _public(problem: Problem) -> float:
    """Accuracy of logistic regression on the public rows, its strength by cross-validation."""
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        {"logisticregression__C": (0.01, 0.1, 1.0, 10.0)},
        cv=5,
    )
    search.fit(problem.public_rows, problem.public_labels)
    return float((search.predict(problem.queries) == problem.truth).mean())


def _tuned(
    candidate: Candidate, problem: Problem, totals: Sequence[tuple[float, float, int]]
) -> list[float]:
    """Accuracy at each (epsilon, delta, answers). Settings are chosen for each on halves of the
    public rows, with noise that has the effect there that it will have on the private records.
    """
    small = problem.halves()
    tasks = [
        Task(
            Guarantee(epsilon, delta, ADJACENCY),
            n_private=len(problem.X),
            n_public=len(small.X),
            classes=problem.classes,
            features=problem.X.shape[1],
            answers=asked,
        )
        for epsilon, delta, asked in totals
    ]
    grid, scale = candidate.settings(tasks[0]), len(small.X) / len(problem.X)
    tried = [_right(candidate, one, tasks, small, (0, 1), noise_scale=scale) for one in grid]
    best, found = np.argmax(tried, axis=0), np.zeros(len(tasks))
    for place in np.unique(best):
        own = [task for task, chosen in zip(tasks, best, strict=True) if chosen == place]
        found[best == place] = _right(candidate, grid[place], own, problem, (1, 2, 3))
    return found.tolist()


def _right(
    candidate: Candidate,
    settings: Mapping[str, Any],
    tasks: Sequence[Task],
    problem: Problem,
    seeds: Sequence[int],
    noise_scale: float = 1.0,
) -> Array:
    """Mean accuracy over seeds of each task, shape (tasks,)."""
    rows = StandIns(problem.public_rows, None, problem.X, problem.y)
    told = candidate.evaluate(
        settings, tasks, rows, problem.queries, noise_scale=noise_scale, seeds=seeds
    )
    right = [[(one.labels == problem.truth).mean() for one in draws] for draws in told]
    return np.asarray(np.mean(right, axis=1))


def run_demo(data: str, *, epsilon: float | None = None, report: Report = silent) -> Demonstration:
    """Train on private records, certify, release labels of held-out queries, and compare with
    simpler methods and with what was published.

    Args:
        data: one of ``PROBLEMS``.
        epsilon: of one answer, above 0, or None for one that suits the data.
        report: told after each stage.

    Raises:
        UnknownName: no demonstration for that data.
        DataUnavailable: its files are missing.
    """
    if data not in SUGGESTED:
        raise UnknownName(f"data={data!r}: expected one of {', '.join(SUGGESTED)}")
    chosen = SUGGESTED[data] if epsilon is None else positive(epsilon, name="epsilon")
    problem = problem_of(data)
    if not len(problem.public_rows):
        problem = problem.opened(_OPENED)
    report("certified demonstration", 1, 3, float("nan"))
    system = CertifiedClassifier(
        epsilon=chosen,
        k_max=problem.k_max,
        classes=range(problem.classes),
        training=ClippedDescent(**problem.training, random_state=0),
    ).fit(problem.X, problem.y)
    labels, distances = system.stable_distances(problem.queries)
    answers = Answers(labels, distances, labels[None], problem.truth, problem.classes)
    released = system.release(problem.queries)
    report("certified demonstration", 2, 3, float("nan"))
    epsilons = sorted({*EPSILONS, chosen})
    rivals = rivals_of(problem, answers, epsilons=epsilons)
    report("certified demonstration", 3, 3, float("nan"))
    names = list(PURE) if problem.classes == 2 else [OURS]
    one = {name: {at: PURE[name](answers, at) for at in epsilons} for name in names} | rivals.one
    survive = {
        float(k): float((distances >= k).mean())
        for k in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 600)
        if k <= problem.k_max
    }
    right = np.asarray(released.values) == problem.truth
    results = {
        "data": {
            "name": data,
            "about": problem.about,
            "records": len(problem.X),
            "queries": len(labels),
            "public_rows": len(problem.public_rows),
        },
        "epsilon": chosen,
        "accuracy_noise_free": answers.noise_free,
        "accuracy_released": float(right.mean()),
        "accuracy_at_epsilon": {name: points[chosen] for name, points in one.items()}
        | rivals.levels,
        "accuracy": one,
        "many": rivals.many,
        "fraction": survive,
        "median_distance": float(np.median(distances)),
        "k_max": problem.k_max,
        "guarantee": system.guarantee.to_dict(),
        "totals": {
            asked: system.total(answers=asked, delta=DELTA).epsilon for asked in ANSWERS[:-1]
        },
        "sampler": released.receipt.sampler,
    }
    return Demonstration(
        data=data,
        title="A label that one record cannot change",
        lead="""Every single training record is protected from whoever receives the answers,
        whatever else they know. A model was trained on the records without any noise, and what it
        answers could give one of them away. Here a proof says how many records would have to come
        or go before an answer could change, and the answer is randomised only as much as that
        number leaves necessary.""",
        facts=_facts(results),
        notes=_notes(results),
        sections=[_one_answer(results), _many_answers(results), _survival(results)],
        system=system,
        results=results,
        summary=f"released labels {results['accuracy_released']:.1%} right at epsilon {chosen:g} "
        f"each, {results['accuracy_noise_free']:.1%} without protection",
        files={"queries.npy": npy(problem.queries)},
    )


def _facts(results: dict[str, Any]) -> list[Fact]:
    at, epsilon = results["accuracy_at_epsilon"], results["epsilon"]
    best = max((VOTE, DESCENT), key=lambda name: at[name])
    said = {
        best: (f"would be right with {best}, at the same ε", "label"),
        PUBLIC: ("are right by the labelled public rows alone", "best"),
        PUBLISHED: (
            "would be right with the published smooth sensitivity, on the same certificates",
            "published",
        ),
    }
    released = f"of the released labels are right, at ε = {epsilon:g} each"
    return [
        Fact(results["accuracy_released"], released, "ours"),
        *(Fact(at[name], *words) for name, words in said.items() if name in at),
        Fact(results["accuracy_noise_free"], "are right without any protection"),
    ]


def _notes(results: dict[str, Any]) -> str:
    data, at = results["data"], results["accuracy_at_epsilon"]
    better = [name for name in (VOTE, DESCENT, PUBLIC) if at[name] > at[OURS] + _CLOSE]
    notes = f"""{data["about"]} {data["records"]:,} private records, {data["queries"]:,} held-out
    queries. Always naming the label that is most frequent among the {data["public_rows"]:,} public
    rows is right for {percent(at[CONSTANT])}. Released labels can be right more often than those
    without protection: a randomised label is now and then right where the model is wrong."""
    if better:
        notes += f"\n\nBetter than the certified answers at this guarantee: {', '.join(better)}."
    if at[PUBLIC] >= at[OURS] - _CLOSE:
        notes += """\n\nWith such public rows nothing private is needed; private records pay where
        there are none."""
    return notes


def _chart(title: str, x_name: str, curves: dict[str, Curve], results: dict[str, Any]) -> Chart:
    """The curves that have a look as lines, the others in the table alone."""
    at = results["accuracy_at_epsilon"]
    return Chart(
        title,
        x_name,
        [
            line(_SHORT.get(name, name.partition(",")[0]), curves[name], *look)
            for name, look in _LOOKS.items()
            if name in curves
        ],
        [
            Level("noise-free", results["accuracy_noise_free"]),
            *(Level(name, at[name]) for name in (PUBLIC, CONSTANT)),
        ],
        more=[line(name, points) for name, points in curves.items() if name not in _LOOKS],
    )


def _one_answer(results: dict[str, Any]) -> Section:
    published = (
        "The published mechanisms read the same certificates."
        if PUBLISHED in results["accuracy"]
        else "The published mechanisms answer two labels only, so none is here to compare with."
    )
    name = "ε of one answer (smaller protects more)"
    return Section(
        "What protection costs in accuracy",
        f"""One answer. Exact expectations over the randomness of each mechanism; for the linear
        vote and noisy gradient descent means of three draws, with settings chosen on the public
        rows. {published}

        Noisy gradient descent needs a δ ({DELTA:g} here), and its ε covers any number of answers;
        the ε of all others is that of one answer, at δ = 0. Public rows alone and the constant use
        no private record, so no ε changes them. Where a line is at the level of guessing, its noise
        is larger than what it hides.""",
        [_chart("Accuracy against epsilon", name, results["accuracy"], results)],
    )


def _many_answers(results: dict[str, Any]) -> Section:
    many, stated = results["many"], f"{results['epsilon']:.3g}"
    ahead = [asked for asked in ANSWERS if many[CERTIFIED][asked] >= many[DESCENT][asked]]
    name = f"answers, together ε = {TOTAL:g} at δ = {DELTA:g}"
    totals = [(f"{asked:,}", [f"{total:.3g}"]) for asked, total in results["totals"].items()]
    return Section(
        "Many answers at one total",
        f"""All answers together cost the same, so each is noisier the more there are. Certified
        answers are randomised or moved by Gaussian noise, whichever the number asks for. A released
        model, such as that of noisy gradient descent, answers any number of queries at one price.
        Certified answers are ahead of it, or level, up to {max(ahead, default=0):,} of the numbers
        shown. The table has further methods at the same total.

        At ε = {stated} for each, answers spend less together than the sum, by optimal composition;
        a ledger enforces the total. One alone can cost less than that too, because the total may
        fail with probability δ.""",
        [
            _chart("Accuracy against the number of answers", name, many, results),
            Table(f"answers at ε = {stated} each", [f"total ε at δ = {DELTA:g}"], totals),
        ],
    )


def _survival(results: dict[str, Any]) -> Section:
    series = [line("certified", results["fraction"], "ours")]
    return Section(
        "How many records a label survives",
        f"""Training was repeated on intervals: one pass bounds every model that could have come
        out, had k records been added or removed. A label survives k changes if all those models
        agree on it. Half of the queries survive {results["median_distance"]:g} changes or more;
        nothing beyond {results["k_max"]} was looked at.""",
        [Chart("Labels that survive k changed records", "changed records k", series)],
    )
