"""Figures 7 to 9: what stands for what, and where training starts."""

from __future__ import annotations

import numpy as np

from papers.certified.late_figures import _met
from reticent import CertifiedClassifier, ClippedDescent
from reticent.retraining import TrainingSettings, parameter_intervals

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(120, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
SETTINGS = TrainingSettings(features=3, classes=2, hidden=(4,), epochs=2)


def test_records_at_one_change_stand_for_as_many_copies_at_as_many_changes() -> None:
    start = SETTINGS.initial(0)
    few = parameter_intervals(ROWS, LABELS, SETTINGS, k_max=1, initial=start)
    many = parameter_intervals(
        np.tile(ROWS, (5, 1)), np.tile(LABELS, 5), SETTINGS, k_max=5, initial=start
    )
    for layer in range(2):
        for one, other in zip(few.weights(1)[layer], many.weights(5)[layer], strict=True):
            # Whole numbers of finer units where there are more records.
            np.testing.assert_allclose(one, other, atol=1e-5)
        width = few.weights(1)[layer][1] - few.weights(1)[layer][0]
        assert width.max() > 1e-3


def test_training_starts_at_the_public_weights() -> None:
    weights = np.array([[3.0, 0.0, -1.0, 0.5]])
    training = ClippedDescent(epochs=1, initial=(weights,))
    fitted = CertifiedClassifier(epsilon=1.0, classes=[0, 1], k_max=2, training=training)
    settings = fitted.fit(ROWS, LABELS).members_[0].settings
    expected = parameter_intervals(ROWS, LABELS, settings, k_max=2, initial=[weights])
    for one, other in zip(fitted.members_[0].lower, expected.lower, strict=True):
        np.testing.assert_array_equal(one, other)
    far = np.abs(fitted.members_[0].nominal[0] - weights).max()
    assert far <= settings.learning_rate * settings.clip * 1.01


def test_a_network_that_learned_nothing_is_not_certified_enough() -> None:
    assert _met({"certified": 0.96, "accuracy": 0.72, "linear": 0.73})
    assert not _met({"certified": 0.96, "accuracy": 0.5, "linear": 0.73})
    assert not _met({"certified": 0.9, "accuracy": 0.8, "linear": 0.73})
