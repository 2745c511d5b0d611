"""Label tables: privacy by brute force over every touching pair, planted faults refused, exact
draws.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reticent.core import AddRemove, Neighborhood, Norm
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, factor_below
from reticent.mechanisms import LabelTable
from reticent.noise import AuditSampler, SecureSampler
from reticent.training.label_tables import whole_table

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def lattice(cells: int = 5, reach: int = 1) -> Lattice:
    ends = np.array([[0.0, 0.0], [0.5 * cells / reach - 0.2, 0.9 / reach]])
    return Lattice.over(ends, radius=0.5, tail=0.0, reach=reach)


def table(epsilon: float = 1.0, reach: int = 1, labels: int = 3, **changes) -> LabelTable:
    cells = lattice(reach=reach)
    wanted = np.random.default_rng(0).dirichlet(np.full(labels, 0.2), cells.size).T
    shares = whole_table(wanted, lattice=cells, epsilon=epsilon)
    return LabelTable(
        **{
            "lattice": cells,
            "shares": shares,
            "epsilon": epsilon,
            "adjacency": NEAR,
            **changes,
        }
    )


def points_of(cells: Lattice) -> np.ndarray:
    points = np.zeros((cells.size, cells.dimension))
    points[:, cells.coordinates] = cells.center
    return points


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("reach", [1, 2])
def test_loss_is_at_most_epsilon_between_all_touching_cells(epsilon, reach) -> None:
    mechanism = table(epsilon, reach)
    cells = mechanism.lattice
    index = np.stack(np.unravel_index(np.arange(cells.size), cells.shape), axis=1)
    logs = np.log(mechanism.probabilities(points_of(cells)))
    largest = 0.0
    for first in range(cells.size):
        for second in range(cells.size):
            if np.abs(index[first] - index[second]).max() <= reach:
                largest = max(largest, float(np.abs(logs[first] - logs[second]).max()))
    assert 0.5 * epsilon < largest <= epsilon * (1 + 1e-12)


def test_neighbours_within_the_radius_have_close_distributions() -> None:
    mechanism = table(1.0)
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 4, (20_000, 2))
    moved = points + rng.choice([-0.5, 0.5], points.shape)
    ratio = np.log(mechanism.probabilities(points)) - np.log(mechanism.probabilities(moved))
    assert 0.5 < np.abs(ratio).max() <= 1.0 + 1e-12
    twice = points + rng.choice([-1.0, 1.0], points.shape)
    further = np.log(mechanism.probabilities(points)) - np.log(mechanism.probabilities(twice))
    assert 1.0 < np.abs(further).max() <= 2.0 + 1e-12


def tightest_entry(mechanism: LabelTable) -> tuple[int, int, int]:
    """Label, cell, and the largest share that its neighbours allow it, where that is smallest
    compared with what it has and still below the whole.
    """
    factor = factor_below(mechanism.epsilon)
    best = (math.inf, 0, 0, 0)
    for label, row in enumerate(mechanism.shares):
        least = WHOLE - mechanism.lattice.touching_maximum(WHOLE - row.astype(np.int64))
        for cell, share in enumerate(row.tolist()):
            most = int(least[cell]) * factor.numerator >> factor.shift
            if most < WHOLE // 2 and most - share < best[0]:
                best = (most - share, label, cell, most)
    return best[1:]


def test_one_entry_one_unit_off_is_refused() -> None:
    mechanism = table(1.0)
    label, cell, most = tightest_entry(mechanism)
    for extra, refused in ((0, False), (1, True)):
        shares = mechanism.shares.astype(np.int64)
        other = int(np.argmax(np.where(np.arange(3) == label, 0, shares[:, cell])))
        shares[other, cell] -= most + extra - shares[label, cell]
        shares[label, cell] = most + extra
        # only the raised entry is at its limit; take the rest from where there is room
        changed = shares.astype(np.uint32)
        if refused:
            with pytest.raises(InvalidInput, match="more than e\\^epsilon"):
                table(1.0, shares=changed)
        else:
            table(1.0, shares=changed)


def test_a_column_that_sums_to_one_unit_more_is_refused() -> None:
    for change in (1, -1):
        shares = table().shares.astype(np.int64)
        shares[0, 3] += change
        with pytest.raises(InvalidInput, match="1 columns do not sum"):
            table(shares=shares.astype(np.uint32))


def test_a_cell_side_below_the_radius_is_refused() -> None:
    fitted = table().lattice
    narrow = Lattice(**{**fitted.to_dict(), "side": fitted.side - 1})
    with pytest.raises(InvalidParameter, match=r"does not cover radius=0\.5"):
        table(lattice=narrow)
    with pytest.raises(InvalidParameter, match=r"does not cover radius=0\.6"):
        table(adjacency=Neighborhood(Norm.LINF, 0.6, "embedding"))


def test_other_faults_are_refused() -> None:
    shares = table().shares
    with pytest.raises(InvalidInput, match="more than e"):
        table(epsilon=1.0, shares=table(2.0).shares)
    with pytest.raises(InvalidInput, match="shares"):
        table(shares=shares[:, 1:])
    with pytest.raises(InvalidInput, match="shares"):
        table(shares=shares.astype(np.int64))
    with pytest.raises(InvalidParameter, match="adjacency"):
        table(adjacency=AddRemove(1))
    with pytest.raises(InvalidParameter, match="epsilon"):
        table(epsilon=0.0, shares=shares)


def test_a_later_change_of_the_array_changes_nothing() -> None:
    shares = table().shares.copy()
    mechanism = table(shares=shares)
    shares[:] = 0
    assert int(mechanism.shares[:, 0].sum(dtype=np.uint64)) == WHOLE
    with pytest.raises(ValueError, match="read-only"):
        mechanism.shares[0, 0] = 1


def test_description_is_read_back_and_checked() -> None:
    mechanism = table()
    settings, arrays = mechanism.describe()
    again = LabelTable.from_description(settings, arrays, epsilon=1.0, adjacency=NEAR)
    assert np.array_equal(again.shares, mechanism.shares)
    assert again.lattice == mechanism.lattice
    with pytest.raises(InvalidInput, match="more than e"):
        LabelTable.from_description(settings, arrays, epsilon=0.5, adjacency=NEAR)


def test_labels_have_the_stated_distribution() -> None:
    mechanism = table(1.0, labels=4)
    point = np.array([[1.3, 0.2]])
    drawn = mechanism.release(np.repeat(point, 40_000, axis=0), sampler=AuditSampler(0))
    counts = np.bincount(drawn, minlength=4)
    expected = 40_000 * mechanism.probabilities(point)[0]
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    # power: the same labels against probabilities that are off by a tenth
    wrong = expected * np.array([1.1, 1.0, 1.0, 1.0])
    assert stats.chisquare(counts, wrong * 40_000 / wrong.sum()).pvalue < 1e-3


def test_draws_follow_the_uniform_integer() -> None:
    """Every integer below 2^32 belongs to one label, and each label to as many as its share."""

    class Given(SecureSampler):
        def uniform_integers(self, high):
            return np.array(integers)

    mechanism = table(1.0)
    shares = mechanism.shares[:, mechanism.lattice.cells([[0.1, 0.1]])[0]].astype(np.int64)
    ends = np.cumsum(shares)
    integers = [0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], WHOLE - 1]
    points = np.full((6, 2), 0.1)
    assert mechanism.release(points, sampler=Given()).tolist() == [0, 0, 1, 1, 2, 2]


def test_no_points_no_labels() -> None:
    assert table().release(np.zeros((0, 2)), sampler=SecureSampler()).shape == (0,)


def test_bad_points_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NaN"):
        table().release([[0.0, math.nan]], sampler=SecureSampler())


def test_guarantee_and_event() -> None:
    mechanism = table(2.0)
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (2.0, 0.0)
    assert mechanism.event.guarantee == mechanism.guarantee
