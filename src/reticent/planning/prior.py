"""What methods lost on other data sets, for plans with too few public rows to tell by themselves.

``prior.json`` is written by ``python -m papers.choose.plan_regret --write-prior``. It holds, for
each data set, size of the public part and total, how far each setting fell behind the best one when
it was fitted on the real number of records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from reticent.core.errors import InvalidInput
from reticent.planning.noise_levels import gaussian_multiplier
from reticent.planning.survey import Entry
from reticent.planning.tasks import Array, Task

_FORMAT = 1
_WIDTH = 0.4
"""Decimal orders of the noise level, and of the ratio of rows, over which cases count as alike."""
_LEAST_WEIGHT = 1e-3
_LEAST_SPREAD = 0.005


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

    def expected(
        self, entries: Sequence[Entry], task: Task, *, scoring: str
    ) -> tuple[Array, Array]:
        """Mean regret of each setting on other data sets, and its spread between them.

        A setting that no case knows is expected to do as the settings of its method did; a method
        that no case knows has NaN.

        Args:
            entries: settings.
            task: the new task; cases of like noise and like ratio count most.
            scoring: criterion of the plan; "log_loss" for proper ones, "accuracy" for the others.

        Returns:
            Two arrays of shape (entries,).

        Example:
            >>> Prior(()).expected([], None, scoring="accuracy")[0].tolist()
            []
        """
        if not entries or not self.cases:
            return np.full(len(entries), np.nan), np.full(len(entries), np.nan)
        known = [case for case in self.cases if scoring in case.regrets]
        place = np.array([noise_level(task), math.log10(max(task.n_public, 1) / task.n_private)])
        places = np.array([[case.level, math.log10(case.ratio)] for case in known])
        weights = np.exp(-0.5 * (((places - place) / _WIDTH) ** 2).sum(axis=1))
        found = [self._of(entry, known, weights, scoring) for entry in entries]
        return np.array([mean for mean, _ in found]), np.array([spread for _, spread in found])

    def _of(
        self, entry: Entry, cases: Sequence[Case], weights: Array, scoring: str
    ) -> tuple[float, float]:
        by_data: dict[str, list[tuple[float, float]]] = {}
        for case, weight in zip(cases, weights, strict=True):
            regrets = case.regrets[scoring]
            own = regrets.get(entry.name)
            if own is None:
                family = [
                    regret
                    for name, regret in regrets.items()
                    if name.partition(" (")[0] == entry.candidate.name
                ]
                if not family:
                    continue
                own = float(np.median(family))
            if weight > _LEAST_WEIGHT:
                by_data.setdefault(case.data, []).append((weight, own))
        if not by_data:
            return math.nan, math.nan
        means = [
            sum(weight * regret for weight, regret in pairs) / sum(weight for weight, _ in pairs)
            for pairs in by_data.values()
        ]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else abs(means[0])
        return float(np.mean(means)), max(spread, _LEAST_SPREAD)


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


def mixed(utilities: Array, error: float, prior: tuple[Array, Array]) -> Array:
    """Utilities drawn towards what other data sets suggest, by the precision of either.

    Args:
        utilities: shape (entries,), measured on stand-ins.
        error: standard error of a difference of two of them.
        prior: mean regrets and their spreads, each of shape (entries,); NaN where unknown.

    Returns:
        Shape (entries,); entries that the prior does not know stay as they were measured.

    Example:
        >>> mixed(np.array([0.8, 0.7]), 0.1, (np.array([0.1, 0.0]), np.array([0.1, 0.1]))).round(3)
        array([0.75, 0.75])
    """
    regrets, spreads = prior
    known = ~np.isnan(regrets)
    if known.sum() < 2:
        return utilities
    own = max(error, 1e-6) ** 2
    other = float(np.nanmedian(spreads)) ** 2
    level = float((utilities[known] + regrets[known]).mean())
    found = utilities.copy()
    weight = own / (own + other)
    found[known] = (1 - weight) * utilities[known] + weight * (level - regrets[known])
    return found


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
