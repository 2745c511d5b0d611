"""Upper bounds on the operator norms of matrices, and their products over the layers of a network.

An affine map moves two points apart by at most its operator norm, *in the norm that neighbours are
measured in*. Sorting a pair, and every activation, changes no distance by more than a known factor.
So the product holds on the whole space. It is isotone because it depends on no point.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.core.rounding import operator_norm_bound, spectral_norm_bound, sum_error
from reticent.networks.layers import Activation, Layer, Linear, Residual
from reticent.networks.network import Network
from reticent.networks.sorting import is_pair_sort

Measure = Norm | Literal["spread"]

MOST_PATTERNS = 16
"""Up to this many rows or columns the norms that need all sign vectors are computed from them."""

_MOST_ENTRIES = 2**23
_SMALLEST, _LARGEST = 2.0**-400, 2.0**400
_LEAST = 2.0**-1000  # a product of norms, above 0


def norm_product(network: Network, input_norm: Norm, output: Measure) -> float:
    """Return the product of the layers' norms, an upper bound on the Lipschitz constant everywhere.

    The layers between the first and the last linear one are measured in ``input_norm`` and in l2,
    and the smaller product counts. It is infinite where a layer has no known factor.

    Args:
        network: the network.
        input_norm: norm of input changes.
        output: measure of output changes.

    Raises:
        CertificationFailed: a weight is above 2**400.
    """
    linear = [index for index, layer in enumerate(network.layers) if isinstance(layer, Linear)]
    first, last = linear[0], linear[-1]
    if output == "spread" and last + 1 < len(network.layers):
        return math.inf
    products: list[float] = []
    for between in {input_norm, Norm.L2}:
        # What changes are measured in, in front of each layer and behind the last.
        measures: list[Measure] = [input_norm] * (first + 1)
        measures += [between] * (last - first)
        measures += [output] * (len(network.layers) - last)
        factors = [
            _factor(layer, *ends)
            for layer, ends in zip(network.layers, pairwise(measures), strict=True)
        ]
        products.append(_product(factors))
    return min(products)


def _product(factors: list[float]) -> float:
    product = 1.0 + sum_error(2 * len(factors) + 2)
    for factor in factors:
        # A product that leaves float64 at the small end is not 0, for a later layer may be steep.
        product = max(product * factor, _LEAST)
    return 0.0 if 0.0 in factors else product


def _factor(layer: Layer, before: Measure, after: Measure) -> float:
    """Return by how much a layer may move two points apart."""
    if isinstance(layer, Activation):
        return layer.kind.lipschitz
    if is_pair_sort(layer):
        return 1.0
    if isinstance(layer, Residual):
        inner = _product([_factor(part, before, before) for part in layer.branch])
        return (1.0 + inner) * (1.0 + sum_error(4))
    assert isinstance(layer, Linear)
    assert isinstance(before, Norm)  # a spread is measured behind the last layer alone
    if layer.inputs * layer.outputs > _MOST_ENTRIES:
        return math.inf
    try:
        return matrix_bound(layer.dense(), before, after)
    except UnsupportedNorm:
        return math.inf


def matrix_bound(matrix: Array, input_norm: Norm, output: Measure) -> float:
    """Return an upper bound on the operator norm of a matrix, whatever its size.

    It is exact up to rounding where that takes no more than 2**16 sign vectors, the least of
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
