"""Loaders of public data files, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reticent.core.errors import UnknownName
from reticent.datasets.adult import load_adult, load_adult_sample
from reticent.datasets.blobs import load_blobs
from reticent.datasets.covertype import load_covertype
from reticent.datasets.dataset import Dataset
from reticent.datasets.digits import load_digits
from reticent.datasets.files import DATA_VARIABLE
from reticent.datasets.imdb import load_imdb
from reticent.datasets.mnist import load_fashion, load_mnist
from reticent.datasets.sentences import load_sentences
from reticent.datasets.table import Table
from reticent.datasets.utkface import load_utkface

__all__ = [
    "DATASETS",
    "DATA_VARIABLE",
    "Dataset",
    "Table",
    "load",
    "load_adult",
    "load_adult_sample",
    "load_blobs",
    "load_covertype",
    "load_digits",
    "load_fashion",
    "load_imdb",
    "load_mnist",
    "load_sentences",
    "load_utkface",
]

_FILE_LOADERS: dict[str, Callable[[str | Path | None], Dataset]] = {
    "mnist": load_mnist,
    "fashion": load_fashion,
    "utkface": load_utkface,
}

DATASETS = ("digits", *_FILE_LOADERS)
"""Names that ``load`` knows. ``digits`` needs no file."""


def load(name: str, *, folder: str | Path | None = None) -> Dataset:
    """Return the data set called ``name``.

    Args:
        name: one of ``DATASETS``.
        folder: folder with data files. The default is the one that the environment variable
            ``RETICENT_DATA`` names.

    Raises:
        UnknownName: no data set has that name.
        DataUnavailable: its files are missing or damaged, and it cannot be downloaded.

    Example:
        >>> load("digits").classes
        10
    """
    if name == "digits":
        return load_digits()
    if name not in _FILE_LOADERS:
        raise UnknownName(f"data={name!r}: expected one of {', '.join(DATASETS)}")
    return _FILE_LOADERS[name](folder)
