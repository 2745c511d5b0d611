"""How tight and how fast the layered bound is on deep networks: ``python benchmarks/layered.py
[--points 40] [--restarts 256] [--networks NAME ...] [--wide NAME ...]``.

Networks with two hidden layers trained on digits (``networks``), held-out points, radius 0.5,
l-infinity to l1: each isotone bound divided by the largest Jacobian norm that a search finds in
the same ball, and its time per point in a batch (of 100, or five times the points) on one
thread. The search gives a lower
bound on the exact constant, so the printed ratios are upper bounds on how far the certificates
are from exact. The same for random networks, whose certificates are looser.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import numpy.typing as npt
import torch
from figures import Figure, processor_seconds
from threadpoolctl import threadpool_limits

from networks import centers, domain, random_network, trained_network
from reticent.core import Norm
from reticent.core.norms import sign_patterns
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
    LipschitzBound,
    Output,
)
from reticent.networks import Network

Array = npt.NDArray[np.float64]

RADIUS = 0.5
TARGETS = {"8-32-16-8": 1.4, "8-64-64-8": 1.8, "10-100-100-10": 2.2}
"""Ratios to reach on trained networks, each in under 5 ms a point."""
WIDE = ("8-128-128-8", "8-256-256-8")
"""Random networks whose times are printed for two output measures; to reach: 20 ms a point."""
KINDS: tuple[type[LipschitzBound], ...] = (LayeredBound, IntervalBound)


def largest_jacobian_norms(
    network: Network,
    points: Array,
    radius: float,
    *,
    half_width: float = 4.0,
    restarts: int = 64,
    steps: int = 60,
) -> Array:
    """The largest l-infinity to l1 norm of a Jacobian found in each ball, by sampling and climbing,
    shape (n,).

    From random starts (half of them corners): the signs s, t that attain the norm at the current
    point are kept for one step, and s . J t is climbed with the slopes of all layers smoothed
    less and less.
    """
    weights = [torch.from_numpy(layer.dense()) for layer in network.linear_layers()]
    biases = [torch.from_numpy(layer.bias) for layer in network.linear_layers()]
    signs = torch.from_numpy(sign_patterns(network.input_dimension, up_to_sign=True))
    generator = torch.Generator().manual_seed(0)
    best = np.zeros(len(points))
    for row, center in enumerate(torch.from_numpy(points)):
        low, high = (
            (center - radius).clamp(min=-half_width),
            (center + radius).clamp(max=half_width),
        )
        shape = (restarts, len(center))
        x = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        corners = torch.where(torch.rand(shape, generator=generator) < 0.5, low, high)
        x[::2] = corners[::2]
        for step in range(steps):
            values, jacobian = x, weights[0].expand(restarts, -1, -1)
            for weight, bias, after in zip(weights[:-1], biases[:-1], weights[1:], strict=True):
                before = values @ weight.T + bias
                jacobian = after @ ((before > 0)[:, :, None] * jacobian)
                values = torch.relu(before)
            moved = jacobian @ signs.T
            norms, which = moved.abs().sum(dim=1).max(dim=1)
            best[row] = max(best[row], float(norms.max()))
            directions = signs[which]
            outputs = torch.sign(jacobian @ directions[:, :, None])[..., 0]
            uphill = _uphill(weights, biases, x, directions, outputs, smooth=0.5 * 0.93**step)
            x = torch.minimum(torch.maximum(x + radius * 0.3 * 0.95**step * uphill, low), high)
    return best


def _uphill(
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    points: torch.Tensor,
    directions: torch.Tensor,
    outputs: torch.Tensor,
    *,
    smooth: float,
) -> torch.Tensor:
    """The signs of the gradient of the derivative with smoothed slopes, shape of ``points``."""
    moving = points.clone().requires_grad_()
    values, derivative = moving, directions
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        before = values @ weight.T + bias
        derivative = (derivative @ weight.T) * torch.sigmoid(before / smooth)
        values = torch.relu(before)
    ((outputs * (derivative @ weights[-1].T)).sum()).backward()  # type: ignore[no-untyped-call]
    assert moving.grad is not None
    return torch.sign(moving.grad)


def ratios(name: str, network: Network, points: int, *, restarts: int = 64) -> dict[str, Array]:
    """Each bound divided by what the search finds, over held-out points."""
    chosen = centers(name, points)
    found = largest_jacobian_norms(network, chosen, RADIUS, restarts=restarts)
    bounds = [
        kind(network, domain=domain(name), input_norm=Norm.LINF, output=Norm.L1) for kind in KINDS
    ]
    return {bound.kind: bound.bound(chosen, RADIUS) / found for bound in bounds}


def seconds(
    name: str,
    network: Network,
    kind: type[LipschitzBound],
    *,
    output: Output = Norm.L1,
    points: int = 100,
) -> list[float]:
    """Processor time per point of a batch of so many, three runs, on one thread."""
    bound = kind(network, domain=domain(name), input_norm=Norm.LINF, output=output)
    batch = centers(name, points)
    return processor_seconds(lambda: bound.bound(batch, RADIUS), runs=3, each=len(batch))


def main() -> None:
    """Print one line for each network and bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=40, help="held-out points to search at")
    parser.add_argument("--restarts", type=int, default=256, help="of the search")
    parser.add_argument("--networks", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--wide", nargs="*", default=list(WIDE), choices=WIDE)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        print(
            f"bound / largest Jacobian norm found, radius 0.5, l-infinity to l1, {chosen.points} "
            "held-out digits; ms per point, one thread"
        )
        for make in (trained_network, random_network):
            for name in chosen.networks:
                network = make(name, 0)
                batch = min(100, 5 * chosen.points)
                times = {kind: seconds(name, network, kind, points=batch) for kind in KINDS}
                Figure.of(
                    f"layered bound of {make.__name__.split('_')[0]} {name}, a point",
                    times[LayeredBound],
                    peer="intervals, looser",
                    theirs=times[IntervalBound],
                ).keep()
                measured = ratios(name, network, chosen.points, restarts=chosen.restarts)
                for kind in KINDS:
                    half, most = np.quantile(measured[kind.kind], [0.5, 0.9])
                    goal = (
                        f"  (to reach: {TARGETS[name]})"
                        if kind is LayeredBound and make is trained_network
                        else ""
                    )
                    line = (
                        f"  {make.__name__:16s} {name:14s} {kind.kind:12s} median "
                        f"{half:6.3f}   90 % {most:6.3f}"
                    )
                    taken = 1e3 * statistics.median(times[kind])
                    print(f"{line}   {taken:6.2f} ms{goal}", flush=True)
        print("batches of 32, radius 0.5, random networks")
        for name in chosen.wide:
            for output in (Norm.L1, Norm.LINF):
                layered, interval = (
                    seconds(name, random_network(name, 0), kind, output=output, points=32)
                    for kind in (LayeredBound, IntervalBound)
                )
                Figure.of(
                    f"layered bound of {name} to {output}, a point",
                    layered,
                    peer="intervals, looser",
                    theirs=interval,
                ).keep()


if __name__ == "__main__":
    main()
