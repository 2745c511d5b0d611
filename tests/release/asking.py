"""A query as a system that answers each row by itself, for tests of what pays."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from reticent.core.releases import Release
from reticent.noise import Sampler
from reticent.release import Drawn, release
from reticent.systems.releasing_system import ReleasingSystem


class Asking(ReleasingSystem):
    """The least that answers rows."""

    bundle_identity_ = "b"

    def __init__(self, query: Any) -> None:
        self.query = query

    def checked(self, X: Any) -> Any:
        return X

    def bundle(self) -> Any:
        raise NotImplementedError

    def _fitted(self) -> Any:
        return self.query

    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[Any]) -> Drawn:
        return Drawn(values, withheld)


def asked(query: Any, inputs: Any, *, sampler: Sampler | None = None, **books: Any) -> Release:
    """One answer for each of ``inputs``."""
    if sampler is None:
        return Asking(query).release(inputs, **books)
    return release(Asking(query), inputs, sampler=sampler, **books)
