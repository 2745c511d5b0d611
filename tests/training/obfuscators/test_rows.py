"""Published obfuscators: every row trains, each regulariser does what it says, combinations by
name.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.errors import UnknownName
from reticent.training.obfuscators import (
    PUBLISHED_ROWS,
    REGULARISERS,
    ObfuscatorConfig,
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
    networks = [train_obfuscator(points, labels, config) for _ in range(2)]
    with torch.no_grad():
        values = [network(torch.from_numpy(points)).numpy() for network in networks]
    np.testing.assert_array_equal(*values)
    centers = np.array([values[0][labels == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(values[0][:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.75


def test_rows_are_the_eight_combinations() -> None:
    assert len(PUBLISHED_ROWS) == 2 ** len(REGULARISERS) == len(set(PUBLISHED_ROWS.values()))


def test_unknown_regulariser_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="arl, contrastive, noise"):
        ObfuscatorConfig(regularisers=("dropout",))
