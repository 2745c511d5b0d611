"""Embeddings survive being stored, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from reticent.systems.embedding import (
    ModuleEmbedding,
)


def own_module() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.Dropout(0.5))


def test_dropout_is_off_whatever_mode_the_module_was_left_in() -> None:
    module = own_module()
    embedding = ModuleEmbedding(module, (4, 4))
    module.train()
    inputs = np.ones((3, 16))
    np.testing.assert_array_equal(embedding.embed(inputs), embedding.embed(inputs))
