"""Cuts of tables with public ranges."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power import code_splits
from papers.power.code_splits import split
from reticent.datasets import Dataset
from reticent.tables import Numeric


@pytest.mark.parametrize("data", ["breast-cancer", "digits", "wine"])
def test_ranges_are_not_those_of_the_rows(data: str) -> None:
    part = split(data, seed=0, tuning=False)
    assert part.schema == split(data, seed=1, tuning=True).schema
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    if data != "digits":
        numbers = [one for one in part.schema.attributes if isinstance(one, Numeric)]
        assert (np.array([one.upper for one in numbers]) > rows.max(axis=0)).all()
    assert not any(part.schema.review(rows).values())


def test_parts_of_a_cut_share_no_row() -> None:
    part = split("wine", seed=0, tuning=False)
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    assert len(np.unique(rows, axis=0)) == len(rows) == 178
    held = split("wine", seed=0, tuning=True)
    tried = np.concatenate([held.public[0], held.private[0], held.test[0]])
    assert len(tried) == 142
    # The test rows of the cut are not read.
    assert not (tried[:, None] == part.test[0][None]).all(axis=2).any()


def test_pullovers_are_a_ninth_and_their_official_part_is_held_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pictures of one shade each: the cells are that shade, and tell the parts apart."""
    shades = np.repeat(np.linspace(0.1, 0.9, 90), 10)
    classes = np.tile(np.arange(10), 90)
    images = np.broadcast_to(shades[:, None, None], (900, 28, 28))
    source = Dataset(
        name="fashion",
        train_images=np.float32(images[:800]),
        train_labels=classes[:800],
        test_images=np.float32(images[800:]),
        test_labels=classes[800:],
        class_names=tuple("0123456789"),
        origin="made",
    )
    monkeypatch.setattr(code_splits, "load_fashion", lambda: source)
    monkeypatch.setattr(code_splits, "_PULLOVER_ROWS", 200)
    part = split("pullovers", seed=0, tuning=False)
    assert [len(labels) for _, labels in (part.public, part.private, part.test)] == [200, 200, 90]
    assert part.test[1].mean() == 1 / 9
    assert part.test[0].min() > shades[799] > part.private[0].max()
    assert np.ptp(part.public[0], axis=1).max() < 1e-6
    held = split("pullovers", seed=0, tuning=True)
    assert held.test[0].max() < shades[800]
    np.testing.assert_array_equal(held.public[1], part.public[1])
    drawn = split("pullovers", seed=1, tuning=False)
    assert not np.array_equal(drawn.public[0], part.public[0])
