"""``Ladder``, which tries every obfuscator that is worth trying, simplest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from typing_extensions import override

from reticent.core.errors import InvalidParameter, NotFittedYet
from reticent.training.parts.contract import Part, resolved, variants
from reticent.training.parts.embedders import Identity
from reticent.training.parts.linear_maps import LiveCoordinates, PublicDiscriminants, PublicPCA
from reticent.training.parts.obfuscators import NoiseAware
from reticent.training.parts.public_nodes import PublicParts, PublicSigns

if TYPE_CHECKING:
    from torch import nn

_MEANS = 0.9
"""Shrinkage at which discriminants are all but the directions of class means: where noise is as
wide as the rows vary, how rows vary within a class tells little.
"""


class Ladder(Part):
    """Several obfuscators, all scored on calibration rows, of which the best is released.

    Each is certified for the *original* embedding, in the metric of its neighbours, and costs the
    same. A code for any two inputs promises more. Only the winner is released. Without labels,
    obfuscators that need them are left out.

    Args:
        rungs: names, parts or torch modules that are tried. None for the embedding itself, the
            coordinates of it that vary, principal components of several sizes, class discriminants,
            directions in which class means differ, codes for any two inputs, and networks that are
            trained through the noise.

    Example:
        >>> ladder = Ladder(("identity", PublicPCA(outputs=(1, 2))))
        >>> [type(rung).__name__ for rung in ladder.variants()]
        ['Identity', 'PublicPCA', 'PublicPCA']

    See Also:
        NoiseAware, PublicPCA, PublicDiscriminants, LiveCoordinates, Identity: the obfuscators that
            it tries.
    """

    def __init__(self, rungs: tuple[Any, ...] | None = None) -> None:
        self.rungs = rungs

    @override
    def check(self) -> None:
        if not self._rungs():
            raise InvalidParameter("rungs: expected at least one part")

    @override
    def variants(self) -> list[Part]:
        """Return all parts that are tried, those of several sizes once for each."""
        return [part for rung in self._rungs() for part in variants(rung)]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Refuse to fit, because an estimator fits and scores the obfuscators one by one.

        Raises:
            InvalidParameter: always.
        """
        raise InvalidParameter(
            "Ladder: an estimator scores its rungs; expected obfuscator=Ladder(...) of one"
        )

    def network(self) -> nn.Module:
        """Refuse, as ``fit`` does, because the obfuscator that was chosen has the network.

        Raises:
            NotFittedYet: always.
        """
        raise NotFittedYet("Ladder: has no network of its own; take that of the chosen rung")

    def _rungs(self) -> list[BaseEstimator]:
        if self.rungs is None:
            discriminants = (PublicDiscriminants(), PublicDiscriminants(shrinkage=_MEANS))
            linear = (Identity(), LiveCoordinates(), PublicPCA(), *discriminants)
            return [*linear, PublicParts(), PublicSigns(), NoiseAware()]
        if not isinstance(self.rungs, tuple | list):
            raise InvalidParameter(
                f"rungs: expected a tuple of parts, got {type(self.rungs).__name__}"
            )
        found = [resolved(rung, parameter="rungs", names=RUNGS) for rung in self.rungs]
        if any(isinstance(rung, Ladder) for rung in found):
            raise InvalidParameter("rungs: expected parts that are no ladders themselves")
        return found


RUNGS = {
    "noise-aware": NoiseAware,
    "identity": Identity,
    "live": LiveCoordinates,
    "pca": PublicPCA,
    "discriminants": PublicDiscriminants,
    "parts": PublicParts,
    "signs": PublicSigns,
}
"""Obfuscators by name."""

OBFUSCATORS = {"auto": Ladder, **RUNGS}
"""Obfuscators by name, all of them together included."""
