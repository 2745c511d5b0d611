"""Certificates by name, and the exact one through a whole front door."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from reticent.certify import EnumerationBound, ExactBound, IntervalBound, LayeredBound
from reticent.core import Box, Norm
from reticent.core.errors import UnknownName, UnsupportedNetwork, UnsupportedNorm
from reticent.networks import from_torch
from reticent.systems import PosthocEncoder
from reticent.systems.posthoc.certificates import CERTIFICATES, certificate


def _network(*widths: int, activation: type[torch.nn.Module] = torch.nn.ReLU) -> torch.nn.Sequential:
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
        ("auto", (3, 5, 5, 2), Norm.L2, IntervalBound),
        ("auto", (20, 5, 2), Norm.LINF, IntervalBound),
        ("exact", (3, 5, 5, 2), Norm.LINF, ExactBound),
        ("layered", (3, 5, 2), Norm.L1, LayeredBound),
        ("enumeration", (3, 5, 5, 2), Norm.LINF, EnumerationBound),
        ("interval", (3, 5, 2), Norm.LINF, IntervalBound),
    ],
)
def test_names(name: str, widths: tuple[int, ...], norm: Norm, kind: type) -> None:
    network = from_torch(_network(*widths), (widths[0],))
    bound = certificate(name, network, domain=Box.cube(widths[0], 2.0), input_norm=norm, output=Norm.LINF)
    assert type(bound) is kind
    assert bound.kind in CERTIFICATES  # a bundle stores the kind and reads it back as a name


def test_refusals() -> None:
    network = from_torch(_network(3, 5, 2), (3,))
    smooth = from_torch(_network(3, 5, 2, activation=torch.nn.Tanh), (3,))
    box = Box.cube(3, 2.0)
    with pytest.raises(UnknownName, match="exact, layered"):
        certificate("milp", network, domain=box, input_norm=Norm.LINF, output=Norm.L1)
    for name in ("exact", "layered", "enumeration"):
        with pytest.raises(UnsupportedNetwork):
            certificate(name, smooth, domain=box, input_norm=Norm.LINF, output=Norm.L1)
        with pytest.raises(UnsupportedNorm):
            certificate(name, network, domain=box, input_norm=Norm.L2, output=Norm.L1)
    assert isinstance(certificate("auto", smooth, domain=box, input_norm=Norm.LINF, output=Norm.L1), IntervalBound)


@pytest.fixture(scope="module")
def fitted() -> dict[str, PosthocEncoder]:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3)).astype(np.float32)
    labels = (points[:, 0] > 0).astype(int)
    shared = {"epsilon": 6.0, "delta": 0.05, "radius": 0.1, "embedder": "identity", "law": "laplace", "path": "local"}
    network = _network(3, 8, 2)
    encoders = {
        name: PosthocEncoder(**shared, obfuscator=network, certificate=name, head_epochs=1, random_state=0)
        for name in ("interval", "enumeration", "exact")
    }
    return {name: encoder.fit(points, labels) for name, encoder in encoders.items()}


def test_exact_certificate_needs_no_more_noise_and_withholds_no_more(fitted: dict[str, PosthocEncoder]) -> None:
    points = np.random.default_rng(1).normal(size=(50, 3))
    bounds = {name: encoder.query_.bound for name, encoder in fitted.items()}
    constants = [bounds[name].bound(points, 0.3) for name in ("exact", "enumeration", "interval")]
    assert (constants[0] <= constants[1] * (1 + 1e-5)).all()
    assert (constants[0] <= constants[2] * (1 + 1e-5)).all()
    assert constants[0].mean() < 0.97 * constants[2].mean()
    utility = {name: encoder.query_.plan.utility for name, encoder in fitted.items()}
    assert utility["exact"] > utility["interval"] - 0.05


def test_exact_bundle_comes_back_and_answers_alike(fitted: dict[str, PosthocEncoder], tmp_path: Path) -> None:
    encoder = fitted["exact"]
    loaded = PosthocEncoder.load(encoder.save(tmp_path / "bundle"))
    assert loaded.query_.bound.kind == "exact"
    points = np.random.default_rng(2).normal(size=(20, 3))
    np.testing.assert_array_equal(loaded.simulate(points, seed=3).values, encoder.simulate(points, seed=3).values)
    assert encoder.query_.test is not None
    together = encoder.query_.test.levels(points)
    assert [int(encoder.query_.test.levels(point[None])[0]) for point in points] == together.tolist()
    assert dict(encoder.card().details)["certificate"] == "exact"
