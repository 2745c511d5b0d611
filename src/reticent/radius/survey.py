"""The meaning of a radius for given data: the rows within it, and the caps of a guarantee.

Everything is counted on public rows, in the space where neighbours are measured. A guarantee for
neighbours within R hides one input among those within R of it. If hardly any row has another one
within R, few people would call that hidden, and the numbers here show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.accounting.telling_apart import beyond, hops, which_of_two_cap
from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm
from reticent.radius.distances import RowDistances, row_distances

_MEDIAN_CAP = 0.75
_STEPS = 200


@dataclass(frozen=True)
class AtRadius:
    """The meaning of one radius.

    Attributes:
        radius: R.
        with_neighbour: number of rows that have another one within R.
        pairs: number of pairs of rows within R of each other.
        median_neighbours: median number of other rows within R.
        counterfactuals: for each column, the share of rows with a row of another value within R.
        median_hops: median number of steps of R between two rows drawn at random.
        random_pairs: share of random pairs of rows that lie within R.
    """

    radius: float
    with_neighbour: int
    pairs: int
    median_neighbours: float
    counterfactuals: dict[str, float]
    median_hops: int
    random_pairs: float


@dataclass(frozen=True)
class Caps:
    """Proved caps on naming the right one of two equally likely inputs after one answer.

    Attributes:
        radius, epsilon: radius and epsilon of the guarantee.
        factor: e^epsilon, the largest factor between neighbours' chances of an answer.
        neighbours: cap for two inputs within R.
        median_pair: cap for two rows at the median distance of random pairs.
        farthest: cap for two rows at the distance that 99 of 100 random pairs do not exceed.
    """

    radius: float
    epsilon: float
    factor: float
    neighbours: float
    median_pair: float
    farthest: float


@dataclass(frozen=True)
class Rule:
    """A radius that achieves a purpose.

    Attributes:
        name: the rule, in words.
        radius: R, or NaN if no radius achieves it.
    """

    name: str
    radius: float


@dataclass(frozen=True)
class RadiusSurvey:
    """The meaning of radii for one set of public rows.

    Attributes:
        rows: number of rows.
        dimension: number of coordinates of each.
        norm: norm of the neighbourhood.
        delta: delta of one answer.
        neighbour: k of the rule about the k-th nearest row.
        first: distance to the nearest other row: median, and the values that 1 and 9 of 10 rows
            are below.
        nearest: the same figures for the k-th nearest other row.
        other: for each column the same figures for the nearest row with another value, infinite
            without one.
        random_pair: median distance of two random rows.
        at: meaning of each radius, smallest first.
        caps: caps of each radius and epsilon.
        rules: radii that rules choose.
        shares: steps (R, share of rows) of the empirical distributions of ``first``, ``nearest``
            and ``other``, by the rows that lie within R, in words. Of many rows, 200 of the steps.
    """

    rows: int
    dimension: int
    norm: Norm
    delta: float
    neighbour: int
    first: tuple[float, float, float]
    nearest: tuple[float, float, float]
    other: dict[str, tuple[float, float, float]]
    random_pair: float
    at: tuple[AtRadius, ...]
    caps: tuple[Caps, ...]
    rules: tuple[Rule, ...]
    shares: dict[str, tuple[tuple[float, float], ...]]

    def advice(self) -> list[str]:
        """Return sentences about where a neighbour is another person, and about the radii that buy
        nothing, or little, against a guarantee for any two inputs.
        """
        reaches, apart = self.first[0], self.random_pair
        said = [
            (
                f"If each row is a person, R = {reaches:.4g} is the least that reaches another one "
                f"for half of them, and {self.first[1]:.4g} for one in ten. A smaller R hides them "
                "among points that are nobody."
            ),
            (
                f"From R = {apart:.4g} on, R buys nothing for half of random pairs: a guarantee "
                "for any two inputs has the same cap for them. "
                f"From R = {apart / 2.0:.4g} on it buys little: they are at most two steps apart, "
                "and a guarantee for any two inputs at twice the epsilon has the same cap."
            ),
        ]
        if 2.0 * reaches >= apart:
            said.append(
                "So no R both reaches another person and buys much here. Ask for any two inputs "
                "(radius=None)."
            )
        return said


def survey_radius(
    points: npt.ArrayLike,
    *,
    radii: Sequence[float],
    epsilons: Sequence[float],
    norm: str | Norm = Norm.LINF,
    delta: float = 0.0,
    columns: Mapping[str, npt.ArrayLike] | None = None,
    neighbour: int = 10,
    pairs: int = 100_000,
    seed: int = 0,
) -> RadiusSurvey:
    """Return the meaning of each radius for rows like these.

    Counts of neighbours are exact, over all rows. Distances of random pairs are a sample. Caps
    beyond one step of a radius are for guarantees of all points of a convex space, such as posthoc
    ones.

    Args:
        points: PUBLIC rows in the space where distance is measured (for a bundle:
            ``system.embed(X)``), shape (n, d), n above ``neighbour``.
        radii: radii, each above 0, or none for the rules alone.
        epsilons: epsilons of one answer, each above 0.
        norm: norm of the neighbourhood.
        delta: delta of one answer, in [0, 1).
        columns: labels or attributes, shape (n,) each. Rows with different ones are counterfactuals
            of each other.
        neighbour: k of the rule about the k-th nearest row, at least 1.
        pairs: number of random pairs of rows, at least 100.
        seed: seed of these pairs.

    Raises:
        InvalidInput, InvalidParameter: rows, columns or numbers that cannot be used.

    Example:
        >>> rows = np.random.default_rng(0).uniform(size=(1000, 2))
        >>> half = rows[:, 0] > 0.5
        >>> found = survey_radius(rows, radii=[0.1], epsilons=[1.0], columns={"half": half})
        >>> found.at[0].median_neighbours, found.at[0].median_hops
        (37.0, 5)
        >>> round(found.caps[0].neighbours, 3), round(found.caps[0].median_pair, 3)
        (0.731, 0.993)

    References:
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, what a radius
          protects.

    See Also:
        reticent.PosthocEncoder: takes a radius.
        reticent.attacks.attack_fitted: attacks on a fitted system, beside the same caps.
    """
    measure = Norm.parse(norm)
    near = count(neighbour, name="neighbour")
    rows = finite_array(points, name="points", ndim=2)
    if len(rows) <= near:
        raise InvalidInput(f"points: expected more than neighbour={near} rows, got {len(rows)}")
    sizes = sorted({positive(radius, name="radii") for radius in radii})
    budgets = sorted({positive(epsilon, name="epsilons") for epsilon in epsilons})
    probability(delta, name="delta")
    if count(pairs, name="pairs") < 100:
        raise InvalidInput(f"pairs={pairs}: expected at least 100")
    codes = {name: _codes(values, len(rows), name) for name, values in (columns or {}).items()}
    found = row_distances(rows, measure, radii=sizes, neighbour=near, columns=codes)
    random = np.random.default_rng(count(seed, name="seed", minimum=0))
    first = random.integers(len(rows), size=pairs)
    second = (first + random.integers(1, len(rows), size=pairs)) % len(rows)
    apart = measure.of(rows[first] - rows[second])
    return RadiusSurvey(
        rows=len(rows),
        dimension=rows.shape[1],
        norm=measure,
        delta=delta,
        neighbour=near,
        first=_spread(found.first),
        nearest=_spread(found.nearest),
        other={name: _spread(values) for name, values in found.other.items()},
        random_pair=float(np.median(apart)),
        at=tuple(
            _at(radius, within, found, apart)
            for radius, within in zip(sizes, found.within, strict=True)
        ),
        caps=tuple(_caps(radius, epsilon, delta, apart) for radius in sizes for epsilon in budgets),
        rules=_rules(found, apart, near, budgets, delta),
        shares={
            "another row": _steps(found.first),
            **({f"{near} other rows": _steps(found.nearest)} if near > 1 else {}),
            **{f"a row with another {name}": _steps(found.other[name]) for name in found.other},
        },
    )


def _codes(values: npt.ArrayLike, rows: int, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise InvalidInput(
            f"columns[{name!r}]: expected one value for each of {rows} rows, got "
            f"shape={array.shape}"
        )
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def _spread(distances: Array) -> tuple[float, float, float]:
    middle, low, high = np.quantile(distances, [0.5, 0.1, 0.9], method="lower")
    return float(middle), float(low), float(high)


def _steps(distances: Array) -> tuple[tuple[float, float], ...]:
    """Return places and heights of an empirical distribution, without its infinite part."""
    order = np.sort(distances)
    finite = order[np.isfinite(order)]
    last = np.flatnonzero(np.append(np.diff(finite) > 0, True))[: len(finite)]
    last = last[finite[last] > 0]
    kept = last[np.unique(np.linspace(0, len(last) - 1, min(_STEPS, len(last))).astype(int))]
    return tuple((float(order[at]), float(at + 1) / len(order)) for at in kept)


def _at(
    radius: float, within: npt.NDArray[np.int64], found: RowDistances, apart: Array
) -> AtRadius:
    return AtRadius(
        radius=radius,
        with_neighbour=int((within > 0).sum()),
        pairs=int(within.sum()) // 2,
        median_neighbours=float(np.median(within)),
        counterfactuals={
            name: float((distances <= radius).mean()) for name, distances in found.other.items()
        },
        median_hops=int(hops(np.median(apart), radius)),
        random_pairs=float((apart <= radius).mean()),
    )


def _caps(radius: float, epsilon: float, delta: float, apart: Array) -> Caps:
    typical = np.quantile(apart, [0.5, 0.99])
    steps = np.maximum([1, *hops(typical, radius).tolist()], 1)
    caps = which_of_two_cap(*beyond(epsilon=epsilon, delta=delta, hops=steps))
    factor = math.exp(min(epsilon, 700.0))
    return Caps(radius, epsilon, factor, float(caps[0]), float(caps[1]), float(caps[2]))


def _rules(
    found: RowDistances, apart: Array, neighbour: int, epsilons: Sequence[float], delta: float
) -> tuple[Rule, ...]:
    """Return radii that make a statement true of half of the rows, or of the median pair."""
    rules = [
        Rule(
            f"half of the rows have at least {neighbour} others within R",
            _half_below(found.nearest),
        ),
        *(
            Rule(
                f"half of the rows have a row with another {name} within R", _half_below(distances)
            )
            for name, distances in found.other.items()
        ),
    ]
    for epsilon in epsilons:
        steps = _most_steps(epsilon, delta)
        radius = float(np.median(apart)) / steps if steps else math.nan
        rules.append(
            Rule(
                f"nobody names the right one of two random rows with probability above "
                f"{_MEDIAN_CAP:g}, at epsilon = {epsilon:g}, for half of such pairs",
                radius,
            )
        )
    return tuple(rules)


def _most_steps(epsilon: float, delta: float) -> int:
    """Return the most steps between two points that keep the cap at ``_MEDIAN_CAP`` or below."""
    odds = math.log(_MEDIAN_CAP / (1.0 - _MEDIAN_CAP))
    fewest, most = 0, math.floor(odds / epsilon * (1.0 + 2.0**-50))  # without delta
    while delta and fewest < most:  # the cap grows with the steps
        middle = (fewest + most + 1) // 2
        if which_of_two_cap(*beyond(epsilon=epsilon, delta=delta, hops=middle)) <= _MEDIAN_CAP:
            fewest = middle
        else:
            most = middle - 1
    return most


def _half_below(distances: Array) -> float:
    """Return the least distance that half of them do not exceed, or NaN if it is infinite."""
    middle = float(np.quantile(distances, 0.5, method="higher"))
    return middle if math.isfinite(middle) else math.nan
