"""``reticent attack bundle``: a table, a page, an exit status."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

QUICK = ("--trials", "2000", "--seed", "3", "--candidates", "20")


@pytest.fixture
def flowers_file(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "flowers.npz"
    np.savez(path, X=X, kind=y)
    return path


def test_games_caps_and_a_page(command, encoder_bundle, flowers_file, tmp_path) -> None:
    page = tmp_path / "attack.html"
    words = (
        "attack", "bundle", encoder_bundle, "--input", flowers_file, "--column", "kind", *QUICK,
        "--page", page,
    )  # fmt: skip
    answer = command(*words)
    assert answer.status == 0
    assert "proved cap" in answer.out
    assert "a decoder" in answer.out
    assert "20 candidates; seed 3; no budget was charged" in answer.out
    assert "no attack exceeded its cap" in answer.out
    text = page.read_text(encoding="utf-8")
    assert "which kind, after one answer" in text
    assert "proved floor" in text
    again = command(*words)
    assert again.status == 2
    assert "exists" in again.err
    assert command(*words, "--overwrite").out == answer.out  # one seed, one attack
