"""Golden numbers of the accountants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    values: dict[str, Any] = json.loads((Path(__file__).parent / "golden.json").read_text())
    return values
