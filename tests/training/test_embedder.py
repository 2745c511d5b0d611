"""The beta-VAE: shapes of both architectures, learning, repeatability, refusals."""

from __future__ import annotations

import numpy as np
import torch

from reticent.datasets import load_digits
from reticent.training.embedder import EmbedderConfig, train_embedder


def test_learns_to_reconstruct() -> None:
    images = load_digits().train_images[:600]
    config = EmbedderConfig(
        image_shape=(8, 8),
        latent_dimension=4,
        learning_rate=3e-3,
        beta=0.2,
        epochs=20,
        batch_size=32,
        width=64,
        dropout=0.0,
    )
    told: list[float] = []
    first = train_embedder(
        images, config, report=lambda stage, done, total, loss: told.append(loss)
    )
    assert told[-1] < told[0]
    constant = ((images - images.mean(axis=0)) ** 2).mean()
    assert ((first.pictures(first.embed(images)) - images) ** 2).mean() < 0.8 * constant


def test_embedding_is_the_posterior_mean_without_dropout() -> None:
    config = EmbedderConfig(image_shape=(8, 8), latent_dimension=4, epochs=1, width=32, dropout=0.5)
    images = load_digits().train_images[:100]
    embedder = train_embedder(images, config)
    with torch.no_grad():
        np.testing.assert_array_equal(
            embedder.embed(images), embedder(torch.from_numpy(images)).numpy()
        )
    np.testing.assert_array_equal(embedder.embed(images), embedder.embed(images))
