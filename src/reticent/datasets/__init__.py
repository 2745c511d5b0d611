"""Public data that need no file."""

from __future__ import annotations

from reticent.datasets.adult import load_adult_sample
from reticent.datasets.blobs import load_blobs
from reticent.datasets.dataset import Dataset
from reticent.datasets.digits import load_digits
from reticent.datasets.sentences import load_sentences
from reticent.datasets.table import Table

__all__ = [
    "Dataset",
    "Table",
    "load_adult_sample",
    "load_blobs",
    "load_digits",
    "load_sentences",
]
