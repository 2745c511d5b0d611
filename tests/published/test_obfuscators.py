"""Published obfuscators: every row trains and repeats, and the contrastive term is what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.published.obfuscators import PUBLISHED_ROWS, PublishedObfuscator, contrastive


@pytest.mark.parametrize("row", PUBLISHED_ROWS)
def test_every_row_keeps_classes_apart_and_repeats(row: str) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 300)
    points = (random.normal(size=(300, 4)) + 3.0 * np.eye(4)[labels]).astype(np.float32)
    part = PublishedObfuscator(
        row=row,
        hidden=(16,),
        outputs=3,
        epochs=15,
        batch_size=50,
        learning_rate=3e-3,
        random_state=1,
    )
    networks = [part.fit(points, labels).network_ for _ in range(2)]
    with torch.no_grad():
        values = [network(torch.from_numpy(points)).numpy() for network in networks]
    np.testing.assert_array_equal(*values)
    centers = np.array([values[0][labels == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(values[0][:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.75


def test_closed_form() -> None:
    released = torch.tensor([[0.0], [3.0], [10.0]])
    # pairs: same label 3^2 = 9; different labels (9 - 10)+ = 0 and (9 - 7)^2 = 4
    found = contrastive(released, torch.tensor([0, 0, 1]), margin=9.0)
    assert found.item() == pytest.approx(13 / 3)


def test_equal_points_have_a_finite_gradient() -> None:
    released = torch.zeros(2, 2, requires_grad=True)
    torch.autograd.backward(contrastive(released, torch.tensor([0, 1])))
    assert released.grad is not None
    assert torch.isfinite(released.grad).all()
