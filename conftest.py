"""What holds for tests and doctests alike."""

from __future__ import annotations

import pytest

from reticent.release.fits import forget_fits


@pytest.fixture(autouse=True)
def fits_forgotten() -> None:
    """A test starts as a process does that has released nothing. Many tests and examples fit on one
    table, and would otherwise warn of each other's fits, whichever happen to run in one process.
    """
    forget_fits()
