"""Students learn from few labels and from pictures without any, and do not learn wrong labels by
heart.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from papers.private_knn.query_choice import representatives
from papers.private_knn.students import (
    Student,
    StudentConfig,
    as_printed,
    distort,
    train_student,
)
from reticent.core.errors import InvalidParameter
from reticent.datasets import load_digits

CONFIG = StudentConfig(
    image_shape=(1, 8, 8),
    channels=(8, 16),
    hidden=(32,),
    epochs=40,
    learning_rate=5e-3,
    turn=0.1,
    zoom=0.05,
    shift=0.05,
)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.train_images.reshape(-1, 64), data.train_labels


def test_a_few_labels_and_many_pictures_make_a_classifier(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    pictures, truth = (part[:700] for part in digits)
    labels = np.full(len(truth), -1)
    labels[:100] = truth[:100]
    student = train_student(pictures, labels, classes=10, config=CONFIG)
    probabilities = student.probabilities(pictures)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1)[100:] == truth[100:]).mean() > 0.8


def test_the_printed_network_has_the_layers_of_the_paper() -> None:
    student = Student(as_printed(StudentConfig(image_shape=(1, 28, 28))), 10)
    shapes = [tuple(each.shape) for each in student.parameters() if each.ndim > 1]
    assert shapes == [(64, 1, 5, 5), (128, 64, 5, 5), (384, 7 * 7 * 128), (192, 384), (10, 192)]


def test_pictures_are_moved_a_little_and_only_if_asked_to() -> None:
    torch.manual_seed(0)
    pictures = torch.rand(50, 64)
    still = StudentConfig(image_shape=(1, 8, 8), turn=0.0, zoom=0.0, shift=0.0)
    torch.testing.assert_close(distort(pictures, still), pictures, atol=1e-5, rtol=0)
    mirrored = distort(
        pictures, StudentConfig(image_shape=(1, 8, 8), turn=0.0, zoom=0.0, shift=0.0, flips=True)
    ).reshape(50, 8, 8)
    same = (mirrored - pictures.reshape(50, 8, 8)).abs().amax(dim=(1, 2)) < 1e-4
    turned = (mirrored.flip(2) - pictures.reshape(50, 8, 8)).abs().amax(dim=(1, 2)) < 1e-4
    assert bool((same ^ turned).all())
    assert 10 < int(same.sum()) < 40
    assert float((distort(pictures, CONFIG) - pictures).abs().mean()) > 0.01


def test_representatives_are_different_unasked_and_spread_out() -> None:
    rng = np.random.default_rng(0)
    centers = 20.0 * np.eye(5)
    features = np.repeat(centers, 30, axis=0) + rng.normal(size=(150, 5))
    asked = np.arange(0, 150, 7)
    chosen = representatives(features, 10, asked=asked, seed=0)
    assert len(set(chosen.tolist())) == 10
    assert not set(chosen.tolist()) & set(asked.tolist())
    assert set((chosen // 30).tolist()) == {0, 1, 2, 3, 4}
    assert (chosen == representatives(features, 10, asked=asked, seed=0)).all()
    assert len(representatives(features, 150 - len(asked), asked=asked, seed=0)) == 150 - len(asked)
    with pytest.raises(InvalidParameter, match=r"queries=150: expected at most 128"):
        representatives(features, 150, asked=asked, seed=0)
