from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from reticent.accounting import (
    Accountant,
    Composed,
    Cost,
    GaussianAccountant,
    GaussianCost,
    NoisyArgmaxDpEvent,
    PldAccountant,
    PoissonSampled,
    PrivacyEvent,
    RdpAccountant,
    ScreeningDpEvent,
    StatedCost,
    ZeroConcentratedCost,
    optimal_epsilon,
)
from reticent.core import (
    AddRemove,
    Adjacency,
    Guarantee,
    GuaranteeKind,
    Neighborhood,
    Norm,
    Replace,
)
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter
from tests.accounting.test_composition import delta_by_enumeration
from tests.events import make_event

BALL = Neighborhood(Norm.L2, 0.5, "embedding")
# The golden values took all integers up to 1024; every optimum lies below 160, and dp-accounting's
# time grows with the square.
INTEGER_ORDERS = np.arange(2.0, 160.0)


def sampled(rate: float, sigma: float) -> Cost:
    step = GaussianCost(sigma)
    return step if rate == 1 else PoissonSampled(rate, step)


@pytest.mark.parametrize("case", range(9))
@pytest.mark.parametrize("delta", ["1e-05", "1e-06"])
def test_sampled_gaussian_golden_values_rdp(golden: dict[str, Any], case: int, delta: str) -> None:
    row = golden["sampled_gaussian"][case]
    event = make_event(event=sampled(row["sampling_probability"], row["noise_multiplier"]))
    accountant = RdpAccountant(AddRemove()).compose(event, row["answers"])
    assert accountant.epsilon(delta=float(delta)) == pytest.approx(row[delta]["rdp"], rel=1e-8)
    curve = RdpAccountant(AddRemove(), orders=[float(a) for a in row["rdp"]]).compose(event).rdp
    assert curve == pytest.approx(list(row["rdp"].values()), rel=1e-8)


@pytest.mark.parametrize("case", [0, 3, 5, 7, 8])
@pytest.mark.parametrize("delta", ["1e-05", "1e-06"])
def test_sampled_gaussian_golden_values_pld(golden: dict[str, Any], case: int, delta: str) -> None:
    row = golden["sampled_gaussian"][case]
    event = make_event(event=sampled(row["sampling_probability"], row["noise_multiplier"]))
    epsilon = PldAccountant(AddRemove()).compose(event, row["answers"]).epsilon(delta=float(delta))
    assert epsilon == pytest.approx(row[delta]["pld"], abs=1e-3)
    if row[delta]["prv"]:
        lower, _, upper = row[delta]["prv"]
        assert lower <= epsilon <= upper
    if row[delta]["exact"]:
        assert epsilon == pytest.approx(row[delta]["exact"], abs=1e-3)


@pytest.mark.parametrize("name", ["CelebA", "Market"])
def test_private_knn_golden_values(golden: dict[str, Any], name: str) -> None:
    row = golden["private_knn"][name]
    rdp, pld = RdpAccountant(AddRemove(), orders=INTEGER_ORDERS), PldAccountant(AddRemove())
    for rate, sigma, count in row["steps"]:
        event = make_event(event=sampled(rate, sigma))
        rdp.compose(event, count)
        pld.compose(event, count)
    assert rdp.epsilon(delta=row["delta"]) == pytest.approx(row["rdp"], rel=1e-8)
    assert pld.epsilon(delta=row["delta"]) == pytest.approx(row["pld"], abs=1e-3)


@pytest.mark.parametrize("index", [0, 1])
def test_steps_on_one_subsample_are_one_step_and_cost_more(
    golden: dict[str, Any], index: int
) -> None:
    row = list(golden["shared_subsample"].values())[index]
    rate, first, vote = row["sampling_probability"], row["sigma1"], row["sigma2"] / math.sqrt(2)
    fresh = RdpAccountant(AddRemove(), orders=INTEGER_ORDERS)
    fresh.compose(make_event(event=sampled(rate, first)), row["asked"]).compose(
        make_event(event=sampled(rate, vote)), row["answered"]
    )
    both = Composed([GaussianCost(first), GaussianCost(vote)])
    shared = RdpAccountant(AddRemove(), orders=INTEGER_ORDERS)
    shared.compose(make_event(event=PoissonSampled(rate, both)), row["asked"])
    assert fresh.epsilon(delta=row["delta"]) == pytest.approx(row["fresh"], rel=1e-8)
    assert shared.epsilon(delta=row["delta"]) == pytest.approx(row["joint"], rel=1e-8)


@pytest.mark.parametrize("rate", [0.25, 0.05])
@pytest.mark.parametrize("delta", ["1e-05", "1e-06"])
def test_screening_golden_totals(golden: dict[str, Any], rate: float, delta: str) -> None:
    row = golden["screening_8192"][str(rate)][delta]
    step = ScreeningDpEvent(**golden["screening"]["parameters"])
    total = {}
    for name, event in {
        "gaussian_nosub": GaussianCost(85.0),
        "screen_nosub_safe": step,
        "gaussian_sub": sampled(rate, 85.0),
        "screen_sub_exact_safe": PoissonSampled(rate, step),
    }.items():
        accountant = RdpAccountant(AddRemove(), orders=INTEGER_ORDERS).compose(
            make_event(event=event), 8192
        )
        total[name] = accountant.epsilon(delta=float(delta))
    assert total == {name: pytest.approx(row[name], rel=1e-8) for name in total}
    assert total["screen_sub_exact_safe"] < total["gaussian_sub"]


@pytest.mark.parametrize("rate", [1.0, 0.15])
def test_noisy_argmax_counts_as_its_votes(rate: float) -> None:
    """Like continuous Gaussian noise of the same multiplier: exactly at integer orders, and
    never less in between.
    """
    label = make_event(event=PoissonSampled(rate, NoisyArgmaxDpEvent(25.0)))
    votes = make_event(event=sampled(rate, 25.0 / math.sqrt(2)))
    orders = [2.0, 3.5, 7.0, 20.75]
    found, expected = (
        RdpAccountant(AddRemove(), orders=orders).compose(event).rdp for event in (label, votes)
    )
    assert found[[0, 2]] == pytest.approx(expected[[0, 2]], rel=1e-8)
    assert np.all(found >= expected * (1 - 1e-9))
    assert found == pytest.approx(expected, rel=0.03)
    low = RdpAccountant(AddRemove(), orders=[1.25, 2.0]).compose(label).rdp
    assert low[0] == low[1]


@pytest.mark.parametrize("accountant", [RdpAccountant, PldAccountant])
@pytest.mark.parametrize(
    "event",
    [GaussianCost(9.0), None],
    ids=["gaussian", "stated"],
)
def test_unsampled_noise_costs_the_same_under_every_adjacency(
    accountant: type[Accountant], event: Cost | None
) -> None:
    totals = [
        accountant(adjacency)
        .compose(make_event(adjacency=adjacency, event=event), 30)
        .epsilon(delta=1e-5)
        for adjacency in (AddRemove(), AddRemove(3), Replace(), BALL)
    ]
    assert totals == [totals[0]] * 4


@pytest.mark.parametrize("accountant", [RdpAccountant, PldAccountant])
def test_stated_costs_are_counted_soundly(accountant: type[Accountant]) -> None:
    """Never below the optimum of Kairouz, Oh and Viswanath, and PLD attains it."""
    event = make_event(epsilon=0.3, delta=1e-7)
    best = optimal_epsilon(epsilon=0.3, answers=20, delta=1e-5, answer_delta=1e-7)
    total = accountant(AddRemove()).compose(event, 20).epsilon(delta=1e-5)
    assert total >= best - 1e-9
    assert total <= best * 1.2
    assert accountant(AddRemove()).compose(event, 20).epsilon(delta=1e-6) == math.inf


ONE, TWO = AddRemove(), AddRemove(2)
WIDER = Neighborhood(Norm.L2, 0.6, "embedding")
GAUSSIAN, PURE = GaussianCost(1.0), StatedCost(1.0, 0.0)


@pytest.mark.parametrize(
    ("accountant", "counted", "asked", "event"),
    [
        (RdpAccountant, ONE, Replace(), GAUSSIAN),
        (PldAccountant, BALL, WIDER, GAUSSIAN),
        (RdpAccountant, BALL, BALL, sampled(0.1, 1.0)),
        (PldAccountant, Replace(), Replace(), sampled(0.1, 1.0)),
        (RdpAccountant, TWO, TWO, sampled(0.1, 1.0)),
        (RdpAccountant, ONE, ONE, Cost()),
        (PldAccountant, BALL, BALL, ScreeningDpEvent(0, 30, 20, 8.0)),
        (RdpAccountant, TWO, TWO, NoisyArgmaxDpEvent(8.0)),
        (PldAccountant, ONE, ONE, ZeroConcentratedCost(0.1)),
        (RdpAccountant, ONE, ONE, Composed([GAUSSIAN, Cost()])),
        (RdpAccountant, ONE, ONE, PoissonSampled(0.1, Composed([PURE, sampled(0.5, 1.0)]))),
        (PldAccountant, ONE, ONE, PoissonSampled(0.1, Composed([GAUSSIAN, PURE]))),
        (RdpAccountant, ONE, ONE, PoissonSampled(0.1, Composed([GAUSSIAN, StatedCost(1.0, 1e-9)]))),
        (GaussianAccountant, ONE, ONE, PURE),
    ],
)
def test_unsupported_pairs_are_refused_before_anything_changes(
    accountant: type[Accountant],
    counted: Adjacency,
    asked: Adjacency,
    event: Cost,
) -> None:
    account = accountant(counted).compose(make_event(adjacency=counted, event=GaussianCost(4.0)), 3)
    before = account.epsilon(delta=1e-5)
    good_then_bad = Composed([GaussianCost(4.0), event])
    for attempt in (event, good_then_bad):
        with pytest.raises(IncompatibleGuarantees):
            account.compose(make_event(adjacency=asked, event=attempt))
    assert account.epsilon(delta=1e-5) == before


@pytest.mark.parametrize("kind", [GuaranteeKind.NO_PRIVACY, GuaranteeKind.LIPSCHITZ_PRIVACY])
def test_other_kinds_are_refused(kind: GuaranteeKind) -> None:
    with pytest.raises(IncompatibleGuarantees, match="expected differential privacy"):
        RdpAccountant(AddRemove()).compose(make_event(kind=kind))


def test_the_event_decides_and_not_the_guarantee_beside_it() -> None:
    nested = Composed([Composed([GaussianCost(9.0)] * 4), Composed([])])
    flat = RdpAccountant(AddRemove()).compose(make_event(event=GaussianCost(9.0)), 12)
    assert RdpAccountant(AddRemove()).compose(make_event(event=nested), 3).epsilon(
        delta=1e-5
    ) == flat.epsilon(delta=1e-5)


def test_zcdp_is_linear_in_the_order() -> None:
    rdp = (
        RdpAccountant(AddRemove(), orders=[2.0, 8.0])
        .compose(make_event(event=ZeroConcentratedCost(0.1, 0.05)), 2)
        .rdp
    )
    assert rdp == pytest.approx([0.5, 1.7])


def test_edge_cases() -> None:
    assert RdpAccountant(AddRemove()).epsilon(delta=1e-5) == 0.0
    assert PldAccountant(AddRemove()).epsilon(delta=1e-5) == 0.0
    gaussian = make_event(event=GaussianCost(3.0))
    assert RdpAccountant(AddRemove()).compose(gaussian).epsilon(delta=0.0) == math.inf
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(InvalidParameter, match="answers"):
            RdpAccountant(AddRemove()).compose(gaussian, wrong)


def test_unequal_answers_lie_just_above_the_truth() -> None:
    parts, total = [(0.3, 0.0), (0.7, 0.001), (0.3, 0.0), (1.1, 0.0)], PldAccountant(AddRemove())
    for epsilon, delta in parts:
        total.compose(PrivacyEvent("stated", Guarantee(epsilon, delta, AddRemove())))
    found = total.epsilon(delta=0.01)
    assert delta_by_enumeration(parts, found) <= 0.01 + 1e-12
    assert delta_by_enumeration(parts, found - 1e-3) > 0.01
