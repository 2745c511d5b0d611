"""Probabilities as whole multiples of 2^-32, and an exact test of e^epsilon between touching cells.

Nothing is rounded. e^epsilon is replaced by a rational number below it, and both sides of every
comparison are integers of 64 bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from reticent.core.checks import positive
from reticent.core.errors import InvalidInput

Shares = npt.NDArray[np.uint32]
_Number = TypeVar("_Number", bound=np.generic)

BITS = 32
WHOLE = 2**BITS
"""Sum of the shares of one answer's distribution."""

_MOST_SHIFT = 31  # a share of at most 2^32 times 2^31 stays below 2^64
_PRECISION = 128
_LARGEST_EPSILON = 23
"""No two shares differ by more than a factor 2^32 < e^23."""


class Cells(Protocol):
    """A finite number of public cells, of which some touch, such as a ``Lattice`` or a
    ``PublicGraph``.
    """

    @property
    def size(self) -> int:
        """Number of cells."""

    def cells(self, points: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the cell of each row of ``points``."""

    def touching_maximum(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return the largest of ``values``, shape (cells,), over each cell and those that touch
        it.
        """


class Factor(NamedTuple):
    """The rational number ``numerator`` / 2^``shift``.

    Attributes:
        numerator: below 2^32, so that its product with a share stays below 2^64.
        shift: 0 to 31.
    """

    numerator: int
    shift: int


def exponential_below(epsilon: float) -> Fraction:
    """Return a rational number at most e^epsilon, and less than it by at most a relative 2^-100.
    e^23 stands for all larger ones.

    Args:
        epsilon: above 0, taken at the exact value of the double.

    Example:
        >>> float(exponential_below(1.0))
        2.718281828459045
    """
    exact = min(Fraction(positive(epsilon, name="epsilon")), Fraction(_LARGEST_EPSILON))
    # Partial sums of the series lie below e^epsilon, and every term is rounded down.
    total = term = 1 << _PRECISION
    order = 0
    while term:
        order += 1
        term = term * exact.numerator // (exact.denominator * order)
        total += term
    return Fraction(total, 1 << _PRECISION)


def factor_below(epsilon: float) -> Factor:
    """Return the largest rational at most ``exponential_below(epsilon)`` whose numerator is below
    2^32 and whose denominator is a power of two up to 2^31.

    Beyond epsilon = 22.18 the factor is 2^32 - 1, which no quotient of two shares that differ
    exceeds by more than one unit.

    Args:
        epsilon: above 0, taken at the exact value of the double.

    Example:
        >>> factor_below(1.0)
        Factor(numerator=2918732888, shift=30)
    """
    exact = exponential_below(epsilon)
    shift = _MOST_SHIFT
    while shift and math.floor(exact * 2**shift) >= WHOLE:
        shift -= 1
    return Factor(min(math.floor(exact * 2**shift), WHOLE - 1), shift)


def check_shares(low: Shares, high: Shares, *, lattice: Cells, epsilon: float, what: str) -> None:
    """Raise InvalidInput if two touching cells break e^epsilon for some answer. The condition is
    that the larger share of each answer in one cell is at most e^epsilon times the smaller share in
    the other, where each cell also touches itself.

    A mechanism whose probability of an answer is between ``low`` and ``high`` (times 2^-32) at
    every point of a cell is then (epsilon, 0)-private for points in touching cells.

    Args:
        low: shape (answers, cells), at least 1.
        high: the same shape, at least ``low``.
        lattice: the cells.
        epsilon: above 0.
        what: the object's name in messages.

    Raises:
        InvalidInput: a share of 0, ``low`` above ``high``, or a pair of cells beyond the factor.
    """
    worst = excess(low, high, lattice=lattice, epsilon=epsilon)
    if worst:
        raise InvalidInput(
            f"{what}: {worst} entries are more than e^epsilon (epsilon={epsilon:g}) times an entry "
            "of a touching cell, or 0; repair it (reticent.training.label_tables) or fit it again"
        )


def excess(low: Shares, high: Shares, *, lattice: Cells, epsilon: float) -> int:
    """Return the number of (answer, cell) entries of ``low`` that break the condition of
    ``check_shares``.

    Args:
        low, high: shape (answers, cells).
        lattice: the cells.
        epsilon: above 0.
    """
    if low.dtype != np.uint32 or low.shape != high.shape or low.ndim != 2:
        raise InvalidInput(
            f"shares: expected uint32 of shape (answers, cells), got {low.dtype} {low.shape} and "
            f"{high.dtype} {high.shape}"
        )
    factor = factor_below(epsilon)
    numerator, shift = np.uint64(factor.numerator), np.uint64(factor.shift)
    broken = 0
    for below, above in zip(low, high, strict=True):
        largest = lattice.touching_maximum(above).astype(np.uint64)
        allowed = below.astype(np.uint64) * numerator
        wrong = (largest << shift) > allowed
        wrong |= (below == 0) | (below > above)
        broken += int(np.count_nonzero(wrong))
    return broken
