"""The table of all ways: what a row says, and the way that needs no private record."""

from __future__ import annotations

import numpy as np

from papers.private_knn.rungs import Rows, public_rows_alone, radius_votes, table


def _rows() -> Rows:
    rng = np.random.default_rng(0)
    codes = np.arange(900) % 3
    features = rng.normal(size=(900, 50)) + 3.0 * np.eye(3)[codes] @ rng.normal(size=(3, 50))
    parts = slice(0, 600), slice(600, 800), slice(800, None)
    (private, public, scored) = ((features[part], codes[part]) for part in parts)
    return Rows(*private, *public, *scored, classes=3)


def test_rows_are_ordered_and_carry_their_errors() -> None:
    found = {"public rows alone": [0.5], "cells": [0.8, 0.9, 0.7]}
    lines = table("digits", 2.0, found, 10).splitlines()
    assert lines[-2] == "| cells | for good | 80.00 % | 5.77 | 3 |"
    assert lines[-1] == "| public rows alone | no private record | 50.00 % | no noise | 1 |"


def test_distances_use_directions_of_public_rows_alone() -> None:
    rows = _rows()
    near = rows.near
    assert near.private.shape == (600, 40)
    np.testing.assert_allclose(near.public.mean(axis=0), 0, atol=1e-9)


def test_ways_score_what_nobody_learned_from() -> None:
    rows = _rows()
    assert public_rows_alone(rows, 1.0, (0,))[0] > 0.9
    assert np.mean(radius_votes(rows, 50.0, (0, 1))) > 0.6
