"""Answers to "does a box hold a point that satisfies some linear inequalities?", proved in floating
point or exactly.

``feasible_point`` is a simplex method for pure feasibility with few variables. It keeps a point
that is determined by as many hyperplanes as there are coordinates, and exchanges one of them at a
time. The result is checked afterwards, in a way that does not rely on how it was found. A point has
to satisfy every inequality with a margin above the rounding of its evaluation. A refutation has to
be a combination of inequalities whose largest value over the box is negative by more than the
rounding of *its* evaluation. Cases between the two margins are left to ``exactly_feasible``, the
same question in rational arithmetic, which always has an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.rounding import sum_error

_PIVOTS = 400


@dataclass(frozen=True, eq=False)
class Refutation:
    """A combination of inequalities that no point of the box satisfies.

    Attributes:
        rows: indices of the inequalities that take part, shape (k,).
        weights: the weight of each, shape (k,), above 0.
    """

    rows: npt.NDArray[np.int64]
    weights: Array


@dataclass(frozen=True, eq=False)
class Inequalities:
    """``rows @ x + offsets >= 0``, each known up to ``errors``.

    Attributes:
        rows: shape (k, n).
        offsets: shape (k,).
        errors: a bound on |computed - true| of each left-hand side anywhere in the public domain,
            shape (k,), above 0. It includes the rounding of the evaluation.
    """

    rows: Array
    offsets: Array
    errors: Array

    def __len__(self) -> int:
        return len(self.rows)

    def refuted_by(self, refutation: Refutation, lower: Array, upper: Array) -> bool:
        """Return True if the combination proves that no point of the box [lower, upper] satisfies
        all inequalities.
        """
        weights, rows = refutation.weights, refutation.rows
        slope, offset = weights @ self.rows[rows], float(weights @ self.offsets[rows])
        ends = np.where(slope > 0, upper, lower)
        # Magnitudes before anything cancels, so that the rounding of the combination is a part of
        # them.
        size = weights @ (
            np.abs(self.rows[rows]) @ np.abs(ends) + np.abs(self.offsets[rows]) + self.errors[rows]
        )
        slack = float(weights @ self.errors[rows]) + sum_error(
            2 * (len(rows) + len(ends) + 8)
        ) * float(size)
        return bool(float(slope @ ends) + offset + slack < 0)


def feasible_point(
    inequalities: Inequalities, lower: Array, upper: Array, start: Array, *, margin: float = 4.0
) -> Array | Refutation | None:
    """Return a point of the box that satisfies every inequality by ``margin`` errors, or a
    refutation, or None.

    Args:
        inequalities: k inequalities over n coordinates.
        lower, upper: ends of the box, shape (n,).
        start: a point to start from, shape (n,), moved into the box.
        margin: the number of its errors by which each inequality has to be satisfied.

    Returns:
        A point of shape (n,), exactly inside the box, at which each computed left-hand side is at
        least ``margin / 2`` errors. Or a ``Refutation`` of the inequalities *with* the margin,
        which the caller has to check without it. Or None if rounding kept the method from an end.
    """
    count, n = inequalities.rows.shape
    rows, offsets = inequalities.rows, inequalities.offsets - margin * inequalities.errors
    tiny = 0.25 * margin * inequalities.errors
    point = np.clip(start, lower, upper)
    moves = np.eye(n)  # column k: how the point moves when only the k-th held quantity grows
    held = np.arange(n)  # below n: a coordinate; from n on: an inequality held at equality
    scale = np.abs(rows).sum(axis=1) + 1e-300
    for pivot in range(_PIVOTS):
        short = -(rows @ point + offsets)
        short[held[held >= n] - n] = 0.0
        below, above = lower - point, point - upper
        outside = np.maximum(below, above)
        outside[held[held < n]] = 0.0
        wanting = np.where(short > tiny, short / scale, 0.0)
        row, coordinate = int(wanting.argmax()) if count else 0, int(outside.argmax())
        slightly = 1e-12 * (
            abs(float(point[coordinate])) + float(upper[coordinate] - lower[coordinate])
        )
        if (
            count
            and wanting[row] > 0
            and (wanting[row] >= outside[coordinate] or outside[coordinate] <= slightly)
        ):
            target, need, rates = n + row, float(short[row]), rows[row] @ moves
        elif outside[coordinate] > slightly:
            # A coordinate that left its range while it was not held goes back to the end that it
            # passed.
            sign = 1.0 if below[coordinate] > 0 else -1.0
            target, need, rates = coordinate, float(outside[coordinate]), sign * moves[coordinate]
        else:
            inside = np.clip(point, lower, upper)
            if (rows @ inside + offsets + 0.5 * margin * inequalities.errors >= 0).all():
                return inside
            # Rounding of large steps has moved what was held: start again from here.
            point, moves, held = inside, np.eye(n), np.arange(n)
            continue
        rates = np.where(np.abs(rates) > 1e-11 * np.abs(rates).max(initial=0.0), rates, 0.0)
        is_row = held >= n
        coordinates = np.where(is_row, 0, held)
        room = np.where(
            rates > 0,
            upper[coordinates] - point[coordinates],
            point[coordinates] - lower[coordinates],
        )
        room = np.where(is_row, np.where(rates > 0, inf, 0.0), np.maximum(room, 0.0))
        gains = np.where(rates != 0, np.abs(rates) * np.where(rates != 0, room, 0.0), 0.0)
        helping = np.flatnonzero(gains > 0)
        if gains.sum() < need:  # not even all of them together
            return _refutation(target, held, rates, inequalities, moves, n)
        if pivot < _PIVOTS // 2:
            helping = helping[np.argsort(-gains[helping], kind="stable")]
            # Coordinates before inequalities: they keep the point inside the box.
            helping = np.concatenate([helping[~is_row[helping]], helping[is_row[helping]]])
        else:
            helping = helping[np.argsort(held[helping], kind="stable")]
        reached = np.cumsum(gains[helping])
        last = int(np.searchsorted(reached, need))
        last = min(last, len(helping) - 1)
        full = helping[:last]
        if len(full):
            steps = np.where(
                rates[full] > 0,
                upper[held[full]] - point[held[full]],
                lower[held[full]] - point[held[full]],
            )
            point = point + moves[:, full] @ steps
            need -= float(reached[last - 1])
        k = int(helping[last])
        step = need / rates[k]
        point = point + moves[:, k] * step
        column = moves[:, k] / rates[k]
        moves = moves - np.outer(column, rates)
        moves[:, k] = column if target >= n or rates[k] == 0 else sign * column
        held[k] = target
        if target < n:
            point[target] = lower[target] if sign > 0 else upper[target]
    return None


def _refutation(
    target: int,
    held: npt.NDArray[np.int64],
    rates: Array,
    inequalities: Inequalities,
    moves: Array,
    n: int,
) -> Refutation | None:
    """Return the combination of a quantity that cannot be raised further and of those that hold it
    down.
    """
    rows = [k for k in range(len(held)) if held[k] >= n and rates[k] < 0]
    which = [int(held[k]) - n for k in rows]
    weights = [-float(rates[k]) for k in rows]
    if target >= n:
        which.append(target - n)
        weights.append(1.0)
    if not which:
        return None
    return Refutation(np.array(which), np.array(weights))


def exactly_feasible(
    rows: Sequence[Sequence[Fraction]],
    offsets: Sequence[Fraction],
    lower: Sequence[Fraction],
    upper: Sequence[Fraction],
) -> list[Fraction] | None:
    """Return a point of the box at which every ``row . x + offset`` is at least 0, or None. Exact.

    The simplex method with the rule of least index (Bland), which ends after finitely many
    exchanges.

    Example:
        >>> one = Fraction(1)
        >>> exactly_feasible([[one]], [-one], [Fraction(0)], [one])
        [Fraction(1, 1)]
        >>> exactly_feasible([[one]], [-one - Fraction(1, 2**80)], [Fraction(0)], [one]) is None
        True
    """
    n = len(lower)
    table = [list(row) for row in rows]  # row of a basic quantity over the quantities that are held
    basic = [n + k for k in range(len(rows))]
    held = list(range(n))
    least: list[Fraction | None] = [*lower, *(-offset for offset in offsets)]
    most: list[Fraction | None] = [*upper, *(None for _ in offsets)]
    value: list[Fraction] = list(lower)
    value += [sum((a * x for a, x in zip(row, lower, strict=True)), Fraction(0)) for row in rows]
    while True:
        wrong = [
            k for k, name in enumerate(basic) if _outside(value[name], least[name], most[name])
        ]
        if not wrong:
            return value[:n]
        k = min(wrong, key=lambda index: basic[index])
        name = basic[k]
        low, high = least[name], most[name]
        up = low is not None and value[name] < low
        goal = low if up else high
        assert goal is not None
        choices = [
            i
            for i, other in enumerate(held)
            if table[k][i] != 0
            and _can_move(value[other], least[other], most[other], up=(table[k][i] > 0) == up)
        ]
        if not choices:
            return None
        i = min(choices, key=lambda index: held[index])
        step = (goal - value[name]) / table[k][i]
        value[held[i]] += step
        value[name] = goal
        for other, row in enumerate(table):
            if other != k:
                value[basic[other]] += row[i] * step
        _exchange(table, k, i)
        basic[k], held[i] = held[i], basic[k]


def _outside(value: Fraction, least: Fraction | None, most: Fraction | None) -> bool:
    return (least is not None and value < least) or (most is not None and value > most)


def _can_move(value: Fraction, least: Fraction | None, most: Fraction | None, *, up: bool) -> bool:
    return (most is None or value < most) if up else (least is None or value > least)


def _exchange(table: list[list[Fraction]], k: int, i: int) -> None:
    """Exchange the basic quantity k and the held quantity i in the table."""
    pivot = table[k][i]
    table[k] = [
        Fraction(1) / pivot if j == i else -entry / pivot for j, entry in enumerate(table[k])
    ]
    for other, row in enumerate(table):
        if other != k and row[i] != 0:
            factor = row[i]
            table[other] = [
                factor * table[k][j] + (Fraction(0) if j == i else entry)
                for j, entry in enumerate(row)
            ]
