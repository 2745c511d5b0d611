"""Maps of public rows are those of their definitions, and take each row by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from skimage.feature import hog
from threadpoolctl import threadpool_limits
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.training import public_space
from reticent.training.features import (
    HogFeatures,
    IdentityFeatures,
    ModuleFeatures,
    Origin,
    upright,
)
from reticent.training.public_features import (
    PatchFeatures,
    PublicPCA,
    features_of,
    public_map,
)
from reticent.training.public_space import (
    LENGTH,
    REACH,
    UNIT,
    PublicSpace,
    directions_of,
)

PICTURES = np.random.default_rng(0).random((60, 3, 8, 9))
SMALL: dict[str, Any] = {"image_shape": (3, 8, 9), "filters": 6, "patch": 3, "pool": 2}


@pytest.fixture(scope="module")
def patches() -> PatchFeatures:
    return PatchFeatures(**SMALL).fit(PICTURES)


def test_features_are_those_of_the_definition(patches: PatchFeatures) -> None:
    """By loops over places and cells, in double precision."""
    picture = PICTURES[0] / patches.largest_
    grid = np.zeros((6, 7, 6))
    for i in range(6):
        for j in range(7):
            patch = picture[:, i : i + 3, j : j + 3].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 0.02)
            match = patch @ patches.filters_.astype(float) - patches.offsets_.astype(float)
            grid[i, j] = np.maximum(match, 0)
    rows, columns = [round(i * 6 / 2) for i in range(3)], [round(i * 7 / 2) for i in range(3)]
    expected = [
        np.sqrt(grid[rows[a] : rows[a + 1], columns[b] : columns[b + 1]].mean(axis=(0, 1)))
        for a in range(2)
        for b in range(2)
    ]
    assert np.allclose(patches.features(PICTURES[:1])[0], np.concatenate(expected), atol=1e-4)


def test_a_description_gives_the_same_map_back(patches: PatchFeatures) -> None:
    chain = PublicPCA(components=4, of=patches).fit(PICTURES)
    for features in (patches, chain, PublicPCA(components=4, of=chain).fit(PICTURES)):
        again = public_map(*features.describe())
        assert np.array_equal(again.features(PICTURES[:5]), features.features(PICTURES[:5]))
        assert again.name == features.name


def test_a_map_of_ones_own_is_not_described() -> None:
    chain = PublicPCA(components=2, of=Own()).fit(FLAT)
    with pytest.raises(InvalidInput, match="a bundle can hold"):
        chain.describe()


PUBLIC = np.random.default_rng(0).normal(size=(200, 5)) * [5.0, 3.0, 1.0, 0.1, 1e-3]


def around(**changes: object) -> PublicSpace:
    settings = {"components": None, "whitening": 0.0, "lower_upper": None, "alike": True}
    return PublicSpace.around(PUBLIC, **{**settings, **changes})  # type: ignore[arg-type]


def test_points_are_principal_components_on_a_grid() -> None:
    points = around(components=3).points(PUBLIC) / UNIT
    centred = PUBLIC - PUBLIC.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:3].T
    expected /= np.sqrt(np.square(expected).sum(axis=1).mean())
    assert np.abs(np.abs(points) - np.abs(expected)).max() < 1e-3


def test_a_point_is_the_same_alone_in_any_order_and_beside_others() -> None:
    space = around(whitening=0.5)
    rows = np.random.default_rng(1).normal(size=(9000, 5)) * 3
    together = space.points(rows)
    assert np.array_equal(together[::-1], space.points(rows[::-1]))
    assert np.array_equal(together[:50], np.concatenate([space.points(r[None]) for r in rows[:50]]))


def test_what_is_multiplied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding at the end would hide a product that depends on the batch, most of the time."""
    rows = np.random.default_rng(4).normal(size=(50, 9))
    space = PublicSpace.around(rows, components=4, whitening=0.5, lower_upper=None, alike=True)
    honest, seen = public_space.exact_product, []

    def checked(left: Any, right: Any, *, bound: float) -> Any:
        seen.append(np.array_equal(left, np.rint(left)) and np.array_equal(right, np.rint(right)))
        assert (np.abs(left) @ np.abs(right)).max() <= bound
        return honest(left, right, bound=bound)

    monkeypatch.setattr(public_space, "exact_product", checked)
    space.points(np.concatenate([rows, 1e9 * rows]))
    assert seen
    assert all(seen)


def test_far_rows_are_cut_to_public_numbers() -> None:
    rows = np.array([[1e308, -1e308, 1e308, 0.0, 1e300]])
    points = around(whitening=1.0).points(rows)
    assert np.isfinite(points).all()
    assert np.abs(points).max() <= REACH
    directions = directions_of(points, intercept=0.3)
    assert np.linalg.norm(directions) <= LENGTH


def test_a_range_in_place_of_rows() -> None:
    space = PublicSpace.of_range(np.zeros(3), np.array([1.0, 2.0, 4.0]))
    assert space.points(np.array([[0.5, 1.0, 2.0]])).tolist() == [[0, 0, 0]]
    corner = space.points(np.array([[1.0, 2.0, 4.0]]))
    assert np.array_equal(corner, space.points(np.array([[9.0, 9.0, 9.0]])))
    assert np.ptp(corner) == 0


class Own:
    """A map of somebody's own, which multiplies all the rows that it gets at once."""

    name, matrix = "products", np.random.default_rng(1).normal(size=(64, 20))

    def features(self, inputs: Any) -> np.ndarray:
        return np.asarray(inputs) @ self.matrix


FLAT = np.random.default_rng(0).random((140, 64))
NET = nn.Sequential(nn.Linear(64, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Dropout(0.5))
GRADIENTS: dict[str, Any] = {"image_shape": (1, 8, 8), "cell": 4, "orientations": 9}
MAPS: dict[str, Any] = {
    "identity": IdentityFeatures(),
    "gradients": HogFeatures(**GRADIENTS, upright=False),
    "upright": HogFeatures(**GRADIENTS, upright=True),
    "module": ModuleFeatures(NET, (64,), Origin.PUBLIC),
    "released module": ModuleFeatures(NET, (64,), Origin.RELEASED),
    "own": Own(),
    "patches": PatchFeatures(image_shape=(1, 8, 8), filters=5, patch=3, pool=2).fit(FLAT),
    "components": PublicPCA(components=4, whitening=0.5).fit(FLAT),
    "components of one's own": PublicPCA(components=4, of=Own()).fit(FLAT),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_row_does_not_depend_on_its_batch(name: str) -> None:
    """Alone, beside one more, anywhere in a batch, and with any number of threads."""
    whole = features_of(MAPS[name], FLAT)
    for rows in (*(slice(n) for n in (0, 1, 8, 63, 139)), slice(3, 4), slice(None, None, -1)):
        np.testing.assert_array_equal(features_of(MAPS[name], FLAT[rows]), whole[rows])
    with threadpool_limits(1):
        np.testing.assert_array_equal(features_of(MAPS[name], FLAT), whole)


def test_maps_say_what_they_were_made_from() -> None:
    of_records = {"identity": Origin.FIXED, "gradients": Origin.FIXED, "upright": Origin.FIXED}
    of_records |= {"module": Origin.PUBLIC, "released module": Origin.RELEASED}
    assert {name: MAPS[name].origin for name in of_records} == of_records


def test_gradients_are_those_of_the_library_plane_by_plane() -> None:
    planes = np.random.default_rng(1).random((2, 2, 16, 16))
    features = HogFeatures(image_shape=(2, 16, 16), cell=4, orientations=9, upright=False).features(
        planes.reshape(2, -1)
    )
    for row in range(2):
        expected = [
            hog(plane, orientations=9, pixels_per_cell=(4, 4), cells_per_block=(2, 2))
            for plane in planes[row]
        ]
        np.testing.assert_array_equal(features[row], np.concatenate(expected))


def test_upright_undoes_a_shear() -> None:
    rows, columns = np.mgrid[:28, :28]
    stroke = (np.abs(columns - 13.5) < 2) & (np.abs(rows - 13.5) < 9)
    slanted = (np.abs(columns - 13.5 - 0.5 * (rows - 13.5)) < 2) & (np.abs(rows - 13.5) < 9)
    straightened = upright(slanted.astype(float))
    assert (
        np.abs(straightened - stroke).mean() < 0.03 < np.abs(slanted.astype(float) - stroke).mean()
    )
    empty, single = np.zeros((8, 8)), np.eye(1, 64, 20).reshape(8, 8)
    assert (upright(empty) == empty).all()
    assert (upright(single) == single).all()
