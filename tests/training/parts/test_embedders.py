"""Embedders as parts compute what the functions behind them compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.training.embedder import EmbedderConfig, train_embedder
from reticent.training.parts import BetaVAE

PICTURES = np.random.default_rng(0).uniform(size=(30, 4, 4))
SMALL = {"latent_dimension": 2, "epochs": 2, "batch_size": 10, "width": 8}


@pytest.mark.parametrize("shape", [(30, 4, 4), (30, 16)])
def test_a_beta_vae_is_the_one_of_the_training_function(shape: tuple[int, ...]) -> None:
    state = torch.random.get_rng_state()
    part = BetaVAE(**SMALL, beta=0.4, random_state=3).fit(PICTURES.reshape(shape), report=_ignore)
    assert torch.equal(state, torch.random.get_rng_state())
    config = EmbedderConfig(image_shape=(4, 4), beta=0.4, seed=3, **SMALL)
    pictures = PICTURES.astype(np.float32)
    expected = train_embedder(pictures, config)
    np.testing.assert_array_equal(part.network().embed(pictures), expected.embed(pictures))


def _ignore(stage: str, done: int, total: int, loss: float) -> None:
    assert stage == "embedder"
    assert 1 <= done <= total == 2
