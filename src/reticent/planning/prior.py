"""What methods lost on other data sets, for plans with too few public rows to tell by themselves.

``prior.json`` is written by ``python -m papers.choose.plan_regret --write-prior``. It holds, for
each data set, size of the public part and total, how far each setting fell behind the best one when
it was fitted on the real number of records.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput
from reticent.planning.noise_levels import gaussian_multiplier
from reticent.planning.survey import Entry
from reticent.planning.tasks import Task

_FORMAT = 1
_WIDTH = 0.4
"""Decimal orders of the noise level, and of the ratio of rows, over which cases count as alike."""
_LEAST_WEIGHT = 1e-3
_LEAST_SPREAD = 0.003
_LEADING = 3
"""A method is as good as the mean of so many of its best settings."""
_DOUBT = 2.0
"""The error of what is extrapolated, as a multiple of it."""
_DIFFERENT = 2.0
"""Distance of settings that differ in a word; numbers differ by the logarithm of their ratio."""
_BETWEEN = re.compile(r", (?=\w+=)")


@dataclass(frozen=True)
class Case:
    """What was measured on one data set at one size and one total.

    Attributes:
        data: name of the data set.
        ratio: public rows / private records.
        level: ``noise_level`` of the task.
        regrets: by criterion ("accuracy", "log_loss") and name of the setting, how far behind the
            best.
    """

    data: str
    ratio: float
    level: float
    regrets: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Prior:
    """Cases, and what they say about a new task."""

    cases: tuple[Case, ...]

    def without(self, data: str) -> Prior:
        """All cases of other data sets."""
        return Prior(tuple(case for case in self.cases if case.data != data))

    def regrets(self, entries: Sequence[Entry], task: Task, *, scoring: str) -> Array:
        """What each setting lost on each other data set, at like noise and a like ratio of rows.

        A setting that no case knows is expected to lose what the nearest one of its method did:
        equal words and truth values, numbers of the least ratio.

        Args:
            entries: settings.
            task: the new task; cases of like noise and like ratio count most.
            scoring: criterion of the plan; "log_loss" for proper ones, "accuracy" for the others.

        Returns:
            Shape (entries, data sets), NaN where a data set does not know a method.

        Example:
            >>> Prior(()).regrets([], None, scoring="accuracy").shape
            (0, 0)
        """
        known = [case for case in self.cases if scoring in case.regrets]
        if not entries or not known:
            return np.empty((len(entries), 0))
        place = np.array([noise_level(task), math.log10(max(task.n_public, 1) / task.n_private)])
        places = np.array([[case.level, math.log10(case.ratio)] for case in known])
        weights = np.exp(-0.5 * (((places - place) / _WIDTH) ** 2).sum(axis=1))
        columns = []
        for data in sorted({case.data for case in known}):
            own = [
                at
                for at, case in enumerate(known)
                if case.data == data and weights[at] > _LEAST_WEIGHT
            ]
            if own:
                lost = [
                    [_nearest(entry.name, known[at].regrets[scoring]) for entry in entries]
                    for at in own
                ]
                columns.append(np.average(lost, axis=0, weights=weights[own]))
        return np.stack(columns, axis=1) if columns else np.empty((len(entries), 0))


def _nearest(name: str, regrets: Mapping[str, float]) -> float:
    """The regret of the setting called ``name``, or of the nearest one of its method, or NaN."""
    if name in regrets:
        return regrets[name]
    distances = {other: _distance(name, other) for other in regrets}
    nearest = min(distances, key=distances.__getitem__, default=name)
    return regrets[nearest] if distances.get(nearest, math.inf) < math.inf else math.nan


@cache
def _distance(one: str, other: str) -> float:
    """How far two settings are from each other; infinite for two methods."""
    (method, own), (of_other, others) = _read(one), _read(other)
    if method != of_other:
        return math.inf
    return sum(_gap(own.get(key), others.get(key)) for key in {*own, *others})


def _read(name: str) -> tuple[str, dict[str, str]]:
    """Method and settings of an entry's name."""
    method, _, inside = name.removesuffix(")").partition(" (")
    pairs = (part.partition("=") for part in _BETWEEN.split(inside) if part)
    return method, {key: value for key, _, value in pairs}


def _gap(one: str | None, other: str | None) -> float:
    if one == other:
        return 0.0
    try:
        ratio = float(one or "") / float(other or "")
    except (ValueError, ZeroDivisionError):
        return _DIFFERENT
    return abs(math.log(ratio)) if ratio > 0 else _DIFFERENT


def noise_level(task: Task) -> float:
    """Decimal logarithm of the private records of one label over the noise of one Gaussian sum.

    Example:
        >>> from reticent.core import AddRemove, Guarantee
        >>> round(noise_level(Task(Guarantee(1.0, 1e-5, AddRemove()), 1000, 200, 2, 5)), 2)
        2.13
    """
    delta = task.guarantee.delta or 1e-9
    noise = task.sensitivity * gaussian_multiplier(epsilon=task.guarantee.epsilon, delta=delta)
    return math.log10(task.n_private / (task.classes * noise))


def mixed(
    utilities: Array, regrets: Array, *, methods: Sequence[str], error: float, extrapolated: float
) -> Array:
    """Utilities drawn towards what other data sets suggest, by the precision of either.

    How good a method is and how its settings stand to each other are weighed apart. Folds tell how
    certain a difference of settings is, and that of methods but for what was extrapolated: how far
    that is wrong differs from method to method, and no fold shows it. The other side is as certain
    as other data sets agree.

    Args:
        utilities: shape (entries,), measured on stand-ins and extrapolated.
        regrets: shape (entries, data sets), from ``Prior.regrets``.
        methods: the method of every entry.
        error: standard error of a difference of two good entries.
        extrapolated: how much of a good entry's utility is extrapolated.

    Returns:
        Shape (entries,); entries that the prior does not know stay as they were measured.

    Example:
        >>> regrets = np.array([[0.0, 0.1], [0.1, 0.0]])
        >>> both = {"methods": ("a", "b"), "error": 0.1, "extrapolated": 0.0}
        >>> mixed(np.array([0.8, 0.7]), regrets, **both).round(3)
        array([0.767, 0.733])
    """
    known = ~np.isnan(regrets).all(axis=1) if regrets.shape[1] else np.zeros(len(utilities), bool)
    if known.sum() < 2:
        return utilities
    names = np.array(methods)[known]
    own, lost = utilities[known], regrets[known]
    level, others = np.empty_like(own), np.empty_like(lost)
    for method in set(names):
        places = names == method
        level[places] = np.sort(own[places])[-_LEADING:].mean()
        others[places] = np.sort(-lost[places], axis=0)[-_LEADING:].mean(axis=0)
    within = -lost - others
    better = np.argsort(-own)[: max(2, len(own) // 2)]
    sure = error**2
    between = _share(sure + (_DOUBT * extrapolated) ** 2, others[better])
    inside = _share(sure, within[better])
    expected = np.nanmean(others, axis=1)
    found = utilities.copy()
    found[known] = (
        (1 - between) * level
        + between * (expected + np.mean(level - expected))
        + (1 - inside) * (own - level)
        + inside * np.nanmean(within, axis=1)
    )
    return found


def _share(variance: float, of_data_sets: Array) -> float:
    """The weight of other data sets beside a measurement of a variance.

    Args:
        variance: of the measurement.
        of_data_sets: shape (entries, data sets), what they say; their spread is the error of what
            they say about another one.
    """
    several = of_data_sets[(~np.isnan(of_data_sets)).sum(axis=1) > 1]
    if len(several):
        spread = float(np.median(np.nanstd(several, axis=1, ddof=1)))
    else:
        spread = float(np.nanmedian(np.abs(of_data_sets)))
    own = max(variance, _LEAST_SPREAD**2 * 1e-6)
    return own / (own + max(spread, _LEAST_SPREAD) ** 2)


@cache
def shipped_prior() -> Prior:
    """The cases that come with the package."""
    return prior_of(files("reticent.planning").joinpath("prior.json").read_text(encoding="utf-8"))


def prior_of(text: str) -> Prior:
    """The cases in ``text``, as ``prior_content`` wrote it.

    Raises:
        InvalidInput: not such a text.
    """
    try:
        stored: dict[str, Any] = json.loads(text)
        if stored["format"] != _FORMAT:
            raise InvalidInput(f"prior: expected format {_FORMAT}, got {stored['format']}")
        return Prior(
            tuple(
                Case(case["data"], case["ratio"], case["level"], case["regrets"])
                for case in stored["cases"]
            )
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("prior: expected the content of prior.json") from error


def prior_content(prior: Prior) -> str:
    """``prior`` as JSON, one case a line.

    Example:
        >>> prior_of(prior_content(Prior(()))).cases
        ()
    """
    cases = ",\n".join(
        json.dumps(
            {
                "data": case.data,
                "ratio": case.ratio,
                "level": round(case.level, 4),
                "regrets": {
                    scoring: {name: round(regret, 4) for name, regret in regrets.items()}
                    for scoring, regrets in case.regrets.items()
                },
            },
            sort_keys=True,
        )
        for case in prior.cases
    )
    command = "python -m papers.choose.plan_regret --write-prior"
    return f'{{"format": {_FORMAT}, "command": "{command}", "cases": [\n{cases}\n]}}\n'
