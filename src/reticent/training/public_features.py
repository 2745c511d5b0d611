"""Features learned without labels from public pictures, and principal components of public rows.

Both are feature maps: a record's features depend on that record and on public rows alone, to the
last bit. Both are transformers of scikit-learn as well.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from reticent.core.arrays import Array, Arrays, part_of, under
from reticent.core.checks import count, finite_array, flag, positive, real
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.rows import each_row, finite_or_zero, in_blocks
from reticent.core.settings import learned, with_settings
from reticent.training.public_space import UNIT, PublicSpace, RowMap

Floats = npt.NDArray[np.float32]

_BLOCK = 2048
_SEEN_PICTURES = 2500
_PATCHES_EACH = 30
_ROUNDS = 10
_WHITENING = 0.1
_LARGEST = 2.0**60


class PublicMap(TransformerMixin, BaseEstimator, ABC):
    """The shared part of both maps: rows in, rows out, and a description for bundles."""

    name: str
    n_features_in_: int

    @property
    def origin(self) -> Any:
        """The data that it was made from: public data alone."""
        from reticent.training.features import Origin  # late: that module knows torch

        return Origin.PUBLIC

    @property
    def columns(self) -> int | None:
        """The number of values in one input row, or None before ``fit``."""
        return getattr(self, "n_features_in_", None)

    @abstractmethod
    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, shape (n, d), float64, finite, each row's from that row alone.

        Args:
            inputs: shape (n, p), or pictures with the axes that ``fit`` saw.
        """

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the same as ``features``."""
        return self.features(X)

    def _rows(self, inputs: npt.ArrayLike) -> Array:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")
        values = finite_array(inputs, name="inputs", allow_empty=True)
        rows = values.reshape(len(values), math.prod(values.shape[1:]))
        if rows.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"inputs: expected {self.n_features_in_} values a row, got {rows.shape[1]}"
            )
        return rows


def features_of(row_map: RowMap | None, inputs: Array) -> Array:
    """Return a map's features of each row, shape (n, d), or the inputs themselves without a map.

    Maps of this package take any number of rows, none included, and go row by row or in whole
    numbers. Any other map is asked in blocks of one public shape, however many rows there are.

    Args:
        row_map: the map, or None.
        inputs: shape (n, p).

    Raises:
        InvalidInput: the map gives no row of numbers for each input.
    """
    if row_map is None:
        return inputs

    def features(rows: Array) -> Array:
        found = np.asarray(row_map.features(rows), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(rows):
            raise InvalidInput(
                f"feature_map: expected one row of features for each of {len(rows)} inputs, got "
                f"shape={found.shape}"
            )
        return found

    if isinstance(row_map, PublicMap) or hasattr(row_map, "row"):
        return features(inputs)
    return in_blocks(features, inputs)


@with_settings
class PatchFeatures(PublicMap):
    """Match of small patches of a picture with filters that public pictures were found to have.

    The filters are centroids of whitened, contrast-normalised patches (spherical k-means). A
    picture's features are the mean of max(0, match - threshold) over each cell of a coarse grid,
    for each filter, under the square root. No label is needed, and no gradient.

    Guarantee:
        None of its own. It is fitted on public pictures. Fitted on private ones it voids the
        guarantee of whatever uses it.

    Args:
        image_shape: channels, height, width.
        filters: the number of filters.
        patch: pixels a side.
        pool: cells a side of the coarse grid.
        threshold: the threshold of a match, at least 0.
        contrast: a number added to the variance of a patch, for pictures whose largest value is 1.
        mirrored: True to average features with those of the mirrored picture.
        upright: True to shear each plane first until its principal axis is vertical. This helps
            with handwriting.
        random_state: public seed of patches and first centroids.

    Runtime:
        About 1 ms a picture of 28 x 28 pixels with 400 filters. Pictures go one at a time, so
        memory does not grow with their number.

    Example:
        >>> pictures = np.random.default_rng(0).random((40, 8, 8))
        >>> features = PatchFeatures(image_shape=(1, 8, 8), filters=4, patch=3, pool=2)
        >>> features.fit(pictures).transform(pictures).shape
        (40, 16)

    References:
        - Coates and Ng (2012), "Learning feature representations with k-means",
          doi:10.1007/978-3-642-35289-8_30.
        - Coates, Ng and Lee (2011), "An analysis of single-layer networks in unsupervised feature
          learning", International Conference on Artificial Intelligence and Statistics (AISTATS),
          PMLR 15, the triangle-like encoding and the pooling.
    """

    name = "patch features of public pictures"

    image_shape: tuple[int, int, int]
    filters: int = 400
    patch: int = 6
    pool: int = 3
    threshold: float = 1.0
    contrast: float = 0.02
    mirrored: bool = False
    upright: bool = False
    random_state: int = 0

    filters_: Floats = learned()
    offsets_: Floats = learned()

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn the filters from public pictures.

        Args:
            X: shape (n, *image_shape), (n, height, width) or (n, p), public.
            y: not used.

        Raises:
            InvalidInput, InvalidParameter: pictures or settings do not fit.
        """
        shape = self._shape()
        values = finite_array(X, name="public_X")
        rows = values.reshape(len(values), -1)
        if rows.shape[1] != int(np.prod(shape)):
            raise InvalidInput(
                f"public_X: expected pictures of shape {shape}, got {values.shape[1:]}"
            )
        self.largest_ = float(np.abs(rows).max()) or 1.0
        rng = np.random.default_rng(self.random_state)
        seen = rng.permutation(len(rows))[:_SEEN_PICTURES]
        parts = []
        for row in rows[seen]:
            patches = self._patches(self._picture(row))
            parts.append(patches[rng.integers(0, len(patches), size=_PATCHES_EACH)])
        patches = np.concatenate(parts).astype(np.float64)
        mean = patches.mean(axis=0)
        variances, directions = np.linalg.eigh(np.cov(patches.T, bias=True))
        whiten = (directions / np.sqrt(np.maximum(variances, 0.0) + _WHITENING)) @ directions.T
        centroids = _spherical_means((patches - mean) @ whiten, self.filters, rng)
        self.filters_ = (whiten @ centroids.T).astype(np.float32)
        self.offsets_ = (mean @ whiten @ centroids.T + self.threshold).astype(np.float32)
        self.n_features_in_ = rows.shape[1]
        return self

    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, as ``PublicMap.features`` does.

        Pictures go one at a time, all of them by the same steps.
        """
        rows = self._rows(inputs)
        with np.errstate(all="ignore"):
            return finite_or_zero(each_row(self.row, np.clip(rows, -_LARGEST, _LARGEST)))

    def row(self, row: Array) -> Array:
        """Return features, shape (1, d), of one row of shape (1, p)."""
        picture = self._picture(row[0])
        found = self._encoded(picture)
        if self.mirrored:
            found = 0.5 * (found + self._encoded(np.ascontiguousarray(picture[:, :, ::-1])))
        return found.astype(np.float64)[None, :]

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return settings and arrays for a bundle, which ``from_description`` reads back."""
        settings = {
            "kind": "PatchFeatures",
            "image_shape": [int(size) for size in self.image_shape],
            "patch": int(self.patch),
            "pool": int(self.pool),
            "threshold": float(self.threshold),
            "contrast": float(self.contrast),
            "mirrored": bool(self.mirrored),
            "upright": bool(self.upright),
            "random_state": int(self.random_state),
            "largest": self.largest_,
        }
        return settings, {"filters": self.filters_, "offsets": self.offsets_}

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> PatchFeatures:
        """Return the fitted map that ``describe`` described.

        Raises:
            KeyError, TypeError, ValueError: the settings and arrays are no such description.
        """
        given = {name: settings[name] for name in settings if name not in ("kind", "largest")}
        given["image_shape"] = tuple(given["image_shape"])
        found = cls(**given, filters=arrays["filters"].shape[1])
        width = found._shape()[0] * found.patch**2
        found.largest_ = positive(settings["largest"], name="largest")
        found.filters_ = arrays["filters"].astype(np.float32).reshape(width, found.filters)
        found.offsets_ = arrays["offsets"].astype(np.float32).reshape(found.filters)
        found.n_features_in_ = int(np.prod(found.image_shape))
        return found

    def _shape(self) -> tuple[int, int, int]:
        shape = tuple(count(size, name="image_shape") for size in self.image_shape)
        if len(shape) != 3:
            raise InvalidParameter(
                f"image_shape={self.image_shape!r}: expected channels, height and width"
            )
        count(self.filters, name="filters", minimum=2)
        count(self.random_state, name="random_state", minimum=0)
        flag(self.mirrored, name="mirrored")
        flag(self.upright, name="upright")
        positive(self.contrast, name="contrast")
        if real(self.threshold, name="threshold") < 0:
            raise InvalidParameter(f"threshold={self.threshold!r}: expected at least 0")
        places = min(shape[1:]) - count(self.patch, name="patch", minimum=2) + 1
        if not 1 <= count(self.pool, name="pool") <= places:
            raise InvalidParameter(
                f"patch={self.patch!r}, pool={self.pool!r}: expected patches inside a picture of "
                f"{shape[1]} x {shape[2]} pixels, and at most as many cells as places"
            )
        return shape

    def _picture(self, row: Array) -> Floats:
        planes = row.reshape(self.image_shape)
        if self.upright:
            from reticent.training.features import upright  # late: that module knows torch

            planes = np.stack([upright(plane) for plane in planes])
        return np.ascontiguousarray(planes / self.largest_, dtype=np.float32)

    def _patches(self, picture: Floats) -> Floats:
        """Return contrast-normalised patches, shape (places, channels * patch^2)."""
        size = self.patch
        windows = np.lib.stride_tricks.sliding_window_view(picture, (size, size), axis=(1, 2))
        flat = windows.transpose(1, 2, 0, 3, 4).reshape(-1, len(picture) * size * size)
        centred = flat - flat.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + np.float32(self.contrast)))

    def _encoded(self, picture: Floats) -> Floats:
        _, height, width = picture.shape
        rows, columns = height - self.patch + 1, width - self.patch + 1
        matches = self._patches(picture) @ self.filters_
        matches -= self.offsets_
        np.maximum(matches, 0, out=matches)
        grid = matches.reshape(rows, columns, -1)
        ends = [
            [round(i * size / self.pool) for i in range(self.pool + 1)] for size in (rows, columns)
        ]
        bands = np.add.reduceat(grid, ends[0][:-1], axis=0)
        cells = np.add.reduceat(bands, ends[1][:-1], axis=1)
        areas = np.outer(np.diff(ends[0]), np.diff(ends[1])).astype(np.float32)
        return np.asarray(np.sqrt(cells / areas[:, :, None]).reshape(-1))


@with_settings
class PublicPCA(PublicMap):
    """Another map's features along the principal directions of public rows.

    Guarantee:
        None of its own, as ``PatchFeatures``.

    Args:
        components: the number of directions.
        whitening: the power, in [0, 1], of its standard deviation over public rows by which a
            component is divided.
        of: the other map, fitted. None for the inputs themselves.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(50, 6))
        >>> PublicPCA(components=2).fit(rows).transform(rows).shape
        (50, 2)
    """

    components: int
    whitening: float = 0.0
    of: RowMap | None = None

    space_: PublicSpace = learned()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name on cards and receipts."""
        base = "public rows" if self.of is None else self.of.name
        return f"{self.components} principal components of {base}"

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn directions and scales from public rows.

        Args:
            X: shape (n, p) or pictures, public.
            y: not used.
        """
        values = finite_array(X, name="public_X")
        rows = values.reshape(len(values), -1)
        self.space_ = PublicSpace.around(
            features_of(self.of, rows),
            components=count(self.components, name="components"),
            whitening=self.whitening,
            lower_upper=None,
            alike=True,
        )
        self.n_features_in_ = rows.shape[1]
        return self

    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, as ``PublicMap.features`` does. Public rows have a root mean square
        length of 1.
        """
        rows = self._rows(inputs)
        parts = []
        for start in range(0, max(1, len(rows)), _BLOCK):
            block = rows[start : start + _BLOCK]
            parts.append(self.space_.points(features_of(self.of, block)))
        return np.concatenate(parts) / UNIT

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return settings and arrays for a bundle.

        Raises:
            InvalidInput: the map below it is one of the caller's own.
        """
        if self.of is not None and not isinstance(self.of, PublicMap):
            raise InvalidInput(
                f"feature_map: expected a map that a bundle can hold, got {type(self.of).__name__}"
            )
        below: tuple[Any, Arrays] = (None, {})
        if isinstance(self.of, PatchFeatures | PublicPCA):
            below = self.of.describe()
        settings = {
            "kind": "PublicPCA",
            "components": int(self.components),
            "whitening": float(self.whitening),
            "columns": self.n_features_in_,
            "of": below[0],
        }
        return settings, self.space_.arrays() | under("of.", below[1])

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> PublicPCA:
        """Return the fitted map that ``describe`` described.

        Raises:
            KeyError, TypeError, ValueError: the settings and arrays are no such description.
        """
        base = None
        if settings["of"] is not None:
            base = public_map(settings["of"], part_of(arrays, "of."))
        found = cls(components=settings["components"], whitening=settings["whitening"], of=base)
        found.space_ = PublicSpace.from_arrays(arrays)
        found.n_features_in_ = count(settings["columns"], name="columns")
        return found


def public_map(settings: dict[str, Any], arrays: Arrays) -> PatchFeatures | PublicPCA:
    """Return the fitted map that ``describe`` described, of either kind.

    Raises:
        KeyError, TypeError, ValueError: the settings and arrays are no such description.
    """
    kinds: dict[str, type[PatchFeatures] | type[PublicPCA]] = {
        "PatchFeatures": PatchFeatures,
        "PublicPCA": PublicPCA,
    }
    return kinds[settings["kind"]].from_description(settings, arrays)


def _spherical_means(patches: Array, filters: int, rng: np.random.Generator) -> Array:
    """Return unit vectors, each in the direction of the patches that match it best, weighted by
    match.
    """
    means = rng.normal(size=(filters, patches.shape[1]))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        matches = patches @ means.T
        best = matches.argmax(axis=1)
        weights = matches[np.arange(len(patches)), best]
        sums = np.zeros_like(means)
        np.add.at(sums, best, patches * weights[:, None])
        sizes = np.linalg.norm(sums, axis=1, keepdims=True)
        again = patches[rng.integers(0, len(patches), size=filters)]
        means = np.where(sizes > 1e-6, sums, again + 1e-12)
        means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means
