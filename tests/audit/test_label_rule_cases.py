"""Audits of tables, hop maps and response at their worst pair: never above the claim, close below
it; planted faults above. 10^4 runs here, 10^6 from the operating system's words with --soak.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.audit import (
    AuditCase,
    AuditResult,
    finite_channel_case,
    hop_release_case,
)
from reticent.core import Neighborhood, Norm
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.mechanisms import FiniteChannel, HopRelease
from reticent.noise import AuditSampler, SecureSampler
from reticent.training.label_tables import whole_table

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
CELLS = Lattice.over([[0.0, 0.0], [3.4, 1.4]], radius=0.5, tail=0.0)
STRIPES = np.arange(2)[:, None] == (CELLS.center[:, 0] > 1.7)


def table(epsilon: float) -> FiniteChannel:
    shares = whole_table(STRIPES.astype(float), lattice=CELLS, epsilon=epsilon)
    return FiniteChannel(nodes=CELLS, shares=shares, epsilon=epsilon, adjacency=NEAR)


def graph(epsilon: float) -> FiniteChannel:
    """A ring of eight nodes, each joined to two others; four of them are of either label."""
    angles = np.arange(8) * np.pi / 4
    ring = PublicGraph.nearest(np.stack([np.cos(angles), np.sin(angles)], axis=1), neighbours=2)
    wanted = np.arange(2)[:, None] == (np.arange(8) >= 4)
    shares = whole_table(wanted.astype(float), lattice=ring, epsilon=epsilon)
    return FiniteChannel(nodes=ring, shares=shares, epsilon=epsilon, adjacency=ring.adjacency)


def hop(epsilon: float) -> HopRelease:
    both = STRIPES | (np.abs(CELLS.center[:, 0] - 1.7) < 0.3)
    return HopRelease.of(both, lattice=CELLS, epsilon=epsilon, adjacency=NEAR)


def response(epsilon: float) -> FiniteChannel:
    return FiniteChannel.response(2, epsilon=epsilon, adjacency=NEAR)


CASES = {
    "table": lambda built, claimed: finite_channel_case(table(built), epsilon=claimed),
    "graph": lambda built, claimed: finite_channel_case(graph(built), epsilon=claimed),
    "hop": lambda built, claimed: hop_release_case(hop(built), epsilon=claimed),
    "response": lambda built, claimed: finite_channel_case(response(built), epsilon=claimed),
}


def unchecked(shares: np.ndarray, epsilon: float) -> AuditCase:
    """A table whose entries were changed behind the constructor's back."""
    mechanism = table(epsilon)
    object.__setattr__(mechanism, "shares", shares)
    return finite_channel_case(mechanism, epsilon=epsilon)


def sharp_table() -> AuditCase:
    """One cell in the left stripe answers as if nothing touched it."""
    shares = table(1.0).shares.copy()
    cell = int(np.flatnonzero(STRIPES[0])[-1])  # next to the other stripe
    shares[:, cell] = [2**32 - 2**28, 2**28]
    return unchecked(shares, 1.0)


def missing_edge() -> AuditCase:
    """A table made for a ring that lacks one edge, where the ring has it."""
    mechanism = graph(1.0)
    kept = mechanism.nodes.edges[1:]
    fewer = PublicGraph(points=mechanism.nodes.points, edges=kept)
    wanted = np.arange(2)[:, None] == (np.arange(8) >= 1)
    shares = whole_table(wanted.astype(float), lattice=fewer, epsilon=1.0)
    object.__setattr__(mechanism, "shares", shares)
    return finite_channel_case(mechanism, epsilon=1.0)


def narrow_cells() -> AuditCase:
    """Cells of half a radius: neighbours may skip one, and the factor is e^(2 epsilon)."""
    mechanism = table(1.0)
    wide = Lattice(**{**CELLS.to_dict(), "reach": 2})
    object.__setattr__(mechanism, "nodes", wide)
    return finite_channel_case(mechanism, epsilon=1.0)


def eager_classifier() -> AuditCase:
    """Other labels weigh a quarter of what the map needs."""
    mechanism = hop(1.0)
    others = np.maximum(mechanism._others // 4, 1)
    object.__setattr__(mechanism, "_others", others)
    return hop_release_case(mechanism, epsilon=1.0)


FAULTS = {
    "missing edge": missing_edge,
    "sharp table": sharp_table,
    "narrow cells": narrow_cells,
    "eager classifier": eager_classifier,
    "response built for twice epsilon": lambda: CASES["response"](2.0, 1.0),
}


MILLION = 1_000_000
RUNS = [10_000, pytest.param(MILLION, marks=pytest.mark.soak)]


def audited(case: AuditCase, runs: int) -> AuditResult:
    if runs < MILLION:
        return case.run(runs=runs, confidence=0.999, sampler=AuditSampler(0))
    return case.run(runs=runs, confidence=1 - 1e-9, sampler=SecureSampler())


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_no_claim_is_refuted_and_most_of_it_is_seen(name: str, epsilon: float, runs: int) -> None:
    result = audited(CASES[name](epsilon, epsilon), runs)
    assert not result.refutes(epsilon)
    assert result.epsilon_lower > (0.55 if runs < MILLION else 0.9) * epsilon


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_caught(name: str, runs: int) -> None:
    case = FAULTS[name]()
    assert audited(case, runs).refutes(case.epsilon)
