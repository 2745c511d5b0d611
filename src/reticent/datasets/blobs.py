"""Blobs: two Gaussian clouds in the plane, generated on the spot from a seed. Nothing is
downloaded, and the data are nobody's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.checks import count
from reticent.core.errors import UnknownName
from reticent.datasets.table import Table

CENTERS = {"close": 1.0, "separable": 2.0}
"""Each cloud's distance from the origin along both axes. Both have unit variance."""


def load_blobs(kind: str, *, points: int = 3000, held_out: int = 2000, seed: int = 0) -> Table:
    """Draw points of two isotropic Gaussians with unit variance around (-c, -c) and (c, c), both
    labels equally likely.

    The best possible accuracy is the normal distribution function at sqrt(2) c: 0.921 for
    ``close``, 0.998 for ``separable``.

    Args:
        kind: "close" (c = 1, the clouds overlap) or "separable" (c = 2).
        points: training points, at least 1.
        held_out: held-out points, at least 1.
        seed: the seed of both parts.

    Raises:
        UnknownName: there is no such kind.

    Example:
        >>> load_blobs("close").train_rows.shape
        (3000, 2)
    """
    if kind not in CENTERS:
        raise UnknownName(f"kind={kind!r}: expected one of {', '.join(CENTERS)}")
    train, test = (
        _clouds(np.random.default_rng([seed, part]), count(rows, name=name), CENTERS[kind])
        for part, (name, rows) in enumerate((("points", points), ("held_out", held_out)))
    )
    return Table(
        name=f"blobs-{kind}",
        columns=("x", "y"),
        train_rows=train[0],
        train_labels=train[1],
        test_rows=test[0],
        test_labels=test[1],
        class_names=("lower left", "upper right"),
        origin=f"generated: two Gaussians, seed {seed}",
    )


def _clouds(
    random: np.random.Generator, rows: int, center: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    labels = random.integers(0, 2, rows)
    return random.normal(size=(rows, 2)) + center * (2 * labels[:, None] - 1), labels.astype(
        np.int64
    )
