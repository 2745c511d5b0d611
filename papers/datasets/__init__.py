"""Data sets that the papers' tables alone read."""

from __future__ import annotations

from papers.datasets.cifar10 import load_cifar10
from papers.datasets.higgs import atlas_schema, higgs_schema, load_atlas, load_higgs
from papers.datasets.pneumonia import load_pneumonia
from reticent import datasets

__all__ = [
    "atlas_schema",
    "higgs_schema",
    "load",
    "load_atlas",
    "load_cifar10",
    "load_higgs",
    "load_pneumonia",
]


def load(name: str) -> datasets.Dataset:
    """Return the data set called ``name``: ``cifar10``, or one that the package knows."""
    return load_cifar10() if name == "cifar10" else datasets.load(name)
