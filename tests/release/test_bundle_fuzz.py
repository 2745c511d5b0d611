"""Bundles that anyone may have edited: what comes out of a load is a system or a documented error,
and nothing else.

Values are changed with a manifest that is made for them, as a person would who knows the format.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import re
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from reticent import load
from reticent.core.errors import CorruptBundle, InvalidInput, ReticentError
from reticent.release import Bundle
from reticent.systems import (
    BetaVAE,
    Calibration,
    LabelAware,
    PosthocClassifier,
    PosthocEncoder,
)
from tests.systems.test_contract import CASES

FILES = ("bundle.json", "card.md", "manifest.json", "weights.safetensors")
SECONDS = 20
"""A load that takes longer than this has been made to."""

SOAK_MUTANTS = 20_000
PICTURES = np.random.default_rng(0).uniform(size=(80, 8, 8))
POSTHOC: dict[str, Any] = {"epsilon": 8.0, "radius": 0.2, "random_state": 0}

SYSTEMS: dict[str, Callable[[], Any]] = {
    **{
        name: CASES[name].fitted
        for name in (
            *("posthoc vectors", "codes near public rows", "one network"),
            *("one network, signed distance", "ensemble", "noise within a radius"),
        )
    },
    "local encoder": lambda: PosthocEncoder(
        delta=1e-2,
        embedder="identity",
        obfuscator=nn.Linear(2, 2),
        calibration=Calibration(path="local"),
        mechanism="laplace",
        **POSTHOC,
    ).fit(PICTURES[:, 0, :2]),
    "label of a beta-VAE": lambda: PosthocClassifier(
        delta=0.0,
        embedder=BetaVAE(latent_dimension=2, epochs=1),
        classifier=LabelAware(hidden=(4,), epochs=1),
        **POSTHOC,
    ).fit(PICTURES, np.arange(80) % 3),
}


pytestmark = pytest.mark.filterwarnings("ignore:X:UserWarning")  # rows cut to a public bound


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("bundles")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {
            name: make().save(root / re.sub("[ ,]+", "-", name)) for name, make in SYSTEMS.items()
        }


@contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise AssertionError(f"took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _load(folder: Path) -> Any:
    with _in_time(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(folder)


VALUES: list[Any] = json.loads(
    "[null, true, false, 0, 1, -1, 3, 9007199254740993, 9223372036854775808, -0.0, 0.5, -1.5,"
    ' 1e-300, 1e9, 1e300, 1.7e308, 5e-324, "", "x", "linf", "unnamed x", "a\\u0000b",'
    ' "\\u2028", "\\ud83d\\ude00", [], [[]], [0], [1, 2], ["a"], [null], [1e300, -1e300], {},'
    ' {"a": 1}, [[[[1]]]]]'
)


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in nested lists and dictionaries: its container and its key."""
    if isinstance(value, dict):
        places = [(value, key) for key in value]
    elif isinstance(value, list):
        places = [(value, index) for index in range(len(value))]
    else:
        return []
    return places + [inner for container, key in places for inner in _nodes(container[key])]


def _edit_settings(settings: dict[str, Any], rng: random.Random) -> str:
    container, key = rng.choice(_nodes(settings))
    what = rng.choice(
        ["replace", "replace", "replace", "scale", "drop", "add", "twice", "wrap", "swap"]
    )
    value = container[key]
    if what == "scale" and isinstance(value, int | float) and not isinstance(value, bool):
        changed = value * rng.choice([-1, 0, 2, 0.5, 100, 1e6, 1e-6, 1 + 1e-15])
        container[key] = changed if math.isfinite(changed) else 1
    elif what == "drop":
        del container[key]
    elif what == "add" and isinstance(container, dict):
        container[rng.choice(["extra", "", str(key) + " "])] = copy.deepcopy(rng.choice(VALUES))
    elif what == "twice" and isinstance(container, list):
        container.append(copy.deepcopy(value))
    elif what == "wrap":
        container[key] = [value]
    elif what == "swap":
        other, place = rng.choice(_nodes(settings))
        container[key], taken = copy.deepcopy(other[place]), copy.deepcopy(value)
        del taken
    else:
        container[key] = copy.deepcopy(rng.choice(VALUES))
    return f"{what} {key!r}"


def _edit_arrays(arrays: dict[str, np.ndarray], rng: random.Random) -> str:
    name = rng.choice(list(arrays))
    array = np.array(arrays[name])
    what = rng.choice(
        ["scale", "nan", "infinity", "type", "shape", "drop", "add", "one", "empty", "swap"]
    )
    if what == "scale":
        arrays[name] = (array * rng.choice([-1.0, 0.0, 1e6, 1e300, 1 + 1e-15])).astype(array.dtype)
    elif what in ("nan", "infinity"):
        array = array.astype(np.float64)
        array.reshape(-1)[: 1 + rng.randrange(max(1, array.size))] = (
            math.nan if what == "nan" else math.inf
        )
        arrays[name] = array
    elif what == "type":
        arrays[name] = array.astype(
            rng.choice([np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_])
        )
    elif what == "shape":
        arrays[name] = rng.choice(
            [array.reshape(-1), array[None], array[:-1] if array.ndim else array]
        )
    elif what == "drop":
        del arrays[name]
    elif what == "add":
        arrays[name + "x"] = array
    elif what == "one":
        array.reshape(-1)[: min(1, array.size)] += 1
        arrays[name] = array
    elif what == "empty":
        arrays[name] = np.zeros((0, *array.shape[1:]), array.dtype)
    else:
        arrays[name] = np.array(arrays[rng.choice(list(arrays))])
    return f"{what} {name}"


def _value_mutant(folder: Path, scratch: Path, rng: random.Random) -> str | None:
    """Writes a copy of ``folder`` with one to three values changed and a manifest for it; None
    where it cannot be written.
    """
    stored = Bundle.read(folder)
    settings, arrays = copy.deepcopy(stored.settings), dict(stored.arrays)
    serial, system = stored.serial, stored.system
    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            choice = rng.random()
            if choice < 0.7 and _nodes(settings):
                done.append(_edit_settings(settings, rng))
            elif choice < 0.97 and arrays:
                done.append(_edit_arrays(arrays, rng))
            else:
                serial = "" if serial else "1a2b"
                done.append("serial")
    try:
        Bundle(system, settings, arrays, stored.card, serial).write(scratch)
    except InvalidInput:
        return None
    return ", ".join(done)


def _check_usable(found: Any, folder: Path, where: str) -> None:
    """What was loaded is what was stored, and answers or says in plain words why not."""
    assert found.bundle().same_content(Bundle.read(folder)), where
    assert found.card().to_markdown(), where
    try:
        with _in_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.simulate(np.full((2, found.n_features_in_), 0.5), seed=0)
    except ReticentError:
        pass
    except BaseException as error:
        raise AssertionError(f"{where}: {error!r}") from error


def test_what_was_written_loads_and_would_be_written_alike(bundles: dict[str, Path]) -> None:
    for folder in bundles.values():
        _check_usable(_load(folder), folder, folder.name)


RUNS = [
    (SOAK_MUTANTS // 200, 1),
    *(
        pytest.param(
            SOAK_MUTANTS // 20, 1000 + seed, marks=[pytest.mark.soak, pytest.mark.timeout(0)]
        )
        for seed in range(10)
    ),
]


@pytest.mark.parametrize(("mutants", "seed"), RUNS)
def test_changed_values_end_in_a_system_or_a_documented_error(
    bundles: dict[str, Path], tmp_path: Path, mutants: int, seed: int
) -> None:
    """Some values may be changed by whoever makes a manifest (epsilon of a label, a utility); most
    do not fit the rest.
    """
    rng, loaded = random.Random(seed), 0
    for number in range(mutants):
        folder, scratch = rng.choice(list(bundles.values())), tmp_path / "mutant"
        done = _value_mutant(folder, scratch, rng)
        if done is not None:
            where = f"mutant {number} of seed {seed}: {folder.name}, {done}"
            try:
                found = _load(scratch)
            except (CorruptBundle, InvalidInput):
                found = None
            except BaseException as error:
                raise AssertionError(f"{where}: {error!r}") from error
            if found is not None:
                loaded += 1
                _check_usable(found, scratch, where)
        shutil.rmtree(scratch, ignore_errors=True)
    assert loaded < mutants / 3


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to(f"{path}.moved")])
def test_only_plain_files_are_read(
    bundles: dict[str, Path], tmp_path: Path, name: str, put: Callable[[Path], Any]
) -> None:
    """tests/core/test_files.py has all that is no plain file of bounded size."""
    folder = tmp_path / "bundle"
    shutil.copytree(bundles["posthoc vectors"], folder)
    (folder / name).rename(folder / f"{name}.moved")
    put(folder / name)
    with pytest.raises(CorruptBundle):
        _load(folder)


def test_a_system_that_nobody_knows_is_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    replace(Bundle.read(bundles["ensemble"]), system="Oracle").write(tmp_path / "bundle")
    with pytest.raises(InvalidInput, match="Oracle"):
        _load(tmp_path / "bundle")
