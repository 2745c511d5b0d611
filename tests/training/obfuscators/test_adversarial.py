"""The adversary improves on its own steps, and its term is clipped."""

from __future__ import annotations

import torch

from reticent.training.obfuscators.adversarial import Adversarial


def test_adversary_learns_and_the_obfuscator_is_paid_for_its_failure() -> None:
    torch.manual_seed(0)
    embeddings = torch.randn(64, 3)
    term = Adversarial()
    term.prepare(embeddings, 3)
    labels = torch.zeros(64, dtype=torch.long)
    first = term.penalty(embeddings, embeddings, labels).item()
    for _ in range(200):
        last = term.penalty(embeddings, embeddings, labels).item()
    # The penalty is minus the adversary's loss: it rises towards 0 as reconstruction gets better.
    assert first < -0.5
    assert last > 0.3 * first


def test_hiding_everything_earns_no_more_than_the_best_constant_guess() -> None:
    torch.manual_seed(0)
    embeddings = torch.randn(64, 3)
    term = Adversarial(alpha=0.9)
    term.prepare(embeddings, 2)
    far = 1e3 * torch.randn(64, 2)
    value = term.penalty(far, embeddings, torch.zeros(64, dtype=torch.long)).item()
    assert value >= -0.9 * embeddings.var(dim=0, correction=0).mean().item() - 1e-6
    assert abs(term.task_weight() - 0.1) < 1e-12
