"""The contrastive term: closed form on a hand-made batch, finite gradient for equal points."""

from __future__ import annotations

import pytest
import torch

from reticent.training.obfuscators.contrastive import Contrastive


def test_closed_form() -> None:
    representation = torch.tensor([[0.0], [3.0], [10.0]])
    labels = torch.tensor([0, 0, 1])
    term = Contrastive(weight=2.0, margin=9.0)
    # pairs: same label 3^2 = 9; different labels (9 - 10)+ = 0 and (9 - 7)^2 = 4
    assert term.penalty(representation, representation, labels).item() == pytest.approx(
        2.0 * 13 / 3
    )


def test_equal_points_have_a_finite_gradient() -> None:
    representation = torch.zeros(2, 2, requires_grad=True)
    torch.autograd.backward(
        Contrastive().penalty(representation, representation, torch.tensor([0, 1]))
    )
    assert representation.grad is not None
    assert torch.isfinite(representation.grad).all()


def test_a_batch_of_one_costs_nothing() -> None:
    assert (
        Contrastive()
        .penalty(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, dtype=torch.long))
        .item()
        == 0
    )
