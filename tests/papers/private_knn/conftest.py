"""Rows of three clusters, in place of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from papers.private_knn.rung_rows import Rows


@pytest.fixture(scope="module")
def clusters() -> Rows:
    """600 private rows, 200 public ones and 100 that are scored."""
    rng = np.random.default_rng(0)
    codes = np.arange(900) % 3
    features = rng.normal(size=(900, 50)) + 3.0 * np.eye(3)[codes] @ rng.normal(size=(3, 50))
    parts = slice(0, 600), slice(600, 800), slice(800, None)
    (private, public, scored) = ((features[part], codes[part]) for part in parts)
    return Rows(*private, *public, *scored, classes=3)
