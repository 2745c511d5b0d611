"""Cells for small tests: few enough to cost tenths of a second."""

from __future__ import annotations

from reticent.lipschitz import CellBound


class FewCells(CellBound):
    """Cells that cost tenths of a second."""

    kind, cells, nodes = "few cells", 24, 20
