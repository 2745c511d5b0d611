"""The tables on digits, end to end: each runs, is read from its cells a second time, is written,
and its figures stand in the order that is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from papers.datasets import load
from papers.posthoc import (
    certificate_table,
    constants_figure,
    label_tables,
    ladder,
    lipschitz_figure,
    local_privacy_table,
    nearest_rows,
    reconstruction_table,
    table,
)
from papers.posthoc.settings import DELTAS, SETTINGS, TableSettings
from reticent.attacks import DecoderConfig
from reticent.datasets import Dataset
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.training.embedder import EmbedderConfig, train_embedder
from reticent.training.progress import silent


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("digits")


def small(**more: Any) -> TableSettings:
    few = {"latent_dimension": 2, "embedder_epochs": 2, "embedder_width": 32}
    return replace(SETTINGS["mnist"], data="digits", **{**few, **more})


def refused(*_: object, **__: object) -> None:
    raise AssertionError("computed again")


def read_again(
    run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, module: ModuleType, *makers: str
) -> Any:
    """Results of a table, and the same from its cells, with what makes them taken away."""
    found = run()
    for maker in makers:
        monkeypatch.setattr(module, maker, refused)
    assert str(run()) == str(found)  # NaN is not equal to itself
    return found


@pytest.mark.slow
def test_certificates(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_table, "HIDDEN", (6,))
    monkeypatch.setattr(certificate_table, "OUTPUTS", 2)
    settings = small(published_epochs=2)
    asked = {"obfuscator_row": "N", "epsilons": (5.0,), "delta": 0.05, "rows": 20, "seed": 0}
    rows = certificate_table.run(data, settings, tmp_path, report=silent, **asked)
    interval, layered = rows
    assert interval.exact_constant == layered.exact_constant
    assert interval.exact_constant <= layered.local_constant * (1 + 1e-5)
    assert layered.local_constant <= interval.local_constant * (1 + 1e-5)
    for row in rows:
        # Laplace noise for P times the radius, at what the test leaves of epsilon: never less than
        # at the whole of it.
        assert row.scale >= row.proposal * settings.radius / row.epsilon
        assert 0 <= row.accuracy <= 1 - row.withheld + 1e-12
    assert certificate_table.markdown(rows, title="Small").count("\n| 5 |") == 2


@pytest.mark.slow
def test_constants(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small(published_hidden=(8,), published_outputs=2, published_epochs=2)
    asked = {"alphas": (0.1, 0.9), "radii": (0.1, 1.0), "seed": 0}
    found = read_again(
        lambda: constants_figure.run(data, settings, tmp_path, report=silent, **asked),
        monkeypatch,
        constants_figure,
        "cached_embedder",
    )
    for cell in found.values():
        assert 0.0 < cell["constants"]["0.1"] <= cell["constants"]["1"]
    assert found["0.1"]["constants"] != found["0.9"]["constants"]


def test_labels(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_tables, "_PLAIN_EPOCHS", 2)
    settings = small(hidden=(8,), epochs=2, batch_size=500)
    asked = {"radius": 0.5, "epsilons": (1.0, 5.0), "iterations": 100, "seed": 0}

    def run(**more: Any) -> Any:
        given = {"table_radius": 0.5, **asked, **more}
        return label_tables.run(data, settings, tmp_path, report=silent, **given)

    results = read_again(run, monkeypatch, label_tables, "exact_table")
    assert set(results["1"]) == {*results["5"], "table"} > {"response", "hop", "slope", "auto"}
    for found in results.values():
        held = {name: rung["held"] for name, rung in found.items()}
        assert held.pop("auto") == max(held.values())
    assert results["1"]["table"]["worth"] <= results["1"]["table"]["bound"]
    with pytest.raises(AssertionError, match="computed again"):
        run(iterations=150)  # another cell
    assert "table" not in run(table_radius=0.6)["1"]  # none is solved below the least radius


@pytest.mark.slow
def test_ladder(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small(latent_dimension=3, published_epochs=1)

    def run(**more: Any) -> Any:
        given = {"radii": (0.5,), "epsilons": (5.0,), "seed": 0, "embedder_seed": 0, "rows": 100}
        return ladder.run(data, settings, tmp_path, report=silent, **{**given, **more})

    results = read_again(run, monkeypatch, ladder, "cached_embedder")
    found = results["0.5"]["5"]
    rungs = {name: rung for name, rung in found.items() if name not in ("auto", RESPONSE)}
    assert len(rungs) == 7
    assert found["auto"]["score"] == max(rung["score"] for rung in rungs.values())
    assert found["auto"]["accuracy"] == found[found["auto"]["by"]]["accuracy"]
    # another radius at the same ratio is read too, and other rows or embedders are not
    narrow = run(radii=(0.1,), epsilons=(1.0,))["0.1"]["1"]
    assert {**narrow, RESPONSE: found[RESPONSE]} == found
    for other in ({"rows": 101}, {"rows": None}, {"embedder_seed": 1}):
        with pytest.raises(AssertionError, match="computed again"):
            run(**other)
    best = max(rungs, key=lambda name: found[name]["accuracy"])
    assert f"| ahead on the held-out part | {best} |" in ladder.markdown("Small", [results])


def test_time_of_exact_search() -> None:
    sizes = {"radii": (0.1, 0.5), "dimensions": (2, 3), "layers": (1, 2)}
    few = {"inputs": 3, "hidden": 4, "deep_hidden": 4, "points": 2, "epochs": 2, "limit": 60.0}
    settings = lipschitz_figure.FigureSettings(**sizes, **few)
    panels = lipschitz_figure.run(settings, seed=0, report=lambda *_: None)["panels"]
    assert [[row["x"] for row in rows] for rows in panels.values()] == [[0.1, 0.5], [2, 3], [1, 2]]
    for row in (row for rows in panels.values() for row in rows):
        for method in ("search", "milp"):
            assert (len(row[method]["seconds"]), row[method]["unfinished"]) == (2, 0)


def trained(data: Dataset, dimension: int) -> Any:
    size = {"image_shape": (8, 8), "latent_dimension": dimension, "width": 64}
    config = EmbedderConfig(beta=0.4, epochs=12, batch_size=64, **size)
    return train_embedder(data.train_images, config)


def test_local_privacy(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, settings = trained(data, 3), replace(SETTINGS["mnist"], radius=0.2)
    monkeypatch.setattr(local_privacy_table, "cached_embedder", lambda *_, **__: embedder)
    asked = {"epsilons": (1.0, math.inf), "seed": 0}
    found = read_again(
        lambda: local_privacy_table.run(data, settings, tmp_path, report=silent, **asked),
        monkeypatch,
        local_privacy_table,
        "cached_embedder",
    )
    bare = found["picture"]["inf"]["accuracy"]
    assert found["picture"]["1"]["accuracy"] < 0.2 < 0.7 < bare  # 64 pixels of noise
    within = found[local_privacy_table.WITHIN]["1"]["accuracy"]
    assert within > found["embedding"]["1"]["accuracy"]
    assert found[RESPONSE]["1"]["accuracy"] == response_accuracy(bare, epsilon=1.0, classes=10)


def test_noise_hides_the_whole_cube() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 5.0, 0.1]
    points = local_privacy_table.in_cube(rows, np.full((2, 3), 99.0))
    assert (points.train.min(), points.train.max(), points.test.min()) == (0.0, 1.0, 1.0)
    assert points.scale("k-norm-linf", 2.0) == 0.5
    assert points.scale("laplace", 2.0) == 1.5  # the l1 diameter of the cube is 3


def test_nearest_rows(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"the 3 nearest": (3, False), "the 3 nearest of another label": (3, True)}
    monkeypatch.setattr(nearest_rows, "GRAPHS", names)
    settings = small(latent_dimension=4, embedder_epochs=1)
    asked = {"epsilons": [1.0], "rows": 200, "nodes": 60, "seed": 0}
    found = read_again(
        lambda: nearest_rows.run(data, settings, tmp_path, report=silent, **asked),
        monkeypatch,
        nearest_rows,
        "cached_embedder",
    )
    near, other = (found["graphs"][name]["1"] for name in names)
    assert near["worth"] <= near["bound"]
    assert 0.0 < other["accuracy"] < near["accuracy"] < 1.0
    assert other["other"] == 1.0 > near["other"]
    page = nearest_rows.markdown("Title", [found, found], notes=["note"])
    assert f"| the 3 nearest: the best table | {near['accuracy']:.3f} ± " in page


@pytest.mark.slow
def test_reconstruction(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = trained(data, 4)
    monkeypatch.setattr(reconstruction_table, "cached_embedder", lambda *_, **__: embedder)
    decoder = DecoderConfig(epochs=12, hidden=(64,), batch_size=100)
    asked = {"radii": (0.1, 1.0), "epsilons": (1.0, 10.0), "seed": 0, "config": decoder}
    found = read_again(
        lambda: reconstruction_table.run(data, SETTINGS["mnist"], tmp_path, report=silent, **asked),
        monkeypatch,
        reconstruction_table,
        "cached_embedder",
    )
    close, far = found["released"]["10"]["0.1"], found["released"]["1"]["1"]
    bare, nothing = found[reconstruction_table.BARE], found[reconstruction_table.NOTHING]
    assert bare["l2"] - 0.005 <= close["l2"] < far["l2"] - 0.01 < nothing["l2"]
    # R / epsilon alone counts
    assert found["released"]["1"]["0.1"] == found["released"]["10"]["1"]
    # a label drawn nearly evenly says little, one drawn nearly surely as much as a class says
    unsure, sure = (found[RESPONSE][epsilon]["l2"] for epsilon in ("1", "10"))
    assert sure < unsure - 0.005
    assert abs(nothing["l2"] - unsure) < 0.01


def test_table(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "PUBLISHED_ROWS", ("Encoder",))
    monkeypatch.setattr(table, "EPSILONS", (2.0,))
    published = {"published_outputs": 2, "published_hidden": (4,), "published_epochs": 1}
    ours = {"outputs": (2,), "first_noise": (0.5,), "hidden": (8,), "epochs": 2, "batch_size": 500}
    settings = small(latent_dimension=3, **published, **ours)

    def run() -> Any:
        return table.run(data, settings, tmp_path, seed=0, report=silent)

    makers = ("our_labels", "our_vectors", "published_network")
    results = read_again(run, monkeypatch, table, *makers)
    for delta in DELTAS:
        cell = results["published"]["Encoder"]["2"][f"{delta:g}"]
        assert cell["epsilon"] <= 2.0 * (1 + 1e-9)
        assert cell["delta"] <= delta
    for kind in ("embedding", "label"):
        cell = results["ours"][kind]["2"]
        assert (cell["delta"], cell["withheld"]) == (0.0, 0.0)
    exact = round(results["published"]["Encoder"]["informal"], 3)
    answered = response_accuracy(exact, epsilon=2.0, classes=10)
    text = table.markdown(results)
    assert f"| randomised response, label (delta 0) | {exact:.3f} | {answered:.3f} |" in text
    assert table.figure(results).axes
