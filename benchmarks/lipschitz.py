"""Exact search beside HiGHS, and how far isotone bounds are from exact: ``python
benchmarks/lipschitz.py [--quick]``.

First table: seconds of processor time (one thread) for the local Lipschitz constant, l-infinity to
l1, by exact search and by the same question as mixed-integer programs for HiGHS, on the same
held-out digits. Where most solves of a row reach the limit (of wall-clock time), what they had
spent by then is shown with ">", and the ratio as "at least". Where both finish they have to agree
to 1e-6.

Second table: every isotone bound divided by the best known lower bound (exact search where it
finishes within the limit, else what sampling and climbing find), and its milliseconds a point in
a batch of 100.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from figures import Figure
from search import largest_norms
from threadpoolctl import threadpool_limits

from networks import NAMES, centers, domain, random_network, trained_network
from papers.posthoc.exact.constants import lipschitz_constant
from papers.posthoc.exact.search import Limits
from papers.posthoc.milp import milp_lipschitz
from reticent.core import Norm
from reticent.core.errors import CertificationFailed
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
)
from reticent.networks import Network

Array = npt.NDArray[np.float64]

RADII = (0.1, 0.5, 1.0)
BOUNDS = (LayeredBound, IntervalBound)
BATCH = 100

_FAMILIES = {"trained": trained_network, "random": random_network}


def timed(solve: Callable[[], float]) -> tuple[float | None, float]:
    """The value, or None if a limit was reached, and the seconds of processor time that it took."""
    start = time.process_time()
    try:
        value: float | None = solve()
    except CertificationFailed:
        value = None
    return value, time.process_time() - start


def compare(
    name: str, network: Network, radius: float, points: int, limit: float
) -> tuple[Array, Array, int, int]:
    """Seconds of exact search and of HiGHS per point, shape (points,) each, and how many of each
    finished.

    Raises:
        AssertionError: both finished and disagree.
    """
    seconds: list[tuple[float, float]] = []
    finished = [0, 0]
    limits = Limits(cpu_seconds=limit)
    for center in centers(name, points, inside=radius):

        def search(at: Array = center) -> float:
            return lipschitz_constant(network, at, radius, domain=domain(name), limits=limits).value

        def solver(at: Array = center) -> float:
            return milp_lipschitz(network, at, radius, domain=domain(name), limits=limits).value

        (exact, first), (integer, second) = timed(search), timed(solver)
        if exact is not None and integer is not None:
            assert abs(exact - integer) <= 1e-6 * integer, f"{name}: exact={exact}, HiGHS={integer}"
        seconds.append((first, second))
        finished[0] += exact is not None
        finished[1] += integer is not None
        if exact is None and integer is None:
            break  # larger balls and further points do not get easier
    both = np.array(seconds)
    return both[:, 0], both[:, 1], finished[0], finished[1]


def speed_table(names: list[str], radii: list[float], points: int, limit: float) -> None:
    """Print the first table, a row as soon as it is known."""
    print(
        "local Lipschitz constants, median seconds of processor time (finished/tried), one "
        f"thread, limit {limit:g} s a solve"
    )
    print(
        f"  {'network':15s} {'kind':8s} {'radius':>6s} {'exact':>16s} {'HiGHS':>16s} "
        f"{'ratio of medians':>20s}"
    )
    for name in names:
        for kind, build in _FAMILIES.items():
            network = build(name, 0)
            for radius in radii:
                exact, solver, done, solved = compare(name, network, radius, points, limit)
                count = len(exact)
                ratio = np.median(solver) / np.median(exact)
                open_end = "at least " if 2 * solved <= count else ""
                shown = f"{open_end}{ratio:.1f}" if 2 * done > count else "-"
                cells = f"{_cell(exact, done):>16s} {_cell(solver, solved):>16s} {shown:>20s}"
                print(f"  {name:15s} {kind:8s} {radius:6g} {cells}", flush=True)
                if done == solved == count:
                    Figure.of(
                        f"local constant of {kind} {name}, radius {radius:g}, exact search",
                        exact.tolist(),
                        peer="HiGHS",
                        theirs=solver.tolist(),
                    ).keep()
                if done == solved == 0:
                    break


def _cell(seconds: Array, finished: int) -> str:
    count = len(seconds)
    return f"{'' if 2 * finished > count else '> '}{np.median(seconds):.3f} ({finished}/{count})"


def bound_table(names: list[str], radii: list[float], points: int, limit: float) -> None:
    """Print the second table, a row as soon as it is known."""
    print(
        f"isotone bound / best known lower bound (median over {points} held-out points), ms a "
        f"point in a batch of {BATCH}"
    )
    head = "".join(f"{bound.kind:>24s}" for bound in BOUNDS)
    print(f"  {'network':15s} {'kind':8s} {'radius':>6s} {'lower bound':>14s}{head}")
    for name in names:
        for kind, build in _FAMILIES.items():
            network = build(name, 0)
            bounds = [
                bound(network, domain=domain(name), input_norm=Norm.LINF, output=Norm.L1)
                for bound in BOUNDS
            ]
            for radius in radii:
                batch = centers(name, BATCH, inside=radius)
                some = batch[:points]
                lower, exact = lower_bounds(name, network, some, radius, limit)
                cells = []
                for bound in bounds:
                    bound.bound(batch[:2], radius)
                    start = time.process_time()
                    values = bound.bound(batch, radius)
                    spent = 1e3 * (time.process_time() - start) / len(batch)
                    assert (values[: len(some)] >= lower * (1 - 1e-9)).all(), (
                        f"{name}: a bound below a norm that was found"
                    )
                    cells.append(f"{np.median(values[: len(some)] / lower):.3f} {spent:8.3f} ms")
                known = f"exact {exact}/{len(some)}"
                print(
                    f"  {name:15s} {kind:8s} {radius:6g} {known:>14s}"
                    + "".join(f"{cell:>24s}" for cell in cells),
                    flush=True,
                )


def lower_bounds(
    name: str, network: Network, points: Array, radius: float, limit: float
) -> tuple[Array, int]:
    """The best known lower bound at each point, and how many of them are exact; exact search
    gives up at its first failure.
    """
    lower, exact = largest_norms(network, points, radius, domain(name)), 0
    for row, center in enumerate(points):
        try:
            found = lipschitz_constant(
                network, center, radius, domain=domain(name), limits=Limits(cpu_seconds=limit)
            )
        except CertificationFailed:
            break
        lower[row], exact = max(lower[row], found.lower), exact + 1
    return lower, exact


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="two networks, three points, limit 5 s: a few minutes"
    )
    parser.add_argument("--points", type=int, default=10, help="held-out points per row")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one solve")
    parser.add_argument("--networks", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--radii", nargs="+", type=float, default=list(RADII))
    parser.add_argument("--table", choices=["speed", "bounds", "both"], default="both")
    options = parser.parse_args()
    names, points, limit = options.networks, options.points, options.limit
    if options.quick:
        names, points, limit = names[:2], min(points, 3), min(limit, 5.0)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        if options.table != "bounds":
            speed_table(names, options.radii, points, limit)
        if options.table != "speed":
            bound_table(names, options.radii, points, limit)


if __name__ == "__main__":
    main()
