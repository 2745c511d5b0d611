"""Figures 7 to 9: what stands for what, and where training starts."""

from __future__ import annotations

import numpy as np

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
