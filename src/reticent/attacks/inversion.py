"""Inversion of a power encoder: x from z = G(x), by Newton's method, for anyone who holds the encoder.

Nothing is learnt and no data is needed. Where the encoder is a diffeomorphism, as the paper's theorem demands of it, z
determines x; this shows that it takes a few linear systems to find it.
"""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt
import torch

from reticent.core.checks import count, finite_array
from reticent.training.power import PowerNetwork

Array = npt.NDArray[np.float64]

_ROWS_AT_ONCE = 256
_HALVINGS = 12


def invert(network: PowerNetwork, released: npt.ArrayLike, *, steps: int = 40) -> Array:
    """Rows whose embeddings are ``released``, shape (n, d), float64.

    Damped Newton from w = z, one application of the encoder after the other, the last one first: a step is halved until
    the residual falls. Rows released with noise, or withheld (NaN: left as NaN), have no exact preimage; the answer for the
    former is where the iteration ends.

    Args:
        network: the encoder, as published.
        released: shape (n, d); rows of NaN are withheld ones.
        steps: Newton steps per application, at least 1.

    Raises:
        InvalidInput: another number of columns than the encoder has.
    """
    count(steps, name="steps")
    values = np.array(released, dtype=np.float64, ndmin=2)
    known = np.isfinite(values).all(axis=1)
    finite_array(values[known], name="released", ndim=2, columns=network.dimension, allow_empty=True)
    double = copy.deepcopy(network).double()
    found = np.full_like(values, np.nan)
    rows = np.flatnonzero(known)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        image = torch.from_numpy(values[part])
        with torch.no_grad():
            for _ in range(network.power):
                image = _invert_step(double, image, steps)
        found[part] = image.numpy()
    return found


def relative_errors(found: npt.ArrayLike, rows: npt.ArrayLike) -> Array:
    """l2 distance of ``found`` to the true ``rows``, over the l2 norm of the latter; shape (n,). NaN stays NaN."""
    truth = np.asarray(rows, dtype=np.float64)
    distance = np.linalg.norm(np.asarray(found, dtype=np.float64) - truth, axis=1)
    return np.asarray(distance / np.maximum(np.linalg.norm(truth, axis=1), np.finfo(float).tiny))


def _invert_step(network: PowerNetwork, image: torch.Tensor, steps: int) -> torch.Tensor:
    """w with g(w) = ``image``."""
    guess = image.clone()
    reached, jacobian = network.step(guess)
    residual = reached - image
    for _ in range(steps):
        size = residual.norm(dim=1)
        if bool((size <= 1e-13 * image.norm(dim=1)).all()):
            break
        # A tiny ridge keeps a singular Jacobian from stopping the whole batch.
        ridge = 1e-12 * torch.eye(network.dimension, dtype=torch.float64)
        change = torch.linalg.solve(jacobian + ridge, residual[:, :, None])[:, :, 0]
        share = torch.ones(len(guess), 1, dtype=torch.float64)
        for _ in range(_HALVINGS):
            worse = (network.step(guess - share * change)[0] - image).norm(dim=1) > size
            if not bool(worse.any()):
                break
            share = torch.where(worse[:, None], 0.5 * share, share)
        guess = guess - share * change
        reached, jacobian = network.step(guess)
        residual = reached - image
    return guess
