"""The choice of path, mechanism, proposal and split for the highest expected utility at a required
total.

Everything here looks at calibration data that is public or belongs to training, and never at a
point to be protected. The release that is chosen is sound whatever was chosen: calibration decides
how useful it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from reticent.core.arrays import Array, Integers
from reticent.core.errors import CalibrationFailed, InvalidInput
from reticent.grids.shares import WHOLE
from reticent.lipschitz import LipschitzBound
from reticent.mechanisms import AdditiveMechanism, optimal_test
from reticent.networks import Network
from reticent.networks.serial import same_network
from reticent.systems.posthoc.plans import (
    VECTOR_MECHANISMS,
    LabelRule,
    Path,
    PosthocSetting,
    Requirement,
    effective_radius,
    inner_mechanism,
    level_test,
    releases_labels,
    rule_plan,
)
from reticent.training.heads import Head, HeadConfig, linear_head, train_head
from reticent.training.noise import training_noise
from reticent.training.progress import Report, silent

TEST_SHARES = (0.15, 0.3, 0.45, 0.6)
"""Shares of epsilon that the test may get on the local path."""

PROPOSAL_QUANTILES = (0.5, 0.75, 0.9, 0.97, 1.0)
"""Proposals tried, as quantiles of the bound at the largest radius over as many calibration
points as the bound affords.
"""

_GLOBAL_MARGIN = (
    1.0 + 2.0**-30
)  # a global bound that involves a norm of a large layer may differ in its last bits elsewhere
_SCALES_PER_DOUBLING = 2
_NOISE_DRAWS = 4
_LOOKS = 4_000  # draws that tell the noise's variance
_LEAST_NOISE = 1e-9  # of the variance of all values: what keeps a reading of dead values finite
_TINY = 1e-30
_LEAST_DRAWN = 2_000  # released rows that a head of codes learns from
_REACH = 0.1
"""Accuracy that linear readings may lack for one function and not for another: of outputs that are
logits already they lack nothing.
"""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A released function with the bound that certifies it for one mechanism.

    Attributes:
        network: the released function, on embeddings.
        mechanism: name of the mechanism.
        bound: isotone bound in the mechanism's output measure. Where there is a rule, only its box
            counts.
        rung: name of the function in plans.
        rule: the whole mechanism, for one that needs no Lipschitz constant, else None.
        means: for a code, the embeddings that codes stand for, shape (codes, d).
        part: the fitted part that made the function.
    """

    network: Network
    mechanism: str
    bound: LipschitzBound
    rule: LabelRule | None = None
    rung: str = ""
    means: Array | None = None
    part: Any = None

    @cached_property
    def global_bound(self) -> float:
        """The bound over the whole public domain."""
        return self.bound.global_bound()


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Embeddings that are public or belong to training, with labels if utility is accuracy.

    Attributes:
        train, held: shapes (n, d) and (k, d). Heads are trained on the first and scored on the
            second.
        train_labels, held_labels: shapes (n,) and (k,), or None. Utility is then the share of
            the embedding's variance that released values explain.
    """

    train: Array
    held: Array
    train_labels: Integers | None
    held_labels: Integers | None


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice of calibration, and its alternatives.

    Attributes:
        candidate: the chosen function.
        plan: its setting.
        considered: every plan that was scored, best first. After a first look those that it left
            out come last.
        near: candidates and plans that a first look left, best first, else none.
        scorer: what scored the plan.
    """

    candidate: Candidate
    plan: PosthocSetting
    considered: tuple[PosthocSetting, ...]
    near: tuple[tuple[Candidate, PosthocSetting], ...]
    scorer: _Utility

    @cached_property
    def head(self) -> Head | None:
        """A classifier of released vectors, trained at their noise, None for labels or without
        labels.
        """
        return self.scorer.head_of(self.plan)


def calibrate(
    candidates: Sequence[Candidate],
    requirement: Requirement,
    data: CalibrationData,
    *,
    paths: Sequence[Path],
    head_config: HeadConfig,
    first_look: bool = False,
    report: Report = silent,
) -> Choice:
    """Return the candidate and plan of the highest expected utility.

    Args:
        candidates: functions, each with a mechanism and a bound in that mechanism's output measure.
        requirement: the total.
        data: calibration data.
        paths: paths that may be chosen.
        head_config: settings of the heads that utility is measured with.
        first_look: whether all plans are scored by linear readings first, so that heads are
            trained for those alone that may turn out to be the best.
        report: receiver of the progress, called after every candidate.

    Raises:
        CalibrationFailed: no plan meets the requirement, e.g. the local path alone with delta 0.

    References:
        - Jamieson and Talwalkar (2016), "Non-stochastic best arm identification and hyperparameter
          optimization", arXiv:1502.07943, which spends most on the arms that are best early on.
    """
    tried = [
        (candidate, _plans(candidate, requirement, data.held, paths)) for candidate in candidates
    ]
    total = sum(len(plans) for _, plans in tried)
    if not total:
        raise CalibrationFailed(
            f"no plan meets epsilon={requirement.epsilon:g}, delta={requirement.delta:g} on "
            f"path(s) {', '.join(paths)}: "
            "the local path and the Gaussian mechanism need delta above 0; raise delta or "
            "allow the global path"
        )
    out: list[_Scored] = []
    heads = data.train_labels is not None and any(
        not releases_labels(candidate.mechanism) for candidate in candidates
    )
    looks = first_look and heads and total > 1
    if looks:
        looked = _scored(tried, requirement, data, None, "calibration, first look", report)
        tried, out = _within_reach(looked)
    scored = _scored(tried, requirement, data, head_config, "calibration", report)
    scored.sort(key=lambda entry: -entry.plan.utility)
    out.sort(key=lambda entry: -entry.plan.utility)
    best = scored[0]
    return Choice(
        best.candidate,
        best.plan,
        tuple(entry.plan for entry in (*scored, *out)),
        tuple((entry.candidate, entry.plan) for entry in scored) if looks else (),
        best.scorer,
    )


@dataclass(frozen=True, eq=False)
class _Scored:
    """A plan with its utility.

    Attributes:
        candidate: the function that the plan releases.
        plan: the plan, with its utility.
        passing: probability of an answer at every held-out point.
        scorer: what scored it.
    """

    candidate: Candidate
    plan: PosthocSetting
    passing: Array
    scorer: _Utility


_Tried = list[tuple[Candidate, list[tuple[PosthocSetting, Array]]]]


def _scored(
    tried: _Tried,
    requirement: Requirement,
    data: CalibrationData,
    config: HeadConfig | None,
    stage: str,
    report: Report,
) -> list[_Scored]:
    """Return all plans with their utilities."""
    scored: list[_Scored] = []
    for index, (candidate, plans) in enumerate(tried):
        utility = _Utility(candidate, requirement, data, config)
        for plan, passing in plans:
            value = utility.of(plan, passing)
            scored.append(_Scored(candidate, replace(plan, utility=value), passing, utility))
        best = max((entry.plan.utility for entry in scored), default=0.0)
        report(stage, index + 1, len(tried), 1.0 - best)
    return scored


def _within_reach(looked: Sequence[_Scored]) -> tuple[_Tried, list[_Scored]]:
    """Return plans of vectors whose utility may turn out to be the best, and the others.

    What linear readings lack is much the same for all noise on one function, so that of those only
    the best is kept on each path. Between functions it differs by as much as ``_REACH``.
    """
    least = max(entry.plan.utility for entry in looked) - _REACH
    kept: list[_Scored] = []
    out: list[_Scored] = []
    for entry in sorted(looked, key=lambda entry: -entry.plan.utility):
        beaten = any(
            entry.plan.path == other.plan.path
            and same_network(entry.candidate.network, other.candidate.network)
            for other in kept
        )
        (out if beaten or entry.plan.utility < least else kept).append(entry)
    places = {id(entry): place for place, entry in enumerate(looked)}
    kept.sort(key=lambda entry: places[id(entry)])
    return [(entry.candidate, [(entry.plan, entry.passing)]) for entry in kept], out


def _plans(
    candidate: Candidate, requirement: Requirement, held: Array, paths: Sequence[Path]
) -> list[tuple[PosthocSetting, Array]]:
    """Yield plans worth scoring, each with the probability of an answer at every held-out point."""
    epsilon, delta = requirement.epsilon, requirement.delta
    if candidate.rule is not None:
        rung = "" if candidate.means is None else candidate.rung
        return [(rule_plan(candidate.mechanism, epsilon, rung), np.ones(len(held)))]
    gaussian = candidate.mechanism == "gaussian"
    plans: list[tuple[PosthocSetting, Array]] = []
    if gaussian and delta == 0:
        return plans
    top = PosthocSetting(
        path="global",
        mechanism=candidate.mechanism,
        proposal=candidate.global_bound * _GLOBAL_MARGIN,
        epsilon_test=0.0,
        delta_test=0.0,
        epsilon_release=epsilon,
        delta_release=delta if gaussian else 0.0,
        rung=candidate.rung,
    )
    if "global" in paths:
        plans.append((top, np.ones(len(held))))
    if "local" not in paths or delta == 0:
        return plans
    ceiling = _noise_per_answer(candidate, top, requirement) if "global" in paths else np.inf
    radius = effective_radius(candidate.bound, requirement.adjacency.radius)
    sample = held[: candidate.bound.affordable_points]
    for share in TEST_SHARES:
        split = replace(
            top,
            path="local",
            epsilon_test=share * epsilon,
            delta_test=0.5 * delta if gaussian else delta,
            epsilon_release=epsilon - share * epsilon,
            delta_release=0.5 * delta if gaussian else 0.0,
        )
        passing, _ = optimal_test(epsilon=split.epsilon_test, delta=split.delta_test)
        constants = candidate.bound.bound(sample, radius * (len(passing) - 1))
        for proposal in sorted(
            {_round_up(float(value)) for value in np.quantile(constants, PROPOSAL_QUANTILES)}
        ):
            plan = replace(split, proposal=proposal)
            if proposal <= 0 or _noise_per_answer(candidate, plan, requirement) >= ceiling:
                continue  # the global path adds less noise and withholds nothing
            chance = passing[level_test(candidate.bound, plan, requirement).levels(sample)]
            mean = float(chance.mean())
            # Points that were not asked about count as their average.
            plans.append(
                (
                    replace(plan, released=mean),
                    np.concatenate([chance, np.full(len(held) - len(sample), mean)]),
                )
            )
    return plans


def _round_up(value: float) -> float:
    """Return ``value`` up to 16 bits.

    Quantiles that differ by rounding alone are one proposal, and constants equal to it stay below.
    """
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(np.ceil(mantissa * 2.0**16), exponent - 16))


def _noise_per_answer(
    candidate: Candidate, plan: PosthocSetting, requirement: Requirement
) -> float:
    """Return the noise scale of a mechanism for vectors, or the temperature of one for labels.

    Smaller is better for the same mechanism.
    """
    inner = inner_mechanism(candidate.network, candidate.bound, plan, requirement)
    return (
        inner.scale if isinstance(inner, AdditiveMechanism) else inner.sensitivity / inner.epsilon
    )


class _Utility:
    """Expected utility of plans for one candidate.

    For vectors, heads are trained at a few noise scales of a geometric grid and shared by all
    plans near them. Without a configuration of heads they are read linearly.
    """

    def __init__(
        self,
        candidate: Candidate,
        requirement: Requirement,
        data: CalibrationData,
        config: HeadConfig | None,
    ) -> None:
        self._candidate = candidate
        self._requirement = requirement
        self._config = config
        self._data = data
        self._held = candidate.network.forward(data.held)
        self._train = candidate.network.forward(data.train).astype(np.float32)
        self._heads: dict[int, Head] = {}

    def of(self, plan: PosthocSetting, passing: Array) -> float:
        """Return expected accuracy, with withheld answers worth nothing.

        Without labels it is the share of the embedding's own variance that a linear reading of the
        released values explains.
        """
        labels, rule = self._data.held_labels, self._candidate.rule
        if self._candidate.means is not None:
            return self._of_code(self._candidate.means)
        if rule is not None:
            assert labels is not None
            right = rule.at(self._data.held, self._held)[labels, np.arange(len(labels))] / WHOLE
            return float(right.mean())
        inner = inner_mechanism(
            self._candidate.network, self._candidate.bound, plan, self._requirement
        )
        if not isinstance(inner, AdditiveMechanism):
            if labels is None:
                raise InvalidInput(
                    "labels: expected labels to calibrate a label release with, got none"
                )
            return float(
                (passing * inner.probabilities(self._held)[np.arange(len(labels)), labels]).mean()
            )
        held = torch.from_numpy(self._held.astype(np.float32))
        if labels is None:
            sizes = _unit_noise(plan.mechanism, _LOOKS, held.shape[1]).square().mean()
            return float(passing.mean()) * self._explained(inner.scale**2 * float(sizes))
        head = self.head_of(plan)
        assert head is not None
        right = np.zeros(len(held))
        for _ in range(_NOISE_DRAWS):
            released = held + inner.scale * _unit_noise(plan.mechanism, len(held), held.shape[1])
            right += head.predict(released.numpy()) == labels
        return float((passing * right / _NOISE_DRAWS).mean())

    def _chances(self, points: Array, scores: Array) -> Array:
        """Return chances of codes, shape (n, codes)."""
        assert self._candidate.rule is not None
        return np.asarray(self._candidate.rule.at(points, scores).T / WHOLE)

    def _of_code(self, means: Array) -> float:
        """Return the same for a code, exactly over its noise. A reading is what the code stands
        for.
        """
        held, labels = self._data.held, self._data.held_labels
        chances = self._chances(held, self._held)
        if labels is not None:
            right = self._labels_of_codes()[None, :] == labels[:, None]
            return float((chances * right).sum(axis=1).mean())
        apart = (held**2).sum(axis=1)[:, None] - 2.0 * held @ means.T + (means**2).sum(axis=1)
        total = float(((held - self._data.train.mean(axis=0)) ** 2).sum(axis=1).mean())
        lost = float((chances * apart).sum(axis=1).mean())
        return max(1.0 - lost / total, 0.0) if total > 0 else 0.0

    def _labels_of_codes(self) -> Integers:
        """Return the likeliest label of every code among rows that heads learn from."""
        labels = self._data.train_labels
        assert labels is not None
        chances = self._chances(self._data.train, self._train.astype(np.float64))
        counts = np.stack([chances[labels == label].sum(axis=0) for label in np.unique(labels)])
        return np.asarray(np.unique(labels)[counts.argmax(axis=0)])

    def _code_head(self, means: Array) -> Head:
        """Return a head of released means, trained on some draws for every row."""
        assert self._data.train_labels is not None
        assert self._config is not None
        if 0 not in self._heads:
            chances = self._chances(self._data.train, self._train.astype(np.float64))
            again = -(-_LEAST_DRAWN // len(chances))
            random = np.random.default_rng(self._config.seed)
            ends = np.tile(np.cumsum(chances, axis=1), (again, 1))
            codes = (random.random((len(ends), 1)) >= ends[:, :-1]).sum(axis=1)
            self._heads[0] = train_head(
                means[codes].astype(np.float32),
                np.tile(self._data.train_labels, again),
                self._config,
                noise=None,
            )
        return self._heads[0]

    def _explained(self, noise: float) -> float:
        """Return the share of the variance of held-out embeddings that the best linear reading
        explains.

        It is learnt from the others, and at least 0.

        Args:
            noise: variance of each released value's noise.
        """
        points, values = self._data.train, self._train.astype(np.float64)
        centre, middle = points.mean(axis=0), values.mean(axis=0)
        values = values - middle
        covariance = values.T @ values / len(values)
        covariance += max(noise, _LEAST_NOISE * float(np.trace(covariance)) + _TINY) * np.eye(
            len(middle)
        )
        reading = np.linalg.solve(covariance, values.T @ (points - centre) / len(points))
        missed = self._data.held - centre - (self._held - middle) @ reading
        lost = float((missed**2).sum(axis=1).mean()) + noise * float((reading**2).sum())
        total = float(((self._data.held - centre) ** 2).sum(axis=1).mean())
        return max(1.0 - lost / total, 0.0) if total > 0 else 0.0

    def head_of(self, plan: PosthocSetting) -> Head | None:
        """Return the head trained at the grid scale nearest to the plan's, None for labels or
        without labels.
        """
        if self._data.train_labels is None or releases_labels(plan.mechanism):
            return None
        if self._candidate.means is not None:
            return self._code_head(self._candidate.means)
        scale = _noise_per_answer(self._candidate, plan, self._requirement)
        if self._config is None:
            sizes = _unit_noise(plan.mechanism, _LOOKS, self._train.shape[1]).square().mean()
            return linear_head(
                self._train, self._data.train_labels, variance=scale**2 * float(sizes)
            )
        step = round(float(np.log2(scale)) * _SCALES_PER_DOUBLING)
        if step not in self._heads:
            add_noise = noise_adder(plan.mechanism, 2.0 ** (step / _SCALES_PER_DOUBLING))
            self._heads[step] = train_head(
                self._train, self._data.train_labels, self._config, noise=add_noise
            )
        return self._heads[step]


def noise_adder(mechanism: str, scale: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that adds fresh float noise of a vector mechanism to a batch, for training
    heads.
    """

    def add(batch: torch.Tensor) -> torch.Tensor:
        return batch + scale * _unit_noise(mechanism, len(batch), batch.shape[1])

    return add


def _unit_noise(mechanism: str, rows: int, outputs: int) -> torch.Tensor:
    """Return plain float noise of unit scale in the shape of a vector mechanism.

    It is for training and for estimates only.
    """
    if mechanism == "gaussian":
        return torch.randn(rows, outputs)
    return training_noise(rows, outputs, output_norm=VECTOR_MECHANISMS[mechanism])
