"""What is scored exactly, and how score bins stand to the simple rival."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.code_methods import scored
from papers.power.code_splits import split
from reticent.noise import SeededSampler
from reticent.systems import train_server
from reticent.systems.scores import prediction_scores
from reticent.training.staircases import response_on


def test_scores_are_the_mean_over_draws_of_the_noise() -> None:
    part = split("breast-cancer", seed=0, tuning=False)
    channel = response_on(np.arange(2), epsilon=2.0)
    private, tested = channel[part.private[1]], channel[part.test[1]]
    drawn = []
    for seed in range(400):
        server = train_server(
            "channel",
            np.eye(2)[SeededSampler(10_000 + seed).categorical(private)],
            part.private[1],
            seed=0,
            channel=channel,
        )
        found = server.predict_proba(np.eye(2)[SeededSampler(20_000 + seed).categorical(tested)])
        right = (part.test[1][:, None] == server.classes).astype(float)
        drawn.append(prediction_scores(found, right, shares=server.shares).accuracy)
    spread = np.std(drawn, ddof=1)
    assert spread > 0.02  # what one draw of the held-out rows' noise is off by
    exact = scored(private, tested, part, channel)["accuracy"]
    assert exact == pytest.approx(channel[0, 0], abs=1e-12)
    assert abs(np.mean(drawn) - exact) < 4 * spread / 20
