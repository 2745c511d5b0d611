"""``LinearModel``: released models whose scores are linear in a record's direction, by noisy
gradients.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import exact_product
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.sums import outer_sum
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.tables.shards import Shards
from reticent.training.public_space import (
    INTERCEPT,
    LENGTH,
    cut_directions,
    directions_of,
)

RESIDUAL = 2.0**13
"""Grid steps in a residual of the length that counts in full."""

Mover = Callable[[int, Array, list[Array], float, Any], Array]
"""From the step, its weights, released sums, the number of records and what counts, new weights."""

_WEIGHT_STEPS = 2.0**20
_LONGEST_WEIGHTS = 2.0**16
_MOST_RECORDS = 2**53
_LENGTH_OF_ROWS = 1.0  # the constant column beside points that keep their length, root mean square


COUNT_SHARE = 0.01
"""Of the squared precision of a sum: a count needs few digits."""

COUNT_STEPS = 2.0**20
"""Grid steps in one record."""

_LEAST = 2.0


class NoisyCount:
    """The mean of the noisy counts so far.

    It is never below two standard deviations of itself, nor below 1: a count that is lost in its
    noise would make arbitrarily large steps.

    Args:
        sigma: standard deviation of one noisy count, in grid steps.

    Attributes:
        records: the mean.

    Example:
        >>> count = NoisyCount(sigma=10 * COUNT_STEPS)
        >>> count.add([[100 * COUNT_STEPS]])
        >>> count.records
        100.0
    """

    def __init__(self, sigma: float) -> None:
        self._sigma = sigma / COUNT_STEPS
        self._total, self._seen = 0.0, 0
        self.records = max(1.0, _LEAST * self._sigma)

    def add(self, noisy: Sequence[npt.ArrayLike]) -> None:
        """Take in one noisy count, in grid steps: a list of one array of shape (1,)."""
        self._total += float(np.asarray(noisy[0], dtype=np.float64)[0]) / COUNT_STEPS
        self._seen += 1
        least = max(1.0, _LEAST * self._sigma / self._seen**0.5)
        self.records = max(least, self._total / self._seen)


@with_settings
class LinearModel(ReleasedModel):
    """Scores are weights times directions: points with a constant column, of a length of at most 1.

    Every step releases, for every column of labels, the sum over records of a residual times the
    direction, and beside these what is counted. What becomes of released sums is post-processing.

    Attributes:
        weights_: shape (dimension + 1, width).
    """

    records: int | None = None

    weights_: Array = learned()

    @override
    def check_settings(self) -> None:
        if self.records is not None and count(self.records, name="records") > _MOST_RECORDS:
            raise InvalidParameter(f"records: expected at most {_MOST_RECORDS}")

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        counts, bound = self._count_blocks(), LENGTH * RESIDUAL
        share = (1.0 - sum(block.share for block in counts)) / len(self._columns.outputs)
        gradients = tuple(
            SumBlock(self._rows * (part.stop - part.start), bound, share) for part in self._parts
        )
        return (*gradients, *counts), self._steps()

    @override
    def learn(
        self, voters: Voters | ReadVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        blocks, parts = Directions(voters, self), self._parts
        counter, move = self._counter(session), self._mover(session)
        # With counting="replace" the number of units is the same for neighbours. It may be 0.
        records = float(self.records if self.records is not None else max(1, voters.units))
        weights = np.zeros((self._rows, parts[-1].stop))
        for step in range(1, session.mechanism.sums + 1):
            totals = [np.zeros_like(weights[:, part]) for part in parts]
            counts = [np.zeros(block.width) for block in session.mechanism.blocks[len(parts) :]]
            for voting, directions in blocks:
                residuals = self._all_residuals(voting, directions, weights)
                for total, own in zip(totals, residuals, strict=True):
                    total += outer_sum(voting, directions, own, lengths=(LENGTH, RESIDUAL))
                if counts:
                    for total, counted in zip(counts, self._counts(voting), strict=True):
                        total += counted
            noisy = session.release([*totals, *counts])
            if counter is not None:
                counter.add(noisy[len(parts) :])
                records = counter.records
            sums = [each / (LENGTH * RESIDUAL) for each in noisy[: len(parts)]]
            weights = move(step, weights, sums, records, counter)
        self.weights_ = weights

    @abstractmethod
    def _steps(self) -> int:
        """Return how many sums are released, from public numbers."""

    @abstractmethod
    def _all_residuals(self, voting: Voters, directions: Array, weights: Array) -> list[Array]:
        """Return residuals of some records for every column of labels, shape (n, columns of its
        weights): whole numbers of an l2 norm of at most ``RESIDUAL``, each row from that record and
        released numbers alone, to the last bit.
        """

    @abstractmethod
    def _mover(self, session: SumSession) -> Mover:
        """Return what makes new weights of released sums, in units of the longest residual."""

    def _free(self, output: Output) -> int:
        """Return the number of columns of weights of one column of labels."""
        return output.width

    @property
    def _parts(self) -> tuple[slice, ...]:
        """The places of each label column's weights."""
        ends = np.cumsum([0, *(self._free(output) for output in self._columns.outputs)]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @property
    def _rows(self) -> int:
        """The length of a direction."""
        return int(self.space_.dimension) + 1

    def _count_blocks(self) -> tuple[SumBlock, ...]:
        """Return what is counted beside gradients: records, where nobody states their number."""
        if self.records is not None or self.counting == "replace":
            return ()
        return (SumBlock(1, COUNT_STEPS, COUNT_SHARE),)

    def _counter(self, session: SumSession) -> Any:
        """Return what takes in noisy counts, or None where there are none."""
        return NoisyCount(session.sigmas[-1]) if self._count_blocks() else None

    def _counts(self, voting: Voters) -> list[Array]:
        """Return what the blocks of counts get of some records, in ``COUNT_STEPS``."""
        return [np.array([COUNT_STEPS * voting.units])]

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
        weights = finite_array(arrays["weights"], name="weights", ndim=2)
        if weights.shape != (self._rows, self._parts[-1].stop):
            raise InvalidInput("weights: expected a column for each label")
        self.weights_ = weights


class Directions:
    """Records with their directions, as often as they are asked for.

    They are kept, in 16 bits, where the records are in memory, and otherwise read again. Points are
    kept only for a model that looks at them again.
    """

    def __init__(self, voters: Voters | ReadVoters, model: LinearModel) -> None:
        self._voters = voters
        self._model = model
        self._kept: list[tuple[Voters, npt.NDArray[np.int16]]] | None = None
        if isinstance(voters, ReadVoters) and isinstance(voters.rows, Shards):
            return
        # Whole numbers of at most ``LENGTH``, 2^14, in one table: blocks of their own leave holes.
        table, start = np.empty((len(voters), model._rows), dtype=np.int16), 0
        self._kept = []
        for part, ways in self._all():
            kept = table[start : start + len(part)]
            kept[:] = ways
            start += len(part)
            if model._once:
                part = Voters(part.points[:, :0].copy(), part.codes, part.starts)
            self._kept.append((part, kept))

    def __iter__(self) -> Iterator[tuple[Voters, Array]]:
        if self._kept is None:
            return self._all()
        return ((part, ways.astype(np.float64)) for part, ways in self._kept)

    def _all(self) -> Iterator[tuple[Voters, Array]]:
        for part in self._voters.blocks():
            yield part, self._model._directions(part.points)


def scores_of(directions: Array, weights: Array) -> Array:
    """Return directions of length 1 times weights, shape (n, columns).

    Each row is from its own direction alone, to the last bit.

    Args:
        directions: shape (n, m), whole numbers, of an l2 norm of at most ``LENGTH``.
        weights: shape (m, columns), from ``cut_weights``.
    """
    whole = np.rint(weights * _WEIGHT_STEPS)
    longest = (_LONGEST_WEIGHTS + 1.0) * _WEIGHT_STEPS
    return exact_product(directions, whole, bound=LENGTH * longest) / (LENGTH * _WEIGHT_STEPS)


def cut_weights(weights: Array) -> Array:
    """Return weights of which no column is longer than 2^16, so that logits are exact.

    They are released numbers, hence public.
    """
    lengths = np.linalg.norm(weights, axis=0)
    return np.asarray(weights * np.minimum(1.0, _LONGEST_WEIGHTS / np.maximum(lengths, 1.0)))


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
