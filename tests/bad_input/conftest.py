"""A fitted encoder, its bundle and an empty folder, with good files in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.neighbours import SampledNeighbours
from reticent.systems import (
    NoiseAware,
    PosthocEncoder,
)
from reticent.systems.posthoc.query import PrivateQuery

X, Y = load_iris(return_X_y=True)


SETTINGS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 0.0,
    "radius": 0.2,
    "embedder": "identity",
    "random_state": 0,
}


OBFUSCATOR = NoiseAware(outputs=2, hidden=(8,), epochs=1)


@dataclass(frozen=True)
class Bench:
    """A fitted encoder, its bundle, and an empty folder."""

    encoder: PosthocEncoder
    bundle: Path
    folder: Path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[PosthocEncoder, Path]:
    encoder = PosthocEncoder(mechanism="laplace", obfuscator=OBFUSCATOR, **SETTINGS).fit(X, Y)
    return encoder, encoder.save(tmp_path_factory.mktemp("bundles") / "encoder")


@pytest.fixture
def bench(
    fitted: tuple[PosthocEncoder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """The bench; answering is a failure, since every case here must stop before it."""

    def answer(*_: object, **__: object) -> None:
        pytest.fail("computed an answer for input that has to be refused")

    monkeypatch.setattr(PrivateQuery, "answer", answer)
    monkeypatch.setattr(SampledNeighbours, "draw", answer)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    return Bench(*fitted, tmp_path)


def saved(bench: Bench, name: str, array: Any) -> Path:
    np.save(bench.folder / name, array)
    return bench.folder / name


def good(bench: Bench) -> Path:
    return saved(bench, "x.npy", X[:5])


def out(bench: Bench) -> Path:
    return bench.folder / "out.npz"


def spoiled(value: float) -> np.ndarray:
    changed = X[:5].copy()
    changed[2, 1] = value
    return changed
