"""Certificates by name."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from reticent.core import Box, Norm
from reticent.lipschitz import (
    EnumerationBound,
    IntervalBound,
    LayeredBound,
    LinearBound,
)
from reticent.networks import from_torch
from reticent.systems.posthoc.certificates import CERTIFICATES, bound_of


def _network(
    *widths: int, activation: type[torch.nn.Module] = torch.nn.ReLU
) -> torch.nn.Sequential:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), activation()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.mark.parametrize(
    ("name", "widths", "norm", "kind"),
    [
        ("auto", (3, 5, 2), Norm.LINF, EnumerationBound),
        ("auto", (3, 5, 5, 2), Norm.LINF, LayeredBound),
        ("auto", (3, 5, 5, 2), Norm.L2, LinearBound),
        ("auto", (20, 5, 2), Norm.LINF, LinearBound),
        ("linear", (3, 5, 2), Norm.L1, LinearBound),
        ("layered", (3, 5, 2), Norm.L1, LayeredBound),
        ("enumeration", (3, 5, 5, 2), Norm.LINF, EnumerationBound),
        ("interval", (3, 5, 2), Norm.LINF, IntervalBound),
    ],
)
def test_names(name: str, widths: tuple[int, ...], norm: Norm, kind: type) -> None:
    network = from_torch(_network(*widths), (widths[0],))
    bound = bound_of(
        name, network, domain=Box.cube(widths[0], 2.0), input_norm=norm, output=Norm.LINF
    )
    assert type(bound) is kind
    assert bound.kind in CERTIFICATES  # a bundle stores the kind and reads it back as a name
