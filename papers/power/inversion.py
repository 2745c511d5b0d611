"""Inversion of a power encoder: anyone who holds it finds x from z = G(x) by Newton's method.

Nothing is learnt. If the encoder is a diffeomorphism, as the paper's theorem demands, z determines
x, and a few linear systems find it. If training bent the map so much that several points have the
embedding z, rows of the same kind tell which one is a row. The iteration then starts from those
whose embeddings are nearest to z.
"""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt
import torch
from sklearn.neighbors import NearestNeighbors

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array
from reticent.published.power_network import PowerNetwork

_ROWS_AT_ONCE = 256
_HALVINGS = 12
_PLAUSIBLE = 1e-4  # relative; embeddings in single precision leave about 1e-6


def invert(
    network: PowerNetwork,
    released: npt.ArrayLike,
    *,
    steps: int = 40,
    public: npt.ArrayLike | None = None,
    tries: int = 5,
) -> Array:
    """Return rows whose embeddings are ``released``, shape (n, d), float64.

    The method is damped Newton from w = z, one application of the encoder after the other, the last
    one first. A step is halved until the residual falls. With ``public`` rows, an answer that lies
    outside their box, or does not have the embedding, is sought again from the public rows with the
    nearest embeddings. Rows released with noise have no exact preimage: their answer is the end of
    the iteration. Withheld rows (NaN) stay NaN.

    Args:
        network: the encoder, as published.
        released: embeddings, shape (n, d). Rows of NaN are withheld ones.
        steps: Newton steps per application and start, at least 1.
        public: the attacker's rows of the same kind, shape (m, d), or None.
        tries: most public rows to try for each embedding.

    Raises:
        InvalidInput: another number of columns than the encoder has.
    """
    count(steps, name="steps")
    count(tries, name="tries")
    values = np.array(released, dtype=np.float64, ndmin=2)
    known = np.isfinite(values).all(axis=1)
    finite_array(
        values[known], name="released", ndim=2, columns=network.dimension, allow_empty=True
    )
    double = copy.deepcopy(network).double()
    found = np.full_like(values, np.nan)
    found[known] = _from_images(double, values[known], steps)
    if public is None or not known.any():
        return found
    starts = finite_array(public, name="public", ndim=2, columns=network.dimension)
    embedded = double.embed(starts)
    nearest = (
        NearestNeighbors(n_neighbors=min(tries, len(starts)))
        .fit(embedded)
        .kneighbors(values[known], return_distance=False)
    )
    rows = np.flatnonzero(known)
    lower, upper = starts.min(axis=0), starts.max(axis=0)
    doubt = _doubt(double, found[rows], values[rows], lower, upper)
    for rank in range(nearest.shape[1]):
        open_ = np.flatnonzero(~(doubt < _PLAUSIBLE))
        if not len(open_):
            break
        again = _from_starts(double, values[rows[open_]], starts[nearest[open_, rank]], steps)
        left = _doubt(double, again, values[rows[open_]], lower, upper)
        better = left < doubt[open_]
        found[rows[open_[better]]] = again[better]
        doubt[open_[better]] = left[better]
    return found


def relative_errors(found: npt.ArrayLike, rows: npt.ArrayLike) -> Array:
    """Return the l2 distance of ``found`` to the true ``rows``, over the l2 norm of ``rows``.

    The result has shape (n,). NaN stays NaN.
    """
    truth = np.asarray(rows, dtype=np.float64)
    distance = np.linalg.norm(np.asarray(found, dtype=np.float64) - truth, axis=1)
    return np.asarray(distance / np.maximum(np.linalg.norm(truth, axis=1), np.finfo(float).tiny))


def _from_images(network: PowerNetwork, values: Array, steps: int) -> Array:
    """Return preimages of ``values``, with each application's search started at its own image."""
    parts = []
    for start in range(0, len(values), _ROWS_AT_ONCE):
        image = torch.from_numpy(values[start : start + _ROWS_AT_ONCE])
        with torch.no_grad():
            for _ in range(network.power):
                image = _invert_step(network, image, image, steps)
        parts.append(image.numpy())
    return np.concatenate(parts) if parts else values.copy()


def _from_starts(network: PowerNetwork, values: Array, starts: Array, steps: int) -> Array:
    """Return preimages of ``values``, with searches from ``starts`` and their images."""
    parts = []
    for start in range(0, len(values), _ROWS_AT_ONCE):
        image = torch.from_numpy(values[start : start + _ROWS_AT_ONCE])
        with torch.no_grad():
            trail = [torch.from_numpy(starts[start : start + _ROWS_AT_ONCE])]
            for _ in range(network.power - 1):
                trail.append(network.step(trail[-1])[0])
            for guess in reversed(trail):
                image = _invert_step(network, image, guess, steps)
        parts.append(image.numpy())
    return np.concatenate(parts)


def _doubt(network: PowerNetwork, found: Array, values: Array, lower: Array, upper: Array) -> Array:
    """Return the sum of two relative distances.

    One is from the embeddings of ``found`` to ``values``, the other from ``found`` to the box of
    plausible rows.
    """
    finite = np.isfinite(found).all(axis=1)
    doubt = np.full(len(found), np.inf)
    if finite.any():
        rows = found[finite]
        doubt[finite] = relative_errors(network.embed(rows), values[finite]) + relative_errors(
            rows, np.clip(rows, lower, upper)
        )
    return doubt


def _invert_step(
    network: PowerNetwork, image: torch.Tensor, guess: torch.Tensor, steps: int
) -> torch.Tensor:
    """Return w with g(w) = ``image``, searched from ``guess``."""
    guess = guess.clone()
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
