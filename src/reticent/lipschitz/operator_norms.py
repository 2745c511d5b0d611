"""The Lipschitz constant of the whole space as a bound, for any number of inputs."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.grids.arithmetic import power_of_two_at_least
from reticent.lipschitz.bounds import LipschitzBound, Output, Region
from reticent.networks.layers import Affine
from reticent.networks.network import Network
from reticent.networks.sorting import is_pair_sort

_STEP_BITS = 40


class OperatorNormBound(LipschitzBound):
    """The product of the layers' operator norms over the whole space, for any number of inputs.

    Guarantee:
        ||f(x) - f(x')|| in the output measure is at most the bound times ||x - x'|| in
        ``input_norm``, for *all* x and x'. *Why.* Affine maps: the definition of an operator norm,
        or an upper bound where it has no closed form. Activations: their largest slope, entry by
        entry. Sorting a pair: for a >= b and c >= d and any l_p norm, (a, b) and (c, d) are no
        farther apart than (a, b) and (d, c). Residual sums: 1 and what the branch adds. Rounding is
        charged in every norm and in the product (``norm_products``).

    Args:
        network: affine maps, convolutions, activations, pair sorts and residual sums.
        domain: the public box of its inputs. The constant does not depend on it.
        input_norm: l1, l2 or l-infinity.
        output: l1, l2, linf or "spread".

    Raises:
        CertificationFailed: the product is not a finite number, or a layer has more than 2**23
            weights.

    Example:
        >>> from reticent.networks import affine_chain
        >>> turn = affine_chain([[[0.6, 0.8], [-0.8, 0.6]]], [[0.0, 0.0]])
        >>> bound = OperatorNormBound(
        ...     turn, domain=Box.cube(2, 1.0), input_norm=Norm.L2, output=Norm.L2
        ... )
        >>> round(bound.global_bound(), 9)
        1.0

    Utility:
        Exact for one affine map up to rounding: l2 to l2, from l1, to l-infinity and the spread,
        and for other pairs up to 12 inputs or outputs. It is 1 for orthonormal layers with sorted
        pairs, which have slope 1 somewhere. Every other bound is cut at the same constant.

    Runtime:
        One eigenvalue problem of the smaller side of each matrix, once. Nothing per point.

    References:
        - Anil, Lucas and Grosse (2019), "Sorting out Lipschitz function approximation",
          arXiv:1811.05381, networks of orthonormal layers with sorted values.
        - Rump (2011), "Verified bounds for singular values, in particular for the spectral norm of
          a matrix and its inverse", BIT Numerical Mathematics.

    See Also:
        reticent.lipschitz.LayeredBound: tighter for ReLU networks of up to 14 inputs.
        reticent.lipschitz.IntervalBound: any network, over a region.
    """

    kind: ClassVar[str] = "operator-norm"

    def __init__(self, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        largest = float(np.maximum(np.abs(domain.lower), np.abs(domain.upper)).max(initial=0.0))
        if not math.isfinite(self.ceiling):
            raise CertificationFailed(
                "operator-norm: the product of the layers' norms is not a finite number; expected "
                "rescaled weights, layers of at most 2**23 weights, and a linear last layer where "
                "labels are released"
            )
        self._step = power_of_two_at_least(largest) * 2.0**-_STEP_BITS

    @property
    @override
    def input_step(self) -> float:
        return self._step

    @property
    @override
    def _rows_at_once(self) -> int:
        return 2**20

    @override
    def _bound_region(self, region: Region) -> Array:
        return np.full(len(region), self.ceiling)


def is_sorting_network(network: Network) -> bool:
    """Return True if the network is affine maps and pair sorts alone, for which
    ``OperatorNormBound`` is close.
    """
    return all(isinstance(layer, Affine) or is_pair_sort(layer) for layer in network.layers)
