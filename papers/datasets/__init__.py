"""Data sets that the papers' tables and the benchmarks read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from papers.datasets.adult import load_adult
from papers.datasets.cifar10 import load_cifar10
from papers.datasets.covertype import covertype_schema, load_covertype
from papers.datasets.higgs import atlas_schema, higgs_schema, load_atlas, load_higgs
from papers.datasets.imdb import load_imdb
from papers.datasets.mnist import load_fashion, load_mnist
from papers.datasets.pneumonia import load_pneumonia
from papers.datasets.utkface import load_utkface
from reticent.core.errors import UnknownName
from reticent.datasets import Dataset, load_digits

__all__ = [
    "DATASETS",
    "atlas_schema",
    "covertype_schema",
    "higgs_schema",
    "load",
    "load_adult",
    "load_atlas",
    "load_cifar10",
    "load_covertype",
    "load_fashion",
    "load_higgs",
    "load_imdb",
    "load_mnist",
    "load_pneumonia",
    "load_utkface",
]

_FILE_LOADERS: dict[str, Callable[[str | Path | None], Dataset]] = {
    "mnist": load_mnist,
    "fashion": load_fashion,
    "utkface": load_utkface,
    "cifar10": load_cifar10,
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
