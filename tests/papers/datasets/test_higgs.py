"""The two Higgs samples: the expected files, and refusals of others."""

from __future__ import annotations

import os

import pytest

from papers.datasets import atlas_schema, higgs, higgs_schema


@pytest.mark.data
def test_the_real_files() -> None:
    folder = os.environ.get("RETICENT_DATA")
    if not folder or not os.path.isfile(os.path.join(folder, higgs.UCI_FILE)):
        pytest.skip(f"RETICENT_DATA names no folder with {higgs.UCI_FILE}")
    sample, atlas = higgs.load_higgs(), higgs.load_atlas()
    assert (len(sample.train_rows), len(sample.test_rows)) == (20980, 4993)
    assert higgs_schema(sample.columns).encode(sample.test_rows).shape == (4993, 28)
    encoded = atlas_schema(atlas.columns).encode(atlas.train_rows)
    assert encoded.shape == (7999, 60)
    assert (encoded[:, 1::2] > 0).any()  # some quantities do not exist
