"""The bundled sample of Adult is exactly the stated draw from the full training file."""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from papers.draw_adult_sample import main
from reticent.datasets import adult

BUNDLED = Path(adult.__file__).with_name(adult.SAMPLE_FILE)


@pytest.mark.data
def test_the_bundled_file_is_the_draw(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = os.environ.get("RETICENT_DATA")
    if not folder or not os.path.isfile(os.path.join(folder, "adult.data.gz")):
        pytest.skip("RETICENT_DATA names no folder with adult.data.gz")
    main([str(tmp_path / "again.csv.gz")])
    assert "8000 records" in capsys.readouterr().out
    again = (tmp_path / "again.csv.gz").read_bytes()
    text = gzip.decompress(BUNDLED.read_bytes())
    assert (
        gzip.decompress(again) == text
    )  # the compressed bytes are equal too where zlib is the same
    # Independent of the drawing code: the records are 8,000 of the training file's lines, none
    # taken more often than it is there.
    full = Counter(
        gzip.decompress(Path(folder, "adult.data.gz").read_bytes()).decode().splitlines()
    )
    drawn = Counter(
        ", ".join(record) for record in list(csv.reader(text.decode().splitlines()))[1:]
    )
    assert drawn.total() == 8000
    assert drawn <= full
