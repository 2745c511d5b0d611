"""Branch and bound over activation patterns: the largest Jacobian norm in a box, and whether it
exceeds a limit.

One tree serves both questions. A node is a partial pattern. It is closed when no whole pattern in
it can matter (its upper bound is too small), or when no point of the box is consistent with it (a
checked refutation). At an open node the pair (a, t) with the largest bound prefers one side of each
free neuron. A linear program asks whether the box holds a point that is on all those sides. If
there is none, its refutation names a few neurons that cannot all be, and the children take them
from that wish one by one. If there is one, the point gives a pattern that is really there, and with
it either an answer or the neuron to branch on.

Proofs, and what rounding can and cannot do: docs/exact-search.md.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from time import monotonic, thread_time

import numpy as np

from papers.posthoc.exact.patterns import Pairs, Ranges, ReluChain, Signs
from papers.posthoc.exact.programs import Refutation, exactly_feasible, feasible_point
from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed

_SAMPLES = 64


class Goal(StrEnum):
    """The question of a search."""

    LARGEST = "largest"
    """The largest value in the box, to a tolerance."""
    DECIDE = "decide"
    """The exact truth of "some value in the box exceeds the threshold"."""


@dataclass(frozen=True)
class Limits:
    """Limits at which a search gives up, by raising.

    Attributes:
        nodes: the number of partial patterns looked at, or None for no limit.
        cpu_seconds: processor time of the thread that searches, or None for no limit. Time in which
            other programs had the processor does not count. The same question thus fails or
            succeeds on a busy machine as on an idle one.
        wall_seconds: time by the clock, for a caller that waits for the answer, or None for no
            limit. Which searches it stops depends on how busy the machine is.
    """

    nodes: int | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None


@dataclass(eq=False)
class _Node:
    fixed: Signs
    bound: float
    pairs: Pairs
    top: Pairs
    sign: float
    start: Array


@dataclass(eq=False)
class PatternSearch:
    """One search of one box.

    Attributes:
        chain: the network.
        center: a point of the box, at which the search starts, shape (n,).
        lower, upper: ends of the box, shape (n,).
        goal: the question.
        threshold: the value that has to be exceeded. For ``Goal.LARGEST`` it starts at 0 and rises.
        relative, absolute: tolerances of the value.
        limits: when to give up.
        best: the largest value found, with its ``pattern`` and ``witness``, a point of the box
            where that pattern holds.
        closed: the largest upper bound of a node that was closed as too small to matter.
        exceeded: True if a value above the threshold was found.
        nodes: the number of partial patterns looked at.
    """

    chain: ReluChain
    center: Array
    lower: Array
    upper: Array
    goal: Goal
    threshold: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    limits: Limits = field(default_factory=Limits)
    best: float = -np.inf
    closed: float = 0.0
    pattern: Signs | None = None
    witness: Array | None = None
    exceeded: bool = False
    nodes: int = 0

    def __post_init__(self) -> None:
        self._heap: list[tuple[float, int, _Node]] = []
        self._pushed = 0
        self._started = False
        self._began, self._began_at = thread_time(), monotonic()

    def run(self) -> None:
        """Search until the question is answered.

        Raises:
            CertificationFailed: the search reached a limit.
        """
        while not self.advance():
            limit = self.limits
            if limit.nodes is not None and self.nodes >= limit.nodes:
                raise CertificationFailed(
                    f"exact search: not finished after nodes={limit.nodes}; expected a higher limit"
                )
            if limit.cpu_seconds is not None and thread_time() - self._began > limit.cpu_seconds:
                raise CertificationFailed(
                    f"exact search: not finished after cpu_seconds={limit.cpu_seconds}; "
                    "expected a higher limit"
                )
            if limit.wall_seconds is not None and monotonic() - self._began_at > limit.wall_seconds:
                raise CertificationFailed(
                    f"exact search: not finished after wall_seconds={limit.wall_seconds}; "
                    "expected a higher limit, or cpu_seconds on a busy machine"
                )

    def advance(self) -> bool:
        """Look at one more node. Return True once the question is answered."""
        if self._heap and not self._done():
            self.nodes += 1
            self._look_at(heapq.heappop(self._heap)[2])
        elif not self._started:
            self._started = True
            self._sample()
            self._plant()
        return self._done()

    @property
    def value_bound(self) -> float:
        """A proved upper bound on every value in the box, also of a search that has been stopped
        (``Goal.LARGEST``).
        """
        left = max((node.bound for _, _, node in self._heap), default=0.0)
        return max(self.best, self.closed, left, 0.0) + self.chain.value_error

    def _done(self) -> bool:
        """Return True if nothing that is left in the heap can change the answer."""
        return self._started and (self.exceeded or not self._heap)

    def _plant(self) -> None:
        """Make the root of the tree."""
        fixed = np.zeros(self.chain.starts[-1], np.int8)
        self._push(
            fixed[None],
            _Node(fixed, np.inf, self.chain.all_pairs, self.chain.all_pairs, 1.0, self.center),
        )

    @property
    def _cutoff(self) -> float:
        """The bound up to which nodes are closed."""
        if self.goal is Goal.LARGEST:
            # Below a few errors of a value there is nothing to find: a network that is constant but
            # for rounding stays cheap.
            return max(
                self.best * (1 + self.relative),
                self.best + self.absolute,
                self.best + 4 * self.chain.value_error,
            )
        return self.threshold - 2 * self.chain.value_error

    def _look_at(self, node: _Node) -> None:
        if node.bound <= self._cutoff:
            self.closed = max(self.closed, node.bound)
            return
        ranges = self.chain.ranges(node.fixed[None], self.lower, self.upper)
        if not ranges.possible[0]:
            return
        wish, drops = self._wish(node, ranges)
        rows, neurons = self.chain.inequalities(wish, ranges)
        found = feasible_point(rows, self.lower, self.upper, node.start)
        if isinstance(found, Refutation) and rows.refuted_by(found, self.lower, self.upper):
            support = neurons[found.rows]
            self._branch_on_conflict(node, wish, support[node.fixed[support] == 0], drops)
            return
        free = np.flatnonzero(ranges.free[0])
        differing = free
        if isinstance(found, np.ndarray):
            node.start = found
            if self._visit(node, ranges, wish, found) or node.bound <= self._cutoff:
                self.closed = max(self.closed, min(node.bound, self._cutoff))
                return
            pattern = self.chain.certain_patterns(found[None])[0][0]
            differing = free[(wish[free] != 0) & (pattern[free] != wish[free])]
        if not len(free):
            self._settle(node, ranges)
            return
        choices = differing if len(differing) else free
        neuron = int(choices[drops[choices].argmax()])
        self._branch_on_conflict(
            node, np.where(wish == 0, 1, wish).astype(np.int8), np.array([neuron]), drops, keep=True
        )

    def _wish(self, node: _Node, ranges: Ranges) -> tuple[Signs, Array]:
        """Return the side on which each free neuron leaves the top pair the larger bound, and how
        much the other side takes from it.
        """
        free = np.flatnonzero(ranges.free[0])
        wish, drops = node.fixed.copy(), np.zeros(len(node.fixed))
        if not len(free):
            return wish, drops
        k = len(free)
        on, loose = np.repeat(ranges.on, 2 * k, axis=0), np.repeat(ranges.free, 2 * k, axis=0)
        each = np.arange(k)
        on[each, free] = 1.0
        loose[each, free] = 0.0
        loose[each + k, free] = 0.0
        tried = Ranges(on, loose, ranges.lower, ranges.upper, ranges.possible)
        signed, spread = self.chain.halves(tried, node.top)
        sides = 0.5 * (node.sign * signed + spread)[:, 0, 0]
        drops[free] = node.bound - np.minimum(sides[:k], sides[k:])
        matters = np.abs(sides[:k] - sides[k:]) > self.chain.value_error
        wish[free[matters]] = np.where(sides[:k] >= sides[k:], 1, -1)[matters]
        return wish, drops

    def _branch_on_conflict(
        self, node: _Node, wish: Signs, neurons: Array, drops: Array, *, keep: bool = False
    ) -> None:
        """Add children that each deny one of the neurons its wish and grant those before it. Add
        the child that grants all of them if ``keep``.
        """
        if not len(neurons):
            return
        ordered = neurons[np.argsort(-drops[neurons], kind="stable")]
        children = np.repeat(node.fixed[None], len(ordered) + keep, axis=0)
        for index, neuron in enumerate(ordered):
            children[index, neuron] = -wish[neuron]
            children[index + 1 :, neuron] = wish[neuron]
        self._push(children, node)

    def _push(self, children: Signs, parent: _Node) -> None:
        ranges = self.chain.ranges(children, self.lower, self.upper)
        signed, spread = self.chain.halves(ranges, parent.pairs)
        for index in np.flatnonzero(ranges.possible):
            node = self._node(children[index], signed[index], spread[index], parent)
            if node is not None:
                self._pushed += 1
                heapq.heappush(self._heap, (-node.bound, self._pushed, node))

    def _node(self, fixed: Signs, signed: Array, spread: Array, parent: _Node) -> _Node | None:
        cutoff = self._cutoff
        values = 0.5 * (np.abs(signed) + spread)
        best, where = float(values.max()), int(values.argmax())
        if best <= cutoff:
            self.closed = max(self.closed, min(best, parent.bound))
            return None
        row, column = divmod(where, values.shape[1])
        pairs = parent.pairs
        top = Pairs(pairs.functionals[row : row + 1], pairs.directions[column : column + 1])
        above = values > cutoff
        rows, columns = above.any(axis=1), above.any(axis=0)
        if rows.sum() * columns.sum() < 0.7 * values.size:
            pairs = Pairs(pairs.functionals[rows], pairs.directions[columns])
            # What is dropped here is at most the cutoff.
            self.closed = max(self.closed, min(cutoff, parent.bound))
        sign = 1.0 if signed[row, column] >= 0 else -1.0
        return _Node(fixed, min(best, parent.bound), pairs, top, sign, parent.start)

    def _visit(self, node: _Node, ranges: Ranges, wish: Signs, point: Array) -> bool:
        """Use a point that grants the wish. Return True if that closes the node."""
        patterns, certain = self.chain.certain_patterns(point[None])
        if certain[0]:
            self._offer(patterns[0], float(self.chain.values(patterns)[0]), point)
        if len(self.chain.hidden) > 1:
            return False
        # One hidden layer: the rows are exact, so the whole wish holds at the point, whatever the
        # neurons without one do.
        on = np.where(wish > 0, 1.0, ranges.on[0] * (wish == 0))
        whole = np.where(wish != 0, wish, patterns[0]).astype(np.int8)
        granted = Ranges(
            on[None],
            (ranges.free[0] * (wish == 0))[None],
            ranges.lower,
            ranges.upper,
            ranges.possible,
        )
        signed, spread = self.chain.halves(granted, node.top)
        least = 0.5 * (node.sign * float(signed[0, 0, 0]) - float(spread[0, 0, 0]))
        if self.goal is Goal.LARGEST:
            if least > self.best:
                self._keep(whole, least, point)
            return node.bound <= self._cutoff
        if least > self.threshold + self.chain.value_error:
            self._keep(whole, least, point)
        return False

    def _offer(self, pattern: Signs, value: float, point: Array) -> None:
        """Take note of a pattern that some point of the box is known to have."""
        if self.goal is Goal.LARGEST:
            if value > self.best:
                self._keep(pattern, value, point)
        elif self._exceeds(pattern, value):
            self._keep(pattern, value, point)

    def _exceeds(self, pattern: Signs, value: float) -> bool:
        if abs(value - self.threshold) > self.chain.value_error:
            return value > self.threshold
        return self.chain.exact_value(pattern) > Fraction(self.threshold)

    def _settle(self, node: _Node, ranges: Ranges) -> None:
        """Decide a whole pattern whose cell is too thin, or whose value is too near the threshold,
        for floating point.
        """
        pattern = np.where(ranges.on[0] > 0, 1, -1).astype(np.int8)
        value = float(self.chain.values(pattern[None])[0])
        point = self._exact_point(pattern)
        if point is None:
            return
        self.closed = max(self.closed, value)
        self._offer(pattern, value, point)

    def _exact_point(self, pattern: Signs) -> Array | None:
        """Return a point of the box where the whole pattern holds, decided in rational arithmetic
        and rounded afterwards, or None.
        """
        rows, offsets = self.chain.exact_inequalities(pattern)
        ends = ([Fraction(float(end)) for end in box] for box in (self.lower, self.upper))
        point = exactly_feasible(rows, offsets, *ends)
        return (
            None
            if point is None
            else np.clip(np.array([float(entry) for entry in point]), self.lower, self.upper)
        )

    def _keep(self, pattern: Signs, value: float, point: Array) -> None:
        self.best, self.pattern, self.witness = value, pattern, point
        self.exceeded = self.goal is not Goal.LARGEST

    def _sample(self) -> None:
        """Look at patterns at the center and at random corners and points of the box, for a first
        lower bound.
        """
        rng = np.random.default_rng(0)
        inside = rng.uniform(self.lower, self.upper, size=(_SAMPLES, len(self.lower)))
        inside[::2] = np.where(rng.random(inside[::2].shape) < 0.5, self.lower, self.upper)
        inside[0] = self.center
        patterns, certain = self.chain.certain_patterns(inside)
        values = np.where(certain, self.chain.values(patterns), -np.inf)
        which = int(values.argmax())
        if certain[which]:
            self._offer(patterns[which], float(values[which]), inside[which])
