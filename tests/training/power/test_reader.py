"""A model of noisy columns learns through their noise."""

from __future__ import annotations

import numpy as np

from reticent.core.norms import Norm
from reticent.training.power.reader import ReaderConfig, train_reader


def test_readers_of_noisy_columns_learn_a_rule_that_turns_with_a_free_value() -> None:
    """The label is the sign of the first column, turned by u: it alone tells nothing."""
    random = np.random.default_rng(0)
    turned = random.choice([-1.0, 1.0], 2_000)
    near = random.uniform(-4, 4, (2_000, 2))
    labels = (near[:, 0] * turned > 0).astype(np.int64)
    free = np.column_stack([np.ones(2_000), turned])
    settings = ReaderConfig(epsilon=4.0, norm=Norm.L2, hidden=16, epochs=15, batch_size=100)
    reader = train_reader(free, near, labels, settings)
    found = reader.forward(np.column_stack([free, near / settings.answer_unit]))
    assert reader.output_dimension == 1
    assert ((found[:, 0] > 0) == labels).mean() > 0.9
