"""Published obfuscators: every row trains, each regulariser does what it says, combinations by
name.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.published.obfuscators import (
    PUBLISHED_ROWS,
    Contrastive,
    ObfuscatorConfig,
    PublishedObfuscator,
    train_obfuscator,
)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 300)
    return (random.normal(size=(300, 4)) + 3.0 * np.eye(4)[labels]).astype(np.float32), labels


@pytest.mark.parametrize("row", list(PUBLISHED_ROWS))
def test_every_row_keeps_classes_apart_and_repeats(row: str) -> None:
    points, labels = blobs()
    config = ObfuscatorConfig(
        regularisers=PUBLISHED_ROWS[row],
        hidden=(16,),
        outputs=3,
        epochs=15,
        batch_size=50,
        learning_rate=3e-3,
        seed=1,
    )
    networks = [train_obfuscator(points, labels, config)[0] for _ in range(2)]
    with torch.no_grad():
        values = [network(torch.from_numpy(points)).numpy() for network in networks]
    np.testing.assert_array_equal(*values)
    centers = np.array([values[0][labels == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(values[0][:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.75


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


def test_a_published_one_is_that_of_the_table() -> None:
    part = PublishedObfuscator("arl", "noise", outputs=2, hidden=(5,), epochs=2, random_state=7)
    config = ObfuscatorConfig(
        regularisers=("arl", "noise"), hidden=(5,), outputs=2, epochs=2, seed=7
    )
    points, labels = blobs()
    weights, same = (
        [one.detach().numpy() for one in network.parameters()]
        for network in (
            part.fit(points, labels).network(),
            train_obfuscator(points, labels, config)[0],
        )
    )
    for one, other in zip(weights, same, strict=True):
        np.testing.assert_array_equal(one, other)
