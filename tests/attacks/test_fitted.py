"""Attacks on fitted systems: none exceeds its cap, and half of the noise is found out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.datasets import load_digits

from reticent.attacks import attack_fitted
from reticent.attacks.page import attack_page
from reticent.mechanisms import FiniteChannel
from reticent.systems import (
    Calibration,
    PosthocEncoder,
    VectorTraining,
)
from tests.attacks.test_candidates import X, Y, encoder, table

QUICK = {"trials": 4_000, "seed": 0, "decoder": False, "candidates": 24}


def halved(system):
    """The system with half of the noise: its mechanism is one of twice the epsilon."""
    mechanism = system.query_.mechanism
    system.query_.__dict__["mechanism"] = replace(mechanism, sensitivity=mechanism.sensitivity / 2)
    return system


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": "laplace"},
        {"mechanism": "gaussian", "delta": 1e-3},
        {"mechanism": "laplace", "delta": 1e-3, "calibration": Calibration(path="local")},
    ],
)
def test_no_cap_is_exceeded(changes) -> None:
    found = attack_fitted(encoder(**changes), X, columns={"kind": Y}, **QUICK)
    assert found.exceeded == ()
    assert "no attack exceeded" in found.verdict
    by_name = {game.name: game for game in found.games}
    assert by_name["which kind, after one answer"].success > 0.5  # it does learn something
    assert len(by_name) == 4 + 3 + 1


@pytest.mark.parametrize("mechanism", ["laplace", "k-norm-linf"])
def test_half_of_the_noise_is_found_out(mechanism: str) -> None:
    found = attack_fitted(halved(encoder(mechanism=mechanism)), X, **QUICK)
    assert any(name.startswith("which of two neighbours") for name in found.exceeded)
    assert "refuted: " in found.verdict
    assert "Refuted" in attack_page(found)


def test_rows_of_tables() -> None:
    vectors = table(
        mechanism="k-norm-l2", training=VectorTraining(outputs=2, hidden=(8,), epochs=1)
    )
    assert attack_fitted(vectors, X, columns={"kind": Y}, **QUICK).exceeded == ()
    codes = table(mechanism="code", training=VectorTraining(epochs=2))
    found = attack_fitted(codes, X, columns={"kind": Y}, **{**QUICK, "decoder": True})
    assert found.exceeded == ()
    assert len(found.reconstructions) == 2
    mechanism = codes.query_.mechanism
    codes.query_.__dict__["mechanism"] = FiniteChannel.response(
        mechanism.nodes.size, epsilon=2 * mechanism.epsilon, adjacency=mechanism.adjacency
    )
    assert attack_fitted(codes, X, **QUICK).exceeded


def test_a_decoder_draws_pictures() -> None:
    pictures = load_digits().images[:200] / 16.0
    system = PosthocEncoder(
        epsilon=4000.0, delta=0.0, radius=0.05, embedder="identity", obfuscator="pca",
        mechanism="laplace", random_state=0,
    ).fit(pictures)  # fmt: skip
    found = attack_fitted(
        system, pictures, **{**QUICK, "decoder": True, "trials": 1000, "critic": 0.01}
    )
    # The second decoder, with a critic, is asked as often, beside the same cap and floor.
    plain, criticised = found.reconstructions[-2:]
    assert criticised.floor == plain.floor
    for drawn in (plain, criticised):
        assert drawn.floor <= drawn.error < 0.75 * drawn.blind
    first, second = found.games[-2:]
    assert (second.cap, second.trials) == (first.cap, first.trials)
    assert found.exceeded == ()
