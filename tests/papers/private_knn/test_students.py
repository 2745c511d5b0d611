"""Students learn from few labels and from pictures without any, and do not learn wrong labels by
heart.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.private_knn.students import Student, StudentConfig, as_printed, train_student
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
