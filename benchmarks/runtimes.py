"""The runtimes that docstrings state: ``python benchmarks/runtimes.py [PART ...]``.

One line for each mechanism (an answer), bound (a point), certificate and accountant (a call):
processor time of one thread, the least of three runs after one that fills tables and caches.
Docstrings quote the order of magnitude. No peer: ratios to one are printed by
``additive_release.py``, ``certify.py``, ``exact_search.py``, ``certified.py`` and ``ledger.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from reticent.accounting import (
    GaussianAccountant,
    GaussianCost,
    PldAccountant,
    PrivacyEvent,
    PrivateKnnSteps,
    RdpAccountant,
    calibrate_private_knn,
    epsilon_per_answer,
    optimal_delta,
    optimal_epsilon,
    private_knn_total,
    smallest_epsilon,
)
from reticent.core import AddRemove, Box, Guarantee, Neighborhood, Norm
from reticent.grids.lattice import Lattice
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
    LevelTest,
    LinearBound,
    stability_radius,
)
from reticent.mechanisms import (
    FiniteChannel,
    GaussianMechanism,
    HopRelease,
    KNormMechanism,
    LaplaceMechanism,
    NoisyArgmax,
    NoisyMaxRelease,
    NoisyScreening,
    NoisySums,
    ProposeTestRelease,
    SignedDistanceRelease,
    StabilityRelease,
    StabilityResponse,
    SumBlock,
    analytic_sigma,
    gaussian_delta,
    optimal_test,
)
from reticent.networks import Network, affine_chain
from reticent.noise import (
    AuditSampler,
    Grid,
    SecureSampler,
    SeededSampler,
    k_norm,
)
from reticent.published.certified import (
    GlobalSensitivityResponse,
    SmoothCauchy,
    published_vote_distances,
)
from reticent.published.posthoc import PublishedPosthoc
from reticent.retraining import (
    ConvexSettings,
    TrainingSettings,
    convex_model,
    parameter_intervals,
    record_buckets,
    record_keys,
    stable_distances,
    vote_distances,
)
from reticent.training.channel_tables import best_table
from reticent.training.label_tables import exact_table
from reticent.training.staircases import Information, response_on

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROWS = 2000
NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
RECORDS = AddRemove()


def fastest(task: Callable[[], object], *, count: int = 1) -> float:
    """Microseconds of processor time for each of ``count`` answers: least of three runs."""
    task()
    times = []
    for _ in range(3):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times) / count * 1e6


def show(name: str, microseconds: float, each: str) -> None:
    unit, value = "us", microseconds
    for larger in ("ms", "s"):
        if value >= 1000:
            unit, value = larger, value / 1000
    print(f"{name:36s} {value:8.3g} {unit} a {each}", flush=True)


def mechanisms() -> None:
    """One line for each mechanism: ten labels, eight coordinates, 2,000 rows at once."""
    rng, sampler = np.random.default_rng(0), SecureSampler()
    vectors, logits = rng.normal(size=(ROWS, 8)), rng.normal(size=(ROWS, 10))
    levels, labels = rng.integers(0, 20, ROWS), rng.integers(0, 10, ROWS)
    votes = rng.multinomial(300, [0.55] + [0.05] * 9, size=ROWS)
    radii, most, two = levels * 0.5, votes.max(axis=1), labels % 2
    added = {"sensitivity": 1.0, "epsilon": 1.0, "dimension": 8, "adjacency": NEAR}
    labelled = {"classes": 10, "sensitivity": 1.0, "epsilon": 1.0, "adjacency": NEAR}
    test = {"radius": 0.5, "proposal": 2.0, "epsilon_test": 0.5, "delta_test": 0.01}
    record = {"epsilon": 1.0, "adjacency": RECORDS}
    sampled = {"neighbours": 300, "sampling_probability": 0.15, "delta": 1e-5}
    inner = KNormMechanism(**added, output_norm=Norm.LINF)
    published = PublishedPosthoc(
        radius=0.5,
        maximum_radius=5.0,
        proposal=2.0,
        stated_epsilon=1.0,
        stated_delta=0.05,
        dimension=8,
        adjacency=NEAR,
    )
    lattice = Lattice.over(
        rng.uniform(0, 5, (9, 8)), radius=0.5, tail=0.0, coordinates=(0, 1, 2, 3, 4)
    )
    shares = np.full((10, lattice.size), 2**32 // 10, dtype=np.uint32)
    shares[0] += 2**32 % 10
    near = {"epsilon": 1.0, "adjacency": NEAR}
    table = partial(FiniteChannel, nodes=lattice, shares=shares, **near)
    allowed = rng.random((10, lattice.size)) < 0.2
    allowed[0] |= ~allowed.any(axis=0)
    hop = HopRelease.of(allowed, lattice=lattice, **near)
    hop_again = partial(HopRelease, lattice=lattice, allowed=allowed, weights=hop.weights, **near)
    show(f"FiniteChannel, check of {lattice.size:,} cells", fastest(table), "table")
    show(f"HopRelease, check of {lattice.size:,} cells", fastest(hop_again), "map")
    answers: list[tuple[Any, tuple[Integers | Array, ...]]] = [
        (LaplaceMechanism(**added), (vectors,)),
        (inner, (vectors,)),
        (KNormMechanism(**added, output_norm=Norm.L2), (vectors,)),
        (GaussianMechanism(**added, delta=1e-5), (vectors,)),
        (StabilityRelease(**labelled), (logits,)),
        (table(), (vectors,)),
        (hop, (vectors, logits)),
        (FiniteChannel.response(10, **near), (labels,)),
        (NoisyMaxRelease(**labelled), (logits,)),
        (ProposeTestRelease(**test, inner=inner), (vectors, levels)),
        (published, (vectors, radii)),
        (StabilityResponse(**record, classes=10), (labels, levels)),
        (SmoothCauchy(**record), (two, levels)),
        (GlobalSensitivityResponse(**record), (two, levels)),
        (NoisyArgmax(classes=10, sigma=25.0, **sampled), (votes,)),
        (NoisyScreening(threshold=150.0, sigma=50.0, **sampled), (most,)),
        (SignedDistanceRelease(**record, delta=1e-5, classes=2), (two, levels)),
        (SignedDistanceRelease(**record, delta=1e-5, classes=10), (labels, levels)),
    ]
    for mechanism, given in answers:
        task = partial(mechanism.release, *given, sampler=sampler)
        norm = getattr(mechanism, "output_norm", None)
        name = type(mechanism).__name__ + (f", {norm.value}" if norm else "")
        show(name, fastest(task, count=ROWS), "answer")
    make = partial(NoisySums, blocks=(SumBlock(1000, 2.0**20),), sums=1, delta=1e-5, **record)
    show("NoisySums, made", fastest(make), "call")
    task = partial(make().noisy_rows, np.zeros((100, 1000), dtype=np.int64), block=0)
    show("NoisySums", fastest(partial(task, sampler=sampler), count=100_000), "coordinate")
    gaussian = {"sensitivity": 1.0, "epsilon": 1.0}
    show("analytic_sigma", fastest(partial(analytic_sigma, **gaussian, delta=1e-5)), "call")
    show("gaussian_delta", fastest(partial(gaussian_delta, **gaussian, sigma=1.0)), "call")
    for epsilon, delta in ((1.0, 1e-5), (0.01, 1e-6)):
        task = partial(optimal_test, epsilon=epsilon, delta=delta)
        show(f"optimal_test, epsilon {epsilon:g}", fastest(task), "call")


def chain(*widths: int) -> Network:
    """A ReLU network of these widths with random weights of order 1 / sqrt(inputs)."""
    rng = np.random.default_rng(len(widths))
    shapes = list(pairwise(widths))
    weights = [rng.normal(size=(out, into)) / np.sqrt(into) for into, out in shapes]
    biases = [rng.normal(size=out) * 0.1 for _, out in shapes]
    return affine_chain([w.tolist() for w in weights], [b.tolist() for b in biases])


def bounds() -> None:
    """One line for each bound: l-infinity to l1 at radius 0.5, 64 points at once."""
    points = np.random.default_rng(1).uniform(-1.0, 1.0, size=(64, 8))
    settings = {"domain": Box.cube(8, 4.0), "input_norm": Norm.LINF, "output": Norm.L1}
    for widths in ((8, 16, 8), (8, 16, 16, 8)):
        for kind in (IntervalBound, LayeredBound, LinearBound):
            made = kind(chain(*widths), **settings)
            name = f"{kind.__name__}, {'-'.join(map(str, widths))}"
            show(name, fastest(partial(made.bound, points, 0.5), count=64), "point")
    made = LayeredBound(chain(8, 16, 8), **settings)
    limit = float(made.bound(points[:4], 0.25).max())
    test = LevelTest(made, proposal=limit, radius=0.05, max_level=10)
    show("LevelTest, 10 levels", fastest(partial(test.levels, points), count=64), "point")
    steps = {"proposal": limit, "max_radius": 1.0, "tolerance": 0.01}
    task = partial(stability_radius, made, points, **steps)
    show("stability_radius, 100 steps", fastest(task, count=64), "point")


def certificates() -> None:
    """Training's intervals and what is read off them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    labels = (X[:, 0] + 0.3 * rng.normal(size=1000) > 0).astype(int)
    for name, hidden in (("linear", ()), ("32 hidden", (32,))):
        settings = TrainingSettings(features=10, classes=2, hidden=hidden, epochs=4)
        start = [rng.normal(size=(b, a + 1)) * 0.1 for a, b in pairwise(settings.widths)]
        make = partial(parameter_intervals, X, labels, settings, k_max=50, initial=start)
        show(f"parameter_intervals, {name}", fastest(make), "call")
        task = partial(stable_distances, make(), X)
        show(f"stable_distances, {name}", fastest(task, count=1000), "query")
    for rows, features in ((10_000, 20), (50_000, 64)):
        points = rng.normal(size=(rows, features))
        convex = ConvexSettings(features=features)
        fit = partial(convex_model, points, (points[:, 0] > 0).astype(int), convex)
        show(f"convex_model, {rows} x {features}", fastest(fit), "call")
        task = partial(fit().stable_distances, points[:1000])
        show(f"stable distances, {features} features", fastest(task, count=1000), "query")
    distances = rng.integers(0, 50, (50, ROWS))
    for classes in (2, 10):
        task = partial(
            vote_distances, rng.integers(0, classes, (50, ROWS)), distances, classes=classes
        )
        show(f"vote_distances, {classes} labels", fastest(task, count=ROWS), "query")
    task = partial(published_vote_distances, rng.integers(0, 2, (50, ROWS)), distances)
    show("published_vote_distances", fastest(task, count=ROWS), "query")
    keys = record_keys(X, labels, identities=None)
    task = partial(record_keys, X, labels, identities=None)
    show("record_keys", fastest(task, count=1000), "record")
    task = partial(record_buckets, keys, buckets=4, purpose="batch")
    show("record_buckets", fastest(task, count=1000), "record")


def accountants() -> None:
    """One line for each accountant and bound on compositions; of Private-kNN, the total of new
    steps, whose curves nothing has computed yet.
    """
    event = PrivacyEvent("gaussian", Guarantee(0.5, 1e-5, RECORDS), GaussianCost(20.0))
    for kind in (RdpAccountant, GaussianAccountant, PldAccountant):
        counted = kind(RECORDS).compose(event, 100)
        show(f"{kind.__name__}", fastest(partial(counted.epsilon, delta=1e-5)), "total")
    given = {"epsilon": 0.1, "answers": 1000, "answer_delta": 0.0}
    tasks: list[Callable[[], object]] = [
        partial(optimal_delta, **given, total_epsilon=10.0),
        partial(optimal_epsilon, **given, delta=1e-5),
        partial(smallest_epsilon, **given, delta=1e-5),
        partial(epsilon_per_answer, epsilon=1.0, delta=1e-5, answers=1000),
    ]
    for task in tasks:
        show(task.func.__name__, fastest(task), "call")  # type: ignore[attr-defined]
    steps = PrivateKnnSteps(
        queries=1000,
        answers=735,
        neighbours=300,
        sampling_probability=0.15,
        sigma_votes=25.0,
        threshold=180.0,
        sigma_screening=75.0,
    )
    start = time.process_time()
    private_knn_total(steps, delta=1e-5)
    show("private_knn_total", (time.process_time() - start) * 1e6, "call")
    start = time.process_time()
    calibrate_private_knn(
        epsilon=0.5,
        delta=1e-5,
        queries=735,
        answers=735,
        neighbours=300,
        sampling_probability=0.15,
        threshold=None,
        noise_ratio=None,
    )
    show("calibrate_private_knn", (time.process_time() - start) * 1e6, "call")


def samplers() -> None:
    """One line for each sampler and distribution: 100,000 integers of scale 2^20."""
    for sampler in (SecureSampler(), AuditSampler(0), SeededSampler(0)):
        count = 100_000
        name = type(sampler).__name__
        laplace = partial(sampler.discrete_laplace, count, scale=2.0**20)
        show(f"{name}, Laplace", fastest(laplace, count=count), "number")
        gaussian = partial(sampler.discrete_gaussian, count, sigma=2.0**20)
        show(f"{name}, Gaussian", fastest(gaussian, count=count), "number")
    for norm in (Norm.LINF, Norm.L2):
        task = partial(k_norm, 10_000, 8, scale=2.0**20, norm=norm, sampler=SecureSampler())
        show(f"k_norm, {norm.value}, 8 coordinates", fastest(task, count=10_000), "vector")
    values = np.random.default_rng(0).normal(size=100_000)
    show("Grid.round", fastest(partial(Grid(-20).round, values), count=100_000), "number")


def tables() -> None:
    """Tables and codes for 2 to 40 labels on one lattice: at most linear in labels x cells."""
    rng = np.random.default_rng(0)
    lattice = Lattice.over(rng.uniform(-1, 1, (2000, 3)), radius=0.2, tail=0.0)
    for labels in (2, 5, 10, 40):
        weights = rng.dirichlet(np.full(labels, 0.3), lattice.size).T
        task = partial(exact_table, weights, lattice=lattice, epsilon=2.0, iterations=100)
        name = f"label table, {labels} x {lattice.size:,} cells, 100 steps"
        show(name, fastest(task, count=weights.size), "label and cell")
        joint, random = weights.T / weights.sum(), rng.integers(labels, size=lattice.size)
        code = partial(
            best_table,
            [Information(joint)],
            cells=lattice,
            epsilon=2.0,
            weights=[1.0],
            whole=[1.0],
            starts=[response_on(random, epsilon=2.0)],
        )
        name = f"code for {labels} labels, {lattice.size:,} cells"
        show(name, fastest(code, count=weights.size), "label and cell")


def main() -> None:
    """Prints one line per mechanism, bound, certificate, table, accountant and sampler."""
    parts = (mechanisms, bounds, certificates, tables, accountants, samplers)
    names = [part.__name__ for part in parts]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}")
    chosen = parser.parse_args().parts or names
    with threadpool_limits(1):
        for part in parts:
            if part.__name__ in chosen:
                part()


if __name__ == "__main__":
    main()
