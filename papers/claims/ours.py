"""Our own mechanisms in the table of claims, each at the worst pair that is known."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from papers.claims.cases import (
    logits_case,
    noisy_argmax_case,
    noisy_screening_case,
    noisy_sums_case,
    response_case,
    signed_distance_case,
    stability_release_case,
)
from reticent.audit import (
    AuditCase,
    additive_case,
    finite_channel_case,
    hop_release_case,
    propose_test_release_case,
    worst_levels,
    worst_shift,
)
from reticent.core import AddRemove, Neighborhood, Norm
from reticent.grids.lattice import Lattice
from reticent.mechanisms import (
    AdditiveMechanism,
    FiniteChannel,
    GaussianMechanism,
    HopRelease,
    KNormMechanism,
    LaplaceMechanism,
    NoisyArgmax,
    NoisyMaxRelease,
    NoisyScreening,
    NoisySums,
    ProposeTestRelease,
    SignedDistanceRelease,
    StabilityRelease,
    StabilityResponse,
    SumBlock,
)
from reticent.noise import SecureSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
RECORD = AddRemove(1)
DELTA = 1e-2


def _additive(mechanism: AdditiveMechanism, delta: float = 0.0) -> AuditCase:
    return additive_case(mechanism, shift=worst_shift(mechanism), epsilon=1.0, delta=delta)


def _laplace(epsilon: float = 1.0) -> LaplaceMechanism:
    return LaplaceMechanism(sensitivity=1.0, epsilon=epsilon, dimension=3, adjacency=NEAR)


def _k_norm(norm: Norm) -> AuditCase:
    return _additive(
        KNormMechanism(sensitivity=1.0, epsilon=1.0, dimension=3, adjacency=NEAR, output_norm=norm)
    )


def _gaussian() -> AuditCase:
    mechanism = GaussianMechanism(
        sensitivity=1.0, epsilon=1.0, delta=DELTA, dimension=3, adjacency=NEAR
    )
    return _additive(mechanism, DELTA)


def _tested() -> AuditCase:
    inner = _laplace(0.5)
    mechanism = ProposeTestRelease(
        radius=2.0, proposal=0.5, epsilon_test=0.5, delta_test=DELTA, inner=inner
    )
    return propose_test_release_case(
        mechanism,
        levels=worst_levels(mechanism),
        shift=worst_shift(inner),
        epsilon=mechanism.guarantee.epsilon,
        delta=mechanism.guarantee.delta,
    )


def _signed() -> AuditCase:
    mechanism = SignedDistanceRelease.for_answers(
        classes=2, epsilon=1.0, delta=DELTA, answers=12, adjacency=RECORD
    )
    return signed_distance_case(
        mechanism, labels=(0, 1), levels=(0, 0), answers=12, epsilon=1.0, delta=DELTA
    )


def _channel() -> AuditCase:
    return finite_channel_case(FiniteChannel.response(4, epsilon=1.0, adjacency=NEAR), epsilon=1.0)


def _hops() -> AuditCase:
    cells = Lattice.over([[0.0, 0.0], [3.4, 1.4]], radius=0.5, tail=0.0)
    left = np.arange(2)[:, None] == (cells.center[:, 0] > 1.7)
    both = left | (np.abs(cells.center[:, 0] - 1.7) < 0.3)
    mechanism = HopRelease.of(both, lattice=cells, epsilon=1.0, adjacency=NEAR)
    return hop_release_case(mechanism, epsilon=1.0)


def _voting(kind: str) -> AuditCase:
    if kind == "argmax":
        argmax = NoisyArgmax(
            classes=2, neighbours=20, sigma=0.6, sampling_probability=0.6, delta=1e-5
        )
        return noisy_argmax_case(
            argmax, votes=np.array([9, 10]), epsilon=argmax.guarantee.epsilon, delta=1e-5
        )
    screening = NoisyScreening(
        neighbours=20, threshold=12.0, sigma=0.6, sampling_probability=0.6, delta=1e-5
    )
    return noisy_screening_case(
        screening, votes=12, epsilon=screening.guarantee.epsilon, delta=1e-5
    )


def _noisy_max() -> AuditCase:
    mechanism = NoisyMaxRelease(classes=10, sensitivity=1.0, epsilon=1.0, adjacency=NEAR)
    return logits_case(mechanism, lead=0.0, change=1.0, epsilon=1.0)


def _response() -> AuditCase:
    mechanism = StabilityResponse(classes=10, epsilon=1.0, adjacency=RECORD)
    return response_case(mechanism, labels=(0, 1), levels=(0, 0), epsilon=1.0)


def _stability() -> AuditCase:
    mechanism = StabilityRelease(classes=10, sensitivity=1.0, epsilon=1.0, adjacency=NEAR)
    return stability_release_case(mechanism, margins=(0.5, -0.49), epsilon=1.0)


def _sums() -> AuditCase:
    mechanism = NoisySums(
        blocks=(SumBlock(1, 1000.0),), sums=20, epsilon=1.0, delta=0.05, adjacency=RECORD
    )
    return noisy_sums_case(mechanism, epsilon=1.0, delta=0.05)


OURS: dict[str, Callable[[], AuditCase]] = {
    "LaplaceMechanism": lambda: _additive(_laplace()),
    "KNormMechanism, linf": lambda: _k_norm(Norm.LINF),
    "KNormMechanism, l2": lambda: _k_norm(Norm.L2),
    "GaussianMechanism": _gaussian,
    "ProposeTestRelease": _tested,
    "NoisyMaxRelease": _noisy_max,
    "StabilityResponse": _response,
    "StabilityRelease": _stability,
    "SignedDistanceRelease": _signed,
    "FiniteChannel, response": _channel,
    "HopRelease": _hops,
    "NoisyArgmax": lambda: _voting("argmax"),
    "NoisyScreening": lambda: _voting("screening"),
    "NoisySums": _sums,
}


def our_row(name: str, *, draws: int, alpha: float) -> str:
    """Return the row of the table for one mechanism of ``OURS``."""
    start, case = time.monotonic(), OURS[name]()
    test = case.bet(draws=draws, alpha=alpha, sampler=SecureSampler(), stop=True)
    verdict = "**refuted**" if test.refuted else "not refuted"
    return (
        f"| reticent: {name} | its Guarantee block, at the worst pair known | "
        f"epsilon={case.epsilon:.4g}, delta={case.delta:g} | "
        f"{test.excluded(delta=case.delta):.3g} | at most the claim | {verdict} | {test.draws} "
        f"| {time.monotonic() - start:.0f} | {case.name} |"
    )
