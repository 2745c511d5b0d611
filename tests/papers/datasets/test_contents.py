"""What is read of each data set, from made-up small files and from the real ones where they are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.datasets import (
    adult,
    atlas_schema,
    covertype,
    covertype_schema,
    higgs,
    higgs_schema,
    load_utkface,
    utkface,
)
from papers.datasets.cifar10 import _pictures
from papers.datasets.files import DATA_VARIABLE
from papers.datasets.utkface import _decode
from reticent.tables.known_schemas import adult_schema


@pytest.fixture(autouse=True)
def real_files(request: pytest.FixtureRequest) -> None:
    """Skips a test of real files where they are not."""
    marker, folder = request.node.get_closest_marker("data"), os.environ.get(DATA_VARIABLE)
    if marker and not (folder and Path(folder, *marker.args).exists()):
        pytest.skip(f"{DATA_VARIABLE} names no folder with them")


LINE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, "
    "White, Male, 2174, 0, 40, United-States, "
)
OTHER = "50, ?, 83311, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 0, 13, ?, "


def write(folder, train: str, test: str) -> None:
    (folder / "adult.data.gz").write_bytes(gzip.compress(train.encode()))
    (folder / "adult.test.gz").write_bytes(gzip.compress(test.encode()))


def test_reads_fields_labels_and_the_comment_line(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adult, "_FILES", {"adult.data.gz": (2, 1), "adult.test.gz": (1, 1)})
    write(tmp_path, f"{LINE}<=50K\n{OTHER}>50K\n\n", f"|1x3 Cross validator\n{OTHER}>50K.\n")
    table = adult.load_adult(tmp_path)
    assert table.train_rows[0, :2].tolist() == [39.0, "State-gov"]
    assert table.train_labels.tolist() == [0, 1]
    assert table.test_labels.tolist() == [1]
    encoded = adult_schema().encode(table.train_rows)
    assert encoded.shape == (2, 113)
    assert np.square(encoded[0] - encoded[1]).sum() <= 14


def test_decode_inverts_the_differences() -> None:
    colours = np.random.default_rng(0).integers(0, 256, size=(3, 3, 32, 32), dtype=np.uint8)
    planes = colours.copy()
    planes[:, 0] -= colours[:, 1]
    planes[:, 2] -= colours[:, 1]
    rows = np.diff(planes, axis=2, prepend=np.zeros((3, 3, 1, 32), np.uint8))
    coded = np.diff(rows, axis=3, prepend=np.zeros((3, 3, 32, 1), np.uint8))
    decoded = _pictures(coded)
    assert decoded.shape == (3, 96, 32)
    np.testing.assert_array_equal(np.rint(decoded * 255).reshape(3, 3, 32, 32), colours)


def write_table(folder, rows: int) -> None:
    random = np.random.default_rng(0)
    table = np.zeros((rows, 54), dtype=np.int16)
    table[:, :10] = random.integers(0, 200, (rows, 10))
    table[np.arange(rows), 10 + random.integers(4, size=rows)] = 1
    table[np.arange(rows), 14 + random.integers(40, size=rows)] = 1
    np.savez(folder / covertype.FILE, X=table, y=(np.arange(rows) % 7 + 1).astype(np.uint8))


def test_reads_and_splits(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covertype, "_COUNTS", (10,) * 7)
    write_table(tmp_path, 70)
    table = covertype.load_covertype(tmp_path)
    assert (len(table.train_rows), len(table.test_rows)) == (56, 14)
    assert set(np.concatenate([table.train_labels, table.test_labels])) == set(range(7))
    encoded = covertype_schema().encode(table.train_rows)
    assert encoded.shape == (56, 54)
    assert covertype_schema().domain.contains(encoded).all()


TABLES: dict[str, tuple[Any, Any]] = {
    "adult.data.gz": (adult.load_adult, lambda _: adult_schema()),
    covertype.FILE: (covertype.load_covertype, lambda _: covertype_schema()),
    higgs.UCI_FILE: (higgs.load_higgs, higgs_schema),
    higgs.ATLAS_FILE: (higgs.load_atlas, atlas_schema),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=pytest.mark.data(file)) for file in TABLES]
)
def test_schemas_take_every_value_of_the_real_tables(file: str) -> None:
    """Loaders themselves refuse other counts than the published ones."""
    read, schema_of = TABLES[file]
    table = read()
    schema = schema_of(table.columns)
    for rows in (table.train_rows, table.test_rows):
        assert schema.domain.contains(schema.encode(rows)).all()


def test_decode_inverts_two_way_differences() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, size=(3, 5, 4), dtype=np.uint8)
    columns = np.diff(pictures, axis=2, prepend=np.zeros((3, 5, 1), np.uint8))
    stored = np.diff(columns, axis=1, prepend=np.zeros((3, 1, 4), np.uint8))
    np.testing.assert_array_equal(_decode(stored), pictures)


@pytest.mark.data(utkface.FILE)
@pytest.mark.slow
def test_stamps_do_not_cross_the_split() -> None:
    data = load_utkface()
    assert len(data.train_labels) + len(data.test_labels) == 23704
    assert 0.17 < len(data.test_labels) / 23704 < 0.23
    # Neighbouring pixels of a decoded face are close, which a wrong decode would destroy.
    assert np.abs(np.diff(data.test_images[:100], axis=2)).mean() < 0.06
    place = Path(os.environ[DATA_VARIABLE]) / utkface.FILE
    with np.load(place) as stored:
        stamp, gender = stored["stamp"], stored["gender"]
    stamps = np.unique(stamp)
    held = stamps[
        np.random.RandomState(0).permutation(len(stamps))[len(stamps) - len(stamps) // 5 :]
    ]
    assert len(data.test_labels) == np.isin(stamp, held).sum()
    assert data.test_labels.sum() == gender[np.isin(stamp, held)].sum()
