"""The training run that parameter intervals enclose, in plain float64: one model, no
certificate.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from reticent.core.arrays import Array, Integers
from reticent.retraining.training_settings import TrainingGrids, TrainingSettings


def plain_training(
    X: Array,
    labels: Integers,
    settings: TrainingSettings,
    *,
    initial: list[Array] | None = None,
    batch: Integers | None = None,
) -> list[Array]:
    """Weights after the run, per layer, shape (units, inputs + 1), bias last. Not private, and
    nothing is certified.

    Written without anything that the certificates use but the public grids of inputs and starting
    weights: it is what they are tested against and timed against.

    Args:
        X, labels, settings, initial, batch: as for ``parameter_intervals``; taken as they are,
            without checks.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> settings = TrainingSettings(features=2, classes=2)
        >>> [weights] = plain_training(X, (X[:, 0] > 0).astype(int), settings)
        >>> bool(weights[0, 0] > 0.05 > abs(weights[0, 1]))
        True
    """
    grids = TrainingGrids.build(settings, settings.initial(None) if initial is None else initial)
    weights = [whole * unit for whole, unit in zip(grids.start, grids.weight_units, strict=True)]
    momentum = [np.zeros_like(layer) for layer in weights]
    inputs = grids.inputs(X).T * grids.input_unit
    cap = [limit * unit for limit, unit in zip(grids.caps, grids.activation_units[1:], strict=True)]
    members = [
        np.arange(len(labels)) if batch is None else np.flatnonzero(batch == index)
        for index in range(settings.batches)
    ]
    for step in range(settings.steps):
        chosen = members[step % settings.batches]
        means = _mean_gradients(weights, inputs[chosen], labels[chosen], settings, cap)
        rate = settings.rate(step)
        for layer, mean in enumerate(means):
            momentum[layer] = settings.momentum * momentum[layer] + mean
            weights[layer] = (1.0 - rate * settings.weight_decay) * weights[
                layer
            ] - rate * momentum[layer]
    return weights


def _mean_gradients(
    weights: list[Array],
    inputs: Array,
    labels: Integers,
    settings: TrainingSettings,
    cap: list[float],
) -> list[Array]:
    """Mean over the batch of elementwise clipped gradients, per layer; 0 for an empty batch."""
    if not len(labels):
        return [np.zeros_like(matrix) for matrix in weights]
    ones = np.ones((len(labels), 1))
    entering, before = [inputs], []
    for matrix, limit in zip(weights[:-1], cap, strict=True):
        before.append(entering[-1] @ matrix.T)
        entering.append(np.concatenate([np.clip(before[-1], 0.0, limit), ones], axis=1))
    logits = entering[-1] @ weights[-1].T
    if settings.outputs == 1:
        signal = expit(logits) - labels[:, None]
    else:
        signal = softmax(logits, axis=1)
        signal[np.arange(len(labels)), labels] -= 1.0
    share = np.ones(len(labels))
    if settings.class_weights is not None:
        share = np.array(settings.class_weights)[labels]
    signal *= share[:, None]
    most = settings.clip * share[:, None, None]
    means: list[Array] = []
    for layer in reversed(range(len(weights))):
        gradients = signal[:, :, None] * entering[layer][:, None, :]
        means.insert(0, np.clip(gradients, -most, most, out=gradients).mean(axis=0))
        if layer:
            signal = (signal @ weights[layer][:, :-1]) * (before[layer - 1] > 0)
    return means
