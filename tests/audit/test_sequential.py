"""The sequential test and the test of stated noise: power against half of it, and false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.audit import ScaleTest, SequentialTest, reachable_laplace
from reticent.audit.sequential import bet
from reticent.core.errors import InvalidInput, InvalidParameter


def laplace_scores(random, coins, scale):
    """Log likelihood ratio of Laplace noise around 0 or 1, in units of its largest. Rounded: the
    last bits of a sum of doubles tell which of the two was added.
    """
    values = np.where(coins, 0.0, 1.0) + random.laplace(scale=scale, size=len(coins))
    return np.round(np.abs(values - 1.0) - np.abs(values), 6)


def binary(random, coins, epsilon):
    """Randomised response: right with the largest chance that epsilon allows."""
    right = random.random(len(coins)) < 1.0 / (1.0 + math.exp(-epsilon))
    return np.where(right, coins, ~coins).astype(np.float64)


@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 300), (2.0, 120)])
def test_half_the_laplace_noise_is_refuted_after_a_median_of_hundreds_of_draws(epsilon, most):
    """Medians of 227 and 94 of single draws by `python -m papers.claims.power`. The standard error
    of a median of 40 is 17 %, so that the limits are missed with a chance of 1 in 20 for an unlucky
    seed, and never by these ones.
    """
    after = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        coins = random.random(1500) < 0.5
        test = SequentialTest(epsilon=epsilon, delta=0.0, alpha=0.05)
        test.update(coins, laplace_scores(random, coins, 0.5 / epsilon))
        after.append(test.refuted_after or math.inf)
    assert np.median(after) <= most


def test_a_claim_that_just_holds_is_refuted_no_more_often_than_alpha():
    """200 runs of 300 draws at the boundary. Were the chance .05, 25 would be exceeded with a
    chance of 1e-5. `python -m papers.claims.power` makes 10,000.
    """
    found = 0
    for run in range(200):
        random = np.random.default_rng([3, run])
        coins = random.random(300) < 0.5
        test = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.05)
        found += test.update(coins, laplace_scores(random, coins, 1.0))
    assert found <= 25


def test_gaussian_noise_as_stated_is_not_refuted_more_often_than_alpha():
    """60 runs of 600 draws; were the chance .1, 18 would be exceeded with a chance of 1e-5."""
    found = 0
    for run in range(60):
        random = np.random.default_rng([4, run])
        coins = random.random(600) < 0.5
        test = SequentialTest(mu=1.0, alpha=0.1)
        found += test.update(coins, np.where(coins, 1.0, 0.0) + random.normal(size=600))
    assert found <= 18


def refute(draw, *, draws, seed, **claimed):
    test = SequentialTest(**claimed)
    bet(draw, [test], batch=256, runs=draws, random=np.random.default_rng([seed, 0xC01]))
    return test


@pytest.mark.parametrize("mu", [0.25, 2.0])
def test_half_the_gaussian_noise_contradicts_the_stated_mu(mu):
    """Nine of ten runs at least within 4,000 draws; half of them in hundreds."""
    random = np.random.default_rng(5)

    def draw(coins):
        return np.where(coins, mu, 0.0) + random.normal(scale=0.5, size=len(coins))

    found = [refute(draw, mu=mu, alpha=0.05, draws=4000, seed=s) for s in range(20)]
    assert sum(one.refuted for one in found) >= 18


def test_a_score_of_many_numbers_is_learnt():
    random = np.random.default_rng(6)
    change = random.normal(size=20)
    change /= np.linalg.norm(change)

    def draw(coins, noise):
        return np.where(coins[:, None], change, 0.0) + random.normal(
            scale=noise, size=(len(coins), 20)
        )

    half = [
        refute(lambda c: draw(c, 0.5), mu=1.0, alpha=0.05, draws=4000, seed=s) for s in range(5)
    ]
    whole = [
        refute(lambda c: draw(c, 1.0), mu=1.0, alpha=0.01, draws=2000, seed=s) for s in range(5)
    ]
    assert all(one.refuted for one in half)
    assert not any(one.refuted for one in whole)


def test_a_rare_certain_answer_is_granted_its_delta_and_no_more():
    random = np.random.default_rng(7)

    def draw(coins):
        return np.where(coins & (random.random(len(coins)) < 0.05), 1.0, 0.0)

    assert refute(draw, epsilon=0.5, delta=0.01, alpha=0.05, draws=20000, seed=0).refuted
    assert not refute(draw, epsilon=0.5, delta=0.05, alpha=0.01, draws=5000, seed=0).refuted


def test_no_draw_has_a_part_in_the_bet_on_it():
    """What was fed later, or in which batches, changes nothing of what was bet before. A test that
    learnt thresholds from the batch that it bets on would fail here.
    """
    random = np.random.default_rng(8)
    coins = random.random(700) < 0.5
    outputs = np.where(coins[:, None], 0.7, 0.0) + random.normal(size=(700, 3))
    whole = SequentialTest(epsilon=0.3, delta=0.01, alpha=1e-6)
    whole.update(coins, outputs)
    cut, trail = SequentialTest(epsilon=0.3, delta=0.01, alpha=1e-6), []
    for start in range(0, 700, 7):
        cut.update(coins[start : start + 7], outputs[start : start + 7])
        trail.append(cut.log_wealth)
    assert cut.log_wealth == pytest.approx(whole.log_wealth, rel=1e-12)
    other = SequentialTest(epsilon=0.3, delta=0.01, alpha=1e-6)
    changed = outputs.copy()
    changed[350:] *= -5.0
    for start in range(0, 350, 7):
        other.update(coins[start : start + 7], changed[start : start + 7])
        assert other.log_wealth == pytest.approx(trail[start // 7], rel=1e-12)


def test_outputs_that_are_all_different_tell_nothing():
    """One batch of 500 draws of pure noise in 200 numbers: a score fitted to the same draws would
    separate them well. 12 runs at level .01: more than 3 with a chance of 5e-6.
    """
    found = 0
    for run in range(12):
        random = np.random.default_rng([9, run])
        coins = random.random(500) < 0.5
        test = SequentialTest(epsilon=0.05, delta=0.0, alpha=0.01)
        found += test.update(coins, random.normal(size=(500, 200)))
    assert found <= 3


def test_the_expected_factor_is_at_most_one():
    """Every bet, at its surest place on either side, against the claim's extreme laws, exactly."""
    for epsilon, delta in [(0.5, 0.0), (2.0, 1e-3), (5.0, 0.2)]:
        test = SequentialTest(epsilon=epsilon, delta=delta, alpha=0.05)
        factors = np.exp(test._payoffs)
        half = len(factors) // 2
        none, heads, tails = factors[0], factors[half - 1], factors[-1]
        assert np.array_equal(none[0], none[1])
        for q in (0.0, 0.01, 0.1):
            p = min(1.0, math.exp(epsilon) * q + delta)
            for guess, own in ((heads, 0), (tails, 1)):  # P(A) = p on its own side, q on the other
                mean = 0.5 * (p * guess[own] + (1 - p) * none[0] + q * guess[1 - own])
                assert (mean + 0.5 * (1 - q) * none[0] <= 1 + 1e-12).all()
            if p + q <= 1:  # both at once
                rest = (1 - p - q) * none[0]
                both = 0.5 * (p * heads[0] + q * heads[1] + q * tails[0] + p * tails[1]) + rest
                assert (both <= 1 + 1e-12).all()


def test_the_excluded_epsilon_is_below_the_true_one_and_not_far():
    """Randomised response has one epsilon, 1.5. 12 runs at level .05: more than 5 above it with a
    chance of 1e-5.
    """
    found = []
    for run in range(12):
        random = np.random.default_rng([10, run])
        coins = random.random(2000) < 0.5
        test = SequentialTest(epsilon=9.0, delta=0.0, alpha=0.05)
        test.update(coins, binary(random, coins, 1.5)[:, None])
        found.append(test.excluded(delta=0.0))
    assert sum(one > 1.5 for one in found) <= 5
    assert np.median(found) > 1.1


def test_the_excluded_epsilon_grants_delta_and_stays_below_the_exact_one():
    """Gaussian outputs 2 sigma apart at delta .05. 6 runs at level .1: more than 3 above the exact
    epsilon with a chance of 1e-3. And an answer that shows D with chance .02, which delta .02
    covers: 6 runs, more than 3 refuted with the same chance.
    """
    exact = next(
        epsilon
        for epsilon in np.arange(0.0, 20.0, 0.01)
        if gaussian_delta(noise_multiplier=0.5, epsilon=epsilon) <= 0.05
    )
    over, found, alone, granted = 0, [], [], []
    for run in range(6):
        random = np.random.default_rng([12, run])
        coins = random.random(3000) < 0.5
        test = SequentialTest(epsilon=exact, delta=0.05, alpha=0.1)
        outputs = random.normal(size=(3000, 3)) + np.outer(coins, [2.0, 0.0, 0.0])
        test.update(coins, np.round(outputs, 3))
        found.append(test.excluded(delta=0.05))
        over += found[-1] > exact
        shown = coins & (random.random(3000) < 0.02)
        rare = SequentialTest(epsilon=9.0, delta=0.0, alpha=0.1)
        rare.update(coins, shown * 1.0)
        alone.append(rare.excluded(delta=0.0))
        granted.append(rare.excluded(delta=0.02))
    assert over <= 3
    assert np.median(found) > 0.5 * exact
    assert np.median(alone) > 0.8
    assert sum(one > 0 for one in granted) <= 3


def test_textbook_noise_is_told_by_its_last_bits():
    """As much Laplace noise as claimed, added in floating point to 0 or to 1."""
    found = 0
    for seed in range(3):
        random = np.random.default_rng([11, seed])
        coins = random.random(6000) < 0.5
        noise = random.laplace(scale=1.0, size=6000)
        sums = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.01)
        found += sums.update(coins, np.where(coins, 1.0, 0.0) + noise)
        grid = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.01)
        assert not grid.update(coins, np.round((np.where(coins, 1.0, 0.0) + noise) * 1024) / 1024)
    assert found == 3


@pytest.mark.parametrize(
    ("claim", "chance"),
    [
        ({"epsilon": 5.0, "delta": 0.0}, 1 / (1 + math.exp(-5))),
        ({"epsilon": 8.0, "delta": 0.0}, 1 / (1 + math.exp(-8))),
        ({"epsilon": 1.0, "delta": 0.1}, (math.e + 0.1) / (1 + math.e)),
        ({"mu": 3.0}, norm.cdf(1.5)),
    ],
)
def test_no_fewer_draws_than_the_least(claim, chance):
    test = SequentialTest(alpha=0.05, **claim)
    least = test.least_draws
    assert chance**least <= 0.05 < chance ** (least - 1)
    coins = np.random.default_rng(0).random(40_000) < 0.5
    assert test.update(coins, coins.astype(float))  # every output gives its coin away
    assert test.refuted_after >= least
    assert test.refuted_after <= 2.5 * least + 64


def test_infinite_scores_and_constants():
    coins = np.random.default_rng(1).random(600) < 0.5
    sure = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.05)
    assert sure.update(coins, np.where(coins, np.inf, -np.inf))
    flat = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.05)
    assert not flat.update(coins, np.zeros((600, 2)))
    assert "not refuted" in flat.describe()
    assert flat.wealth < 2


def test_what_is_refused():
    good = {"epsilon": 1.0, "delta": 0.0, "alpha": 0.05}
    for settings in (
        {"alpha": 0.05},
        {"epsilon": 1.0, "alpha": 0.05},
        {"mu": 1.0, "epsilon": 1.0, "delta": 0.0, "alpha": 0.05},
        {"mu": -1.0, "alpha": 0.05},
        {**good, "alpha": 0.0},
    ):
        with pytest.raises(InvalidParameter):
            SequentialTest(**settings)
    test = SequentialTest(**good)
    for coins, outputs in (
        ([0, 1], [0.0, 1.0]),
        ([True], [0.0, 1.0]),
        ([True], [np.nan]),
        ([True], [[[1.0]]]),
    ):
        with pytest.raises(InvalidInput):
            test.update(coins, outputs)
    test.update([True], [1.0])
    with pytest.raises(InvalidInput):
        test.update([True], [[1.0, 2.0]])


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_half_the_stated_noise_is_refuted_by_200_draws_and_the_whole_seldom(law):
    """200 runs of each; 1,000 at the stated scale: more than 24 refuted at level .01 with a chance
    of 1e-4.
    """
    late, false = 0, 0
    for seed in range(200):
        random = np.random.default_rng([20, seed])
        draws = 7.0 + getattr(random, "normal" if law == "gaussian" else law)(size=200, scale=1.0)
        small = ScaleTest(law, scale=2.0, alpha=0.01)
        late += not small.update(draws)
        false += ScaleTest(law, scale=1.0, alpha=0.01).update(draws)
    assert late <= 2
    assert false <= 9


def test_reachable_sums_of_a_textbook_sampler():
    random = np.random.default_rng(21)
    for center, scale in ((0.0, 1.0), (1.0, 0.5), (17.0, 10.0)):
        drawn = center + random.laplace(scale=scale, size=2000)
        assert reachable_laplace(drawn, exact=center, scale=scale).all()
    drawn = random.laplace(scale=1.0, size=2000)
    assert reachable_laplace(drawn, exact=1.0, scale=1.0).mean() < 0.9
