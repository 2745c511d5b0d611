"""What an obfuscator's regulariser may do: perturb the released representation, and change the
loss.
"""

from __future__ import annotations

import torch


class Regulariser:
    """The neutral regulariser, which changes nothing; each published one overrides what it needs.

    Attributes:
        name: the word by which a row of the published table names it.
    """

    name: str = "none"

    def prepare(self, embeddings: torch.Tensor, outputs: int) -> None:
        """See the training embeddings (n, d) and the obfuscator's output dimension once, before
        training.
        """

    def perturb(self, representation: torch.Tensor) -> torch.Tensor:
        """The representation that classifier and adversary are shown, from the obfuscated one
        (n, m).
        """
        return representation

    def task_weight(self) -> float:
        """Factor on the task loss."""
        return 1.0

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """What is added to the loss for a batch: a differentiable scalar."""
        return representation.new_zeros(())
