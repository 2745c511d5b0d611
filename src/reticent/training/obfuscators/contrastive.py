"""C: pull equal labels together and push different ones apart, on the obfuscated representation."""

from __future__ import annotations

import torch

from reticent.training.obfuscators.regulariser import Regulariser


class Contrastive(Regulariser):
    """Squared distance of pairs with equal labels, squared shortfall below the margin of all other
    pairs.

    Args:
        weight: lambda (published: 1).
        margin: distance from which different labels cost nothing (published: 25).

    Reference:
        Hadsell, Chopra, LeCun, "Dimensionality reduction by learning an invariant mapping", CVPR
        2006, equation 4.
    """

    name = "contrastive"

    def __init__(self, weight: float = 1.0, margin: float = 25.0) -> None:
        self.weight = weight
        self.margin = margin

    def penalty(
        self, representation: torch.Tensor, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """Mean over all pairs of a batch."""
        first, second = torch.triu_indices(len(labels), len(labels), offset=1)
        squared = (representation[first] - representation[second]).square().sum(dim=1)
        same = labels[first] == labels[second]
        distance = squared.clamp(min=1e-12).sqrt()
        cost = torch.where(same, squared, (self.margin - distance).clamp(min=0).square())
        return self.weight * cost.mean() if len(cost) else representation.new_zeros(())
