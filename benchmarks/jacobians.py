"""Certificates of 64 and 784 inputs beside linear relaxation with chosen slopes: ``python
benchmarks/jacobians.py [--points N] [--networks NAME ...]``.

Networks trained on scikit-learn's digits (64 inputs) and on MNIST (784 inputs, where
``RETICENT_DATA`` has it), l-infinity and l2 balls, the largest change of one output. For each: the
interval bound, the linear bound and the peer, each divided by the largest Jacobian norm found by
sampling (so that the ratios are upper bounds on what is lost), and milliseconds of processor time a
point, in a batch for ours, one thread.

The peer is linear relaxation of every entry of the Jacobian (Shi et al. 2022): pre-activations with
lower slopes chosen for each neuron and region (Zhang et al. 2018), lines over the tightest ranges
known, gradients bounded layer by layer by substitution toward the output. It is not isotone. It has
what ours has for nothing: boxes are cut to the domain, and the product of operator norms is taken
where it is smaller. It is written out below in NumPy, one point at a time, in float64 and without
rounding: the package index has no release of auto_LiRPA that runs beside this torch.

Its own values for six networks and three pictures each stand in ``auto_lirpa.npz``, beside the
weights: source release 0.7.1, ``bound_jacobian`` by CROWN without optimisation in float32, norm of
rows for l-infinity balls cut to [0, 1], the largest output, one picture a batch. Its processor
seconds there come from the machine that it ran on, so "times faster" is no figure of one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from figures import Figure, processor_seconds
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from networks import widths
from papers.datasets import load_mnist
from reticent.core import Box, Norm
from reticent.core.errors import ReticentError
from reticent.lipschitz import IntervalBound, LinearBound
from reticent.networks import Network, affine_chain, from_torch

Array = npt.NDArray[np.float64]
Range = tuple[Array, Array]

NAMES = ("64-64-64-10", "64-32-32-32-10", "784-128-128-10", "784-64-64-64-10")
RADII = {Norm.LINF: (0.01, 0.03, 0.1), Norm.L2: (0.1, 0.3, 1.0)}
SAMPLES = 300
BATCH = 32
"""Points of a batch in which our bounds are timed; the peer takes one at a time."""


@cache
def pictures(inputs: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Training pictures of 64 or 784 pixels in [0, 1], and their labels."""
    if inputs == 64:
        data = load_digits()
        return data.data / 16.0, data.target
    images = load_mnist()
    flat = images.train_images[:10_000].reshape(10_000, -1).astype(np.float64)
    return flat / max(1.0, float(flat.max())), images.train_labels[:10_000].astype(np.int64)


def trained(name: str) -> Network:
    """The network ``name`` as a classifier of these pictures."""
    sizes = widths(name)
    torch.manual_seed(0)
    points, labels = pictures(sizes[0])
    inputs, targets = torch.from_numpy(points).float(), torch.from_numpy(labels)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(40 if sizes[0] == 64 else 4):
        for batch in torch.randperm(len(inputs)).split(128):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(inputs[batch]), targets[batch]).backward()
            optimiser.step()
    return from_torch(network, (sizes[0],))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Linear relaxation with slopes chosen for the region, of one ball.

    Attributes:
        weights, biases: of all linear layers.
        center: of the ball, shape (inputs,).
        radius: of the ball.
        norm: of the ball.
    """

    weights: list[Array]
    biases: list[Array]
    center: Array
    radius: float
    norm: Norm

    def pre_activations(self) -> list[Range]:
        """Ranges of the hidden layers: relaxed and interval, whichever is tighter."""
        low, high = self._box()
        cut: list[Range] = []
        for layer, (weight, bias) in enumerate(
            zip(self.weights[:-1], self.biases[:-1], strict=True)
        ):
            middle, reach = (low + high) / 2, (high - low) / 2
            center, spread = weight @ middle + bias, np.abs(weight) @ reach
            found = self._relaxed(layer, cut)
            cut.append(
                (np.maximum(center - spread, found[0]), np.minimum(center + spread, found[1]))
            )
            low, high = np.maximum(cut[-1][0], 0), np.maximum(cut[-1][1], 0)
        return cut

    def _box(self) -> Range:
        """The box around the ball, cut to [0, 1]."""
        return np.maximum(self.center - self.radius, 0), np.minimum(self.center + self.radius, 1)

    def _relaxed(self, layer: int, ranges: list[Range]) -> Range:
        rows = np.concatenate([self.weights[layer], -self.weights[layer]])
        constant = np.concatenate([self.biases[layer], -self.biases[layer]])
        for before in range(layer - 1, -1, -1):
            low, high = ranges[before]
            on, free = low >= 0, (low < 0) & (high > 0)
            chord = np.where(on, 1.0, np.where(free, high / np.where(free, high - low, 1.0), 0.0))
            below = np.where(on, 1.0, np.where(free, (high > -low).astype(float), 0.0))
            up = np.maximum(rows, 0)
            constant = constant + up @ np.where(free, -chord * low, 0.0)
            rows = up * chord + (rows - up) * below
            constant = constant + rows @ self.biases[before]
            rows = rows @ self.weights[before]
        low, high = self._box()
        upper = rows @ (low + high) / 2 + np.abs(rows) @ (high - low) / 2
        if self.norm is not Norm.LINF:
            ball = rows @ self.center + self.radius * self.norm.dual.of(rows, axis=1)
            upper = np.minimum(upper, ball)
        upper = upper + constant
        return -upper[len(upper) // 2 :], upper[: len(upper) // 2]

    def bound(self) -> float:
        """The largest dual norm of a row of the Jacobian, entry by entry."""
        states = [(low >= 0, (low < 0) & (high >= 0)) for low, high in self.pre_activations()]
        last = len(self.weights) - 2
        base = self.weights[-1]
        gradients: dict[int, Range] = {last: (base, base)}

        def largest(rows: Array, layer: int) -> Array:
            """Upper bounds on rows . (slopes times gradient) of ``layer``, shape (k, rows)."""
            constant: Array | float = 0.0
            while True:
                (on, free), (low, high) = states[layer], gradients[layer]
                if layer == last:
                    shares = rows * base[:, None, :]
                    kept = np.where(free, np.maximum(shares, 0), np.where(on, shares, 0))
                    return np.asarray(constant + kept.sum(axis=-1))
                low, high = np.minimum(low, 0), np.maximum(high, 0)
                wide = high - low > 0
                share = np.where(wide, high / np.where(wide, high - low, 1.0), 1.0)
                margin = np.abs(rows) * np.where(free, -share * low, 0.0)[:, None, :]
                constant = constant + margin.sum(axis=-1)
                chosen = np.where(rows > 0, share[:, None], 1.0 - share[:, None])
                rows = np.where(free, rows * chosen, np.where(on, rows, 0))
                layer += 1
                rows = rows @ self.weights[layer].T

        for layer in range(last - 1, -1, -1):
            rows = np.broadcast_to(
                self.weights[layer + 1].T, (len(base), *self.weights[layer + 1].T.shape)
            )
            gradients[layer] = (-largest(-rows, layer + 1), largest(rows, layer + 1))
        rows = np.broadcast_to(self.weights[0].T, (len(base), *self.weights[0].T.shape))
        entries = np.maximum(largest(rows, 0), largest(-rows, 0))
        return float(self.norm.dual.of(entries, axis=1).max())


def sampled(network: Network, center: Array, radius: float, norm: Norm) -> float:
    """The largest dual norm of a row of the Jacobian at the center and at random points of a ball
    cut to [0, 1].
    """
    rng = np.random.default_rng(0)
    moves = rng.uniform(-1, 1, size=(SAMPLES, len(center)))
    if norm is Norm.L2:
        moves = rng.normal(size=moves.shape)
        moves /= np.linalg.norm(moves, axis=1, keepdims=True)
    points = np.clip(np.concatenate([center[None], center + radius * moves]), 0.0, 1.0)
    layers = network.linear_layers()
    found, values = layers[0].dense()[None], points
    for layer, after in pairwise(layers):
        values = layer.forward(values)
        found = after.dense() @ ((values > 0)[:, :, None] * found)
        values = np.maximum(values, 0)
    return float(norm.dual.of(found, axis=2).max())


def row(name: str, network: Network, norm: Norm, radius: float, points: int) -> str:
    """One line of the table."""
    inputs = network.input_dimension
    centers, batch = pictures(inputs)[0][:points], pictures(inputs)[0][:BATCH]
    settings = {"domain": Box(np.zeros(inputs), np.ones(inputs)), "input_norm": norm}
    lowest = np.array([sampled(network, center, radius, norm) for center in centers])
    cells, seconds = [], []
    for kind in (IntervalBound, LinearBound):
        bound = kind(network, output=Norm.LINF, **settings)  # type: ignore[arg-type]
        ours = processor_seconds(partial(bound.bound, batch, radius), runs=3, each=len(batch))
        seconds.append(statistics.median(ours))
        cells.append(bound.bound(centers, radius) / lowest)
    layers = network.linear_layers()
    matrices, biases = [layer.dense() for layer in layers], [layer.bias for layer in layers]
    peer, theirs = [], []
    for center in centers:
        start = time.process_time()
        peer.append(Chosen(matrices, biases, center, radius, norm).bound())
        theirs.append(time.process_time() - start)
    seconds.append(statistics.median(theirs))
    if radius == RADII[norm][1]:
        Figure.of(
            f"linear bound of {name}, {norm} ball of {radius:g}, a point",
            ours,
            peer="chosen slopes, written out",
            theirs=theirs,
        ).keep()
    cells.append(np.minimum(peer, bound.ceiling) / lowest)
    shown = " ".join(f"{np.median(cell):9.2f}" for cell in cells)
    taken = " ".join(f"{1e3 * each:9.2f}" for each in seconds)
    ratio = f"{np.median(cells[1] / cells[2]):6.2f} {seconds[2] / seconds[1]:6.1f}"
    return f"  {name:18s} {norm:4s} {radius:6g} {shown}   {taken}   {ratio}"


def beside_published() -> None:
    """Print our bounds divided by those of auto_LiRPA, on its networks and pictures."""
    with np.load(Path(__file__).with_name("auto_lirpa.npz")) as file:
        kept = {key: file[key].astype(np.float64) for key in file.files}
    print(
        "bound / auto_LiRPA, the median and the largest of three pictures, milliseconds a picture "
        f"in a batch of {BATCH}, times faster"
    )
    print(
        f"  {'network':22s} ball radius "
        + " ".join(f"{kind:>31s}" for kind in ("interval", "linear"))
    )
    for name in sorted({key.split("/")[0] for key in kept}):
        layers = range(name.count("-") - 1)
        network = affine_chain(
            [kept[f"{name}/W{layer}"] for layer in layers],
            [kept[f"{name}/b{layer}"] for layer in layers],
        )
        inputs = network.input_dimension
        domain = Box(np.zeros(inputs), np.ones(inputs))
        points = np.resize(kept[f"{name}/points"], (BATCH, inputs))
        columns = (kept[f"{name}/{column}"] for column in ("radii", "bounds", "seconds"))
        for radius, peer, theirs in zip(*columns, strict=True):
            cells = []
            for kind in (IntervalBound, LinearBound):
                bound = kind(network, domain=domain, input_norm=Norm.LINF, output=Norm.LINF)
                ours = processor_seconds(partial(bound.bound, points, radius), runs=3, each=BATCH)
                taken = statistics.median(ours)
                ratios = bound.bound(points, radius)[: len(peer)] / peer
                cells.append(
                    f"{np.median(ratios):7.3f} {ratios.max():7.3f} {1e3 * taken:7.2f} "
                    f"{np.median(theirs) / taken:7.0f}"
                )
            print(f"  {name:22s} linf {radius:6g} {' '.join(cells)}", flush=True)


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--networks", nargs="*", default=list(NAMES), choices=NAMES, metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        print(
            "bound / largest Jacobian norm sampled (median over points), ms a point; ours / peer, "
            "times faster"
        )
        heads = " ".join(f"{head:>9s}" for head in ("interval", "linear", "peer") * 2)
        print(f"  {'network':18s} ball radius {heads}")
        for name in options.networks:
            try:
                network = trained(name)
            except ReticentError as missing:
                print(f"  {name:18s} left out: {missing}")
                continue
            for norm, radii in RADII.items():
                for radius in radii:
                    print(row(name, network, norm, radius, options.points), flush=True)
        beside_published()


if __name__ == "__main__":
    main()
