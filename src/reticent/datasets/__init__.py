"""Loaders of public data files, and nothing else."""

from __future__ import annotations

from reticent.datasets.adult import load_adult, load_adult_sample
from reticent.datasets.blobs import load_blobs
from reticent.datasets.dataset import Dataset
from reticent.datasets.digits import load_digits
from reticent.datasets.files import DATA_VARIABLE
from reticent.datasets.sentences import load_sentences
from reticent.datasets.table import Table

__all__ = [
    "DATA_VARIABLE",
    "Dataset",
    "Table",
    "load_adult",
    "load_adult_sample",
    "load_blobs",
    "load_digits",
    "load_sentences",
]
