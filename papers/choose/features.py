"""Patch features of a picture data set, learned on its public pictures, computed once and kept.

Private, public and held-out parts: of MNIST and Fashion-MNIST the first 50,000 training pictures
are private, and the last 10,000 training pictures public, without labels; the official test part is
never seen. With ``transductive`` all training pictures are private, and nine tenths of the test
pictures public, without labels; of CIFAR-10, of which there are 20,000 pictures, only that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from papers.datasets import load
from papers.result_files import write_result
from reticent.core.arrays import Integers
from reticent.training.progress import Report, silent
from reticent.training.public_features import PatchFeatures, PublicPCA

Array = npt.NDArray[np.float64]

COMPONENTS = 400
DATA = ("mnist", "fashion", "cifar10")

_PUBLIC = 10_000
_BLOCK = 1000


@dataclass(frozen=True, eq=False)
class Parts:
    """Features and labels of the three parts; those of ``public`` and ``test`` for scoring only.

    Attributes:
        private, public, test: shape (n, 400), principal components of patch features.
        private_y, public_y, test_y: shape (n,).
        unseen: where in ``test`` the pictures begin that are not among the public ones.
    """

    private: Array
    private_y: Integers
    public: Array
    public_y: Integers
    test: Array
    test_y: Integers
    unseen: int


def patch_features(data: str) -> PatchFeatures:
    """The unfitted map: grey pictures with 6 x 6 patches, handwriting upright; clothes and
    photographs mirrored, photographs with more filters.
    """
    if data == "cifar10":
        return PatchFeatures(
            image_shape=(3, 32, 32), filters=800, patch=6, pool=2, contrast=0.002, mirrored=True
        )
    return PatchFeatures(
        image_shape=(1, 28, 28),
        filters=400,
        patch=6,
        pool=3,
        upright=data == "mnist",
        mirrored=data == "fashion",
    )


def parts_of(data: str, *, transductive: bool, folder: Path, report: Report = silent) -> Parts:
    """The parts of ``data``, from ``folder`` where they are, computed otherwise (minutes)."""
    path = folder / f"features-{data}{'-transductive' if transductive else ''}.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        unseen = int(arrays.pop("unseen"))
        return Parts(unseen=unseen, **arrays)
    parts = _computed(data, transductive, report)
    buffer = BytesIO()
    np.savez(buffer, **{field.name: getattr(parts, field.name) for field in fields(parts)})
    write_result(path, buffer.getvalue())
    return parts


def _computed(data: str, transductive: bool, report: Report) -> Parts:
    pictures = load(data)
    train, test = pictures.train_rows, pictures.test_rows
    if transductive:
        cut = 9 * len(test) // 10
        private, public = slice(0, len(train)), test[:cut]
        public_y, unseen = pictures.test_labels[:cut], cut
    else:
        cut = len(train) - _PUBLIC
        private, public = slice(0, cut), train[cut:]
        public_y, unseen = pictures.train_labels[cut:], 0
    patches = patch_features(data).fit(public)
    reduced = PublicPCA(components=COMPONENTS, of=patches).fit(public)

    def features(rows: Array, stage: str) -> Array:
        blocks = []
        for start in range(0, len(rows), _BLOCK):
            blocks.append(reduced.features(rows[start : start + _BLOCK]))
            report(stage, start + len(blocks[-1]), len(rows), float("nan"))
        return np.concatenate(blocks)

    return Parts(
        private=features(train[private], "private pictures"),
        private_y=pictures.train_labels[private],
        public=features(public, "public pictures"),
        public_y=public_y,
        test=features(test, "held-out pictures"),
        test_y=pictures.test_labels,
        unseen=unseen,
    )
