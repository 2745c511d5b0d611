"""Fleets of a bundle that is fitted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reticent import CodeEncoder
from tests.fleet.fleets import Fleet, fitted

pytest.importorskip("cryptography.hazmat.primitives.hpke", exc_type=ImportError)


@pytest.fixture(scope="session")
def encoder() -> CodeEncoder:
    """Codes of three labels at epsilon 2."""
    return fitted()


@pytest.fixture
def fleet(tmp_path: Path, encoder: CodeEncoder) -> Fleet:
    """Keys of a shuffler and an aggregator."""
    return Fleet(tmp_path, encoder)
