"""What simpler methods are worth at the guarantee of the certified answers, on the same features.

Settings are chosen on halves of the public rows, with noise that has the effect beside them that it
will have beside the private records. Noise of these rivals is drawn from seeds: they are scored
here, and release nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.demos.certified.expected_accuracy import Answers, certified
from reticent.demos.certified.problems import Problem
from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.moment import MomentClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.query_votes import QueryVotes
from reticent.systems.votes.radius_votes import RadiusVotesClassifier
from reticent.systems.votes.released_model import ReleasedModel

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Points = list[tuple[float, float]]

CERTIFIED = "ours: certified"
VOTE = "linear vote"
DESCENT = "noisy gradient descent"
CELLS = "cells"
MOMENTS = "moments"
RADIUS = "radius votes"
CONVEX = "convex certificate"
PUBLIC = "public rows alone"
CONSTANT = "constant"

DELTA = 1e-5
ANSWERS = (1, 10, 100, 1000, 10_000, 100_000)

_STRENGTHS = (0.01, 0.1, 1.0, 10.0)
_CHOICE_SEEDS = (0, 1)
_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Rungs:
    """Accuracy on the queries of every method.

    Attributes:
        one: for one answer, (epsilon, accuracy) of the linear vote at a pure epsilon, and of noisy
            gradient descent at ``DELTA``.
        many: (answers, accuracy) of every method at the total epsilon ``total`` and ``DELTA``.
        others: (answers, accuracy) of further methods at that total, for the table.
        total: that total.
        public: of a classifier of the labelled public rows, which no epsilon changes.
        constant: of the label that is most frequent among them.
    """

    one: dict[str, Points]
    many: dict[str, Points]
    others: dict[str, Points]
    total: float
    public: float
    constant: float

    def accuracies(self, epsilon: float) -> dict[str, float]:
        """Of every rival, at one answer of ``epsilon``."""
        found = {name: dict(points)[epsilon] for name, points in self.one.items()}
        return {**found, PUBLIC: self.public, CONSTANT: self.constant}


def rungs_of(
    problem: Problem, answers: Answers, *, epsilons: Sequence[float], total: float
) -> Rungs:
    """Every rival of the certified answers to the queries of ``problem``.

    Args:
        problem: with labelled public rows.
        answers: the certified ones.
        epsilons: of one answer.
        total: epsilon of many answers together, beside ``DELTA``.
    """
    singles = [(epsilon, 0.0, 1) for epsilon in epsilons]
    together = [(total, DELTA, asked) for asked in ANSWERS]
    vote = _vote(LinearVoteClassifier, problem, [*singles, *together])
    descent = _trained(NoisyGradientClassifier, problem, [*epsilons, total])
    public = _public(problem)
    constant = float((problem.truth == np.bincount(problem.public_labels).argmax()).mean())
    return Rungs(
        one={
            VOTE: list(zip(epsilons, vote, strict=False)),
            DESCENT: list(zip(epsilons, descent, strict=False)),
        },
        many={
            CERTIFIED: [
                (float(asked), certified(answers, total, DELTA, asked)) for asked in ANSWERS
            ],
            VOTE: [
                (float(asked), value)
                for asked, value in zip(ANSWERS, vote[len(singles) :], strict=True)
            ],
            DESCENT: [(float(asked), descent[-1]) for asked in ANSWERS],
        },
        others=_others(problem, total),
        total=total,
        public=public,
        constant=constant,
    )


def _others(problem: Problem, total: float) -> dict[str, Points]:
    """Accuracy of further methods at each number of answers that cost ``total`` together."""
    found: dict[str, Points] = {}
    kinds: dict[str, type[ReleasedModel]] = {MOMENTS: MomentClassifier, CELLS: CellsClassifier}
    for name, kind in kinds.items():
        [right] = _trained(kind, problem, [total])
        found[name] = [(float(asked), right) for asked in ANSWERS]
    votes = _vote(RadiusVotesClassifier, problem, [(total, DELTA, asked) for asked in ANSWERS])
    found[RADIUS] = [(float(asked), right) for asked, right in zip(ANSWERS, votes, strict=True)]
    if problem.classes == 2:
        convex = ConvexCertifiedClassifier(
            epsilon=total,
            classes=range(2),
            norm_bound=float(np.linalg.norm(problem.public_rows, axis=1).max()),
        ).fit(problem.X, problem.y)
        labels, distances = convex.stable_distances(problem.queries)
        answers = Answers(labels, distances, labels[None], problem.truth, problem.classes)
        found[CONVEX] = [
            (float(asked), certified(answers, total, DELTA, asked)) for asked in ANSWERS
        ]
    return found


def _public(problem: Problem) -> float:
    """Logistic regression on the public rows, its strength by cross-validation among them."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        {"logisticregression__C": _STRENGTHS},
        cv=5,
    )
    search.fit(problem.public_rows, problem.public_labels)
    return float((search.predict(problem.queries) == problem.truth).mean())


def _halves(problem: Problem) -> Problem:
    """Half of the public rows in the place of private records, the others ask."""
    half = len(problem.public_rows) // 2
    return replace(
        problem,
        X=problem.public_rows[:half],
        y=problem.public_labels[:half],
        queries=problem.public_rows[half:],
        truth=problem.public_labels[half:],
    )


def _vote(
    kind: type[QueryVotes], problem: Problem, totals: Sequence[tuple[float, float, int]]
) -> list[float]:
    """Accuracy of votes of records at each (epsilon, delta, answers)."""
    small = _halves(problem)
    grid: list[dict[str, Any]] = [
        *([{}] if kind is LinearVoteClassifier else []),
        *kind.settings_grid(
            n_private=len(problem.X),
            n_public=len(small.X),
            features=problem.X.shape[1],
            classes=problem.classes,
            epsilon=totals[0][0],
        ),
    ]
    scale = len(small.X) / len(problem.X)
    tried = np.array(
        [_votes_right(kind, small, one, totals, _CHOICE_SEEDS, noise_scale=scale) for one in grid]
    )
    best = tried.argmax(axis=0)
    found = {
        place: _votes_right(kind, problem, grid[place], totals, _SEEDS, noise_scale=1.0)
        for place in set(best.tolist())
    }
    return [float(found[place][at]) for at, place in enumerate(best.tolist())]


def _votes_right(
    kind: type[QueryVotes],
    problem: Problem,
    settings: dict[str, Any],
    totals: Sequence[tuple[float, float, int]],
    seeds: Sequence[int],
    *,
    noise_scale: float,
) -> Array:
    epsilon, delta, answers = totals[0]
    vote = kind(
        epsilon=epsilon,
        delta=delta,
        answers=answers,
        classes=range(problem.classes),
        **settings,
    ).fit(problem.X, problem.y, public_X=problem.public_rows)
    told = vote.simulate_totals(
        problem.queries, totals=totals, seeds=seeds, noise_scale=noise_scale
    )
    return np.asarray((told == problem.truth).mean(axis=(1, 2)))


def _trained(kind: type[ReleasedModel], problem: Problem, epsilons: Sequence[float]) -> list[float]:
    """Accuracy of a released model at each total."""
    small = _halves(problem)
    grid = kind.settings_grid(
        n_private=len(problem.X),
        n_public=len(small.X),
        features=problem.X.shape[1],
        classes=problem.classes,
        epsilon=epsilons[0],
    )
    scale = len(small.X) / len(problem.X)
    tried = np.array(
        [
            _models_right(kind, small, one, epsilons, _CHOICE_SEEDS, noise_scale=scale)
            for one in grid
        ]
    )
    best = tried.argmax(axis=0)
    found: dict[int, float] = {}
    for place in set(best.tolist()):
        own = [at for at, chosen in enumerate(best.tolist()) if chosen == place]
        right = _models_right(
            kind, problem, grid[place], [epsilons[at] for at in own], _SEEDS, noise_scale=1.0
        )
        found |= dict(zip(own, right.tolist(), strict=True))
    return [found[at] for at in range(len(epsilons))]


def _models_right(
    kind: type[ReleasedModel],
    problem: Problem,
    settings: dict[str, Any],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    *,
    noise_scale: float,
) -> Array:
    counted: dict[str, Any] = {"records": len(problem.X)} if kind is NoisyGradientClassifier else {}
    models = kind(
        epsilon=epsilons[0],
        delta=DELTA,
        classes=range(problem.classes),
        **counted,
        **settings,
    ).simulate_fits(
        problem.X,
        problem.y,
        totals=[(epsilon, DELTA) for epsilon in epsilons],
        seeds=seeds,
        noise_scale=noise_scale,
        public_X=problem.public_rows,
    )
    right = [float((model.predict(problem.queries) == problem.truth).mean()) for model in models]
    return np.asarray(np.array(right).reshape(len(epsilons), len(seeds)).mean(axis=1))
