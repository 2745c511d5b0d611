"""Candidate settings of the rivals that papers' tables tune on public rows."""

from __future__ import annotations

from itertools import product
from typing import Any

from reticent.systems.features import Features

Settings = dict[str, Any]


def descent_settings(columns: int) -> list[Settings]:
    """Return settings of ``NoisyGradientClassifier`` for features of so many columns."""
    schedules = ((10, 20.0), (20, 20.0), (40, 20.0), (60, 40.0))
    return [
        {"features": features, "steps": steps, "learning_rate": rate}
        for features, (steps, rate) in product(_reduced(columns, (30, 100, 400)), schedules)
    ]


def target_descent_settings(columns: int) -> list[Settings]:
    """Return settings of ``NoisyGradientRegressor``."""
    schedules = ((2, 1.0), (4, 0.5), (6, 0.25))
    return [
        {"features": features, "steps": steps, "residual": residual}
        for features, (steps, residual) in product(_reduced(columns, (5, 20, 60)), schedules)
    ]


def linear_vote_settings(columns: int) -> list[Settings]:
    """Return settings of ``LinearVoteClassifier``."""
    return [
        {"features": features, "ridge": ridge, "clip_quantile": quantile}
        for features, ridge, quantile in product(
            _reduced(columns, (30, 200)), (0.1, 1.0), (0.2, 0.6)
        )
    ]


def _reduced(columns: int, sizes: tuple[int, ...]) -> list[Features]:
    return [Features(components=kept) for kept in sorted({min(columns, size) for size in sizes})]
