"""Frames in, frames out: words, dates, missing values and unknown words, in a fit and in a bundle;
and private records have no part in the schema.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems import (
    Features,
    NoisyGradientClassifier,
    PublicStartClassifier,
)
from reticent.systems.loading import load
from reticent.tables import NamedRows

COLUMNS = ("age", "place", "seen", "same")
TOTAL: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-5, "classes": ["ill", "well"]}
POOL: dict[str, Any] = {"pool": [LogisticRegression()], "records": 300}
MODELS: dict[str, Any] = {
    "public start": PublicStartClassifier(**TOTAL, **POOL),
    "descent": NoisyGradientClassifier(steps=10, **TOTAL),
}


def rows(n: int, *, seed: int = 0, ages: float = 90.0, odd: str = "north") -> NamedRows:
    """Rows of an age, a word, a date and one value for all; some of each are missing."""
    random = np.random.default_rng(seed)
    table = np.empty((n, 4), dtype=object)
    table[:, 0] = random.uniform(10, ages, n).round(1)
    table[:, 1] = np.where(random.random(n) < 0.5, "south", "north")
    table[random.random(n) < 0.03, 1] = odd
    table[:, 2] = [
        datetime(2020, 1, 1) + timedelta(days=int(d)) for d in random.integers(0, 900, n)
    ]
    table[:, 3] = "one"
    for column in range(3):
        table[random.random(n) < 0.05, column] = None
    return NamedRows(table, COLUMNS)


def labels(frame: NamedRows) -> np.ndarray:
    return np.where(np.equal(frame.values[:, 1], "south"), "ill", "well")


PUBLIC = rows(120, seed=9)
PRIVATE = rows(300, seed=1, ages=120.0, odd="an island that nobody else has")
TOLD: dict[str, Any] = {"public_X": PUBLIC, "public_y": labels(PUBLIC)}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_answers_a_raw_frame(name: str, tmp_path: Path) -> None:
    model = clone(MODELS[name]).fit(PRIVATE, labels(PRIVATE), **TOLD)
    found = load(model.save(tmp_path / "model"))
    asked = rows(50, seed=2)
    assert np.array_equal(found.predict(asked), model.predict(asked))
    assert (model.predict(asked) == labels(asked)).mean() > 0.8
    shuffled = NamedRows(asked.values[:, [2, 0, 1]], ("seen", "age", "place"))
    assert np.array_equal(found.predict_proba(shuffled), model.predict_proba(asked))
    assert found.schema_ == model.schema_
    assert "same" in model.schema_.note
    with pytest.raises(InvalidInput, match="unknown 'height'"):
        found.predict(NamedRows(asked.values, ("age", "place", "seen", "height")))


def test_private_records_have_no_part_in_the_schema() -> None:
    """Values that only private records have, and no records at all, draft the same one."""
    drafted = [
        clone(MODELS["descent"]).fit(each, labels(each), **TOLD).schema_
        for each in (PRIVATE, rows(30, seed=5), PRIVATE[:0])
    ]
    assert drafted[0] == drafted[1] == drafted[2]
    assert "island" not in str(drafted[0].to_dict())
    assert max(part.upper for part in drafted[0].attributes if part.name == "age") <= 100


def test_words_without_a_schema_are_refused() -> None:
    with pytest.raises(InvalidInput, match="schema"):
        PublicStartClassifier(**TOTAL, **POOL).fit(PRIVATE, labels(PRIVATE))
    with pytest.raises(InvalidParameter, match="schema: expected a TabularSchema"):
        Features(schema=(0, 1))
