"""What is post-processing or public: noisy counts, students on the surest labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.systems.votes.linear_model import COUNT_STEPS, NoisyCount
from reticent.systems.votes.released_classifier import surest_labels

X, Y = load_digits(return_X_y=True)


def test_a_noisy_count_is_a_mean_that_is_never_lost_in_its_noise() -> None:
    count = NoisyCount(100 * COUNT_STEPS)
    assert count.records == 200
    count.add([[1000 * COUNT_STEPS]])
    assert count.records == 1000
    count.add([[-3000 * COUNT_STEPS]])
    assert count.records == pytest.approx(2 * 100 / np.sqrt(2))
    assert NoisyCount(1e-3 * COUNT_STEPS).records == 1


def test_a_student_mends_labels_that_the_model_was_unsure_of() -> None:
    points = np.rint((X - X.mean(axis=0)) / 30 * 2.0**16)
    rng = np.random.default_rng(0)
    scores = 6.0 * np.eye(10)[Y] + 2.5 * rng.normal(size=(len(X), 10))
    own = (scores.argmax(axis=1) == Y).mean()
    student = surest_labels(points, scores, share=0.6)
    assert student is not None
    assert own < 0.9
    assert (student.scores(points).argmax(axis=1) == Y).mean() > own + 0.05
