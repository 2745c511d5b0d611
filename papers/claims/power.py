"""How many draws refute noise that is half of what is claimed, and how seldom an honest mechanism
is refuted.

``python -m papers.claims.power --seeds 200 --honest 10000``

Honest runs are kept in stretches under ``--results``, so that a command that was stopped goes on
where it ended. A stretch counts only for the code of the test that it was made with.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import beta, binom

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.audit import ScaleTest, SequentialTest, beliefs, sequential
from reticent.core.arrays import Array
from reticent.mechanisms import analytic_sigma

Coins = npt.NDArray[np.bool_]
Law = Callable[[np.random.Generator, Coins, float], Array]
"""From a generator, coins and the epsilon that the noise really has, to answers, shape (n, d)."""

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 4.0)
PURE_LIMIT = {0.05: 300, 0.01: 500}
BEST_EVENT = {0.5: 26_600, 1.0: 11_600, 2.0: 7_500, 4.0: 12_500}
"""Draws that the best event with the best fixed stake needs against half the Gaussian noise."""

_BATCH = 64

_STRETCH = 200
"""Honest runs that are kept together."""


def laplace(random: np.random.Generator, coins: Coins, epsilon: float) -> Array:
    """One number with Laplace noise, on a grid."""
    noise = random.laplace(scale=1.0 / epsilon, size=len(coins))
    return np.asarray(np.round((np.where(coins, 1.0, 0.0) + noise) * 4096)[:, None] / 4096)


def histogram(random: np.random.Generator, coins: Coins, epsilon: float) -> Array:
    """Eight counts of which one differs by 1."""
    counts = np.zeros((len(coins), 8))
    counts[:, 2] = np.where(coins, 5.0, 4.0)
    noise = random.laplace(scale=1.0 / epsilon, size=counts.shape)
    return np.asarray(np.round((counts + noise) * 4096) / 4096)


def response(labels: int) -> Law:
    """Randomised response over so many labels."""

    def law(random: np.random.Generator, coins: Coins, epsilon: float) -> Array:
        right = math.exp(epsilon) / (math.exp(epsilon) + labels - 1)
        lies = random.random(len(coins)) > right
        true = np.where(coins, 0, 1)
        moved = (true + random.integers(1, labels, len(coins))) % labels
        shown = np.where(lies, moved, true)[:, None] == np.arange(labels)
        return np.asarray(shown, dtype=np.float64)

    return law


PURE: dict[str, Law] = {
    "Laplace": laplace,
    "histogram": histogram,
    "response, 2": response(2),
    "response, 4": response(4),
}


def draws_until(
    law: Law, *, real: float, test: SequentialTest, seed: int, most: int, batch: int = _BATCH
) -> float:
    """Return the draws after which ``test`` is refuted, infinite if it is not by ``most``."""
    random = np.random.default_rng([seed, 77])
    for _ in range(0, most, batch):
        coins = random.random(batch) < 0.5
        if test.update(coins, law(random, coins, real)):
            break
    return float(test.refuted_after or math.inf)


def fixed_size(law: Law, *, epsilon: float, alpha: float, seeds: int) -> int:
    """Return how many draws an exact test of fixed size takes to refute in at least half of the
    runs: the least of a grid of steps of a tenth.

    It is told the best score and chooses the best threshold for this very law, both of which the
    sequential test has to learn. Of the guesses that the threshold lets through, no more than
    e^epsilon / (1 + e^epsilon) are right under the claim, so that the number of right ones is held
    against the binomial law.
    """
    largest = 2**13
    random = np.random.default_rng([78, round(100 * epsilon)])
    coins = random.random((seeds, largest)) < 0.5
    scores = _known_score(law(random, coins.ravel(), 2.0 * epsilon)).reshape(coins.shape)
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    size = 8.0
    while size < largest:
        n = round(size)
        for threshold in _THRESHOLDS:
            guessed = np.abs(scores[:, :n]) >= threshold
            right = (guessed & ((scores[:, :n] > 0) == coins[:, :n])).sum(axis=1)
            tails = binom.sf(right - 1, guessed.sum(axis=1), chance)
            if 2 * (tails <= alpha).sum() >= seeds:
                return n
        size *= 1.1
    return largest


_THRESHOLDS = (0.05, 0.25, 0.4, 0.5)


def _known_score(values: Array) -> Array:
    """The log-likelihood ratio in units of its range, shape (n,), from -1/2 to 1/2."""
    if values.shape[1] == 8:
        return np.clip(values[:, 2] - 4.0, 0.0, 1.0) - 0.5
    if values.shape[1] == 1:
        return np.clip(values[:, 0], 0.0, 1.0) - 0.5
    return np.asarray(values[:, 0] - values[:, 1]) / 2.0


def gaussian(sigma: float) -> Law:
    """One number with Gaussian noise of ``sigma``, on a grid."""

    def law(random: np.random.Generator, coins: Coins, epsilon: float) -> Array:
        values = np.where(coins, 1.0, 0.0) + random.normal(scale=sigma, size=len(coins))
        return np.asarray(np.round(values * 4096)[:, None] / 4096)

    return law


def median_error(values: list[float], seed: int = 0) -> float:
    """Return the bootstrap standard error of a median of finite values."""
    random = np.random.default_rng(seed)
    array = np.minimum(np.array(values), 1e9)
    picks = random.integers(0, len(array), (400, len(array)))
    return float(np.median(array[picks], axis=1).std())


def print_pure(
    laws: list[str], epsilons: list[float], *, seeds: int, alphas: tuple[float, ...], fixed: int
) -> None:
    """Print the table of pure epsilon."""
    print("| answer | epsilon | level | median (s.e.) | 95 % | floor | limit | fixed size |")
    print("|---|---|---|---|---|---|---|---|")
    for name in (one for one in PURE if one in laws):
        law = PURE[name]
        for epsilon in epsilons:
            for alpha in alphas:
                after = [
                    draws_until(
                        law,
                        real=2.0 * epsilon,
                        test=SequentialTest(epsilon=epsilon, delta=0.0, alpha=alpha),
                        seed=seed,
                        most=4096,
                    )
                    for seed in range(seeds)
                ]
                floor = SequentialTest(epsilon=epsilon, delta=0.0, alpha=alpha).least_draws
                other = (
                    f"{fixed_size(law, epsilon=epsilon, alpha=alpha, seeds=fixed)}" if fixed else ""
                )
                print(
                    f"| {name} | {epsilon:g} | {alpha:g} | {np.median(after):.0f} "
                    f"({median_error(after):.0f}) | {np.quantile(after, 0.95, method='higher'):.0f}"
                    f" | {floor} | {PURE_LIMIT[alpha]} | {other} |",
                    flush=True,
                )


def print_gaussian(seeds: int) -> None:
    """Print the table of Gaussian noise: at delta, as a stated mu, and as a stated variance."""
    print("| epsilon | at delta 1e-5: median (s.e.) | three best events | as mu | as variance |")
    print("|---|---|---|---|---|")
    for epsilon in EPSILONS:
        sigma = analytic_sigma(sensitivity=1.0, epsilon=epsilon, delta=DELTA)
        law = gaussian(sigma / 2.0)
        claimed, stated, scales = [], [], []
        for seed in range(seeds):
            test = SequentialTest(epsilon=epsilon, delta=DELTA, alpha=0.05)
            claimed.append(draws_until(law, real=0.0, test=test, seed=seed, most=2**18, batch=2048))
            mu = SequentialTest(mu=1.0 / sigma, alpha=0.05)
            stated.append(draws_until(law, real=0.0, test=mu, seed=seed, most=2**14))
            scale = ScaleTest("gaussian", scale=sigma, alpha=0.05)
            random = np.random.default_rng([seed, 79])
            scale.update(random.normal(scale=sigma / 2.0, size=400))
            scales.append(float(scale.refuted_after or math.inf))
        print(
            f"| {epsilon:g} | {np.median(claimed):.0f} ({median_error(claimed):.0f}) | "
            f"{3 * BEST_EVENT[epsilon]} | {np.median(stated):.0f} ({median_error(stated):.0f}) | "
            f"{np.median(scales):.0f} |",
            flush=True,
        )


def claims_at_the_edge() -> dict[str, tuple[Law, dict[str, Any]]]:
    """Return laws whose claim just holds, with the claim: epsilon 1, mu 1, and the epsilon of mu 1
    at delta .05.
    """
    pure: dict[str, tuple[Law, dict[str, Any]]] = {
        name: (law, {"epsilon": 1.0, "delta": 0.0}) for name, law in PURE.items()
    }
    tight = brentq(lambda e: gaussian_delta(noise_multiplier=1.0, epsilon=e) - 0.05, 0.01, 9.0)
    return {
        **pure,
        "Gaussian, mu 1": (gaussian(1.0), {"mu": 1.0}),
        "Gaussian, delta .05": (gaussian(1.0), {"epsilon": tight * (1 + 1e-9), "delta": 0.05}),
    }


def honest_refuted(
    name: str, *, runs: int, first: int = 0, draws: int = 512, alpha: float = 0.01
) -> int:
    """Return how many of so many audits of a claim that just holds refute it, from the seed
    ``first`` on.
    """
    law, claim = claims_at_the_edge()[name]
    found = 0
    for seed in range(first, first + runs):
        test = SequentialTest(**claim, alpha=alpha)
        after = draws_until(law, real=1.0, test=test, seed=seed, most=draws, batch=draws)
        found += math.isfinite(after)
    return found


def code_of(*modules: ModuleType) -> str:
    """Return a digest of the source of modules: a kept result counts for the code that made it."""
    sources = [Path(str(module.__file__)).read_bytes() for module in modules]
    return hashlib.sha256(b"".join(sources)).hexdigest()[:16]


def kept_honest(name: str, *, runs: int, results: Path) -> int:
    """Return ``honest_refuted``, summed over stretches of seeds that are kept in a file each."""
    folder = results / code_of(sequential, beliefs, sys.modules[__name__])
    folder.mkdir(parents=True, exist_ok=True)
    found = 0
    for first in range(0, runs, _STRETCH):
        many = min(_STRETCH, runs - first)
        file = folder / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}_{first}_{many}.json"
        if not file.exists():
            file.write_text(json.dumps(honest_refuted(name, runs=many, first=first)))
        found += int(json.loads(file.read_text()))
    return found


def print_honest(runs: int, laws: list[str], results: Path) -> None:
    """Print how many of so many honest runs at the edge of their claim are refuted at .01, and the
    largest chance that 95 % leave (Clopper and Pearson, one-sided).
    """
    print("| answer | honest runs of 512 draws | refuted at level .01 | share (s.e.) | at most |")
    print("|---|---|---|---|---|")
    each, total = -(-runs // len(laws)), 0
    for name in [*laws, "all"]:
        made = each if name in laws else each * len(laws)
        found = kept_honest(name, runs=each, results=results) if name in laws else total
        total += found
        share = found / made
        error = math.sqrt(share * (1 - share) / made)
        most = beta.ppf(0.95, found + 1, made - found)
        print(f"| {name} | {made} | {found} | {share:.4f} ({error:.4f}) | {most:.4f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="Runs of each row.")
    parser.add_argument("--gaussian", type=int, default=20, help="Runs of each Gaussian row.")
    parser.add_argument("--honest", type=int, default=10_000, help="Honest runs; 0 for none.")
    parser.add_argument("--fixed", type=int, default=40, help="Runs of each test of fixed size.")
    edges = list(claims_at_the_edge())
    parser.add_argument("--laws", nargs="+", default=edges, choices=edges, help="Rows.")
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS, help="Rows of pure.")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path(".cache/claims/honest"),
        help="Stretches that are kept.",
    )
    given = parser.parse_args()
    if given.seeds:
        print_pure(
            given.laws,
            given.epsilons,
            seeds=given.seeds,
            alphas=(0.05, 0.01),
            fixed=given.fixed,
        )
    if given.gaussian:
        print_gaussian(given.gaussian)
    if given.honest:
        print_honest(given.honest, given.laws, given.results)


if __name__ == "__main__":
    main()
