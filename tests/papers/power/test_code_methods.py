"""What is scored exactly, and how score bins stand to the simple rival."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.power.code_methods import RUNG, RUNGS, Fitted, network_code, score_bins, scored
from papers.power.code_splits import split
from reticent.noise import SeededSampler
from reticent.systems import PowerEncoder, train_server
from reticent.systems.power.channels import randomised_response
from reticent.systems.scores import prediction_scores


def test_scores_are_the_mean_over_draws_of_the_noise() -> None:
    part = split("breast-cancer", seed=0, tuning=False)
    channel = randomised_response(2, epsilon=2.0)
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


def test_outputs_in_another_order_score_the_same() -> None:
    part = split("breast-cancer", seed=1, tuning=False)
    channel = randomised_response(2, epsilon=1.0)[:, [0, 1]]
    same = scored(channel[part.private[1]], channel[part.test[1]], part, channel)
    turned = channel[:, ::-1]
    other = scored(turned[part.private[1]], turned[part.test[1]], part, turned)
    assert other["accuracy"] == pytest.approx(same["accuracy"], abs=1e-12)
    assert other["information"] == pytest.approx(same["information"], abs=0.01)


def test_score_bins_are_not_below_the_booster() -> None:
    """On all rows that are not public, so that 341 count in place of 114."""
    gains = []
    for seed in range(4):
        part = split("breast-cancer", seed=seed, tuning=False)
        fresh = tuple(np.concatenate(pair) for pair in zip(part.private, part.test, strict=True))
        wide = replace(part, test=fresh)
        fit = Fitted(wide)
        found, plan = score_bins(fit, 2.0, scoring="information")
        assert plan.mechanism == "score-code"
        gains.append(found["information"] - RUNGS[RUNG](fit, 2.0)["information"])
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) > -2 * error
    assert np.mean(gains) > -0.01


def test_score_bins_are_those_of_the_encoder() -> None:
    """The table shares models between budgets; its releases are the encoder's to the last bit."""
    part = split("wine", seed=0, tuning=False)
    fit = Fitted(part)
    _, plan = score_bins(fit, 2.0, scoring="accuracy")
    encoder = PowerEncoder(
        epsilon=2.0,
        delta=0.0,
        radius=None,
        schema=part.schema,
        mechanism="score-code",
        scoring="accuracy",
        random_state=0,
    ).fit(*part.public)
    kinds = {one.mechanism for one in encoder.considered_}
    assert kinds == {plan.mechanism} == {"score-code"}
    assert abs(encoder.considered_[0].utility - plan.utility) < 0.1


def test_raw_columns_tell_next_to_nothing() -> None:
    fit = Fitted(split("wine", seed=0, tuning=False))
    assert abs(RUNGS["raw columns"](fit, 1.0)["auc"] - 0.5) < 0.25


def test_networks_of_codes_are_learnt_once_for_all_budgets() -> None:
    fit = Fitted(split("wine", seed=0, tuning=False))
    found = {epsilon: network_code(fit, epsilon) for epsilon in (1.0, 5.0)}
    assert fit.networks is fit.networks
    assert all(plan.epsilon == epsilon for epsilon, (_, plan) in found.items())
    assert found[5.0][0]["information"] > found[1.0][0]["information"] + 0.3
    (_, rows, _), public = fit.networks, fit.part.public
    assert len(rows.held) == round(0.2 * len(public[1])) > 0
    assert len(rows.held) + len(rows.train) == len(public[1])
