"""How tight and how fast the certificates are: ``python benchmarks/certify.py
[--points 120]``.

Tightness: obfuscators of one hidden layer (8-16-8) trained on an 8-dimensional embedding of
scikit-learn's digits, scaled to unit variance; each bound at radius 0.5 divided by the largest
Jacobian norm that a search finds in the same ball. The search gives a lower bound on the exact
constant, so the printed ratios are upper bounds on how far the certificates are from exact.

Throughput: levels of points on an 8-32-8 network, one core, against the same neuron table
without pruning.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from figures import Figure, processor_seconds
from threadpoolctl import threadpool_limits

from networks import embeddings, trained_network
from reticent.core import Box, Norm
from reticent.core.norms import sign_patterns
from reticent.lipschitz import IntervalBound, LayeredBound, LevelTest, LipschitzBound
from reticent.networks import Network

Array = npt.NDArray[np.float64]

RADIUS = 0.5
DOMAIN = Box.cube(8, 4.0)


def largest_jacobian_norms(
    network: Network, centers: Array, radius: float, *, restarts: int = 64, steps: int = 40
) -> Array:
    """The largest l-infinity to l1 norm of a Jacobian found in each ball, by sampling and climbing,
    shape (n,).

    From random starts: take the signs s, t that attain the norm at the current point, and move
    towards neurons whose share of s . J t is positive and away from the others, with the kink
    smoothed less and less.
    """
    first, last = network.layers[0], network.layers[2]
    signs = sign_patterns(8, up_to_sign=True)
    along = signs @ first.weight.T  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    best = np.zeros(len(centers))
    for row, center in enumerate(centers):
        low, high = (
            np.maximum(center - radius, DOMAIN.lower),
            np.minimum(center + radius, DOMAIN.upper),
        )
        points = rng.uniform(low, high, size=(restarts, 8))
        corners = rng.random(points.shape) < 0.5
        points[::2] = np.where(corners, low, high)[::2]
        for step in range(steps):
            values = points @ first.weight.T + first.bias  # type: ignore[union-attr]
            moved = ((values > 0)[:, None, :] * along[None]) @ last.weight.T  # type: ignore[union-attr]
            norms = np.abs(moved).sum(axis=-1)
            which = norms.argmax(axis=1)
            best[row] = max(best[row], float(norms.max()))
            output_signs = np.sign(moved[np.arange(restarts), which])
            shares = (output_signs @ last.weight) * along[which]  # type: ignore[union-attr]
            smooth = 0.5 * 0.9**step
            weight = shares / np.cosh(np.clip(values / (2 * smooth), -20, 20)) ** 2
            uphill = np.sign(weight @ first.weight)  # type: ignore[union-attr]
            points = np.clip(points + radius * 0.3 * 0.93**step * uphill, low, high)
    return best


def tightness(seeds: range, points: int, *, restarts: int = 64) -> dict[str, Array]:
    """Each bound divided by what the search finds, over networks and held-out points."""
    centers = embeddings()[2][:points]
    ratios: dict[str, list[Array]] = {"layered": [], "interval": []}
    for seed in seeds:
        network = trained_network("8-16-8", seed)
        found = largest_jacobian_norms(network, centers, RADIUS, restarts=restarts)
        for kind in (LayeredBound, IntervalBound):
            bound = kind(network, domain=DOMAIN, input_norm=Norm.LINF, output=Norm.L1)
            ratios[kind.kind].append(bound.bound(centers, RADIUS) / found)
    return {kind: np.concatenate(values) for kind, values in ratios.items()}


def points_per_second(
    bound: LipschitzBound, centers: Array, quantile: float
) -> tuple[float, float]:
    """Levels per second, and the share of points above level 0, with P at a quantile of the
    local bounds.
    """
    proposal = float(np.quantile(bound.bound(centers, RADIUS), quantile))
    test = LevelTest(bound, proposal, 0.1, 10)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        levels = test.levels(centers)
        seconds.append(time.process_time() - start)
    return len(centers) / statistics.median(seconds), float((levels > 0).mean())


def unpruned_bounds(bound: LayeredBound, rows: int) -> None:
    """The product of masks with the whole table, once per point: what one bound costs without
    pruning.
    """
    assert bound._table is not None
    table = np.concatenate(bound._table.blocks, axis=1)
    signed, unstable = (
        np.ones((rows, len(table)), np.float32),
        np.ones((rows, len(table)), np.float32),
    )
    for part in range(0, rows, 256):
        (
            np.abs(signed[part : part + 256] @ table) + unstable[part : part + 256] @ np.abs(table)
        ).max(axis=1)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=120)
    points = parser.parse_args().points
    ratios = tightness(range(3), points)
    print(
        f"bound / largest Jacobian norm found, 3 networks 8-16-8 x {points} held-out digits, "
        "radius 0.5, l-infinity to l1"
    )
    for kind, values in ratios.items():
        quarter, half, most = np.quantile(values, [0.25, 0.5, 0.9])
        print(f"  {kind:12s} median {half:.3f}   quartile {quarter:.3f}   90 % {most:.3f}")
    centers = np.resize(embeddings()[2], (36 * points, 8))
    centers = centers + np.random.default_rng(0).normal(size=centers.shape) * 0.05
    network = trained_network("8-32-8", 0)
    print("levels on an 8-32-8 network (R = 0.1, 10 levels), points per second on one core")
    with threadpool_limits(1):
        torch.set_num_threads(1)
        for kind in (LayeredBound, IntervalBound):
            bound = kind(network, domain=DOMAIN, input_norm=Norm.LINF, output=Norm.L1)
            speeds = [points_per_second(bound, centers, quantile) for quantile in (0.2, 0.5, 0.9)]
            shown = "   ".join(
                f"{speed:8.0f} ({above:.0%} above level 0)" for speed, above in speeds
            )
            print(f"  {bound.kind:12s} {shown}")
            if isinstance(bound, LayeredBound):
                whole = 17 * points
                Figure.of(
                    "a layered bound of 8-32-8, a point",
                    processor_seconds(partial(bound.bound, centers, RADIUS), each=len(centers)),
                    peer="its table, not pruned",
                    theirs=processor_seconds(
                        partial(unpruned_bounds, bound, whole), runs=3, each=whole
                    ),
                ).keep()


if __name__ == "__main__":
    main()
