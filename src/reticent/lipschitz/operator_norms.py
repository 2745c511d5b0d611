"""Closed-form Lipschitz constants for any number of inputs, as products of operator norms.

An affine map moves two points apart by at most its operator norm, *in the norm that neighbours are
measured in*. Sorting a pair, and every activation, changes no distance by more than a known factor.
So an affine map, and a network of orthonormal layers with sorted pairs between them, has a constant
that takes no enumeration. One constant holds for the whole space. It is isotone because it depends
on no point.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed, UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.core.rounding import operator_norm_bound, spectral_norm_bound, sum_error
from reticent.grids.arithmetic import power_of_two_at_least
from reticent.lipschitz.bounds import LipschitzBound, Output, Region
from reticent.networks.layers import Activation, Affine, Layer, Linear
from reticent.networks.network import Network
from reticent.networks.sorting import is_pair_sort

MOST_PATTERNS = 12
"""Up to this many rows or columns the norms that need all sign vectors are computed from them."""

_MOST_ENTRIES = 2**23
_SMALLEST, _LARGEST = 2.0**-400, 2.0**400
_STEP_BITS = 40
_LEAST_PRODUCT = 2.0**-1000


class OperatorNormBound(LipschitzBound):
    """The product of the layers' operator norms over the whole space, for any number of inputs.

    Guarantee:
        ||f(x) - f(x')|| in the output measure is at most the bound times ||x - x'|| in
        ``input_norm``, for *all* x and x'. *Why.* Affine maps: the definition of an operator norm,
        or an upper bound where it has no closed form (``matrix_bound``). Activations: their largest
        slope, entry by entry. Sorting a pair: for a >= b and c >= d and any l_p norm, (a, b) and
        (c, d) are no farther apart than (a, b) and (d, c). The layers between the first and the
        last are measured in ``input_norm`` and in l2, and the smaller product counts. Rounding is
        charged in every norm and in the product.

    Args:
        network: affine maps, convolutions, activations and pair sorts.
        domain: the public box of its inputs. The constant does not depend on it.
        input_norm: l1, l2 or l-infinity.
        output: l1, l2, linf or "spread".

    Raises:
        UnsupportedNetwork: a layer is of another kind, or has more than 2**23 weights.
        CertificationFailed: the product is not a finite number.

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
        pairs, which have slope 1 somewhere. For ReLU networks intervals over the domain are never
        above it.

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

    @override
    def _ceiling(self) -> float:
        bound = min(
            norm_product(self.network, self.input_norm, self.output, between=norm)
            for norm in {self.input_norm, Norm.L2}
        )
        if not math.isfinite(bound):
            raise CertificationFailed(
                "operator-norm: the product of the layers' norms is not a finite number; expected "
                "rescaled weights"
            )
        return bound


def is_sorting_network(network: Network) -> bool:
    """Return True if the network is affine maps and pair sorts alone, for which
    ``OperatorNormBound`` is close.
    """
    return all(isinstance(layer, Affine) or is_pair_sort(layer) for layer in network.layers)


def norm_product(network: Network, input_norm: Norm, output: Output, *, between: Norm) -> float:
    """Return the product of the layers' norms, an upper bound on the Lipschitz constant everywhere.

    Args:
        network: the network.
        input_norm: norm of input changes.
        output: measure of output changes.
        between: norm of changes between the first and the last linear layer.

    Raises:
        UnsupportedNetwork: a layer has no such factor.
    """
    linear = [index for index, layer in enumerate(network.layers) if isinstance(layer, Linear)]
    first, last = linear[0], linear[-1]
    if output == "spread" and last + 1 < len(network.layers):
        raise UnsupportedNetwork(
            "operator-norm: expected a linear last layer where labels are released"
        )
    product, terms = 1.0, 2
    for index, layer in enumerate(network.layers):
        if isinstance(layer, Linear):
            factor = matrix_bound(
                _dense(layer),
                input_norm if index == first else between,
                output if index == last else between,
            )
        else:
            factor = _slope(layer)
        # A product that leaves float64 at the small end is not 0, for a later layer may be steep.
        product = max(product * factor, _LEAST_PRODUCT)
        terms += 2
    return product * (1.0 + sum_error(terms))


def matrix_bound(matrix: Array, input_norm: Norm, output: Output) -> float:
    """Return an upper bound on the operator norm of a matrix, whatever its size.

    It is exact up to rounding where that takes no more than 2**12 sign vectors, the least of
    several upper bounds elsewhere. From l-infinity to l2: sqrt(n) sigma, and the l2 norm of the
    rows' l1 norms. To l1: sqrt(m) times a bound in l2, and the sum of the rows' dual norms. Entries
    below 2**-400 are left out, and the most that they could add is added.

    Args:
        matrix: shape (m, n), finite.
        input_norm: norm of the n inputs.
        output: measure of the m outputs.

    Raises:
        CertificationFailed: an entry is above 2**400.

    Example:
        >>> matrix_bound(np.eye(512), Norm.LINF, Norm.L2) - 512**0.5 < 1e-9
        True
    """
    magnitudes = np.abs(matrix)
    if magnitudes.max(initial=0.0) > _LARGEST:
        raise CertificationFailed("operator-norm: expected weights of at most 2**400")
    tiny = (magnitudes < _SMALLEST) & (magnitudes > 0)
    lost = float(tiny.sum()) * 2.0 * _SMALLEST
    kept = np.where(tiny, 0.0, matrix)
    if output == "spread":
        return _spread_bound(kept, input_norm) + 2.0 * lost
    outputs, inputs = kept.shape
    if (
        input_norm is Norm.L1
        or output is Norm.LINF
        or (input_norm, output) == (Norm.L2, Norm.L2)
        or _few_patterns(inputs, outputs, input_norm, output)
    ):
        return operator_norm_bound(kept, input_norm, output) + lost
    margin = 1.0 + sum_error(outputs * inputs + 16)
    rows = input_norm.dual.of(kept, axis=1)
    by_rows = float(output.of(rows))
    by_spectrum = spectral_norm_bound(kept) * (
        input_norm.of_ones(1) if input_norm is Norm.L2 else math.sqrt(inputs)
    )
    by_spectrum *= math.sqrt(outputs) if output is Norm.L1 else 1.0
    return min(by_rows, by_spectrum) * margin + lost


def _few_patterns(inputs: int, outputs: int, input_norm: Norm, output: Norm) -> bool:
    # The choice between sign vectors of inputs and of outputs is that of ``operator_norm``.
    by_inputs = input_norm is Norm.LINF and (inputs <= outputs or output is Norm.L2)
    return (inputs if by_inputs else outputs) <= MOST_PATTERNS


def _spread_bound(matrix: Array, input_norm: Norm) -> float:
    outputs, inputs = matrix.shape
    if outputs < 2:
        raise UnsupportedNorm(f"spread of {outputs} output(s): expected at least 2")
    largest = max(
        float(input_norm.dual.of(matrix[index + 1 :] - matrix[index], axis=1).max())
        for index in range(outputs - 1)
    )
    # A difference of two entries is off by a unit in its last place.
    return largest * (1.0 + sum_error(inputs + 16))


def _dense(layer: Linear) -> Array:
    if layer.inputs * layer.outputs > _MOST_ENTRIES:
        raise UnsupportedNetwork(
            f"operator-norm: a layer of {layer.inputs} x {layer.outputs}; expected at most 2**23 "
            "weights"
        )
    return layer.dense()


def _slope(layer: Layer) -> float:
    if isinstance(layer, Activation):
        return layer.kind.lipschitz
    if is_pair_sort(layer):
        return 1.0
    raise UnsupportedNetwork(
        "operator-norm: expected linear layers, activations and sorted pairs; use the interval "
        "bound for residual sums"
    )
