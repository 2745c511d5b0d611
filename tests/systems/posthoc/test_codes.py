"""Embeddings for any two inputs: codes, and noise that covers the whole public box."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from reticent.attacks import attack_fitted
from reticent.audit import audit_fitted
from reticent.core.errors import CorruptBundle
from reticent.release.bundle import Bundle
from reticent.systems import Calibration, PosthocEncoder
from reticent.systems.loading import load
from reticent.systems.posthoc.query import PrivateQuery
from reticent.training.parts import Identity, Ladder, PublicParts, PublicPCA, PublicSigns
from reticent.training.parts.public_nodes import PublicNodes

RANDOM = np.random.default_rng(0)
CENTRES = RANDOM.normal(size=(6, 5))
ROWS = CENTRES[RANDOM.integers(6, size=900)] + 0.2 * RANDOM.normal(size=(900, 5))
LABELS = (ROWS[:, 4] > 0).astype(int)
TOTAL = {"delta": 0.0, "radius": None, "embedder": "identity", "random_state": 0}


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 9.0, 40.0])
@pytest.mark.parametrize("part", [PublicParts(outputs=6), PublicSigns(outputs=3)])
def test_no_two_chances_of_a_code_are_more_than_a_factor_apart(
    part: PublicNodes, epsilon: float
) -> None:
    table = part.fit(ROWS).table(epsilon)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    low = table.min(axis=0)
    assert (table.max(axis=0) <= math.exp(epsilon) * low * (1 + 1e-9)).all()


def test_what_is_released_explains_what_calibration_says() -> None:
    encoder = PosthocEncoder(epsilon=4.0, obfuscator="parts", **TOTAL).fit(ROWS[:600])
    told = encoder.simulate(ROWS[600:], seed=1).values
    assert told.shape == (300, 5)
    lost = ((ROWS[600:] - told) ** 2).sum() / ((ROWS[600:] - ROWS[:600].mean(axis=0)) ** 2).sum()
    # 300 draws: .04 is four standard errors.
    assert 1.0 - lost == pytest.approx(encoder.query_.plan.utility, abs=0.1)
    again = np.mean([encoder.simulate(ROWS[:1], seed=seed).values for seed in range(4000)], axis=0)
    np.testing.assert_allclose(again, encoder.exact(ROWS[:1]), atol=0.12)


def test_codes_are_rungs_with_and_without_a_radius() -> None:
    rungs = Ladder((Identity(), PublicPCA(outputs=2), PublicParts(), PublicSigns(outputs=2)))
    for radius in (None, 1.0):
        total = {**TOTAL, "radius": radius}
        encoder = PosthocEncoder(epsilon=3.0, obfuscator=rungs, **total).fit(ROWS)
        best = {plan.mechanism: plan.utility for plan in reversed(encoder.considered_)}
        assert encoder.query_.plan.utility == max(best.values())
        assert best["code"] > 1.2 * best["laplace"]  # six places, which noise blurs


def test_noise_covers_the_whole_box_without_a_radius() -> None:
    encoder = PosthocEncoder(epsilon=3.0, obfuscator="identity", **TOTAL).fit(ROWS)
    query = encoder.query_
    widths = query.bound.domain.upper - query.bound.domain.lower
    assert query.mechanism.sensitivity >= widths.max()
    corners = np.stack([query.bound.domain.lower, query.bound.domain.upper])
    far = encoder.exact(np.array([[-1e9] * 5, [1e9] * 5]))
    np.testing.assert_allclose(far, corners, atol=1e-3)
    assert "any two" not in encoder.card().not_protected
    assert "whatever the two are" in encoder.card().protected


def test_a_code_is_stored_audited_and_attacked_as_other_releases_are(tmp_path: Path) -> None:
    encoder = PosthocEncoder(
        epsilon=2.0,
        obfuscator=PublicSigns(outputs=2),
        calibration=Calibration(head_epochs=2),
        **TOTAL,
    ).fit(ROWS, LABELS)
    assert encoder.head_ is not None
    folder = encoder.save(tmp_path / "bundle")
    for loaded in (PosthocEncoder.load(folder), load(folder)):
        np.testing.assert_array_equal(loaded.exact(ROWS), encoder.exact(ROWS))
    assert PosthocEncoder.load(folder).radius is None
    stored = Bundle.read(folder)
    arrays = {**stored.arrays, "code.means": stored.arrays["code.means"][:-1]}
    with pytest.raises(CorruptBundle):
        PrivateQuery.from_description(stored.settings, arrays, None)
    # Honest audits fail one time in a thousand, at most.
    assert not audit_fitted(encoder, ROWS[:20], draws=2_000, alpha=0.001, seed=0).refuted
    game = {"candidates": 24, "trials": 2_000, "decoder": False, "seed": 0}
    assert not attack_fitted(encoder, ROWS[:64], **game).exceeded
