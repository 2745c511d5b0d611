"""The neutral regulariser changes nothing."""

from __future__ import annotations

import torch

from reticent.training.obfuscators.regulariser import Regulariser


def test_neutral() -> None:
    neutral, batch = Regulariser(), torch.randn(3, 2)
    neutral.prepare(batch, 2)
    assert neutral.perturb(batch) is batch
    assert neutral.task_weight() == 1.0
    assert neutral.penalty(batch, batch, torch.zeros(3, dtype=torch.long)).item() == 0.0
