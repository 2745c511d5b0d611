"""Accuracies of the certified experiments: certificates computed once, then every mechanism's
exact expected accuracy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from papers.certified.problems import ADJACENCY, Answers, Problem, accuracy_of_flips
from papers.dpsgd import PrivateTraining, train_private
from reticent.accounting import PrivacyEvent, epsilon_per_answer, noise_multiplier
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent
from reticent.core.guarantees import Guarantee
from reticent.retraining.stability import vote_distances
from reticent.systems import CertifiedClassifier, CertifiedEnsemble, ClippedDescent

ARGMAX = "PATE: noisy argmax of the ensemble"

DP_SGD = "DP-SGD, same network and schedule"
TUNED = "DP-SGD, trained longer"


def system_of(problem: Problem, members: int = 1) -> CertifiedClassifier | CertifiedEnsemble:
    """An unfitted estimator with the settings of a problem; its epsilon is a placeholder that no
    figure uses.

    A member sees a share of the records, so it is certified up to about four times its share of
    ``k_max``.
    """
    shared: dict[str, Any] = {
        "epsilon": 1.0,
        "k_max": min(problem.k_max, max(20, 4 * problem.k_max // members)),
        "classes": range(problem.classes),
        "training": ClippedDescent(**problem.training, random_state=0),
    }
    if members == 1:
        return CertifiedClassifier(**shared)
    return CertifiedEnsemble(members=members, **shared)


def answers_of(problem: Problem, members: int, folder: Path) -> Answers:
    """Labels and stable distances of a system trained on ``problem``, read from ``folder`` if they
    stand there.

    Args:
        problem: data and settings.
        members: 1 for a single model.
        folder: existing folder; the file's name carries a digest of data and settings, so
            nothing stale is read.
    """
    fitting = system_of(problem, members)
    settings = json.dumps([problem.name, members, fitting.k_max, problem.training], sort_keys=True)
    digest = blake2b(settings.encode(), digest_size=6)
    for array in (problem.X, problem.y, problem.queries):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = folder / f"{problem.name}-{members}-{digest.hexdigest()}.npz"
    if not path.is_file():
        system = fitting.fit(problem.X, problem.y)
        votes, distances = system.member_distances(problem.queries)
        scratch = path.with_suffix(".part.npz")
        np.savez(scratch, votes=votes, distances=distances)
        scratch.replace(path)
    with np.load(path, allow_pickle=False) as stored:
        votes, distances = stored["votes"], stored["distances"]
    labels, stable = (
        (votes[0], distances[0])
        if members == 1
        else vote_distances(votes, distances, classes=problem.classes)
    )
    return Answers(labels, stable, votes, problem.truth, problem.classes)


def noisy_argmax(answers: Answers, epsilon: float) -> float:
    """Expected accuracy of Laplace noise of scale 2 / epsilon on both vote counts: PATE's noisy
    argmax, pure epsilon.

    The difference of two Laplace variables of scale b exceeds m >= 0 with probability exp(-m/b)
    (1/2 + m / (4 b)).
    """
    gap = np.abs(2 * answers.votes.sum(axis=0) - len(answers.votes)) * epsilon / 2.0
    return accuracy_of_flips(answers, np.exp(-gap) * (0.5 + gap / 4.0))


def gaussian_argmax(answers: Answers, sigma: float) -> float:
    """Expected accuracy of discrete Gaussian noise on both vote counts; label 0 where they tie."""
    reach = int(np.ceil(12 * sigma)) + 1
    distribution = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    difference = (
        np.convolve(distribution, distribution) / distribution.sum() ** 2
    )  # of two noises, from -2 reach
    above = np.concatenate(
        [np.cumsum(difference[::-1])[::-1], [0.0]]
    )  # P(difference >= index - 2 reach)
    ones = answers.votes.sum(axis=0)
    gap = np.clip(
        len(answers.votes) - 2 * ones + 1, -2 * reach, 2 * reach + 1
    )  # what the noise has to make up for a 1
    of_one = above[gap + 2 * reach]
    return float(np.where(answers.truth == 1, of_one, 1.0 - of_one).mean())


_MOST_NOISE = 100.0
"""Votes; with fewer members than that an answer is worth nothing."""


def argmax_sigma(*, queries: int, epsilon: float, delta: float) -> float | None:
    """Smallest noise of PATE's Gaussian noisy argmax for ``queries`` labels at a total; None
    above 100 votes.
    """

    def event(sigma: float) -> PrivacyEvent:
        return PrivacyEvent(
            "noisy argmax", Guarantee(epsilon, delta, ADJACENCY), NoisyArgmaxDpEvent(sigma)
        )

    sigma = noise_multiplier(event, epsilon=epsilon, delta=delta, answers=queries, tolerance=0.02)
    return sigma if sigma <= _MOST_NOISE else None


def private_training(
    problem: Problem, folder: Path, *, epsilon: float, delta: float, seeds: int
) -> dict[str, float]:
    """Mean accuracy over seeds of DP-SGD at a total, cached in ``folder``.

    Returns:
        By name: with the certified run's own network, start and full-batch schedule; and trained
            longer, for 30 passes in
        batches of 500 at rate 1, which comes close to training without noise.
    """
    system = system_of(problem).fit(problem.X[:1], problem.y[:1])
    settings = system.members_[0].settings
    start = system.members_[0].grids
    initial = [
        weights * unit for weights, unit in zip(start.start, start.weight_units, strict=True)
    ]
    schedule = PrivateTraining(
        epsilon=epsilon,
        delta=delta,
        hidden=settings.hidden,
        epochs=settings.epochs,
        batch_size=None,
        learning_rate=settings.learning_rate,
        rate_decay=settings.rate_decay,
    )
    free = PrivateTraining(
        epsilon=epsilon,
        delta=delta,
        hidden=settings.hidden,
        epochs=30,
        batch_size=500,
        learning_rate=1.0,
    )
    found = {}
    for name, config in ((DP_SGD, schedule), (TUNED, free)):
        named = blake2b(repr((config, seeds)).encode(), digest_size=6).hexdigest()
        path = folder / f"{problem.name}-dpsgd-{named}.json"
        if not path.is_file():
            scores = []
            for seed in range(seeds):
                seeded = replace(config, seed=seed)
                model = train_private(
                    problem.X, problem.y, seeded, initial=initial if name == DP_SGD else None
                )
                scores.append(float((model.predict(problem.queries) == problem.truth).mean()))
            path.write_text(json.dumps(scores), encoding="utf-8")
        found[name] = float(np.mean(json.loads(path.read_text(encoding="utf-8"))))
    return found


def queries_until(
    accuracy: Callable[[float], float], floor: float, *, epsilon: float, delta: float, most: int
) -> int:
    """How many queries are answered before ``accuracy`` (of one answer's epsilon) falls below
    ``floor``.

    Args:
        accuracy: from the epsilon of one answer to the expected accuracy; rising.
        floor: least accuracy that is accepted.
        epsilon, delta: total of all answers, by optimal composition.
        most: numbers beyond are not told apart.

    Returns:
        The largest number up to ``most`` that still reaches ``floor``; 0 where not even one does.

    Example:
        >>> queries_until(
        ...     lambda epsilon: 0.5 + min(epsilon, 0.5), 0.6, epsilon=10.0, delta=0.0, most=1000
        ... )
        100
    """

    def enough(queries: int) -> bool:
        return accuracy(epsilon_per_answer(epsilon=epsilon, delta=delta, answers=queries)) >= floor

    if not enough(1):
        return 0
    lower, upper = 1, 2
    while upper <= most and enough(upper):
        lower, upper = upper, 2 * upper
    upper = min(upper, most + 1)
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if enough(middle) else (lower, middle)
    return lower
