"""One of a few outputs about a record, by a public table of probabilities that is checked
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, positive
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Adjacency
from reticent.grids.shares import WHOLE, exponential_below
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

MOST_OUTPUTS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordChannel(Mechanism):
    """One output for each record, with the probabilities that stand in the row of its bin.

    **Guarantee.** One output is (epsilon, 0)-private between *any two records*, whatever public map
    put them into bins, and so under every ``adjacency``.

    *Why.* A record acts on the output through its bin alone. For every output and every two bins
    the table's entries differ by at most a factor e^epsilon. There are finitely many, and the
    constructor compares the largest with the smallest: a channel that exists has passed.

    *Floating point.* None in the guarantee: entries are whole multiples of 2^-32 whose rows sum to
    1 exactly, e^epsilon is replaced by a rational number below it, and an output is drawn by one
    uniform integer below 2^32.

    Attributes:
        shares: shape (bins, outputs), int64, probabilities in multiples of 2^-32; at least 2 bins
            and 2 to 64 outputs. Public.
        epsilon: above 0.
        adjacency: what neighbours are.

    Raises:
        InvalidInput: a table of another shape or type, a row that does not sum to 2^32, or entries
            of one column that are more than a factor e^epsilon apart.

    Example:
        >>> from reticent.core import Replace
        >>> from reticent.noise import SecureSampler
        >>> shares = np.array([[3 * 2**30, 2**30], [2**30, 3 * 2**30]])
        >>> channel = RecordChannel(shares=shares, epsilon=1.1, adjacency=Replace(1))
        >>> channel.matrix.tolist()
        [[0.75, 0.25], [0.25, 0.75]]
        >>> len(channel.release([0, 1, 1], sampler=SecureSampler()))
        3

    Utility:
        That of the table. Two bins at epsilon = 1, 2, 5 come out right with probability 0.73, 0.88
        and 0.993. Whatever is computed from outputs can be evaluated exactly beforehand from
        ``matrix`` and the public shares of labels in bins.

    Runtime:
        O(outputs) an answer; 0.1 microseconds on one core for two (benchmarks/runtimes.py).

    References:
        - Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011), "What can we learn
          privately?", doi:10.1137/090756090, local differential privacy.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best tables, which a linear program finds.

    See Also:
        reticent.mechanisms.StabilityResponse: labels that may be far from changing.
        reticent.PowerEncoder: chooses bins and table on public rows.
    """

    shares: Integers
    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str] = "channel of score bins"
    rests_on_float64: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon")
        shares = as_array(self.shares, name="shares")
        if shares.ndim != 2 or shares.dtype.kind not in "iu":
            raise InvalidInput(
                f"shares: expected integers of shape (bins, outputs), got {shares.dtype} of shape "
                f"{shares.shape}"
            )
        bins, outputs = shares.shape
        if bins < 2 or not 2 <= outputs <= MOST_OUTPUTS:
            raise InvalidInput(
                f"shares: expected at least 2 bins and 2 to {MOST_OUTPUTS} outputs, got shape="
                f"{shares.shape}"
            )
        rows: list[list[int]] = shares.tolist()
        if any(min(row) < 1 for row in rows):
            raise InvalidInput("shares: expected entries of at least 1, in multiples of 2^-32")
        wrong = sum(sum(row) != WHOLE for row in rows)
        if wrong:
            raise InvalidInput(f"shares: {wrong} of {bins} rows do not sum to 2^32")
        excess = columns_beyond(rows, exponential_below(self.epsilon))
        if excess:
            raise InvalidInput(
                f"shares: {excess} of {outputs} columns hold entries that are more than a factor "
                f"e^epsilon apart (epsilon={self.epsilon:g})"
            )
        frozen = shares.astype(np.int64)  # a copy: later changes would escape the check
        frozen.setflags(write=False)
        object.__setattr__(self, "shares", frozen)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.shares)

    @property
    def outputs(self) -> int:
        """Number of different outputs."""
        return int(self.shares.shape[1])

    @cached_property
    def matrix(self) -> Array:
        """Probability of each output given the bin, shape (bins, outputs), exact. Public."""
        return np.asarray(self.shares / WHOLE)

    def release(self, bins: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        """One output per record, each a separate answer.

        Args:
            bins: shape (n,), integers in 0 .. bins - 1; private.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. outputs - 1.

        Raises:
            InvalidInput: wrong shape or type, or a bin out of range. Values are never shown.
        """
        given = as_array(bins, name="bins")
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InvalidInput(
                f"bins: expected a list of integers, got shape={given.shape}, dtype={given.dtype}"
            )
        if given.size and (given.min() < 0 or given.max() >= self.bins):
            raise InvalidInput(f"bins: expected integers from 0 to {self.bins - 1}")
        ends = np.cumsum(self.shares[:, :-1], axis=1)[given.astype(np.int64)]
        uniform = sampler.uniform_integers(np.full(len(given), WHOLE, dtype=np.int64))
        return np.asarray((uniform[:, None] >= ends).sum(axis=1), dtype=np.int64)


def columns_beyond(rows: list[list[int]], factor: Fraction) -> int:
    """How many columns hold an entry of more than ``factor`` times another.

    Args:
        rows: integers, shape (bins, outputs).
        factor: at least 1.

    Example:
        >>> columns_beyond([[3, 1], [1, 3]], Fraction(3)), columns_beyond([[4, 1]] * 2, Fraction(3))
        (0, 0)
        >>> columns_beyond([[4, 1], [1, 4]], Fraction(3))
        2
    """
    columns = zip(*rows, strict=True)
    return sum(
        max(column) * factor.denominator > min(column) * factor.numerator for column in columns
    )
