"""Certified training: intervals around the weights of every model that k changes of the records
could have given.

One pass of abstract gradient training gives T_0, T_1, ..., T_kmax. The result is
*inclusion-isotone to the last bit*: for neighbouring data sets D and D', T_(k - 1)(D') lies
inside T_k(D). That, and not validity alone, is what lets noise be scaled to how far a label is
from changing (docs/certified.md, theorem 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import CertificationFailed, InvalidInput
from reticent.core.workers import results_of, workers_of
from reticent.retraining.training_network import IntervalNetwork
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids, TrainingSettings
from reticent.retraining.training_sums import (
    Clip,
    Clipped,
    Removable,
    Smallest,
    block_sums,
    constant_entries,
    mean_bound,
)

_LINEAR_AT_ONCE = 256  # boxes times units that share what their smallest and largest box tell
_NESTED_AT_ONCE = 32  # boxes that do with hidden layers
_MOVING_AT_ONCE = 2**21  # ends of records worth removing, over boxes looked at together
_LINEAR_RECORDS = 2**13  # records looked at together without hidden layers, where nothing is summed
_LARGE_BLOCK = 31 * 2**20  # bytes; 32 MiB is the most at which glibc adapts


@dataclass(frozen=True, eq=False)
class ParameterIntervals:
    """The intervals T_0, ..., T_kmax: for each distance k, one for every weight. As private as the
    records.

    Attributes:
        grids: units of everything.
        lower, upper: ends per layer, shape (k_max + 1, units, inputs + 1), whole multiples of the
            layer's weight unit.

    Utility:
        Widths grow with k, as ``parameter_intervals`` says. T_0 is not one point, but within
        rounding of one.

    Runtime:
        O(k_max weights) numbers of 8 bytes. ``weights`` and ``network`` are views.

    References:
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670, intervals around trained parameters (abstract
          gradient training).
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433.

    See Also:
        reticent.retraining.parameter_intervals: makes them.
        reticent.retraining.stable_distances: what is read off them.
    """

    grids: TrainingGrids
    lower: tuple[Array, ...]
    upper: tuple[Array, ...]

    kind: ClassVar[str] = "parameter intervals"

    @property
    def settings(self) -> TrainingSettings:
        """The run."""
        return self.grids.settings

    @property
    def k_max(self) -> int:
        """Largest distance."""
        return len(self.lower[0]) - 1

    def weights(self, k: int) -> list[tuple[Array, Array]]:
        """Return the lower and upper ends of T_k in real terms.

        They are per layer, shape (units, inputs + 1), bias last.
        """
        ends = zip(self.lower, self.upper, self.grids.weight_units, strict=True)
        return [(low[k] * unit, high[k] * unit) for low, high, unit in ends]

    @property
    def nominal(self) -> list[Array]:
        """The trained weights: the middle of T_0 on its grid.

        They are per layer, shape (units, inputs + 1), bias last.
        """
        return [
            whole * unit for whole, unit in zip(self.middle, self.grids.weight_units, strict=True)
        ]

    @property
    def middle(self) -> list[Array]:
        """The trained weights in grid units."""
        return [
            np.floor(0.5 * (low[0] + high[0]))
            for low, high in zip(self.lower, self.upper, strict=True)
        ]

    def network(self, k: int | slice) -> IntervalNetwork:
        """Return the network with weights in T_k. A slice of distances works only without hidden
        layers.
        """
        return IntervalNetwork(
            self.grids, [low[k] for low in self.lower], [high[k] for high in self.upper]
        )

    def contains(self, weights: list[Array], k: int) -> bool:
        """Return whether real weights (per layer, shape (units, inputs + 1)) lie in T_k."""
        ends = zip(weights, self.weights(k), strict=True)
        return all(bool(((low <= value) & (value <= high)).all()) for value, (low, high) in ends)


def parameter_intervals(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    settings: TrainingSettings,
    *,
    k_max: int,
    initial: list[Array] | None = None,
    batch: npt.ArrayLike | None = None,
    report: Callable[[int], None] | None = None,
    n_jobs: int | None = None,
) -> ParameterIntervals:
    """Return T_k for every k in 0 .. ``k_max``.

    **Guarantee.** *Sound*: plain float64 training on every data set at distance at most k
    (``settings.counting``) ends inside T_k, if records keep their batch when others come or go.
    *Isotone*: for data sets D, D' at distance 1, T_(k-1)(D') as computed lies inside T_k(D) as
    computed. That holds for every k >= 1, in any order of records, on any machine with IEEE
    arithmetic. It does not hold for the countings "remove" and "insert", which are sound only.

    *Why.* docs/certified.md, theorems 1 and 2. Every sum of several terms is a sum of whole numbers
    below 2^53, hence exact. Every other operation is a single correctly rounded, monotone one, or a
    table that is monotone by construction.

    *Differs from the paper.* The published bound (b - k largest plus k gamma, over b) covers k
    removals *and* k additions: it is ``counting="replace"``. For k changes in total the maximum
    over j + l = k is about half as wide. Batches are drawn from records' keys. Positions in a list
    would shift with every insertion and void the bound.

    Args:
        X: shape (n, features), finite, cut to ``input_bound``. Up to 2**24 records
            (``TrainingGrids.most_records``).
        labels: shape (n,), integers in 0 .. classes - 1.
        settings: settings of the run, chosen without looking at the records.
        k_max: largest distance, at least 0.
        initial: starting weights per layer, shape (units, inputs + 1), chosen without looking at
            the records, or None for zeros.
        batch: shape (n,), batch of each record, from ``record_buckets``. One batch needs none.
        report: function that is called with the number of distances done.
        n_jobs: number of workers, as in ``joblib.Parallel``, among which the distances are shared
            where there are hidden layers. None for one, or for those of ``joblib.parallel_config``.
            The bits are the same.

    Returns:
        The intervals.

    Raises:
        InvalidInput: shapes, labels or batches that do not fit. Values are never shown.
        CertificationFailed: too few exact bits for a network this wide.

    Edge cases: no records, empty batches (their mean is 0), k at or above a batch's size (its mean
    is anything up to gamma).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> settings = TrainingSettings(features=2, classes=2)
        >>> intervals = parameter_intervals(X, (X[:, 0] > 0).astype(int), settings, k_max=3)
        >>> [bool(intervals.contains(intervals.nominal, k)) for k in range(4)]
        [True, True, True, True]

    Utility:
        A step of rate r widens intervals of k changes by at most about 2 r k clip / b, b the size
        of a batch. More records, fewer epochs and smaller rates give larger stable distances.
        Logistic regression on 3,000 records in two overlapping classes answers at epsilon = 0.03 as
        well as without noise, 0.92 (docs/certified.md, section 5).

    Runtime:
        O(epochs n weights) without hidden layers, for every k in one pass, and with them for each
        k. 1,000 records of 10 numbers, k = 0 .. 50, 4 epochs: 8 ms linear, 0.28 s with 32 hidden
        units, on one core (benchmarks/runtimes.py). That is fewer than one plain training for each
        k (benchmarks/certified.py). Each k has a box of its own, and what the boxes have in common
        is computed once for many. Fewer k, with those between taken from the next, would be sound
        and not isotone.

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorem 4.6.
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670, the same intervals against poisoning.

    See Also:
        reticent.retraining.stable_distances: what is read off them.
        reticent.retraining.TrainingSettings: the run.
        reticent.CertifiedClassifier: the estimator.
    """
    points = finite_array(
        X, name="X", ndim=2, columns=settings.features, allow_empty=True, copy=False
    )
    truth = _whole_numbers(labels, "labels", len(points), settings.classes)
    member = None
    if batch is not None:
        member = _whole_numbers(batch, "batch", len(points), settings.batches)
    if batch is None and settings.batches > 1:
        raise InvalidInput(
            f"batch: expected the batch of every record, as batches={settings.batches!r}; see "
            "record_buckets"
        )
    grids = TrainingGrids.build(
        settings, settings.initial(None) if initial is None else _weights(initial, settings)
    )
    most = grids.most_records
    if len(points) > most - count(k_max, name="k_max", minimum=0):
        raise InvalidInput(
            f"X: expected at most {most} records and changes together, got {len(points)} "
            "records; 2**24 where clip is small"
        )
    batches = []
    for index in range(settings.batches):
        own = np.arange(len(points), dtype=np.int32)
        if member is not None:
            own = own[member == index]
        # By labels: most blocks of records then have signals of one sign.
        order = np.argsort(truth[own].astype(np.min_scalar_type(settings.classes)), kind="stable")
        batches.append(_Batch(grids, points, truth, own[order]))
    group = _NESTED_AT_ONCE if settings.hidden else max(1, _LINEAR_AT_ONCE // settings.outputs)
    number = -(-(k_max + 1) // group)
    if settings.hidden:
        number = max(number, min(k_max + 1, workers_of(n_jobs)))
    clips = [Clip(*grids.clips(layer), grids.shift(layer)) for layer in range(len(grids.start))]
    lower = tuple(np.empty((k_max + 1, *weights.shape)) for weights in grids.start)
    upper = tuple(np.empty((k_max + 1, *weights.shape)) for weights in grids.start)
    groups = np.array_split(np.arange(k_max + 1), number)
    trained = results_of(
        ((_trained, grids, clips, batches, part) for part in groups),
        n_jobs=n_jobs,
    )
    for distances, (low, high) in zip(groups, trained, strict=True):
        for layer in range(len(grids.start)):
            lower[layer][distances], upper[layer][distances] = low[layer], high[layer]
        if report is not None:
            report(int(distances[-1]) + 1)
    _check_nested(lower, upper)
    return ParameterIntervals(grids, lower, upper)


def _keep_freed_memory() -> None:
    """Tell the allocator to keep what one step frees for the next one.

    glibc hands large blocks back to the system, which gives every step new pages to fill with
    zeros: a third of the time. Freeing one block of this size, of which no page is touched,
    raises its limits for the process. Others do not mind.
    """
    np.empty(_LARGE_BLOCK, dtype=np.uint8)


def _trained(
    grids: TrainingGrids,
    clips: list[Clip],
    batches: list[_Batch],
    distances: Integers,
) -> tuple[list[Array], list[Array]]:
    """Return lower and upper weights at the given distances.

    They are per layer, shape (distances, units, inputs + 1).
    """
    _keep_freed_memory()
    settings = grids.settings
    low = [np.repeat(start[None], len(distances), axis=0) for start in grids.start]
    high = [ends.copy() for ends in low]
    momentum = [(np.zeros_like(ends), np.zeros_like(ends)) for ends in low]
    for step in range(settings.steps):
        batch = batches[step % settings.batches]
        rate = settings.rate(step)
        kept = 1.0 - rate * settings.weight_decay
        means = _Step(clips, batch, distances, low, high).means()
        for layer, (clip, bounds) in enumerate(zip(clips, means, strict=True)):
            unit = grids.signal_units[layer] * grids.activation_units[layer] * 2.0**clip.shift
            size = rate * (unit / grids.weight_units[layer])
            # Each line is one rounded operation per number, monotone in the ends that go in; the
            # last margin is a whole unit, far above all rounding of a step, of ours and of a plain
            # run.
            for ends, mean in zip(momentum[layer], bounds, strict=True):
                ends *= settings.momentum
                ends += mean
            low[layer] = np.floor(kept * low[layer] - size * momentum[layer][1]) - 1.0
            high[layer] = np.ceil(kept * high[layer] - size * momentum[layer][0]) + 1.0
        _check_nested(low, high)
    return low, high


class _Batch(NamedTuple):
    """A batch of records, which is read a block at a time.

    Attributes:
        grids: units.
        points, labels: all records, as they were given.
        order: those of this batch.
    """

    grids: TrainingGrids
    points: Array
    labels: Integers
    order: npt.NDArray[np.int32]

    def blocks(self, at_once: int) -> Iterator[Integers]:
        """Yield the numbers of some records at a time."""
        for start in range(0, len(self.order), at_once):
            yield np.arange(start, min(start + at_once, len(self.order)))

    def read(self, numbers: Integers) -> tuple[Array, Integers]:
        """Return inputs and labels of some records."""
        own = self.order[numbers]
        # Taking is three times as fast, and copies an array of another layout as a whole.
        rows = self.points.take(own, axis=0) if self.points.flags.c_contiguous else self.points[own]
        return self.grids.inputs(rows), self.labels.take(own)


class _Unsettled(NamedTuple):
    """Records whose clipped entries are not all one number over all boxes.

    Attributes:
        inputs, labels: the records.
        summed: inputs, 0 where an entry is one number.
    """

    inputs: Array
    labels: Integers
    summed: Array

    @classmethod
    def joined(cls, parts: list[_Unsettled]) -> _Unsettled:
        """Return several parts as one."""
        return cls(*(np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)))


_Ends = tuple[slice, int, Integers, list[Array]]
"""Places of distances, a layer, its sums there, shape (2, boxes, rows, columns), and for both sides
ends of the records that are worth removing, shape (boxes, n).
"""


@dataclass(frozen=True, eq=False)
class _Step:
    """One step's bounds on mean gradients.

    The boxes of the distances are nested, so what holds over the largest holds over all.

    Attributes:
        clips: clip of each layer.
        batch: the records.
        distances: the distances, increasing.
        low, high: ends of the weights at each distance, shape (distances, units, inputs + 1).
    """

    clips: list[Clip]
    batch: _Batch
    distances: Integers
    low: list[Array]
    high: list[Array]

    @property
    def hidden(self) -> bool:
        """Whether there are hidden layers."""
        return len(self.clips) > 1

    @cached_property
    def alike(self) -> bool:
        """Whether all boxes are one."""
        return all(bool((ends[0] == ends[-1]).all()) for ends in (*self.low, *self.high))

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of each layer's gradient.

        Rows are units in the first layer, and what enters in later ones.
        """
        shapes = (ends.shape[1:] for ends in self.low)
        return [shape[::-1] if layer else shape for layer, shape in enumerate(shapes)]

    def network(self, place: int | slice) -> IntervalNetwork:
        """Return the network at one of the distances, or at several without hidden layers."""
        box = place if self.hidden or isinstance(place, slice) else [place]
        low, high = ([ends[box] for ends in side] for side in (self.low, self.high))
        return IntervalNetwork(self.batch.grids, low, high)

    @property
    def outermost(self) -> list[IntervalNetwork]:
        """The smallest and the largest box, in one network where that can be."""
        if self.alike:
            return [self.network(-1)]
        if self.hidden:
            return [self.network(0), self.network(-1)]
        return [self.network(slice(None, None, len(self.distances) - 1))]

    def means(self) -> list[tuple[Array, Array]]:
        """Return lower and upper bounds on each layer's mean gradient in coarse units, shape
        (distances, units, inputs + 1).

        Negated lower ends are one *side* of a layer, and upper ends the other.
        """
        fixed: Any = {
            "records": len(self.batch.order),
            "counting": self.batch.grids.settings.counting,
        }
        sums, reach = self._sums()
        sides = [
            [
                Smallest.of_none(total, most, self.distances, clip, upper=upper, **fixed)
                for total, upper in zip(totals, (False, True), strict=True)
            ]
            for totals, most, clip in zip(sums, reach, self.clips, strict=True)
        ]
        if any(len(side.lines) for layer in sides for side in layer):
            self._look(sides)
        removable = [[Removable.of(side) for side in layer] for layer in sides]
        means = [np.empty((2, len(self.distances), *shape)) for shape in self.shapes]
        for places, layer, totals, ends in self._ends(sums, removable):
            for side, one in enumerate(removable[layer]):
                means[layer][side, places] = mean_bound(
                    totals[side], one.listed(ends[side]), self.distances[places], one, **fixed
                )
        return [
            (-negated.swapaxes(1, 2), upper.swapaxes(1, 2)) if layer else (-negated, upper)
            for layer, (negated, upper) in enumerate(means)
        ]

    def _sums(self) -> tuple[list[Integers], list[Array]]:
        """Return each layer's sums of ends, shape (2, boxes, rows, columns), and sizes that no end
        exceeds, shape (rows, columns).

        The sums are over every box of a linear model, else over the outermost ones.
        """
        reach = [np.zeros(shape) for shape in self.shapes]
        if not (self.hidden or self.alike):
            return [self._linear_sums(reach[0])], reach
        networks = self.outermost
        sums = [np.zeros((2, len(networks), *shape), np.int64) for shape in self.shapes]
        for numbers in self.batch.blocks(RECORDS_AT_ONCE):
            read = self.batch.read(numbers)
            parts = [network.factors(*read) for network in networks]
            for layer, (clip, (rows, _)) in enumerate(zip(self.clips, self.shapes, strict=True)):
                last = parts[-1][layer]
                if self.distances[-1]:
                    np.maximum(reach[layer], last.reach(), out=reach[layer])
                clipped = Clipped.of(last, clip)
                for place, part in enumerate(parts):
                    found = block_sums(part[layer], clip, clipped, rows)
                    sums[layer][:, place : place + 1] += found
        return sums, reach

    def _linear_sums(self, reach: Array) -> Integers:
        """Return a linear model's sums over every box, and raise ``reach`` to its sizes."""
        [clip], [(rows, columns)] = self.clips, self.shapes
        sums = np.zeros((2, len(self.distances), rows, columns), np.int64)
        network = self.network(slice(None))
        for inputs, labels, summed in self._unsettled(sums, reach):
            [part] = network.factors(inputs, labels)
            part = replace(part, column_low=summed, column_high=summed)
            sums += block_sums(part, clip, Clipped.of(part.box(-1, rows), clip), rows)
        return sums

    def _unsettled(self, sums: Integers, reach: Array) -> Iterator[_Unsettled]:
        """Add to the sums those clipped entries that are one number over all boxes, and yield the
        records that have others.

        Where gradients are clipped most are. They are looked at once, not once for each box, and so
        are records that have no others.
        """
        last, number = self.network(-1), 0
        waiting: list[_Unsettled] = []
        for numbers in self.batch.blocks(RECORDS_AT_ONCE):
            inputs, labels = self.batch.read(numbers)
            [part] = last.factors(inputs, labels)
            np.maximum(reach, part.reach(), out=reach)
            constant, settled = constant_entries(part, self.clips[0])
            sums += settled
            rest = np.flatnonzero(~constant.all(axis=0))
            if waiting and number + len(rest) > RECORDS_AT_ONCE:
                yield _Unsettled.joined(waiting)
                waiting, number = [], 0
            if len(rest):
                inputs = inputs[:, rest]
                summed = inputs * ~constant[:, rest]
                waiting.append(_Unsettled(inputs, labels[rest], summed))
                number += len(rest)
        if waiting:
            yield _Unsettled.joined(waiting)

    def _look(self, sides: list[list[Smallest]]) -> None:
        """Look for each side's smallest ends."""
        networks = self.outermost
        for numbers in self.batch.blocks(RECORDS_AT_ONCE if self.hidden else _LINEAR_RECORDS):
            read = self.batch.read(numbers)
            found = [network.factors(*read) for network in networks]
            for layer, (rows, _) in enumerate(self.shapes):
                last = found[-1][layer].box(-1, rows)
                first = last if self.alike else found[0][layer].box(0, rows)
                for side in sides[layer]:
                    side.add(first, last, numbers)

    def _ends(self, sums: list[Integers], removable: list[list[Removable]]) -> Iterator[_Ends]:
        """Yield ends of the records that are worth removing, over every box."""
        for layer, (totals, both) in enumerate(zip(sums, removable, strict=True)):
            if self.alike:
                yield slice(None), layer, totals, [one.found.high[None] for one in both]
            elif self.hidden:
                yield slice(1), layer, totals[:, :1], [one.found.low[None] for one in both]
                yield slice(-1, None), layer, totals[:, 1:], [one.found.high[None] for one in both]
            else:
                yield slice(None), layer, totals, self._linear_ends(both)
        if self.hidden and not self.alike:
            yield from self._between(removable)

    def _linear_ends(self, both: list[Removable]) -> list[Array]:
        """Return a linear model's ends over every box, shape (boxes, n), of both sides."""
        moving = [np.empty((len(self.distances), len(one.moving))) for one in both]
        records = np.unique(np.concatenate([one.found.record[one.moving] for one in both]))
        network = self.network(slice(None))
        for start in range(0, len(records), RECORDS_AT_ONCE):
            numbers = records[start : start + RECORDS_AT_ONCE]
            [part] = network.factors(*self.batch.read(numbers))
            for one, ends in zip(both, moving, strict=True):
                one.write(ends, part, numbers)
        return [one.with_moving(ends) for one, ends in zip(both, moving, strict=True)]

    def _between(self, removable: list[list[Removable]]) -> Iterator[_Ends]:
        """Yield ends over the boxes between the outermost ones, and sums there."""
        last = self.network(-1)
        moving = sum(len(one.moving) for both in removable for one in both)
        at_once = max(1, _MOVING_AT_ONCE // max(moving, 1))
        for start in range(1, len(self.distances) - 1, at_once):
            places = range(start, min(start + at_once, len(self.distances) - 1))
            networks = [self.network(place) for place in places]
            sums = [[np.zeros((2, 1, *shape), np.int64) for shape in self.shapes] for _ in places]
            ends = [
                [[np.empty((1, len(one.moving))) for one in both] for both in removable]
                for _ in places
            ]
            for numbers in self.batch.blocks(RECORDS_AT_ONCE):
                read = self.batch.read(numbers)
                clipped = [
                    Clipped.of(part, clip)
                    for part, clip in zip(last.factors(*read), self.clips, strict=True)
                ]
                for network, totals, written in zip(networks, sums, ends, strict=True):
                    for layer, part in enumerate(network.factors(*read)):
                        clip, rows = self.clips[layer], self.shapes[layer][0]
                        totals[layer] += block_sums(part, clip, clipped[layer], rows)
                        for one, own in zip(removable[layer], written[layer], strict=True):
                            one.write(own, part, numbers)
            for place, totals, written in zip(places, sums, ends, strict=True):
                for layer, both in enumerate(removable):
                    found = [
                        one.with_moving(own) for one, own in zip(both, written[layer], strict=True)
                    ]
                    yield slice(place, place + 1), layer, totals[layer], found


def _check_nested(lower: Sequence[Array], upper: Sequence[Array]) -> None:
    """Check, as a last line of defence, that T_0 lies in T_1 lies in T_2, and so on, whatever the
    proof says.
    """
    for low, high in zip(lower, upper, strict=True):
        if not (
            bool((np.diff(low, axis=0) <= 0).all()) and bool((np.diff(high, axis=0) >= 0).all())
        ):
            raise CertificationFailed(
                "parameter intervals are not nested; this machine's arithmetic is not IEEE float64"
            )


def _weights(initial: list[Array], settings: TrainingSettings) -> list[Array]:
    shapes = [weights.shape for weights in settings.initial(0)]
    arrays = [finite_array(weights, name="initial", ndim=2) for weights in initial]
    if [weights.shape for weights in arrays] != shapes:
        raise InvalidInput(
            f"initial: expected arrays of shapes {shapes}, got "
            f"{[weights.shape for weights in arrays]}"
        )
    return arrays


def _whole_numbers(values: npt.ArrayLike, name: str, rows: int, below: int) -> Integers:
    array = np.asarray(values)
    if array.shape != (rows,) or (array.dtype.kind not in "iu" and rows):
        raise InvalidInput(
            f"{name}: expected {rows} integers, got shape={array.shape}, dtype={array.dtype}"
        )
    if rows and (array.min() < 0 or array.max() >= below):
        raise InvalidInput(f"{name}: expected integers from 0 to {below - 1}")
    return array.astype(np.int64, copy=False)
