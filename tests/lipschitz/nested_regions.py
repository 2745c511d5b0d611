"""Nested regions whose ends lie on kinks, and how many of them a bound gets the wrong way round."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reticent.core import Norm
from reticent.networks import affine_chain

HALF = 3.0


def chain(rng, *widths, bias=0.5):
    pairs = list(pairwise(widths))
    weights = [rng.normal(size=(after, before)) / np.sqrt(before) for before, after in pairs]
    return affine_chain(weights, [bias * rng.normal(size=after) for _, after in pairs])


def directions(rng, norm, count, inputs):
    """Random points of the unit ball, most of them near its surface."""
    drawn = rng.normal(size=(count, inputs))
    if norm is Norm.L1:
        drawn *= rng.random((count, inputs)) < 3.0 / inputs
        drawn[np.arange(count), rng.integers(inputs, size=count)] += 1.0
    sizes = np.maximum(norm.of(drawn), 1e-9)[:, None]
    return drawn / sizes * rng.random((count, 1)) ** (1.0 / 8.0)


def nested(rng, bound, count):
    """Nested balls in whole grid steps around points at kinks of the first layer, as nearly as the
    grid allows or a step off, or anywhere, from radius 0 to beyond the domain.
    """
    step, inputs = bound.input_step, bound.domain.dimension
    first = bound.network.linear_layers()[0]
    edge = HALF / step
    center = rng.uniform(-1.5, 1.5, size=(count, inputs))
    which = rng.integers(first.outputs, size=count)
    rows = first.dense()[which]
    values = (rows * center).sum(axis=1) + first.bias[which]
    onto = center - values[:, None] * rows / np.maximum((rows**2).sum(axis=1, keepdims=True), 1e-12)
    center[::2] = onto[::2]
    off = rng.integers(-1, 2, size=(count, inputs))
    center = np.clip(np.round(center / step) + off, -edge, edge)
    largest = bound.input_norm.of_ones(inputs) * 2.5 * HALF
    sizes = rng.choice([0.0, 1e-6, 0.005, 0.02, 0.05, 1.0], size=count)
    radius = np.floor(sizes * rng.random(count) * largest / step) + rng.integers(0, 3, size=count)
    shift = np.trunc(
        directions(rng, bound.input_norm, count, inputs) * radius[:, None] * rng.random((count, 1))
    )
    shift[rng.random(count) < 0.3] = 0.0
    inner = np.clip(center + shift, -edge, edge)
    left = np.floor((radius - bound.input_norm.of(inner - center)) * (1 - 2.0**-40))
    bad = left < 0
    inner[bad], left[bad] = center[bad], radius[bad]
    shrink = rng.random(count) < 0.6
    left[shrink] = np.floor(left[shrink] * rng.random(shrink.sum()))
    return bound.region_on_grid(center, radius), bound.region_on_grid(inner, left)


def violations(bound, count, seed):
    """How many of so many pairs are the wrong way round, and which share differs at all."""
    outer, inner = nested(np.random.default_rng(seed), bound, count)
    large, small = bound.bound_over(outer), bound.bound_over(inner)
    return int((small > large).sum()), float(np.mean(small < large))
