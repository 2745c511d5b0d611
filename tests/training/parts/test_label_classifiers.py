"""The label classifier as a part computes what the function behind it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.norms import Norm
from reticent.training.label_aware import LabelAwareConfig, train_label_release
from reticent.training.parts import LabelAware, PlannedRelease

X = np.random.default_rng(0).normal(size=(960, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def release(mechanism: str) -> PlannedRelease:
    return PlannedRelease(
        epsilon=2.0,
        delta=0.0,
        radius=0.3,
        input_norm=Norm.LINF,
        mechanism=mechanism,
        output="spread",
    )


@pytest.mark.parametrize("mechanism", ["softmax", "stability", "noisy-max"])
def test_it_is_trained_for_the_mechanism_that_it_is_told_of(mechanism: str) -> None:
    state = torch.random.get_rng_state()
    part = LabelAware(hidden=(5,), epochs=1, random_state=7).fit(X, Y, release=release(mechanism))
    assert torch.equal(state, torch.random.get_rng_state())
    config = LabelAwareConfig(
        epsilon=2.0,
        radius=0.3,
        mechanism=mechanism,
        hidden=(5,),
        epochs=1,
        batch_size=40,  # 960 // 24
        seed=7,
    )
    expected = train_label_release(X, Y, config)
    points = torch.from_numpy(X.astype(np.float32))
    assert torch.equal(part.network()(points), expected(points))
