from __future__ import annotations

import numpy as np

from reticent.systems.power.task_labels import task_labels


def test_labels_are_combined_and_taken_apart() -> None:
    y = np.array([["a", "x", "p"], ["b", "x", "q"], ["b", "y", "p"], ["a", "x", "p"]])
    known, classes, tasks = task_labels(y, 4, weights=(1, 1, 2))
    assert tasks.weights == (0.25, 0.25, 0.5)
    for task, labels in enumerate(known):
        np.testing.assert_array_equal(labels[tasks.places[task][classes]], y[:, task])
    assert len(np.unique(classes)) == 3
    _, numbers, single = task_labels(["n", "y", "n"], 3, weights=None)
    assert numbers.tolist() == [0, 1, 0]
    assert not single.several
    np.testing.assert_array_equal(single.places[0], [0, 1])
