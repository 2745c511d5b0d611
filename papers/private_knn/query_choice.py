"""The choice of public pictures to ask for: representatives, so that few labels speak for many
pictures.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

from reticent.core.arrays import Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidParameter


def representatives(
    features: npt.ArrayLike, queries: int, *, asked: npt.ArrayLike, seed: int
) -> Integers:
    """Return the places of ``queries`` pictures near the centers of as many clusters.

    Only public things enter. A picture in the middle of a cluster has neighbours of one label more
    often than one drawn at random, and its label tells more.

    Args:
        features: the features of all public pictures, shape (n, d).
        queries: the number of pictures, at least 1.
        asked: shape (m,), places that are not to be taken again.
        seed: the seed of the clustering.

    Returns:
        Shape (queries,), different places, none of ``asked``.

    Raises:
        InvalidParameter: fewer pictures are left than are asked for.

    Example:
        >>> representatives([[0.0], [0.1], [5.0], [5.1]], 2, asked=[0, 2], seed=0).tolist()
        [1, 3]
    """
    points = finite_array(features, name="features", ndim=2)
    free = np.ones(len(points), dtype=np.bool_)
    free[np.asarray(asked, dtype=np.int64)] = False
    if count(queries, name="queries") > free.sum():
        raise InvalidParameter(
            f"queries={queries}: expected at most {int(free.sum())}, as many as are left"
        )
    clusters = MiniBatchKMeans(
        queries, random_state=seed, n_init=3, batch_size=max(1024, queries)
    ).fit(points)
    chosen = np.empty(queries, dtype=np.int64)
    for number, distances in enumerate(clusters.transform(points).T):
        places = np.flatnonzero(free)
        chosen[number] = places[distances[places].argmin()]
        free[chosen[number]] = False
    return np.sort(chosen)
