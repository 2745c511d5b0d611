"""Students learn from few labels and from pictures without any, and do not learn wrong labels by
heart.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.datasets import load_digits
from reticent.training.query_choice import representatives
from reticent.training.students import Student, StudentConfig, distort, flat_pictures, train_student

CONFIG = StudentConfig(
    image_shape=(1, 8, 8),
    channels=(8, 16),
    width=32,
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


def test_training_is_repeatable_and_depends_on_its_seed(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    pictures, truth = digits
    short = StudentConfig(image_shape=(1, 8, 8), channels=(4, 4), width=8, epochs=1)
    other = StudentConfig(image_shape=(1, 8, 8), channels=(4, 4), width=8, epochs=1, seed=1)
    first, again, different = (
        train_student(pictures[:200], truth[:200], classes=10, config=config).probabilities(
            pictures[:5]
        )
        for config in (short, short, other)
    )
    assert (first == again).all()
    assert (first != different).any()


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


def test_the_embedding_is_what_the_head_sees() -> None:
    student = Student((1, 8, 8), 3, channels=(4, 4), width=6)
    pictures = torch.rand(5, 64)
    torch.testing.assert_close(student(pictures), student.head(student.embed(pictures)))


def test_labels_that_do_not_fit_are_refused() -> None:
    for labels in (np.full(10, -1), np.full(10, 3), np.full(9, 1), np.full(10, 0.5)):
        with pytest.raises(InvalidInput, match="label"):
            train_student(np.zeros((10, 64)), labels, classes=3, config=CONFIG)


def test_settings_out_of_range_are_refused() -> None:
    numbers = [("robustness", 0.0), ("robustness", 1.5), ("confidence", 1.0)]
    for name, value in (*numbers, ("image_shape", (1, 3, 8)), ("channels", (0, 4))):
        with pytest.raises(InvalidParameter, match=name):
            StudentConfig(**{"image_shape": (1, 8, 8), name: value})


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"pictures: expected shape \(n, 64\)"):
        flat_pictures(np.zeros((3, 60)), (1, 8, 8))


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
