"""What is read of each data set, from made-up small files and from the real ones where they are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import (
    adult,
    atlas_schema,
    covertype,
    covertype_schema,
    higgs,
    higgs_schema,
    imdb,
    load_fashion,
    load_mnist,
    load_utkface,
    pneumonia,
    utkface,
)
from papers.datasets.cifar10 import _pictures
from papers.datasets.files import DATA_VARIABLE
from papers.datasets.imdb import load_imdb
from papers.datasets.pneumonia import load_pneumonia
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


@pytest.mark.data("adult.data.gz")
def test_the_real_files() -> None:
    table = adult.load_adult()
    assert len(table.train_rows) == 32561
    encoded = adult_schema().encode(table.test_rows)  # no value outside the public lists
    assert encoded[:, -1].mean() < 0.03


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


@pytest.mark.data(covertype.FILE)
@pytest.mark.slow
def test_the_real_file() -> None:
    table = covertype.load_covertype()
    covertype_schema().encode(table.test_rows)
    raw = table.train_rows[:, :10]
    schema = covertype_schema().attributes[:10]
    assert all(
        raw[:, i].min() >= column.lower and raw[:, i].max() <= column.upper
        for i, column in enumerate(schema)
    )


@pytest.mark.data(higgs.UCI_FILE)
def test_the_real_files_of_higgs() -> None:
    sample, atlas = higgs.load_higgs(), higgs.load_atlas()
    assert (len(sample.train_rows), len(sample.test_rows)) == (20980, 4993)
    assert higgs_schema(sample.columns).encode(sample.test_rows).shape == (4993, 28)
    encoded = atlas_schema(atlas.columns).encode(atlas.train_rows)
    assert encoded.shape == (7999, 60)
    assert (encoded[:, 1::2] > 0).any()  # some quantities do not exist


@pytest.mark.data(imdb.FILE)
def test_last_fifth_is_held_out() -> None:
    data = load_imdb()
    assert (len(data.train_rows), len(data.test_rows)) == (19924, 4980)
    np.testing.assert_allclose(np.linalg.norm(data.train_rows, axis=1), 1.0, atol=2e-3)
    with np.load(Path(os.environ[DATA_VARIABLE]) / imdb.FILE) as stored:
        held = np.random.RandomState(0).permutation(24904)[-4980:]
        np.testing.assert_array_equal(data.test_labels, stored["y"][held])


@pytest.mark.data
def test_mnist_files() -> None:
    data = load_mnist()
    assert data.train_images.shape == (60000, 28, 28)
    assert data.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert data.train_images.max() == 1.0


@pytest.mark.data
def test_fashion_files() -> None:
    data = load_fashion()
    assert data.test_images.shape == (10000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [6000] * 10
    assert data.class_names[data.test_labels[0]] == "ankle boot"


@pytest.mark.data(pneumonia.FILE)
def test_official_parts() -> None:
    final, tuning = load_pneumonia(), load_pneumonia(held_out="validation")
    assert final.train_images.shape == (4708, 28, 28)
    assert (len(final.test_labels), len(tuning.test_labels)) == (624, 524)
    np.testing.assert_array_equal(final.train_labels, tuning.train_labels)
    # MedMNIST states mean 0.5719 and standard deviation 0.1684 of the training pictures.
    assert abs(final.train_images.mean() - 0.5719) < 1e-4
    assert abs(final.train_images.std() - 0.1684) < 1e-4


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
