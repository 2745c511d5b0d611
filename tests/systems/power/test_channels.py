"""Channels are worth what they are said to be: against closed forms and random private channels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.grids.shares import WHOLE, excess
from reticent.mechanisms import AnyTwo
from reticent.mechanisms.finite_channel import whole_shares
from reticent.systems.scores import channel_scores
from reticent.training.staircases import response_on


def test_rounding_gives_next_to_nothing_away_and_repairs_what_is_not_private() -> None:
    table = response_on(np.arange(3), epsilon=2.0)
    np.testing.assert_allclose(whole_shares(table, epsilon=2.0).T / WHOLE, table, atol=1e-6)
    repaired = whole_shares(np.eye(3) * 0.94 + 0.02, epsilon=0.5)
    assert excess(repaired, repaired, lattice=AnyTwo(3), epsilon=0.5) == 0


def test_randomised_response_on_two_bins_is_worth_the_closed_form() -> None:
    # A bin that is the label, evenly split: a binary symmetric channel.
    scores = channel_scores(response_on(np.arange(2), epsilon=1.0).T @ (np.eye(2) / 2))
    right = math.e / (1 + math.e)
    capacity = math.log(2) + right * math.log(right) + (1 - right) * math.log(1 - right)
    assert scores.information == pytest.approx(capacity, abs=1e-12)
    assert scores.accuracy == scores.balanced_accuracy == pytest.approx(right)
    assert scores.auc == pytest.approx(right)
