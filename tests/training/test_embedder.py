"""The beta-VAE: shapes of both architectures, learning, repeatability, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.datasets import load_digits
from reticent.training.embedder import ARCHITECTURES, Embedder, EmbedderConfig, train_embedder


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("shape", [(8, 8), (28, 28)])
def test_shapes_there_and_back(architecture: str, shape: tuple[int, int]) -> None:
    embedder = Embedder(
        EmbedderConfig(image_shape=shape, latent_dimension=5, architecture=architecture, width=64)
    )
    images = np.random.default_rng(0).random((3, *shape), dtype=np.float32)
    embeddings = embedder.embed(images, batch_size=2)
    assert embeddings.shape == (3, 5)
    assert embeddings.dtype == np.float32
    pictures = embedder.pictures(embeddings)
    assert pictures.shape == images.shape
    assert 0 <= pictures.min() <= pictures.max() <= 1
    assert embedder.embed(images[:0]).shape == (0, 5)


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
