"""The frozen feature map: shapes, repeatability, and that training teaches it something."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papers.certified.convolutional_features import (
    ConvolutionalConfig,
    ConvolutionalFeatures,
    train_convolutional_features,
)
from reticent.datasets import load_digits


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = load_digits()
    wide = [
        np.kron(images, np.ones((2, 2), np.float32))
        for images in (data.train_images, data.test_images)
    ]
    return wide[0], data.train_labels, wide[1], data.test_labels


CONFIG = ConvolutionalConfig(
    image_shape=(16, 16),
    channels=(4, 8),
    width=16,
    pool=4,
    epochs=4,
    batch_size=32,
    learning_rate=5e-3,
)


def test_training_makes_features_that_tell_classes_apart(
    digits: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    images, labels, test, truth = digits

    def accuracy(features: ConvolutionalFeatures) -> float:
        train, held = features.features(images), features.features(test)
        assert train.shape == (len(images), 8)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        return float(model.fit(train, labels).score(held, truth))

    torch.manual_seed(CONFIG.seed)
    untrained = accuracy(ConvolutionalFeatures(CONFIG))
    trained = train_convolutional_features(images, labels, CONFIG)
    assert accuracy(trained) > untrained + 0.1


def test_features_are_cell_means_of_the_planes() -> None:
    torch.manual_seed(1)
    network = ConvolutionalFeatures(CONFIG)
    picture = np.random.default_rng(0).random((2, 16, 16)).astype(np.float32)
    planes = network.planes(torch.from_numpy(picture)).detach().numpy()
    assert planes.shape == (2, 8, 4, 4)
    np.testing.assert_allclose(network.features(picture), planes.mean(axis=(2, 3)), rtol=1e-5)
