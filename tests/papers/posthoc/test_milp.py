"""The MILP oracle against brute force over activation patterns, at kinks, under limits, and
against exact search.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.posthoc import milp
from papers.posthoc.exact.constants import lipschitz_constant
from papers.posthoc.exact.constants import nearest_violation as exact_nearest
from papers.posthoc.exact.search import Limits
from papers.posthoc.milp import _Search, milp_lipschitz, milp_nearest_violation
from papers.posthoc.milp_network import BoxedChain
from reticent.core import Box, Norm
from reticent.core.errors import (
    CertificationFailed,
    InvalidInput,
    InvalidParameter,
    UnsupportedNetwork,
    UnsupportedNorm,
)
from reticent.lipschitz.bounds import parse_output
from reticent.networks import Activation, ActivationKind, Affine, Network, affine_chain
from tests.lipschitz.brute_force import (
    cells,
    lipschitz,
    measure_of,
    nearest_violation,
    tiny_networks,
)

OUTPUTS = ("l1", "linf", "spread")
RADII = (0.1, 0.5, 1.0, 2.0)
EDGE = 3.0

TINY = list(tiny_networks(12, most_hidden=7, seed=5))


def question(row: int, dimension: int) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """A center, a radius and the ends of its ball for the row-th network of a table."""
    center, radius = (
        np.random.default_rng(row).uniform(-2.5, 2.5, size=dimension),
        RADII[row % len(RADII)],
    )
    return center, radius, np.maximum(center - radius, -EDGE), np.minimum(center + radius, EDGE)


@pytest.mark.parametrize("row", range(len(TINY)), ids=[name for name, _ in TINY])
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_constant_is_that_of_brute_force(row: int, output: str):
    network = TINY[row][1]
    center, radius, lower, upper = question(row, network.input_dimension)
    found = milp_lipschitz(
        network, center, radius, domain=Box.cube(len(center), EDGE), output=parse_output(output)
    )
    assert found.value == pytest.approx(
        lipschitz(network, lower, upper, output), rel=1e-6, abs=1e-9
    )
    assert found.value <= found.bound <= found.value * (1 + 1e-6) + 1e-9
    assert found.gap == found.bound - found.value
    assert found.witness is not None
    assert ((found.witness >= lower) & (found.witness <= upper)).all()


@pytest.mark.parametrize("row", range(len(TINY)), ids=[name for name, _ in TINY])
def test_the_distance_is_that_of_brute_force(row: int):
    network, output = TINY[row][1], OUTPUTS[row % 3]
    center, _, _, _ = question(row, network.input_dimension)
    domain = Box.cube(len(center), EDGE)
    norms = np.unique(
        [
            round(measure_of(cell.jacobian, output), 6)
            for cell in cells(network, domain.lower, domain.upper)
        ]
    )
    # Between two norms that occur, so that rounding decides nothing.
    limit = float(norms[-2:].mean()) if len(norms) > 1 else float(norms[-1]) + 0.5
    expected, _ = nearest_violation(network, center, limit, domain.lower, domain.upper, output)
    found = milp_nearest_violation(
        network, center, limit=limit, max_radius=np.inf, domain=domain, output=parse_output(output)
    )
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-7)
    if np.isinf(expected):
        assert (found.witness, found.status.value, found.gap) == (
            None,
            "none within the radius",
            0.0,
        )
    else:
        assert found.bound <= found.value <= found.bound * (1 + 1e-6) + 1e-7
        assert found.witness is not None
        assert np.abs(found.witness - center).max() <= found.value * (1 + 1e-6) + 1e-9
        # Just beyond the distance the limit is exceeded, just before it is not.
        for reach, above in (
            (found.value * 1.001 + 1e-6, True),
            (found.value * 0.999 - 1e-6, False),
        ):
            if reach > 0:
                ends = (
                    np.maximum(center - reach, domain.lower),
                    np.minimum(center + reach, domain.upper),
                )
                assert (lipschitz(network, *ends, output) > limit) == above


def test_a_witness_reproduces_the_value_by_its_pattern():
    network = TINY[6][1]
    center, radius, *_ = question(6, network.input_dimension)
    found = milp_lipschitz(network, center, radius, domain=Box.cube(len(center), EDGE))
    assert found.witness is not None
    assert found.pattern is not None
    values, slope, position = found.witness, np.eye(len(center)), 0
    for layer in network.linear_layers()[:-1]:
        weight, before = layer.dense(), layer.dense() @ values + layer.bias
        on = found.pattern[position : position + len(before)]
        assert (np.where(on, before, -before) >= -1e-6).all()
        values, slope, position = (
            np.maximum(before, 0.0),
            on[:, None] * (weight @ slope),
            position + len(before),
        )
    assert measure_of(network.linear_layers()[-1].dense() @ slope, "l1") == pytest.approx(
        found.value, rel=1e-12
    )


def test_at_a_kink_both_slopes_count():
    kink = affine_chain([[[1.0], [-1.0]], [[3.0, -1.0]]], [[0.0, 0.0], [0.0]])  # slope 1, then 3
    domain = Box.cube(1, 4.0)
    assert milp_lipschitz(kink, [-1.0], 1.0, domain=domain).value == pytest.approx(
        4.0
    )  # both on at 0: 3 + 1
    assert milp_lipschitz(kink, [-1.0], 0.999, domain=domain).value == pytest.approx(1.0)
    assert milp_nearest_violation(
        kink, [-1.0], limit=2.0, max_radius=4.0, domain=domain
    ).value == pytest.approx(1.0)


def test_networks_with_nothing_to_decide_take_no_program():
    domain = Box.cube(2, 4.0)
    affine = affine_chain([[[1.0, -2.0], [0.5, 1.0]]], [[0.0, 1.0]])
    assert milp_lipschitz(affine, [0.0, 0.0], np.inf, domain=domain).value == 4.5 - 1.0
    assert milp_lipschitz(affine, [0.0, 0.0], np.inf, domain=domain).programs == 0
    constant = affine_chain([np.zeros((3, 2)), np.ones((2, 3))], [np.zeros(3), np.zeros(2)])
    assert milp_lipschitz(constant, [0.0, 0.0], 1.0, domain=domain).value == 0.0
    assert (
        milp_nearest_violation(constant, [0.0, 0.0], limit=1.0, max_radius=9.0, domain=domain).value
        == np.inf
    )
    dead = affine_chain([np.eye(2), np.eye(2)], [[-50.0, 50.0], [0.0, 0.0]])
    found = milp_lipschitz(dead, [0.0, 0.0], 1.0, domain=domain)
    assert (found.value, found.programs, found.pattern.tolist()) == (1.0, 0, [False, True])


def test_a_center_above_the_limit_is_at_distance_zero():
    steep = affine_chain([[[5.0]], [[1.0]]], [[0.0], [0.0]])
    found = milp_nearest_violation(steep, [1.0], limit=4.0, max_radius=1.0, domain=Box.cube(1, 4.0))
    assert (found.value, found.bound, found.programs) == (0.0, 0.0, 0)


def test_answers_do_not_depend_on_where_the_search_starts(monkeypatch: pytest.MonkeyPatch):
    """Without samples to start from, every answer is the solver's."""
    name, network = TINY[3]
    center, radius, *_ = question(3, network.input_dimension)
    domain = Box.cube(len(center), EDGE)
    before = milp_lipschitz(network, center, radius, domain=domain)
    monkeypatch.setattr(milp, "_SAMPLES", 0)
    after = milp_lipschitz(network, center, radius, domain=domain)
    assert after.value == pytest.approx(before.value, rel=1e-7), name


def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch):
    """Ranges that are too narrow by a tenth cut off patterns: brute force disagrees on some of
    the table.
    """
    true_range = BoxedChain._range

    def narrow(
        self: BoxedChain, index: int, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        below, above = true_range(self, index, low, high)
        return 0.95 * below + 0.05 * above, 0.05 * below + 0.95 * above

    monkeypatch.setattr(BoxedChain, "_range", narrow)
    monkeypatch.setattr(milp, "_SAMPLES", 0)
    wrong = 0
    for row, (_, network) in enumerate(TINY):
        center, radius, lower, upper = question(row, network.input_dimension)
        try:
            found = milp_lipschitz(network, center, radius, domain=Box.cube(len(center), EDGE))
        except CertificationFailed:
            wrong += 1
            continue
        wrong += abs(found.value - lipschitz(network, lower, upper, "l1")) > 1e-6 * found.value
    assert wrong > 0


def test_an_optimum_that_presolve_would_lose():
    """HiGHS 1.15.1 with presolve calls 0.98907 optimal here; brute force and exact search find
    0.98811.
    """
    network, limit = list(tiny_networks(9, most_hidden=20, seed=11))[8][1], 4.8444
    center, domain = question(8, 2)[0], Box.cube(2, EDGE)
    expected, _ = nearest_violation(network, center, limit, domain.lower, domain.upper, "spread")
    found = milp_nearest_violation(
        network, center, limit=limit, max_radius=np.inf, domain=domain, output="spread"
    )
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert expected == pytest.approx(0.98811, abs=1e-5)


@pytest.mark.parametrize(
    "limits",
    [Limits(cpu_seconds=0.0), Limits(wall_seconds=0.0), Limits(nodes=0)],
    ids=["cpu seconds", "wall seconds", "nodes"],
)
def test_a_limit_raises_and_shows_no_value(limits: Limits):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(30, 6)), rng.normal(size=(20, 30)), rng.normal(size=(5, 20))]
    network, domain = (
        affine_chain(weights, [np.zeros(30), np.zeros(20), np.zeros(5)]),
        Box.cube(6, 4.0),
    )
    seen = _Search(network, np.full(6, 0.1), 1.0, domain, Norm.L1, None).largest_sample()[0]
    with pytest.raises(CertificationFailed, match="HiGHS stopped without an answer") as refused:
        milp_lipschitz(network, np.full(6, 0.1), 1.0, domain=domain, limits=limits)
    stated = f"nodes={limits.nodes}, cpu_seconds={limits.cpu_seconds}"
    assert f"limits: {stated}, wall_seconds={limits.wall_seconds}" in str(refused.value)
    assert f"{seen:.2f}"[:4] not in str(refused.value)
    with pytest.raises(CertificationFailed, match="HiGHS stopped without an answer"):
        milp_nearest_violation(
            network, np.full(6, 0.1), limit=1.2 * seen, max_radius=1.0, domain=domain, limits=limits
        )


def test_what_is_not_covered_is_refused():
    network, domain = (
        affine_chain([np.eye(2), np.eye(2)], [np.zeros(2), np.zeros(2)]),
        Box.cube(2, 1.0),
    )
    smooth = Network((Affine(np.eye(2), np.zeros(2)), Activation(ActivationKind.TANH)), (2,))
    wide = affine_chain([np.ones((1, 15))], [np.zeros(1)])
    with pytest.raises(UnsupportedNetwork, match="linear layers with ReLU"):
        milp_lipschitz(smooth, [0.0, 0.0], 1.0, domain=domain)
    with pytest.raises(UnsupportedNorm, match="15 inputs"):
        milp_lipschitz(wide, np.zeros(15), 1.0, domain=Box.cube(15, 1.0))
    with pytest.raises(UnsupportedNorm, match="output=l2"):
        milp_lipschitz(network, [0.0, 0.0], 1.0, domain=domain, output=parse_output("l2"))
    with pytest.raises(InvalidInput, match="domain"):
        milp_lipschitz(network, [0.0, 0.0], 1.0, domain=Box.cube(3, 1.0))
    with pytest.raises(InvalidParameter, match="radius"):
        milp_lipschitz(network, [0.0, 0.0], -1.0, domain=domain)
    with pytest.raises(InvalidParameter, match="limit"):
        milp_nearest_violation(network, [0.0, 0.0], limit=0.0, max_radius=1.0, domain=domain)


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.soak)])
def test_exact_search_agrees_on_small_networks(count):
    """One to three hidden layers with up to 20 neurons, all output measures; the constant and
    the distance.
    """
    rng = np.random.default_rng(11)
    for row, (name, network) in enumerate(tiny_networks(count, most_hidden=20, seed=11)):
        center, radius, *_ = question(row, network.input_dimension)
        domain, output = Box.cube(len(center), EDGE), parse_output(OUTPUTS[row % 3])
        by_solver = milp_lipschitz(network, center, radius, domain=domain, output=output)
        by_search = lipschitz_constant(
            network, center, radius, domain=domain, output=output, relative=1e-9, absolute=1e-12
        )
        assert by_search.value == pytest.approx(by_solver.value, rel=1e-6, abs=1e-9), name
        limit = by_solver.value * rng.uniform(0.8, 1.5) + 1e-3
        near = milp_nearest_violation(
            network, center, limit=limit, max_radius=np.inf, domain=domain, output=output
        )
        exact = exact_nearest(
            network, center, limit=limit, max_radius=np.inf, domain=domain, output=output
        )
        assert exact.distance == pytest.approx(near.value, rel=1e-6, abs=1e-7), name
