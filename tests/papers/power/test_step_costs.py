"""Bytes and operations of steps whose costs can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from papers.power.step_costs import step_cost


def test_a_product_holds_its_operands_and_its_result() -> None:
    first, second = torch.ones(200, 300), torch.ones(300, 400)
    cost = step_cost(lambda: first @ second, held=[first, second])
    assert cost.operations == 2 * 200 * 300 * 400
    assert cost.peak_bytes == pytest.approx(4 * (200 * 300 + 300 * 400 + 200 * 400), rel=0.02)


def test_what_is_freed_no_longer_counts() -> None:
    start = torch.ones(100_000)

    def chain() -> torch.Tensor:
        value = start
        for _ in range(20):
            value = value + 1
        return value

    cost = step_cost(chain, held=[start])
    assert cost.peak_bytes == pytest.approx(
        4 * 300_000, rel=0.02
    )  # the start, one operand, one result


def test_a_training_step_of_adam() -> None:
    layer = torch.nn.Linear(500, 400, bias=False)
    optimizer = torch.optim.Adam(layer.parameters(), foreach=False)
    rows = torch.randn(8, 500)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(layer(rows).square().mean())
        optimizer.step()

    cost = step_cost(step, held=[*layer.parameters(), rows])
    assert cost.operations == 2 * (
        2 * 8 * 500 * 400
    )  # forward, and the gradient of the weights; rows need none
    assert (
        4 <= cost.peak_bytes / (4 * 500 * 400) < 6.3
    )  # weights, gradient, two moments, and the update's two temporaries


def test_arrays_outside_of_torch_count_too() -> None:
    cost = step_cost(lambda: np.ones(10**6).sum(), held=[], extra_operations=7.0)
    assert cost.operations == 7
    assert cost.peak_bytes == pytest.approx(8 * 10**6, rel=0.02)
