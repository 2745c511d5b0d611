"""Settings are checked, grids leave every sum exact, and weights of labels are never above 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import CertificationFailed, InvalidInput, InvalidParameter
from reticent.retraining.class_weights import checked_weights, weights_of_prevalence
from reticent.retraining.training import parameter_intervals
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids, TrainingSettings

SHAPES: list[dict[str, Any]] = [
    {"features": 2, "classes": 2},
    {"features": 784, "classes": 10},
    {"features": 384, "classes": 2, "hidden": (100,), "input_bound": 0.25},
    {"features": 64, "classes": 10, "hidden": (128,), "clip": 1.0},
    {"features": 3, "classes": 3, "hidden": (300, 40), "momentum": 0.9, "learning_rate": 5.0},
    {"features": 3, "classes": 64, "hidden": (40,), "learning_rate": 1e4},
    {"features": 3, "classes": 64, "hidden": (8, 8), "learning_rate": 1e2},
]


@pytest.mark.parametrize("fields", SHAPES)
def test_every_sum_fits_into_53_bits(fields: dict[str, Any]) -> None:
    """The largest whole number that each sum of several terms can reach, from the widest ranges
    that settings allow.
    """
    settings = TrainingSettings(**fields)
    grids = TrainingGrids.build(settings, settings.initial(0))
    widths = settings.widths
    drift = (
        sum(settings.rate(step) for step in range(settings.steps))
        * settings.clip
        / (1 - settings.momentum)
    )
    largest_signal = 1.0
    for layer in reversed(range(len(widths) - 1)):
        weight = (
            np.abs(grids.start[layer]).max()
            + drift / grids.weight_units[layer]
            + 2 * settings.steps
        )
        active = (
            max(settings.input_bound, 1.0) / grids.input_unit
            if layer == 0
            else grids.caps[layer - 1]
        )
        signal = math.ceil(largest_signal / grids.signal_units[layer])
        # Logits and their differences: doubled midpoints plus doubled radii.
        assert 2 * 2 * weight * active * (widths[layer] + 1) <= 2**53
        # Gradients over one block, before clipping, again doubled.
        assert 2 * signal * active * RECORDS_AT_ONCE <= 2**53
        if layer:
            # The signal below: every output contributes either its positive or its negative part,
            # or half of both.
            assert 2 * weight * signal * widths[layer + 1] <= 2**53
        low, high = grids.clips(layer)
        assert high - low <= 1
        assert high / 2 ** grids.shift(layer) <= 2**28
        # Over a wide box no two signals are tied: each may be at an end, and below the loss at
        # either end at once.
        outputs = settings.outputs if layer == len(widths) - 2 else 2 * widths[layer + 1]
        largest_signal *= weight * grids.weight_units[layer] * outputs


def test_signals_stay_in_range_over_boxes_as_wide_as_they_get() -> None:
    """Every distance at least the number of records: all weights end as far from the start as
    clipping lets them.
    """
    settings = TrainingSettings(
        features=4, classes=16, hidden=(6, 6), learning_rate=100.0, input_bound=1.0
    )
    grids = TrainingGrids.build(settings, settings.initial(0))
    intervals = parameter_intervals(
        np.ones((2, 4)), np.array([0, 1]), settings, k_max=2, initial=settings.initial(0)
    )
    network, inputs = intervals.network(2), grids.inputs(np.ones((2, 4)))
    factors = network.factors(inputs, np.array([0, 1]))
    assert max(np.abs(factors[0].row_low).max(), factors[0].row_high.max()) <= 2**25
    for layer in (1, 2):
        assert (
            max(np.abs(factors[layer].column_low).max(), factors[layer].column_high.max()) <= 2**22
        )


@pytest.mark.parametrize("clip", [1e9, 1e300])
def test_a_clip_beyond_64_bits_is_refused(clip: float) -> None:
    settings = TrainingSettings(features=2, classes=2, clip=clip)
    with pytest.raises(CertificationFailed, match="too large for exact whole numbers"):
        TrainingGrids.build(settings, settings.initial(None))


@pytest.mark.parametrize(
    "fields", [{"clip": 1e-12}, {"clip": 1e-12, "learning_rate": 1e11}, {"hidden": (256,) * 6}]
)
def test_a_clip_below_the_resolution_of_gradients_is_refused(fields: dict[str, Any]) -> None:
    """Rounded up to one unit, gamma would carry weights out of the range in which sums are
    exact.
    """
    settings = TrainingSettings(features=2, classes=2, **fields)
    with pytest.raises(
        CertificationFailed, match=f"clip={settings.clip!r}: fewer than 8 exact bits"
    ):
        TrainingGrids.build(settings, settings.initial(0))


def test_sums_over_all_records_stay_below_two_to_the_63() -> None:
    wide = TrainingSettings(features=1, classes=2, clip=100.0, input_bound=1.0)
    for settings in (
        wide,
        TrainingSettings(features=1, classes=2),
        TrainingSettings(features=3, classes=5, hidden=(4,), clip=9.0),
    ):
        grids = TrainingGrids.build(settings, settings.initial(0))
        for layer in range(len(grids.start)):
            active = 1 / grids.activation_units[layer] if layer == 0 else 2.0**20
            signal = 2.0**25 if layer == 0 else 2.0**22
            assert grids.most_records * min(grids.clips(layer)[1], signal * active) < 2**63
    assert TrainingGrids.build(wide, wide.initial(None)).most_records < 2**22
    assert (
        TrainingGrids.build(
            TrainingSettings(features=1, classes=2), [np.zeros((1, 2))]
        ).most_records
        == 2**24
    )
    many = np.broadcast_to(np.ones((1, 1)), (2**22, 1))
    with pytest.raises(InvalidInput, match="records and changes together, got 4194304 records"):
        parameter_intervals(many, np.broadcast_to(np.int64(1), 2**22), wide, k_max=0)


def test_inputs_are_cut_and_moved_to_the_grid() -> None:
    grids = TrainingGrids.build(
        TrainingSettings(features=1, classes=2, input_bound=2.0), [np.zeros((1, 2))]
    )
    scaled = grids.inputs(np.array([[5.0], [-9.0], [0.3]])) * grids.input_unit
    np.testing.assert_allclose(scaled, [[2.0, -2.0, 0.3], [1.0, 1.0, 1.0]], atol=grids.input_unit)
    assert (scaled / grids.input_unit == np.rint(scaled / grids.input_unit)).all()


def test_weighted_labels_count_alike() -> None:
    shares = {"a": 0.1, "b": 0.6, "c": 0.3}
    weights = weights_of_prevalence(shares, np.array(["a", "b", "c"]))
    assert weights == pytest.approx((1.0, 1 / 6, 1 / 3))
    assert [share * weight for share, weight in zip(shares.values(), weights, strict=True)] == (
        pytest.approx([0.1] * 3)
    )
    assert weights_of_prevalence(None, np.arange(3)) == (1.0, 1.0, 1.0)
    assert weights_of_prevalence({0: 30, 1: 10}, np.arange(2)) == pytest.approx((1 / 3, 1.0))
    checked_weights(weights, classes=3)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.5), (0.5, 0.5), (0.0, 1.0)])
def test_no_record_counts_for_more_than_without_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidParameter, match="class_weights"):
        checked_weights(weights, classes=2)
