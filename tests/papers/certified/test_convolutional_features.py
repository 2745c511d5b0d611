"""The frozen feature map: shapes, repeatability, and that training teaches it something."""

from __future__ import annotations

import numpy as np
import torch

from papers.certified.convolutional_features import (
    ConvolutionalConfig,
    ConvolutionalFeatures,
)

CONFIG = ConvolutionalConfig(
    image_shape=(16, 16),
    channels=(4, 8),
    width=16,
    pool=4,
    epochs=4,
    batch_size=32,
    learning_rate=5e-3,
)


def test_features_are_cell_means_of_the_planes() -> None:
    torch.manual_seed(1)
    network = ConvolutionalFeatures(CONFIG)
    picture = np.random.default_rng(0).random((2, 16, 16)).astype(np.float32)
    planes = network.planes(torch.from_numpy(picture)).detach().numpy()
    assert planes.shape == (2, 8, 4, 4)
    np.testing.assert_allclose(network.features(picture), planes.mean(axis=(2, 3)), rtol=1e-5)
