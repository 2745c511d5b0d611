"""Label release: constant 1 in the spread, and each mechanism's training serves that mechanism."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core import Norm
from reticent.training.label_aware import LabelAwareConfig, train_label_release
from reticent.training.label_chances import CHANCES, chance_of
from reticent.training.lipschitz_objective import (
    SPREAD,
    input_directions,
    lipschitz_bound,
    output_functionals,
)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 1500)
    points = random.normal(size=(1500, 3))
    points[:, :2] = 0.3 * points[:, :2] + np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[labels]
    return points.astype(np.float32), labels


@pytest.mark.parametrize("mechanism", list(CHANCES))
def test_spread_is_one_and_labels_are_mostly_right(mechanism: str) -> None:
    points, labels = blobs()
    config = LabelAwareConfig(
        epsilon=2.0, radius=0.3, mechanism=mechanism, hidden=(16,), epochs=15, batch_size=250
    )
    network = train_label_release(points, labels, config)
    directions, functionals = input_directions(3, Norm.LINF), output_functionals(4, SPREAD)
    assert lipschitz_bound(network, directions, functionals).item() == pytest.approx(1.0, rel=1e-4)
    with torch.no_grad():
        logits = network(torch.from_numpy(points)) * (2.0 / 0.3)
        right = chance_of(mechanism)(logits, torch.from_numpy(labels), 2.0).mean().item()
    assert right > 0.75
