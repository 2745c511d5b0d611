"""Certificates by name, and the exact one through a whole estimator."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from reticent.core import Box, Norm
from reticent.core.errors import (
    CorruptBundle,
    InvalidParameter,
    UnknownName,
    UnsupportedNetwork,
    UnsupportedNorm,
)
from reticent.lipschitz import (
    CellBound,
    EnumerationBound,
    ExactBound,
    IntervalBound,
    LayeredBound,
    LinearBound,
)
from reticent.networks import from_torch
from reticent.systems import Calibration, PosthocClassifier, PosthocEncoder
from reticent.systems.posthoc.certificates import CERTIFICATES, bound_of
from reticent.systems.posthoc.query import PrivateQuery


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
        ("exact", (3, 5, 5, 2), Norm.LINF, ExactBound),
        ("cells", (2, 3, 2), Norm.LINF, CellBound),
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


def test_refusals() -> None:
    network = from_torch(_network(3, 5, 2), (3,))
    smooth = from_torch(_network(3, 5, 2, activation=torch.nn.Tanh), (3,))
    box = Box.cube(3, 2.0)
    with pytest.raises(UnknownName, match="exact, cells, layered"):
        bound_of("milp", network, domain=box, input_norm=Norm.LINF, output=Norm.L1)
    for name in ("exact", "cells", "layered", "enumeration"):
        with pytest.raises(UnsupportedNetwork):
            bound_of(name, smooth, domain=box, input_norm=Norm.LINF, output=Norm.L1)
        with pytest.raises(UnsupportedNorm):
            bound_of(name, network, domain=box, input_norm=Norm.L2, output=Norm.L1)
    assert isinstance(
        bound_of("auto", smooth, domain=box, input_norm=Norm.LINF, output=Norm.L1), IntervalBound
    )


def _encoder(**changes: Any) -> PosthocEncoder:
    settings = {
        "epsilon": 6.0,
        "delta": 0.05,
        "radius": 0.1,
        "embedder": "identity",
        "mechanism": "laplace",
    }
    return PosthocEncoder(
        **settings,
        obfuscator=_network(3, 8, 2),
        calibration=Calibration(head_epochs=1, **{"certificate": "exact", **changes}),
        random_state=0,
    )


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    return points, (points[:, 0] > 0).astype(int)


@pytest.mark.parametrize("path", ["auto", "local"])
def test_a_search_without_a_bound_on_its_time_is_refused_before_anything_is_trained(
    path: str, data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reticent.systems.posthoc.fitting.prepare",
        lambda *_, **__: pytest.fail("something was trained"),
    )
    with pytest.raises(
        InvalidParameter, match=f"certificate='exact', path='{path}': expected path='global'"
    ):
        _encoder(path=path).fit(*data)
    classifier = PosthocClassifier(
        epsilon=6.0,
        delta=0.05,
        radius=0.1,
        embedder="identity",
        calibration=Calibration(certificate="exact", path=path),
    )
    with pytest.raises(InvalidParameter, match="expected path='global'"):
        classifier.fit(*data)


def test_a_bundle_that_would_search_at_private_points_is_refused(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    settings, arrays = (
        _encoder(certificate="enumeration", path="local").fit(*data).query_.describe()
    )
    assert PrivateQuery.from_description(settings, arrays, None).test is not None
    with pytest.raises(CorruptBundle, match="certificate='exact' on the local path"):
        PrivateQuery.from_description({**settings, "certificate": "exact"}, arrays, None)


def test_an_exact_certificate_serves_on_the_global_path(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    encoder = _encoder(path="global").fit(*data)
    assert (
        encoder.query_.plan.proposal
        <= _encoder(path="global", certificate="interval").fit(*data).query_.plan.proposal
    )
    loaded = PosthocEncoder.load(encoder.save(tmp_path / "bundle"))
    assert loaded.query_.bound.kind == "exact"
    assert loaded.query_.test is None
    points = np.random.default_rng(2).normal(size=(20, 3))
    np.testing.assert_array_equal(
        loaded.simulate(points, seed=3).values, encoder.simulate(points, seed=3).values
    )
    assert encoder.release(points).values.shape == (20, 2)


def test_cells_that_are_searched_before_serve_on_the_local_path(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    class FewCells(CellBound):
        kind, cells, nodes = "few cells", 32, 50

    encoder = _encoder(certificate=FewCells, path="local").fit(*data)
    assert encoder.query_.test is not None
    folder = encoder.save(tmp_path / "bundle")
    loaded = PosthocEncoder.load(folder, certificate=FewCells)
    points = np.random.default_rng(2).normal(size=(20, 3))
    np.testing.assert_array_equal(
        loaded.simulate(points, seed=3).values, encoder.simulate(points, seed=3).values
    )
    direct = _encoder(certificate="enumeration", path="local").fit(*data)
    assert encoder.query_.plan.proposal <= direct.query_.plan.proposal
    # Nothing that a bundle says about cells is taken on trust: there is nothing.
    assert not any("cell" in name for name in encoder.query_.describe()[1])
