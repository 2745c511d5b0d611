"""IMDB reviews as fixed public sentence embeddings, and whether a film review is positive."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.datasets.files import needed_file, opened_npz
from reticent.core.errors import DataUnavailable
from reticent.datasets.table import Table, last_fifth_held_out

FILE = "imdb_minilm_l6_384.npz"
_ROWS, _FEATURES = 24904, 384


def load_imdb(folder: str | Path | None = None) -> Table:
    """Return unit vectors of 384 numbers, one per distinct review of the official training half, a
    fifth held out.

    The embedding reads the first 128 word pieces of a review with the public all-MiniLM-L6-v2 and
    knows nothing of the labels. The official test half is not here. The last fifth of
    ``RandomState(0).permutation(24904)`` is held out instead.

    Args:
        folder: folder with ``imdb_minilm_l6_384.npz``. The default is the one that
            ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing, damaged, or holds other arrays than expected.
    """
    about = (
        "it holds X, all-MiniLM-L6-v2 embeddings of the distinct reviews of the IMDB "
        "training half, and y, 1 if positive"
    )
    with opened_npz(needed_file(folder, FILE, about=about), holds="X and y") as stored:
        rows, labels = stored["X"].astype(np.float64), stored["y"].astype(np.int64)
    if (
        rows.shape != (_ROWS, _FEATURES)
        or labels.shape != (_ROWS,)
        or not np.isfinite(rows).all()
        or labels.max() > 1
    ):
        raise DataUnavailable(
            f"{FILE}: expected X of shape {(_ROWS, _FEATURES)} and as many labels, got "
            f"shape={rows.shape}"
        )
    train, test = last_fifth_held_out(_ROWS)
    return Table(
        name="imdb",
        columns=tuple(f"e{index}" for index in range(_FEATURES)),
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        class_names=("negative", "positive"),
        origin="IMDB reviews, Maas et al. 2011 (research use), embedded by all-MiniLM-L6-v2",
    )
