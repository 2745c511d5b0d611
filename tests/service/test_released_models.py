"""Models that were paid for when they were fitted: saved, shown and served at no cost, with nothing
in the bundle that did not get noise.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from reticent import load
from reticent.cli.main import run
from reticent.release.bundle import Bundle
from reticent.release.fits import not_counted
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.released_model import ReleasedModel
from tests.service.conftest import RECORDS, Place, ask

FITS = 8
PUBLIC = np.random.default_rng(9).uniform(-1.0, 1.0, (80, 2))


def records(seed: int, n: int, share: float) -> tuple[Any, Any]:
    """Records of both classes everywhere, so that no count is cut at 0."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (n, 2)), (rng.random(n) < share).astype(np.int64)


def fitted(X: Any, y: Any) -> ReleasedModel:
    given = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "data_set": RECORDS}
    model = NoisyGradientClassifier(**given, steps=3)
    with not_counted("the records are drawn here, and fitted again and again"):
        return model.fit(X, y, public_X=PUBLIC)


def values_of(bundle: Bundle) -> dict[str, Any]:
    """Every number and text of a bundle, by the place where it stands."""
    found = {name: np.asarray(array).ravel() for name, array in bundle.arrays.items()}
    settings = json.loads(json.dumps(bundle.settings))
    if "receipt" in settings:
        settings["receipt"].pop("identifier")  # drawn at random, from nothing
    return found | {"settings": np.array([json.dumps(settings, sort_keys=True)])}


def untouched(same: list[Bundle], other: Bundle) -> list[str]:
    """Where a bundle tells about records without noise: what is alike in every fit on one set of
    records, and another in a fit on other records.
    """
    fits, elsewhere = [values_of(bundle) for bundle in same], values_of(other)
    found = []
    for name, first in fits[0].items():
        if any(one[name].shape != first.shape for one in (*fits, elsewhere)):
            found.append(name)
            continue
        still = np.all([one[name] == first for one in fits], axis=0)
        if np.any(still & (elsewhere[name] != first)):
            found.append(name)
    return found


def test_a_bundle_holds_nothing_of_the_records_but_what_got_noise() -> None:
    X, y = records(0, 600, 0.5)
    other_X, other_y = records(1, 577, 0.8)
    same = [fitted(X, y).bundle() for _ in range(FITS)]
    assert untouched(same, fitted(other_X, other_y).bundle()) == []
    noisy = values_of(same[0]), values_of(same[1])
    assert any(not np.array_equal(noisy[0][part], noisy[1][part]) for part in noisy[0])


def test_planted_raw_counts_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = NoisyGradientClassifier.arrays
    raw: dict[str, Any] = {}

    def with_counts(model: ReleasedModel) -> Any:
        return made(model) | raw

    monkeypatch.setattr(NoisyGradientClassifier, "arrays", with_counts)

    def fit(X: Any, y: Any) -> Bundle:
        raw["planted"] = np.array([float(len(y))])
        return fitted(X, y).bundle()

    X, y = records(0, 600, 0.5)
    other = records(1, 577, 0.8)
    same = [fit(X, y) for _ in range(FITS)]
    assert untouched(same, fit(*other)) == ["model.planted"]


def test_saved_loaded_shown_and_served_at_no_cost(
    place: Place,
    serve_here: Callable[..., httpx.Client],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = fitted(*records(0, 600, 0.5))
    folder = tmp_path / "bundles" / "open"
    folder.parent.mkdir()
    model.save(folder)
    expected = model.predict(PUBLIC).tolist()
    assert load(folder).predict(PUBLIC).tolist() == expected
    assert run(["card", str(folder)]) == 0
    card = capsys.readouterr().out
    assert "epsilon" in card
    assert "2" in card
    client = serve_here(place.settings(bundles=folder.parent, trusted_with=()), place.secret)
    (listed,) = client.get("/v1/bundles").json()["bundles"]
    assert (listed["route"], listed["system"]) == ("free", type(model).__name__)
    told = ask(client, body={"rows": PUBLIC.tolist()}, bundle="open")
    assert told.status_code == 200, told.text
    assert told.json()["answers"] == expected
    assert told.json()["receipt"] is None
    assert place.spent(RECORDS) == 0
