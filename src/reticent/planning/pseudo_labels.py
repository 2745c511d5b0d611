"""Labels for public rows that have none: clusters, sized to a declared prevalence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidParameter

_ROUNDS = 10
_FLOOR = 1e-12


def checked_prevalence(prevalence: npt.ArrayLike | None, classes: int) -> Array:
    """Shares of the classes, shape (classes,), summing to 1; equal ones for None.

    Raises:
        InvalidParameter: another number of shares, one that is not above 0, or another sum.

    Example:
        >>> checked_prevalence(None, 4).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    if prevalence is None:
        return np.full(classes, 1.0 / classes)
    shares = finite_array(prevalence, name="prevalence", ndim=1)
    if len(shares) != classes or shares.min() <= 0 or abs(shares.sum() - 1.0) > 1e-6:
        raise InvalidParameter(
            f"prevalence: expected {classes} shares above 0 that sum to 1, got {len(shares)} that "
            f"sum to {shares.sum():g}"
        )
    return np.asarray(shares / shares.sum())


def pseudo_labels(rows: npt.ArrayLike, prevalence: npt.ArrayLike, *, seed: int) -> Integers:
    """A cluster for each row, with as many rows in each cluster as ``prevalence`` says.

    k-means whose assignment fills each cluster up to its size, nearest pairs first. Which cluster
    is which label is not known, and does not matter for comparing methods: what is compared is how
    well each finds *a* structure of the public rows again through its noise. How well the true
    labels can be found is another question, which such labels cannot answer.

    Args:
        rows: shape (n, d), at least as many as there are clusters.
        prevalence: shape (classes,), shares that sum to 1.
        seed: of the starting centers.

    Returns:
        Shape (n,), 0 to classes - 1.

    Example:
        >>> rows = np.array([[0.0], [0.1], [0.2], [5.0]])
        >>> sorted(np.bincount(pseudo_labels(rows, [0.75, 0.25], seed=0)).tolist())
        [1, 3]
    """
    from sklearn.cluster import KMeans

    points = finite_array(rows, name="rows", ndim=2)
    shares = np.asarray(prevalence, dtype=np.float64)
    points = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), _FLOOR)
    sizes = _sizes(len(points), shares)
    centers = KMeans(len(shares), n_init=4, random_state=seed).fit(points).cluster_centers_
    found = np.zeros(len(points), dtype=np.int64)
    for _ in range(_ROUNDS):
        before, found = found, _filled(points, centers, sizes)
        if np.array_equal(before, found):
            break
        centers = np.stack([points[found == label].mean(axis=0) for label in range(len(sizes))])
    return found


def _sizes(rows: int, shares: Array) -> Integers:
    """Whole numbers of at least 1 that sum to ``rows``, as close to the shares as that allows."""
    if rows < len(shares):
        raise InvalidParameter(f"rows: expected at least {len(shares)} of them, got {rows}")
    ends = np.round(np.cumsum(shares) * rows).astype(np.int64)
    sizes = np.maximum(np.diff(ends, prepend=0), 1)
    while (over := int(sizes.sum()) - rows) > 0:
        sizes[sizes.argmax()] -= min(over, int(sizes.max()) - 1)
    sizes[sizes.argmax()] += rows - sizes.sum()
    return np.asarray(sizes)


def _filled(points: Array, centers: Array, sizes: Integers) -> Integers:
    """Each point's cluster: nearest pairs of point and center first, until a cluster is full."""
    distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    # A point that prefers one cluster by far comes first: what it loses elsewhere is more.
    distances -= distances.mean(axis=1, keepdims=True)
    found = np.full(len(points), -1, dtype=np.int64)
    left = sizes.copy()
    for place in np.argsort(distances, axis=None, kind="stable"):
        row, label = divmod(int(place), len(sizes))
        if found[row] < 0 and left[label] > 0:
            found[row] = label
            left[label] -= 1
    return found
