"""Bytes and operations of steps whose costs can be counted by hand."""

from __future__ import annotations

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
