"""The card of a stored power encoder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.systems import PowerEncoder
from reticent.systems.tabular import Categorical, Numeric, TabularSchema


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    random = np.random.default_rng(0)
    rows = np.empty((300, 2), dtype=object)
    labels = random.integers(0, 2, 300)
    rows[:, 0] = random.uniform(0, 1, 300) * 0.5 + 0.5 * labels
    rows[:, 1] = random.choice(np.array(["a", "b"]), 300)
    schema = TabularSchema((Numeric("size", 0.0, 1.0), Categorical("kind", ("a", "b"))))
    encoder = PowerEncoder(epsilon=3.0, delta=0.0, radius=0.3, schema=schema, law="k-norm-l2", epochs=2, random_state=0)
    return encoder.fit(rows, labels).save(tmp_path_factory.mktemp("bundles") / "power")


def test_card_in_words_and_as_json(command, stored):
    words = command("card", stored)
    assert (words.status, words.err) == (0, "")
    assert words.out.strip() == PowerEncoder.load(stored).card().to_markdown().strip()
    plain = command("card", stored, "--json")
    assert plain.status == 0
    assert json.loads(plain.out) == PowerEncoder.load(stored).card().to_dict()
