from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting.discrete_gaussian import log_tails, sampled_gaussian_rdp


def _distribution(sigma: float, reach: int) -> dict[int, mp.mpf]:
    weights = {
        v: mp.exp(-(mp.mpf(v) ** 2) / (2 * mp.mpf(sigma) ** 2)) for v in range(-reach, reach + 1)
    }
    total = mp.fsum(weights.values())
    return {v: weight / total for v, weight in weights.items()}


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.5])
def test_tails_against_many_digits(sigma: float) -> None:
    with mp.workdps(60):
        distribution = _distribution(sigma, 400)
        points = np.array([-30, -3, -1, 0, 1, 2, 30])
        above, below = log_tails(points, sigma=sigma)
        for index, m in enumerate(points.tolist()):
            assert above[index] == pytest.approx(
                float(mp.log(mp.fsum(p for v, p in distribution.items() if v >= m))),
                rel=1e-12,
                abs=1e-15,
            )
            assert below[index] == pytest.approx(
                float(mp.log(mp.fsum(p for v, p in distribution.items() if v < m))),
                rel=1e-12,
                abs=1e-15,
            )


def test_golden_values_of_sampled_gaussian_noise(golden: dict[str, Any]) -> None:
    for row in golden["sampled_gaussian"]:
        found = sampled_gaussian_rdp(
            [2, 8, 32],
            noise_multiplier=row["noise_multiplier"],
            sampling_probability=row["sampling_probability"],
        )
        assert found == pytest.approx([row["rdp"][order] for order in ("2", "8", "32")], rel=1e-9)


@pytest.mark.parametrize(("sigma", "shift"), [(1.5, (1, -1)), (0.7, (1,)), (3.0, (2, -1, 1))])
def test_discrete_noise_has_the_same_closed_form(sigma: float, shift: tuple[int, ...]) -> None:
    """The sum over all integer vectors, in both directions; the sampled distribution on top is
    the closed form to rounding.
    """
    reach = math.ceil(14 * sigma) + 12
    values = np.arange(-reach, reach + 1)

    def log_distribution(center: int) -> np.ndarray:
        weights = -((values - center) ** 2) / (2 * sigma**2)
        return weights - np.logaddexp.reduce(weights)

    base, moved = np.zeros(()), np.zeros(())
    for part in shift:
        base, moved = (
            base[..., None] + log_distribution(0),
            moved[..., None] + log_distribution(part),
        )
    rate = 0.2
    mixed = np.logaddexp(np.log1p(-rate) + base, np.log(rate) + moved)
    for order in (2, 3, 5):
        closed = sampled_gaussian_rdp(
            [order],
            noise_multiplier=sigma / math.sqrt(sum(part**2 for part in shift)),
            sampling_probability=rate,
        )[0]
        remove = np.log(np.exp(order * mixed + (1 - order) * base).sum()) / (order - 1)
        add = np.log(np.exp(order * base + (1 - order) * mixed).sum()) / (order - 1)
        assert remove == pytest.approx(closed, rel=1e-9)
        assert add <= closed
