"""``LinearModel``: released models whose scores are linear in a record's direction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidParameter
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import (
    INTERCEPT,
    LENGTH,
    cut_directions,
    directions_of,
)

_LENGTH_OF_ROWS = 1.0  # the constant column beside points that keep their length, root mean square


class LinearModel(ReleasedModel):
    """Scores are weights times directions: points with a constant column, of a length of at most 1.

    Attributes:
        weights_: shape (dimension + 1, width).
    """

    weights_: Array

    @override
    def check_settings(self) -> None:
        """Refuse nothing: the part ``features`` was checked when it was made."""

    def _directions(self, points: Array) -> Array:
        """Return directions, shape (n, dimension + 1), each from its own point alone.

        They are whole numbers of an l2 norm of at most ``LENGTH``.
        """
        if self._reach is None:
            return directions_of(points, intercept=INTERCEPT)
        asked = self._shaping.reach
        reach = self._reach if asked is None else asked
        return cut_directions(points, intercept=_LENGTH_OF_ROWS, reach=reach)

    @override
    def scores(self, points: Array) -> Array:
        return np.asarray(self._directions(points) / LENGTH @ self.weights_)

    @override
    def arrays(self) -> dict[str, Array]:
        return {"weights": self.weights_}

    @override
    def restore(self, arrays: dict[str, Array]) -> None:
        self.weights_ = finite_array(
            arrays["weights"], name="weights", ndim=2, columns=self._columns.width
        )


class Directions:
    """Records with their directions, as often as they are asked for.

    They are kept, in 16 bits, where the records are in memory, and otherwise read again.
    """

    def __init__(self, voters: Voters | ShardedVoters, model: LinearModel) -> None:
        self._voters = voters
        self._model = model
        # Whole numbers of at most ``LENGTH``, 2^14.
        self._kept = (
            [(part, ways.astype(np.int16)) for part, ways in self._all()]
            if isinstance(voters, Voters)
            else None
        )

    def __iter__(self) -> Iterator[tuple[Voters, Array]]:
        if self._kept is None:
            return self._all()
        return ((part, ways.astype(np.float64)) for part, ways in self._kept)

    def _all(self) -> Iterator[tuple[Voters, Array]]:
        for part in self._voters.blocks():
            yield part, self._model._directions(part.points)


def inverse_moments(directions: Array | None, width: int, *, ridge: float) -> Array:
    """Return the inverse of the second moments of public directions, with a ridge.

    Without public rows it is the identity.

    Args:
        directions: shape (n, width), of length ``LENGTH`` at most, or None.
        width: number of columns.
        ridge: amount that is added to the moments, as a share of their mean.

    Raises:
        InvalidParameter: a ridge with which they have no inverse in doubles.
    """
    if directions is None:
        return np.eye(width)
    unit = directions / LENGTH
    moments = unit.T @ unit / len(unit)
    moments += ridge * np.trace(moments) / width * np.eye(width)
    try:
        inverse = np.asarray(np.linalg.inv(moments))
    except np.linalg.LinAlgError:
        inverse = np.full_like(moments, np.nan)
    if not bool(np.isfinite(inverse).all()):
        raise InvalidParameter(
            f"ridge={ridge!r}: expected one with which public second moments have an inverse"
        )
    return inverse
