"""Tries every candidate on public stand-ins: cross-validation, two sizes, several draws of noise,
successive halving, and a time limit.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidParameter, ReticentError
from reticent.planning.candidates import Candidate, PublicUse
from reticent.planning.noise_levels import gaussian_multiplier
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Criterion, Predictions

Report = Callable[[str, int, int, float], None]
Clock = Callable[[], float]

_SPLITS = 5
_SCREENING_SPLITS = 2
_SLOW_SPLITS = 3
_SCREEN = 0.05
"""How far behind the best, on the scale from 0 to 1, a slow method may be at half size."""
_KEPT = 0.4
"""Share of the settings that the screening splits leave at least."""
_WARM_SHARE = (0.15, 0.5)
"""Least and largest share of stand-ins that play public rows where public labels are used too."""
_FULL, _HALF = 1.0, 0.5


@dataclass(frozen=True)
class Entry:
    """One setting of one candidate."""

    candidate: Candidate
    settings: Settings

    @property
    def name(self) -> str:
        """Candidate and settings as text; unique in a survey.

        Example:
            >>> from reticent.planning.constant import Constant
            >>> Entry(Constant(), {"a": 1}).name
            'constant (a=1)'
        """
        return named(self.candidate.name, self.settings)


def named(method: str, settings: Settings) -> str:
    """Return a method and its settings as text."""
    inside = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{method} ({inside})" if inside else method


@dataclass(frozen=True, eq=False)
class Survey:
    """What the trials measured.

    Attributes:
        tasks: totals and numbers of answers that were tried.
        entries: settings that were tried.
        measured: shape (entries, tasks, splits): utility with all stand-ins; NaN where a setting
            was not tried on that split.
        halves: the same shape, with half as many.
        counts: shape (entries,), how many stand-ins there were.
        best: the highest utility that there is.
        left_out: names of what was not tried, or not to the end, and why.
        seconds: how long it took.
    """

    tasks: tuple[Task, ...]
    entries: tuple[Entry, ...]
    measured: Array
    halves: Array
    counts: Array
    best: float
    left_out: tuple[tuple[str, str], ...]
    seconds: float

    @cached_property
    def utilities(self) -> Array:
        """What is expected at the numbers of rows that there will be, in the shape of
        ``measured``.
        """
        goals = [
            _goal(entry.candidate.requirements.public, self.tasks[0]) for entry in self.entries
        ]
        return grown(
            self.measured,
            self.halves,
            methods=[entry.candidate.name for entry in self.entries],
            counts=self.counts,
            goals=np.array(goals),
            best=self.best,
        )


@dataclass(frozen=True, eq=False)
class _Trial:
    """One setting on one split, at one size; called, it is tried. It goes to a worker whole."""

    entry: Entry
    tasks: tuple[Task, ...]
    stand_ins: StandIns
    rows: Array
    truth: Integers
    scoring: Criterion
    seeds: tuple[int, ...]

    def __call__(self) -> tuple[Array, int]:
        """Mean utility over draws for each task, and how many stand-ins there were."""
        found = self.entry.candidate.evaluate(
            self.entry.settings,
            self.tasks,
            self.stand_ins,
            self.rows,
            noise_scale=len(self.stand_ins.private_rows) / self.tasks[0].n_private,
            seeds=list(self.seeds),
        )
        known: dict[int, float] = {}  # a method without noise returns one object for all
        scores = np.array([[self._score(one, known) for one in draws] for draws in found])
        labels = self.stand_ins.public_labels
        public = 0 if labels is None else len(self.stand_ins.public_rows)
        return scores.mean(axis=1), len(self.stand_ins.private_rows) + public

    def _score(self, predictions: Predictions, known: dict[int, float]) -> float:
        if id(predictions) not in known:
            classes = self.tasks[0].classes
            known[id(predictions)] = self.scoring.of(predictions, self.truth, classes=classes)
        return known[id(predictions)]


def _measured(trials: Sequence[tuple[_Trial, _Trial]]) -> list[tuple[Array, Array, int]]:
    """For each setting, utilities with all stand-ins and with half of them, and how many all
    are.
    """
    found = []
    for full, half in trials:
        scores, number = full()
        nothing = full.entry.candidate.requirements.public is PublicUse.NOTHING
        found.append((scores, scores if nothing else half()[0], number))
    return found


@dataclass(eq=False)
class Trials:
    """The rows, the splits and the clock of one survey.

    Args:
        rows: shape (m, d), public.
        labels: shape (m,), true or pseudo-labels.
        labelled: whether ``labels`` are true ones, which candidates may use as public labels.
        tasks: what is wanted; all of one number of private records.
        scoring: the criterion.
        seed: of splits and noise.
        seconds: time limit.
        report: told after each trial.
        clock: seconds, monotonic.
        draws: of noise; None for as many as the noise asks for.
        n_jobs: workers that try settings, as of ``joblib.Parallel``.
    """

    rows: Array
    labels: Integers
    labelled: bool
    tasks: tuple[Task, ...]
    scoring: Criterion
    seed: int
    seconds: float
    report: Report
    clock: Clock = time.monotonic
    draws: int | None = None
    n_jobs: int | None = None
    _cache: dict[tuple[int, PublicUse, float], StandIns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._splits = _splits(self.labels, seed=self.seed)
        self._draws = self.draws if self.draws is not None else _draws(self.tasks)

    def run(self, candidates: Sequence[Candidate]) -> Survey:
        """Tries the quick candidates, then those slow ones that a small trial does not rule out.

        Raises:
            InvalidParameter: no candidate fits the task at all.
        """
        left_out: dict[str, str] = {}
        fitting = []
        for candidate in candidates:
            why = candidate.requirements.missing(self.tasks[0], labelled=self.labelled)
            if why:
                left_out[candidate.name] = why
            else:
                fitting.append(candidate)
        entries = [
            Entry(candidate, settings)
            for candidate in fitting
            for settings in candidate.settings(self.tasks[0])
        ]
        if not entries:
            raise InvalidParameter(
                "candidates: none fits this guarantee, these answers and these public rows: "
                + "; ".join(f"{name} {why}" for name, why in left_out.items())
            )
        shape = (len(entries), len(self.tasks), len(self._splits))
        self._measured, self._halves = np.full(shape, np.nan), np.full(shape, np.nan)
        self._counts = np.ones(len(entries))
        slow = [at for at, entry in enumerate(entries) if entry.candidate.requirements.slow]
        quick = [at for at in range(len(entries)) if at not in set(slow)]
        self._rounds(entries, quick, left_out)
        for at in slow:
            self._slow(entries, at, left_out)
        tried = ~np.isnan(self._measured[:, 0, 0])
        return self._survey(entries, tried, left_out)

    def _rounds(self, entries: list[Entry], alive: list[int], left_out: dict[str, str]) -> None:
        """Every setting on the screening splits, the better ones on the others."""
        total = len(alive) * len(self._splits)
        done = 0
        for split in range(len(self._splits)):
            if split == _SCREENING_SPLITS:
                kept = self._survivors(entries, alive)
                done += (len(alive) - len(kept)) * (len(self._splits) - split)
                alive = kept
            for group in self._groups(entries, alive):
                if self._late():
                    unfinished = f"time limit after {split} of {len(self._splits)} splits"
                    for at in itertools.chain(*group):
                        left_out.setdefault(entries[at].name, unfinished)
                    continue
                self._try([[(entries[at], at) for at in part] for part in group], split)
                done += sum(map(len, group))
                self.report("trying methods", min(done, total), total, math.nan)

    def _groups(self, entries: Sequence[Entry], places: Sequence[int]) -> list[list[list[int]]]:
        """What is tried before the clock is looked at again: one setting, or for several workers
        some candidates each with all its settings, which share what they prepare.
        """
        jobs = effective_n_jobs(self.n_jobs)
        if jobs == 1:
            return [[[at]] for at in places]
        parts = [
            list(part)
            for _, part in itertools.groupby(places, key=lambda at: entries[at].candidate.name)
        ]
        return [parts[start : start + jobs] for start in range(0, len(parts), jobs)]

    def _survivors(self, entries: list[Entry], alive: list[int]) -> list[int]:
        """The settings that may still be best for some task."""
        every = np.ones(len(entries), dtype=np.bool_)
        screened = self._survey(entries, every, {}).utilities[alive][:, :, :_SCREENING_SPLITS]
        means = screened.mean(axis=2)
        tried = ~np.isnan(means).any(axis=1)
        if not tried.any():
            return alive
        filled = np.where(tried[:, None], means, -np.inf)
        gaps = filled.max(axis=0) - filled
        ranks = np.argsort(np.argsort(gaps, axis=0), axis=0)
        best = ranks < max(3, math.ceil(_KEPT * tried.sum()))
        spread = screened.std(axis=2, ddof=1)
        close = gaps <= 2 * np.nanmedian(spread, axis=0)
        keep = (best | close).any(axis=1) & tried
        return [
            at
            for place, at in enumerate(alive)
            if keep[place] or entries[at].candidate.requirements.public is PublicUse.NOTHING
        ]

    def _slow(self, entries: list[Entry], at: int, left_out: dict[str, str]) -> None:
        entry = entries[at]
        if self._late():
            left_out[entry.name] = "time limit before it was tried"
            return
        started = self.clock()
        try:
            small, _ = self._trial(entry, 0, _HALF)()
        except ReticentError as error:
            left_out[entry.name] = str(error)
            return
        took = self.clock() - started
        others = self._halves[:, :, 0][~np.isnan(self._halves[:, 0, 0])]
        if len(others):
            behind = [
                self.scoring.share(float(best)) - self.scoring.share(float(own))
                for best, own in zip(others.max(axis=0), small, strict=True)
            ]
            if min(behind) > _SCREEN:
                left_out[entry.name] = (
                    f"a trial at half size was {min(behind):.2f} behind the best (of 1)"
                )
                return
        for split in range(min(_SLOW_SPLITS, len(self._splits))):
            expected = took * (2.0 if split == 0 else 3.0)
            if self.clock() - self._started + expected > self.seconds:
                left_out[entry.name] = (
                    f"time limit after {split} splits; the next would take {expected:.0f} s"
                )
                return
            self._try([[(entry, at)]], split)
            self.report("trying slow methods", split + 1, _SLOW_SPLITS, math.nan)

    def _try(self, group: Sequence[Sequence[tuple[Entry, int]]], split: int) -> None:
        """Tries settings, each with its place, with all stand-ins and with half of them; each part
        of the group by one worker.
        """
        trials = [
            [
                (self._trial(entry, split, _FULL), self._trial(entry, split, _HALF))
                for entry, _ in part
            ]
            for part in group
        ]
        if len(trials) == 1:
            found = [_measured(trials[0])]
        else:
            found = Parallel(self.n_jobs)(delayed(_measured)(part) for part in trials)
        for (_, at), (full, half, count) in zip(
            itertools.chain(*group), itertools.chain(*found), strict=True
        ):
            self._measured[at, :, split], self._halves[at, :, split] = full, half
            self._counts[at] = count

    def _survey(self, entries: Sequence[Entry], tried: Any, left_out: dict[str, str]) -> Survey:
        return Survey(
            self.tasks,
            tuple(entry for entry, kept in zip(entries, tried, strict=True) if kept),
            self._measured[tried],
            self._halves[tried],
            self._counts[tried],
            self.scoring.best,
            tuple(left_out.items()),
            self.clock() - self._started,
        )

    def _trial(self, entry: Entry, split: int, part: float) -> _Trial:
        stand_ins = self._stand_ins(split, entry.candidate.requirements.public, part)
        held = self._splits[split]
        seeds = [self.seed * 1_000_003 + 101 * split + draw for draw in range(self._draws)]
        return _Trial(
            entry,
            self.tasks,
            stand_ins,
            self.rows[held],
            self.labels[held],
            self.scoring,
            tuple(seeds),
        )

    def _stand_ins(self, split: int, use: PublicUse, part: float) -> StandIns:
        key = (split, use, part)
        if key not in self._cache:
            # One split's preparations are of no use to the next.
            for other in [known for known in self._cache if known[0] != split]:
                del self._cache[other]
            held = np.zeros(len(self.rows), dtype=np.bool_)
            held[self._splits[split]] = True
            order = np.random.default_rng([self.seed, split]).permutation(np.flatnonzero(~held))
            self._cache[key] = self._dealt(order[: max(2, round(part * len(order)))], use)
        return self._cache[key]

    def _dealt(self, places: Integers, use: PublicUse) -> StandIns:
        rows, labels = self.rows[places], self.labels[places]
        task = self.tasks[0]
        if use is PublicUse.ROWS:
            kept = min(len(rows), task.n_private)
            return StandIns(rows, None, rows[:kept], labels[:kept])
        if use is PublicUse.LABELS_TOO:
            share = task.n_public / (task.n_public + task.n_private)
            public = max(1, round(len(rows) * min(max(share, _WARM_SHARE[0]), _WARM_SHARE[1])))
            private = slice(public, public + task.n_private)
            return StandIns(rows[:public], labels[:public], rows[private], labels[private])
        return StandIns(rows, labels, rows[:0], labels[:0])

    def _late(self) -> bool:
        return self.clock() - self._started > self.seconds


def grown(
    full: Array,
    half: Array,
    *,
    methods: Sequence[str],
    counts: Array,
    goals: Array,
    best: float,
) -> Array:
    """Utilities expected at ``goals`` rows, from those at ``counts`` and at half as many.

    Noise is scaled, so it has its final effect already; what still shrinks is the error of learning
    from few rows, which falls as one over their number (exactly so for the log loss of a parametric
    model, to first order). The slope is the mean over splits and over the settings of a method:
    that of one setting is lost in its own error. Nothing is taken off where half as many rows did
    better; and the distance to ``best`` is never taken to fall faster than one over the root of the
    number of rows, as it would where a method only just begins to learn.

    Args:
        full, half: shape (entries, tasks, splits); NaN where a setting was not tried.
        methods: names, one for each entry.
        counts: shape (entries,), stand-ins behind ``full``.
        goals: shape (entries,), rows that there will be.
        best: the highest utility that there is.

    Returns:
        The shape of ``full``.

    Example:
        >>> one, many = np.array([[[0.8]]]), {"counts": np.array([100]), "goals": np.array([200])}
        >>> grown(one, one - 0.1, methods=["a"], **many, best=1.0).round(3)
        array([[[0.85]]])
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Mean of empty slice")
        own, level = np.nanmean(full - half, axis=2), np.nanmean(full, axis=2)
        slope = np.empty_like(own)
        for method in set(methods):
            places = [place for place, name in enumerate(methods) if name == method]
            slope[places] = np.nanmean(own[places], axis=0)
    left = np.maximum(0.0, 1.0 - counts / goals)[:, None]
    root = np.sqrt(np.minimum(1.0, counts / goals))[:, None]
    gain = np.maximum(slope, 0.0) * left
    if np.isfinite(best):
        gain = np.minimum(gain, np.maximum(best - level, 0.0) * (1.0 - root))
    return np.asarray(full + gain[:, :, None])


def _goal(use: PublicUse, task: Task) -> int:
    private = 0 if use is PublicUse.LABELS_ALONE else task.n_private
    public = 0 if use is PublicUse.ROWS else task.n_public
    return max(private + public, 1)


def _splits(labels: Integers, *, seed: int) -> list[Integers]:
    """Places of the rows that are held out, fold by fold; each label in every fold as far as
    that goes.
    """
    folds = min(_SPLITS, len(labels))
    random = np.random.default_rng([seed, 7])
    shuffled = random.permutation(len(labels))
    ordered = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return [np.sort(ordered[fold::folds]) for fold in range(folds)]


def _draws(tasks: Sequence[Task]) -> int:
    """More draws of noise where it is large beside the records of one label."""
    largest = 0.0
    for task in tasks:
        if task.guarantee.delta > 0:
            multiplier = gaussian_multiplier(
                epsilon=task.guarantee.epsilon, delta=task.guarantee.delta
            )
            largest = max(largest, multiplier * task.classes / task.n_private)
    return 2 if largest < 0.002 else 3
