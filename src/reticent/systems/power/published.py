"""The Power Mechanism as published: embeddings of the rows whose density-smoothness score is
small. *Not private.*
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import positive, probability
from reticent.core.guarantees import Guarantee, GuaranteeKind, Replace
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler
from reticent.tables.schema import TabularSchema
from reticent.training.power.density import KernelDensity

if TYPE_CHECKING:
    from reticent.training.power.published import PowerNetwork


@dataclass(frozen=True, kw_only=True)
class PublishedPower(Mechanism):
    """Algorithm 1 of the Power Mechanism paper, whose epsilon is a score of the population's
    density.

    **Guarantee.** None: ``guarantee.kind`` is "no differential privacy", and a ledger refuses it.
    Given x, the release is a single point, so two different records are told apart with certainty
    by anyone who holds the encoder (``reticent.attacks.invert``); and whether a row is released is
    decided by the row itself.

    Attributes:
        stated_epsilon: the paper's epsilon, above 0.
        alpha: one minus the confidence of the density's interval; the paper's delta.
    """

    stated_epsilon: float
    alpha: float

    name: ClassVar[str] = "power release, as published"

    def __post_init__(self) -> None:
        positive(self.stated_epsilon, name="epsilon")
        probability(self.alpha, name="alpha", allow_zero=False)

    @property
    def guarantee(self) -> Guarantee:
        """The paper's numbers, of kind "no differential privacy"."""
        return Guarantee(self.stated_epsilon, self.alpha, Replace(1), GuaranteeKind.NO_PRIVACY)


@dataclass(frozen=True, eq=False)
class PublishedQuery:
    """The published release, for reproduction.

    Attributes:
        schema: the public description of rows.
        network: the trained encoder.
        density: estimate of the training rows' density.
        mechanism: the paper's numbers.
    """

    schema: TabularSchema
    network: PowerNetwork
    density: KernelDensity
    mechanism: PublishedPower

    @property
    def certificate(self) -> str:
        """No certificate is involved."""
        return "none"

    def encode(self, table: npt.NDArray[Any]) -> Array:
        """Checked rows of a table, shape (n, dimension); raises what ``TabularSchema.encode``
        raises.
        """
        return self.schema.encode(table)

    def scores(self, inputs: Array) -> Array:
        """The paper's per-sample epsilon of encoded rows, shape (n,)."""
        from reticent.training.power.epsilon import per_sample_epsilon

        return per_sample_epsilon(self.network, self.density, inputs, alpha=self.mechanism.alpha)

    def exact(self, inputs: Array) -> Array:
        """Embeddings of encoded rows, shape (n, d), whatever their score."""
        return self.network.embed(inputs)

    def answer(self, inputs: Array, *, sampler: Sampler) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Embeddings, NaN in the rows whose score is above ``stated_epsilon``, and which those are.

        ``sampler`` is not used: nothing about this release is random.
        """
        withheld = ~(self.scores(inputs) <= self.mechanism.stated_epsilon)
        return np.where(withheld[:, None], np.nan, self.exact(inputs)), withheld
