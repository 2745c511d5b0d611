"""What the published Private-kNN settings cost by each bound, and how long the answers take.

    python benchmarks/private_knn_accounting.py

Claims: the exact search over every count at 156 orders takes well under a second; charging what
is released instead of what it post-processes lowers epsilon by a tenth or more against
privacy-loss distributions, the tightest of the usual accountants, in the same run; a calibration
takes seconds. Times are processor time of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from figures import Figure

from reticent.accounting import (
    GaussianCost,
    PldAccountant,
    PoissonSampled,
    PrivacyEvent,
    PrivateKnnSteps,
    ScreeningDpEvent,
    calibrate_private_knn,
    private_knn_total,
    screening_rdp,
)
from reticent.accounting.renyi import DEFAULT_ORDERS
from reticent.core.guarantees import AddRemove, Guarantee

MNIST = PrivateKnnSteps(
    queries=1000,
    answers=735,
    neighbours=300,
    sampling_probability=0.15,
    sigma_votes=25.0,
    threshold=180.0,
    sigma_screening=75.0,
)
SETTINGS = {
    "MNIST, fresh subsamples": MNIST,
    "MNIST, one subsample per query": replace(MNIST, shared_subsample=True),
    "SVHN": replace(
        MNIST,
        queries=3000,
        answers=2939,
        sampling_probability=0.05,
        sigma_votes=5.0,
        threshold=210.0,
        sigma_screening=85.0,
    ),
    "8192 asked, 2000 answered": replace(
        MNIST,
        queries=8192,
        answers=2000,
        sampling_probability=0.25,
        threshold=210.0,
        sigma_screening=85.0,
    ),
}
BOUNDS = ("Rényi, noisy votes", "privacy-loss distributions", "Rényi, bits and labels")

T = TypeVar("T")


def epsilon_of_losses(steps: PrivateKnnSteps) -> float:
    """Return epsilon of the sampled Gaussian steps, at delta 1e-5, by a usual accountant."""
    found = PldAccountant(AddRemove(1), interval=1e-4)
    for sigma, sensitivity, rate, times in (
        (steps.sigma_screening, 1.0, steps.sampling_probability, steps.queries),
        (steps.sigma_votes, steps.vote_sensitivity, steps.vote_rate, steps.answers),
    ):
        cost = PoissonSampled(rate, GaussianCost(sigma / sensitivity))
        found.compose(PrivacyEvent("votes", Guarantee(1.0, 0.0, AddRemove(1)), cost), times)
    return found.epsilon(delta=1e-5)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def main() -> None:
    print(f"epsilon at delta 1e-5 | {' | '.join(BOUNDS)} | seconds")
    for name, steps in SETTINGS.items():
        total, seconds = timed(lambda steps=steps: private_knn_total(steps, delta=1e-5))
        found = {**dict(total.considered), BOUNDS[1]: epsilon_of_losses(steps)}
        Figure.of(f"total of Private-kNN, {name}", [seconds]).keep()
        print(f"{name} | {' | '.join(f'{found[bound]:.3f}' for bound in BOUNDS)} | {seconds:.2f}")
    step = ScreeningDpEvent(0, 300, 210, 85.0)
    exact, seconds = timed(lambda: screening_rdp(step, DEFAULT_ORDERS, sampling_probability=0.25))
    print(f"screening, 600 pairs of counts, {exact.size} orders: {seconds:.3f} s")
    at_80 = screening_rdp(step, [80.0], sampling_probability=1.0)[0]
    counts = (ScreeningDpEvent(low, low + 1, 210, 85.0) for low in (209, 210, 299))
    shortcut = max(screening_rdp(pair, [80.0], sampling_probability=1.0)[0] for pair in counts)
    print(
        f"screening at order 80: all counts {at_80:.6f}, only those at the threshold and at k "
        f"{shortcut:.6f} "
        f"({100 * (1 - shortcut / at_80):.1f} % too low)"
    )
    for epsilon in (0.25, 0.5, 1.0):
        steps, seconds = timed(
            lambda epsilon=epsilon: calibrate_private_knn(
                epsilon=epsilon,
                delta=1e-5,
                queries=735,
                answers=735,
                neighbours=300,
                sampling_probability=0.15,
                threshold=None,
                noise_ratio=None,
            )
        )
        print(
            f"735 labels at epsilon {epsilon:g}: sigma_votes {steps.sigma_votes:.1f}, found in "
            f"{seconds:.2f} s"
        )
    print(f"numpy {np.__version__}, one thread")


if __name__ == "__main__":
    main()
