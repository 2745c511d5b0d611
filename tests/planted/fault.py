"""A fault that may be planted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Fault:
    """One change of the source that must not go unnoticed.

    Attributes:
        name: the fault in plain words, unique.
        file: the changed file, below ``src/reticent``.
        old: a text that occurs in it exactly once.
        new: the text in its place.
        room: folders of tests, below ``tests``, whose quick tests must notice, where they are
            others than the file's own.
    """

    name: str
    file: str
    old: str
    new: str
    room: tuple[str, ...] = ()

    @property
    def rooms(self) -> tuple[str, ...]:
        """Folders of tests whose quick tests must notice."""
        return self.room or (str(PurePosixPath(self.file).parent),)
