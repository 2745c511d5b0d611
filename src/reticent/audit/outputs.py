"""Answers of any kind as rows of numbers: numbers, labels, vectors, exceptions and NaN.

How an answer is written as numbers depends on that answer and on earlier ones, never on the coin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput

_LABELS = 24
"""Labels of one place that have a column of their own. All further ones share the last column."""

_WIDEST = 4096
"""Numbers in one answer, at most."""

_NAN = 1e90
_RAISED = 2e90
"""Numbers that stand for what is no number, out of the range of everything else."""

_INSIDE = 1e89


@dataclass(frozen=True)
class Raised:
    """An exception in place of an answer.

    Attributes:
        kind: the name of its class.
    """

    kind: str


class OutputCode:
    """Write answers as rows of one width, which the first batch decides.

    Example:
        >>> code = OutputCode()
        >>> code(["yes", "no", "yes"])[:, :2].tolist()
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self) -> None:
        self._width: int | None = None
        self._labels: dict[int, dict[str, int]] = {}
        self._kinds: dict[str, int] = {}

    def __call__(self, answers: Sequence[Any]) -> Array:
        """Return answers as rows, shape (n, d).

        Raises:
            InvalidInput: an answer that is none of these, or wider than 4,096 numbers.
        """
        rows = [None if isinstance(one, Raised) else leaves(one) for one in answers]
        if self._width is None:
            known = [row for row in rows if row is not None]
            self._width = max((len(row) for row in known), default=1)
            if self._width > _WIDEST:
                raise InvalidInput(f"outputs: expected at most {_WIDEST} numbers in an answer")
            self._labels = {
                place: {}
                for place in range(self._width)
                if any(len(row) > place and isinstance(row[place], str) for row in known)
            }
        return np.array(
            [self._row(answer, row) for answer, row in zip(answers, rows, strict=True)]
        ).reshape(len(answers), -1)

    def _row(self, answer: Any, row: list[float | str] | None) -> list[float]:
        assert self._width is not None
        found: list[float] = []
        for place in range(self._width):
            value: float | str | None = None
            if row is not None and len(row) == self._width:
                value = row[place]
            if place in self._labels:
                found += self._label(place, answer if value is None else value)
            elif value is None:
                found.append(self._kind(answer))
            elif isinstance(value, str):
                found.append(self._kind(Raised(f"text {value}")))
            elif math.isnan(value):
                found.append(_NAN)
            else:
                found.append(min(max(value, -_INSIDE), _INSIDE))
        return found

    def _label(self, place: int, value: Any) -> list[float]:
        known = self._labels[place]
        text = value if isinstance(value, str) else f"{type(value).__name__} {value}"
        where = known.setdefault(text, len(known)) if len(known) < _LABELS else known.get(text)
        columns = [0.0] * (_LABELS + 1)
        columns[_LABELS if where is None else where] = 1.0
        return columns

    def _kind(self, answer: Any) -> float:
        """An exception, or an answer of another length than the first ones."""
        name = answer.kind if isinstance(answer, Raised) else "another length"
        return _RAISED * (1 + self._kinds.setdefault(name, len(self._kinds)))


def leaves(answer: Any) -> list[float | str]:
    """Return an answer's numbers and labels, in order. Those of an object are ordered by its keys.

    Example:
        >>> leaves({"b": [1, True], "a": "x"})
        ['x', 1.0, 1.0]
    """
    if answer is None:
        return ["nothing"]
    if isinstance(answer, bool | np.bool_ | int | float | np.integer | np.floating):
        try:
            return [float(answer)]
        except OverflowError:
            return [math.inf if answer > 0 else -math.inf]
    if isinstance(answer, str | bytes):
        return [answer if isinstance(answer, str) else answer.hex()]
    if isinstance(answer, Mapping):
        return [leaf for key in sorted(answer, key=str) for leaf in leaves(answer[key])]
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
        return leaves(answer)
    if isinstance(answer, Sequence):
        return [leaf for part in answer for leaf in leaves(part)]
    if hasattr(answer, "tolist"):
        return leaves(answer.tolist())
    raise InvalidInput(
        f"outputs: expected numbers, labels, lists or objects of them, got {type(answer).__name__}"
    )
