"""Certified training: intervals around the weights of every model that k changes of the records
could have given.

One pass of abstract gradient training gives T_0, T_1, ..., T_kmax. The result is
*inclusion-isotone to the last bit*: for neighbouring data sets D and D', T_(k - 1)(D') lies
inside T_k(D). That, and not validity alone, is what lets noise be scaled to how far a label is
from changing (docs/certified.md, theorem 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import CertificationFailed, InvalidInput
from reticent.core.workers import results_of, workers_of
from reticent.retraining.training_network import ELEMENTS_AT_ONCE, Factors, IntervalNetwork
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids, TrainingSettings
from reticent.retraining.training_sums import (
    Clip,
    Clipped,
    RecordEnds,
    Removable,
    block_sums,
    constant_entries,
    mean_bound,
)

_LINEAR_AT_ONCE = 256  # boxes times units that share what their smallest and largest box tell
_NESTED_AT_ONCE = 32  # boxes that do with hidden layers
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
    member = _whole_numbers(
        np.zeros(len(points), int) if batch is None else batch,
        "batch",
        len(points),
        settings.batches,
    )
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
        own = np.flatnonzero(member == index)
        # By labels: most blocks of records then have signals of one sign.
        own = own[np.argsort(truth[own], kind="stable")]
        batches.append((grids.inputs(points[own]), truth[own]))
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
    batches: list[tuple[Array, Integers]],
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
        means = _mean_bounds(grids, clips, batch, distances, low, high)
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


class _Block(NamedTuple):
    """Some records of a batch.

    Attributes:
        inputs, labels: the records.
        summed: inputs, 0 where a clipped entry of the gradient is one number over all boxes, or
            None where every entry is.
    """

    inputs: Array
    labels: Integers
    summed: Array | None


_Sides = tuple[RecordEnds, RecordEnds]
"""A layer's gradients: negated lower ends, and upper ends."""


def _settled(
    last: IntervalNetwork, clip: Clip, batch: tuple[Array, Integers]
) -> tuple[list[_Block], Integers]:
    """Return a batch in blocks, and sums of those clipped entries that are one number over all
    boxes of a linear model, of which ``last`` is the largest.

    Where gradients are clipped most are. They are looked at once, not once for each box, and so are
    records that have no others.
    """
    inputs, labels = batch
    found = [
        constant_entries(last.factors(inputs[:, block], labels[block])[0], clip)
        for block in _slices(len(labels))
    ]
    constant = np.concatenate([entries for entries, _ in found], axis=1)
    settled = constant.all(axis=0)
    done, rest = np.flatnonzero(settled), np.flatnonzero(~settled)
    large = max(RECORDS_AT_ONCE, ELEMENTS_AT_ONCE // last.grids.settings.outputs**2)
    blocks = [
        _Block(inputs[:, done[block]], labels[done[block]], None)
        for block in _slices(len(done), large)
    ]
    for block in _slices(len(rest)):
        own = inputs[:, rest[block]]
        blocks.append(_Block(own, labels[rest[block]], own * ~constant[:, rest[block]]))
    return blocks, np.sum([sums for _, sums in found], axis=0)


def _slices(records: int, at_once: int = RECORDS_AT_ONCE) -> list[slice]:
    """Return blocks of records, one of none where there are none."""
    return [slice(start, start + at_once) for start in range(0, max(records, 1), at_once)]


def _mean_bounds(
    grids: TrainingGrids,
    clips: list[Clip],
    batch: tuple[Array, Integers],
    distances: Integers,
    low: list[Array],
    high: list[Array],
) -> list[tuple[Array, Array]]:
    """Return lower and upper bounds on each layer's mean gradient in coarse units, shape
    (distances, units, inputs + 1).

    The boxes of the distances are nested, so what holds over the largest holds over all.
    """
    counting, hidden = grids.settings.counting, bool(grids.settings.hidden)
    alike = all(bool((ends[0] == ends[-1]).all()) for ends in (*low, *high))

    def network(place: int | slice) -> IntervalNetwork:
        box = place if hidden or isinstance(place, slice) else [place]
        return IntervalNetwork(grids, [ends[box] for ends in low], [ends[box] for ends in high])

    last = network(-1)
    settled = [np.zeros((2, 1, 1, 1), np.int64) for _ in clips]
    if hidden or alike:
        blocks = [
            _Block(batch[0][:, block], batch[1][block], batch[0][:, block])
            for block in _slices(len(batch[1]))
        ]
    else:
        blocks, settled[0] = _settled(last, clips[0], batch)

    def of_blocks(network: IntervalNetwork) -> list[list[Factors]]:
        return [
            (last if block.summed is None else network).factors(block.inputs, block.labels)
            for block in blocks
        ]

    def summed(part: Factors, layer: int, block: _Block) -> Factors:
        if layer or block.summed is None:
            return part
        return replace(part, column_low=block.summed, column_high=block.summed)

    one_by_one = hidden and not alike
    found = of_blocks(last if one_by_one or alike else network(slice(None)))
    rows = [len(part.row_low) for part in found[0]]
    entries = [
        [
            Clipped.of(summed(part.box(-1, rows[layer]), layer, block), clips[layer])
            for layer, part in enumerate(parts)
            if block.summed is not None
        ]
        for block, parts in zip(blocks, found, strict=True)
    ]

    def gradients(found: list[list[Factors]]) -> list[_Sides]:
        layers = []
        for layer, clip in enumerate(clips):
            sums = settled[layer]
            for block, parts, listed in zip(blocks, found, entries, strict=True):
                if block.summed is not None:
                    part = summed(parts[layer], layer, block)
                    sums = sums + block_sums(part, clip, listed[layer], rows[layer])
            parts = [of_block[layer] for of_block in found]
            layers.append(
                (
                    RecordEnds(parts, sums[0], clip, upper=False),
                    RecordEnds(parts, sums[1], clip, upper=True),
                )
            )
        return layers

    of_last = gradients(found)
    of_first = gradients(of_blocks(network(0))) if one_by_one else of_last
    removable = [
        [
            Removable.between(one.box(0), other.box(-1), distances, counting=counting)
            for one, other in zip(*sides, strict=True)
        ]
        for sides in zip(of_first, of_last, strict=True)
    ]

    def bounds(of_boxes: list[_Sides], k: Integers) -> list[list[Array]]:
        return [
            [
                mean_bound(ends, k, places, counting=counting)
                for ends, places in zip(sides, where, strict=True)
            ]
            for sides, where in zip(of_boxes, removable, strict=True)
        ]

    if one_by_one:
        each = [bounds(of_first, distances[:1])]
        for place in range(1, len(distances) - 1):
            own = gradients(of_blocks(network(place)))
            each.append(bounds(own, distances[place : place + 1]))
        each.append(bounds(of_last, distances[-1:]))
    else:
        each = [bounds(of_last, distances)]
    means = []
    for layer in range(len(clips)):
        negated, upper = (np.concatenate([one[layer][side] for one in each]) for side in (0, 1))
        # Rows are units in the first layer, and what enters in later ones.
        if layer:
            negated, upper = negated.swapaxes(1, 2), upper.swapaxes(1, 2)
        means.append((-negated, upper))
    return means


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
    return array.astype(np.int64)
