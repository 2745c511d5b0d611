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

_BELOW_ZERO = -5e-324
"""Stands for the zero that is written -0.0, and equals the other one."""

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
    """Write answers as rows of one width: that of the widest answer of the first batch. Answers of
    other keys or lengths than this one are told apart by these, up to 24 of them.

    Example:
        >>> code = OutputCode()
        >>> code(["yes", "no", "yes"])[:, :2].tolist()
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self) -> None:
        self._width: int | None = None
        self._form: Any = None
        self._labels: dict[int, dict[str, int]] = {}
        self._kinds: dict[str, int] = {}

    def __call__(self, answers: Sequence[Any]) -> Array:
        """Return answers as rows, shape (n, d).

        Raises:
            InvalidInput: an answer that is none of these, or wider than 4,096 numbers.
        """
        flat = [
            (one, []) if isinstance(one, Raised) else (form_of(one), leaves(one) or [0.0])
            for one in answers
        ]
        if self._width is None:
            known = [one for one in flat if not isinstance(one[0], Raised)]
            self._form, widest = max(known, key=lambda one: len(one[1]), default=(None, [0.0]))
            self._width = len(widest)
            if self._width > _WIDEST:
                raise InvalidInput(f"outputs: expected at most {_WIDEST} numbers in an answer")
            like = [row for form, row in known if form == self._form]
            self._labels = {
                place: {}
                for place in range(self._width)
                if any(isinstance(row[place], str) for row in like)
            }
        return np.array([self._row(form, row) for form, row in flat]).reshape(len(answers), -1)

    def _row(self, form: Any, row: list[float | str]) -> list[float]:
        assert self._width is not None
        found: list[float] = []
        alike = form == self._form
        for place in range(self._width):
            value = row[place] if alike else form
            if place in self._labels:
                found += self._label(place, value)
            elif not alike or isinstance(value, str):
                found.append(self._kind(value))
            elif math.isnan(value):
                found.append(_NAN)
            elif value == 0.0 and math.copysign(1.0, value) < 0:
                found.append(_BELOW_ZERO)
            else:
                found.append(min(max(value, -_INSIDE), _INSIDE))
        return found

    def _label(self, place: int, value: Any) -> list[float]:
        text = value if isinstance(value, str) else f"{type(value).__name__} {value}"
        columns = [0.0] * (_LABELS + 1)
        columns[_place(self._labels[place], text)] = 1.0
        return columns

    def _kind(self, value: Any) -> float:
        """Return a number for an exception, a text among numbers, or other keys or lengths."""
        return _RAISED * (1 + _place(self._kinds, f"{type(value).__name__} {value}"))


def _place(known: dict[str, int], text: str) -> int:
    """Return a text's place among the first ones that came, the last one for all others."""
    return known.setdefault(text, len(known)) if len(known) < _LABELS else known.get(text, _LABELS)


def form_of(answer: Any) -> Any:
    """Return the keys and lengths of an answer, without its numbers and labels.

    Example:
        >>> form_of({"b": [1, True], "a": "x"})
        {'b': 2, 'a': None}
    """
    if isinstance(answer, Mapping):
        return {str(key): form_of(part) for key, part in answer.items()}
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        parts = [form_of(part) for part in answer]
        return len(parts) if all(part is None for part in parts) else parts
    return None


def leaves(answer: Any) -> list[float | str]:
    """Return an answer's numbers and labels, in order. Those of an object are ordered by its keys.

    Example:
        >>> leaves({"b": [1, True], "a": "x"})
        ['x', 1.0, 1.0]
    """
    if answer is None:
        return ["\0nothing"]  # no label of a subject's own
    if isinstance(answer, bool | np.bool_ | int | float | np.integer | np.floating):
        try:
            return [float(answer)]
        except OverflowError:
            return [math.inf if answer > 0 else -math.inf]
    if isinstance(answer, str | bytes):
        return [answer if isinstance(answer, str) else f"\0{answer.hex()}"]
    if isinstance(answer, Mapping):
        return [leaf for key in sorted(answer, key=str) for leaf in leaves(answer[key])]
    if hasattr(answer, "tolist"):
        return leaves(answer.tolist())
    if isinstance(answer, Sequence):
        return [leaf for part in answer for leaf in leaves(part)]
    raise InvalidInput(
        f"outputs: expected numbers, labels, lists or objects of them, got {type(answer).__name__}"
    )
