"""The networks that the benchmarks of certificates share, random and trained, and the points that
they are asked about.

A name such as ``8-32-16-8`` lists the widths from input to output; ReLU follows every layer but
the last. Trained networks are obfuscators of an embedding of scikit-learn's digits (whitened
principal components), learnt together with a linear head through noise on what they release.
Everything is drawn from stated seeds and kept in memory only.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from sklearn.decomposition import PCA

from reticent.core import Box
from reticent.datasets import load_digits
from reticent.networks import Network, affine_chain, from_torch

Array = npt.NDArray[np.float64]

NAMES = ("8-16-8", "8-32-16-8", "8-64-64-8", "10-100-100-10")
"""The four networks that certificates are compared on."""


def widths(name: str) -> tuple[int, ...]:
    """The widths in ``name``: ``"8-16-8"`` to (8, 16, 8)."""
    return tuple(int(width) for width in name.split("-"))


def domain(name: str) -> Box:
    """The public box of the inputs of the network ``name``: [-4, 4] per coordinate."""
    return Box.cube(widths(name)[0], 4.0)


@cache
def embeddings(components: int = 8) -> tuple[Array, npt.NDArray[np.int64], Array]:
    """Principal components of digits, each of unit variance: training part (n, components),
    labels (n,), held-out part.
    """
    data = load_digits()
    flat = [images.reshape(len(images), -1) for images in (data.train_images, data.test_images)]
    pca = PCA(components, whiten=True, random_state=0).fit(flat[0])
    return pca.transform(flat[0]), data.train_labels, pca.transform(flat[1])


def centers(name: str, points: int, *, inside: float = 0.0) -> Array:
    """The first ``points`` held-out embeddings for the network ``name``, shape (points, d).

    Args:
        name: of a network.
        points: how many.
        inside: only points whose ball of this radius lies within the domain; 0 for all that lie
            in it.
    """
    held_out = embeddings(widths(name)[0])[2]
    return held_out[np.abs(held_out).max(axis=1) <= 4.0 - inside][:points]


@cache
def trained_network(name: str, seed: int, *, noise: float = 1.0, epochs: int = 150) -> Network:
    """The network ``name`` trained on digits together with a linear head, through noise on what
    it releases.
    """
    sizes = widths(name)
    torch.manual_seed(seed)
    points, labels, _ = embeddings(sizes[0])
    inputs, targets = torch.from_numpy(points).float(), torch.from_numpy(labels)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    encoder = torch.nn.Sequential(*layers[:-1])
    head = torch.nn.Linear(sizes[-1], 10)
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.01)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs)).split(256):
            optimiser.zero_grad()
            released = encoder(inputs[batch])
            loss = torch.nn.functional.cross_entropy(
                head(released + noise * torch.randn_like(released)), targets[batch]
            )
            loss.backward()
            optimiser.step()
    return from_torch(encoder, (sizes[0],))


@cache
def random_network(name: str, seed: int) -> Network:
    """The network ``name`` with weights N(0, 2 / fan-in) (He) and biases uniform within 1 /
    sqrt(fan-in).
    """
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for before, after in pairwise(widths(name)):
        weights.append(rng.normal(size=(after, before)) * np.sqrt(2.0 / before))
        biases.append(rng.uniform(-1.0, 1.0, size=after) / np.sqrt(before))
    return affine_chain(weights, biases)
