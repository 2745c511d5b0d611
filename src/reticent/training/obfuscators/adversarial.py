"""ARL: train against a proxy adversary that reconstructs the embedding."""

from __future__ import annotations

import torch
from torch.nn import functional

from reticent.training.networks import relu_network
from reticent.training.obfuscators.regulariser import Regulariser

PUBLISHED_ALPHA = 0.99
"""The weight of the adversary's term in the published table."""


class Adversarial(Regulariser):
    """Minus alpha times a proxy adversary's reconstruction loss; the task loss gets 1 - alpha.

    The adversary takes one step of its own on every batch. Its loss is clipped at the loss of the
    best constant guess: beyond that there is nothing left to hide, and unclipped the term has no
    lower bound, so that the obfuscator would win by growing without end.

    Args:
        alpha: weight of the adversary's term in (0, 1) (published: 0.99).

    Reference:
        Singh et al., "Posthoc privacy guarantees for collaborative inference", supplement D.
    """

    name = "arl"

    def __init__(self, alpha: float = PUBLISHED_ALPHA) -> None:
        self.alpha = alpha

    def prepare(self, embeddings: torch.Tensor, outputs: int) -> None:
        """Build the adversary, and note the loss of the best constant guess."""
        self._adversary = relu_network([outputs, 64, 64, embeddings.shape[1]])
        self._optimizer = torch.optim.Adam(self._adversary.parameters(), lr=1e-3)
        self._ceiling = embeddings.var(dim=0, correction=0).mean().item()

    def task_weight(self) -> float:
        """1 - alpha."""
        return 1.0 - self.alpha

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """One step of the adversary, then minus alpha times its clipped reconstruction loss."""
        own = functional.mse_loss(self._adversary(representation.detach()), embeddings)
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(own)
        self._optimizer.step()
        reconstruction = functional.mse_loss(self._adversary(representation), embeddings)
        return -self.alpha * reconstruction.clamp(max=self._ceiling)
