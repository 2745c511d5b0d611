"""The largest Jacobian norm that a search finds in a ball: a lower bound on the exact constant
of any ReLU chain.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core import Box
from reticent.core.norms import sign_patterns
from reticent.networks import Network

Array = npt.NDArray[np.float64]


def largest_norms(
    network: Network,
    centers: Array,
    radius: float,
    domain: Box,
    *,
    restarts: int = 64,
    steps: int = 30,
    seed: int = 0,
) -> Array:
    """The largest l-infinity to l1 norm of a Jacobian found in each ball, by sampling and climbing,
    shape (n,).

    From random points and corners: take the signs s and t that attain the norm at the current
    point, and move along the gradient of s . J t with every kink smoothed, less and less, so
    that neurons are drawn to the side that raises it. Then each restart tries random moves of
    some coordinates from the best point that it has seen, ever smaller ones. The norm is always
    evaluated without smoothing. All balls and restarts move together.
    """
    weights = [layer.dense() for layer in network.linear_layers()]
    biases = [layer.bias for layer in network.linear_layers()]
    rng = np.random.default_rng(seed)
    low = np.repeat(np.maximum(centers - radius, domain.lower), restarts, axis=0)
    high = np.repeat(np.minimum(centers + radius, domain.upper), restarts, axis=0)
    points = rng.uniform(low, high)
    points[::2] = np.where(rng.random(points.shape) < 0.5, low, high)[::2]
    signs = sign_patterns(network.output_dimension, up_to_sign=True)
    best, at = np.zeros(len(points)), points.copy()
    for step in range(3 * steps):
        norms, functional, direction = _norms(weights, biases, points, signs)
        better = norms >= best
        best[better], at[better] = norms[better], points[better]
        if step < steps:
            uphill = np.sign(
                _smoothed_gradient(weights, biases, points, functional, direction, 0.3 * 0.9**step)
            )
            # Some coordinates stay: moving all at once jumps over narrow pieces.
            move = 0.4 * 0.92**step * uphill * (rng.random(points.shape) < 0.7)
        else:
            points = at
            move = (
                0.5
                * 0.01 ** ((step - steps) / (2 * steps))
                * rng.normal(size=points.shape)
                * (rng.random(points.shape) < 0.5)
            )
        points = np.clip(points + radius * move, low, high)
    return np.asarray(best.reshape(len(centers), restarts).max(axis=1))


def _norms(
    weights: list[Array], biases: list[Array], points: Array, signs: Array
) -> tuple[Array, Array, Array]:
    """Jacobian norms at points, with the signs s (functionals, (n, outputs)) and t (n, inputs)
    that attain them.
    """
    values, on = points, []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values = values @ weight.T + bias
        on.append(values > 0)
        values = np.maximum(values, 0.0)
    jacobian = np.broadcast_to(weights[-1], (len(points), *weights[-1].shape))
    for weight, slopes in zip(weights[-2::-1], on[::-1], strict=True):
        jacobian = (jacobian * slopes[:, None]) @ weight
    along = signs @ jacobian
    norms = np.abs(along).sum(axis=2)
    top = norms.argmax(axis=1)
    rows = np.arange(len(points))
    return norms[rows, top], signs[top], np.sign(along[rows, top])


def _smoothed_gradient(
    weights: list[Array],
    biases: list[Array],
    points: Array,
    functional: Array,
    direction: Array,
    width: float,
) -> Array:
    """The gradient in x of s . J t, slopes replaced by sigmoids as wide as ``width`` times the
    neuron's typical size.
    """
    values, tangent = points, direction
    slopes, curvatures, pre_tangents = [], [], []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values, tangent = values @ weight.T + bias, tangent @ weight.T
        scale = width * np.abs(values).mean(axis=0) + 1e-9
        slope = 0.5 + 0.5 * np.tanh(0.5 * values / scale)
        slopes.append(slope)
        curvatures.append(slope * (1.0 - slope) / scale)
        pre_tangents.append(tangent)
        values, tangent = np.maximum(values, 0.0), slope * tangent
    # Adjoint of the tangent (how s . J t feels it) and of the values (how it feels those through
    # the slopes).
    of_tangent, of_values = functional @ weights[-1], np.zeros_like(values)
    for index in range(len(weights) - 2, -1, -1):
        of_values = of_values * slopes[index] + of_tangent * pre_tangents[index] * curvatures[index]
        of_tangent = of_tangent * slopes[index]
        of_values, of_tangent = of_values @ weights[index], of_tangent @ weights[index]
    return of_values
