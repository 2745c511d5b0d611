"""Embeddings survive being stored, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.systems.embedding import (
    BetaVaeEmbedding,
    Embedding,
    IdentityEmbedding,
    ModuleEmbedding,
    restore,
)
from reticent.training.embedder import Embedder, EmbedderConfig


def beta_vae() -> BetaVaeEmbedding:
    torch.manual_seed(0)
    return BetaVaeEmbedding(
        Embedder(EmbedderConfig(image_shape=(4, 4), latent_dimension=3, width=8)).eval()
    )


def own_module() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.Dropout(0.5))


@pytest.mark.parametrize(
    ("embedding", "module"),
    [
        (IdentityEmbedding(16), None),
        (beta_vae(), None),
        (
            ModuleEmbedding(own_module(), (4, 4)),
            nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.Dropout(0.5)),
        ),
        (ModuleEmbedding(own_module(), (4, 4)), None),
    ],
    ids=["identity", "beta-VAE", "module", "module that is built again"],
)
def test_a_stored_embedding_maps_alike(embedding: Embedding, module: nn.Module | None) -> None:
    inputs = np.random.default_rng(0).uniform(size=(7, 16))
    described, arrays = embedding.describe()
    again = restore(described, arrays, module)
    np.testing.assert_array_equal(again.embed(inputs), embedding.embed(inputs))
    assert again.space == embedding.space
    assert embedding.embed(inputs).dtype == np.float64


def test_dropout_is_off_whatever_mode_the_module_was_left_in() -> None:
    module = own_module()
    embedding = ModuleEmbedding(module, (4, 4))
    module.train()
    inputs = np.ones((3, 16))
    np.testing.assert_array_equal(embedding.embed(inputs), embedding.embed(inputs))
