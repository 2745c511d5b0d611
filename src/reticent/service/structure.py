"""Counts of lists, cells and names in a body of JSON, taken while it arrives.

They come before any parsing, since a parser makes hundreds of bytes of two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from reticent.core.errors import InvalidInput

MOST_CELLS = 2**20
"""Cells of one request."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SHORT = 2**12
"""Bytes that are counted one kind after the other. Of more, numpy counts eight times as fast."""

_LONGEST_TEXT = 2**17
"""Bytes of a text of 10,000 characters, each as two escapes of six letters."""


@dataclass
class Structure:
    """The bounds of a body, and the counts of what has come of it.

    Args:
        lists: lists at most.
        items: commas at most.

    Attributes:
        names: members of the object so far.

    Example:
        >>> structure = Structure(lists=3, items=4)
        >>> structure.feed(b'{"rows": [[1, "a, [b]'), structure.feed(b'"]]}')
        (None, None)
        >>> structure.names
        1
        >>> structure.feed(b"[[")
        Traceback (most recent call last):
        reticent.core.errors.InvalidInput: body: expected at most 3 lists and 5 values in them
    """

    lists: int
    items: int
    names: int = 0
    _open: int = 0
    _commas: int = 0
    _objects: int = 0
    _text: bytes = b""
    _length: int = 0

    def feed(self, part: bytes) -> None:
        """Count what is in the next ``part``.

        Raises:
            InvalidInput: there is too much, or an object within another.
        """
        plain = self._without_texts(part)
        if len(plain) <= _SHORT:
            found = [plain.count(mark) for mark in b"[,{:"]
        else:
            every = np.frombuffer(plain, np.uint8)
            found = [int(np.count_nonzero(every == mark)) for mark in b"[,{:"]
        self._open += found[0]
        self._commas += found[1]
        self._objects += found[2]
        self.names += found[3]
        if self._open > self.lists or self._commas > self.items:
            raise InvalidInput(
                f"body: expected at most {self.lists} lists and {self.items + 1} values in them"
            )
        if self._objects > 1:
            raise InvalidInput("body: expected one object, with lists in it and no other object")

    def _without_texts(self, part: bytes) -> bytes:
        """Return ``part`` behind the text that was left open, without the texts in it."""
        if not self._text and b'"' not in part:
            return part
        plain = _TEXT.sub(b"", self._text + part)
        start = plain.find(b'"')
        if start < 0:
            self._text, self._length = b"", 0
            return plain
        left = plain[start:]
        # A text is counted and not kept, so that each byte of it is looked at once.
        self._length = len(left) + (self._length if start == 0 else 0)
        if self._length > _LONGEST_TEXT:
            raise InvalidInput("body: expected texts of at most 10,000 characters")
        escapes = len(left) - len(left.rstrip(b"\\"))
        self._text = b'"\\' if escapes % 2 else b'"'
        return plain[:start]
