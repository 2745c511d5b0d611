"""Accountants: the total (epsilon, delta) of many answers, by Rényi divergences or by privacy-loss distributions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from dp_accounting import dp_event
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import rdp_privacy_accountant

from reticent.accounting.costs import (
    Cost,
    DiscreteLaplaceCost,
    GaussianCost,
    LaplaceCost,
    RandomizedResponseCost,
    SampledCost,
    StatedCost,
    ZeroConcentratedCost,
    elementary_costs,
)
from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.accounting.dominating_pairs import screening_loss_distribution, votes_loss_distribution
from reticent.accounting.events import PrivacyEvent
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent
from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
from reticent.core.checks import count, positive, probability
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter
from reticent.core.guarantees import Adjacency

Array = npt.NDArray[np.float64]

DEFAULT_ORDERS: tuple[float, ...] = tuple(float(order) for order in rdp_privacy_accountant.DEFAULT_RDP_ORDERS)
"""dp-accounting's Rényi orders, 1.1 to 1024."""


class Accountant(ABC):
    """Counts answers under one adjacency and states their total.

    **Guarantee.** The total holds for answers whose *values* may depend on earlier answers, while the list of events is fixed in
    advance. For events that are themselves chosen from earlier answers use ``reticent.accounting.filters``.

    Args:
        adjacency: the one adjacency that every counted event must have.
    """

    name: str

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        self._counted: dict[Cost, int] = {}

    def compose(self, event: PrivacyEvent, answers: int = 1) -> Self:
        """Counts ``answers`` answers of ``event``; all of them or, when it raises, none.

        Raises:
            IncompatibleGuarantees: another adjacency or kind, or a mechanism that this accountant has no formula for.
            InvalidParameter: ``answers`` is not an integer of at least 1.
        """
        answers = count(answers, name="answers")
        if event.guarantee.adjacency != self.adjacency:
            raise IncompatibleGuarantees(
                f"costs compose only within one adjacency: this accountant counts {self.adjacency.describe()}, "
                f"{event.mechanism} protects {event.guarantee.adjacency.describe()}"
            )
        costs = elementary_costs(event)
        for cost, _ in costs:
            self._check(cost, event.mechanism)
        for cost, times in costs:
            self._counted[cost] = self._counted.get(cost, 0) + times * answers
        return self

    def supports(self, event: PrivacyEvent) -> bool:
        """Whether ``compose`` would accept ``event``; nothing is counted."""
        try:
            type(self)(self.adjacency).compose(event)
        except IncompatibleGuarantees:
            return False
        return True

    @abstractmethod
    def epsilon(self, *, delta: float) -> float:
        """Total epsilon at ``delta``; infinite where ``delta`` cannot be reached."""

    @abstractmethod
    def delta(self, *, epsilon: float) -> float:
        """Total delta at ``epsilon``, in [0, 1]."""

    @abstractmethod
    def _check(self, cost: Cost, mechanism: str) -> None: ...


class RdpAccountant(Accountant):
    """Rényi differential privacy on a list of orders: fast, additive, a little loose.

    A part of which only (epsilon, delta) is stated is counted as randomised response with probability 1 - delta; the deltas are
    set aside and come off the target.

    Args:
        adjacency: see ``Accountant``.
        orders: Rényi orders above 1, or None for dp-accounting's list.

    Reference: Mironov 2017; conversion of Canonne, Kamath and Steinke 2020, Proposition 12.

    Edge cases: without any answer epsilon is 0; delta = 0 gives infinity, since no finite order reaches it.

    Example:
        >>> from dp_accounting import GaussianDpEvent
        >>> from reticent.core import AddRemove, Guarantee
        >>> event = PrivacyEvent("gaussian", Guarantee(0.5, 1e-5, AddRemove()), GaussianDpEvent(20.0))
        >>> round(RdpAccountant(AddRemove()).compose(event, 100).epsilon(delta=1e-5), 4)
        2.1657
    """

    name = "RDP"

    def __init__(self, adjacency: Adjacency, orders: Sequence[float] | None = None) -> None:
        super().__init__(adjacency)
        self.orders: Array = np.asarray(DEFAULT_ORDERS if orders is None else orders, dtype=np.float64)
        if self.orders.size == 0 or not np.all(self.orders > 1):
            raise InvalidParameter("orders: expected at least one number, each above 1")

    @property
    def rdp(self) -> Array:
        """Total Rényi divergence at ``orders``, shape (k,), the stated deltas set aside."""
        total = np.zeros_like(self.orders)
        for cost, times in self._counted.items():
            total += times * rdp_curve(cost, tuple(self.orders.tolist()))
        return total

    def epsilon(self, *, delta: float) -> float:
        """See ``Accountant.epsilon``."""
        log_kept = self._log_kept()
        spare = (probability(delta, name="delta") + math.expm1(log_kept)) / math.exp(log_kept)
        if not self._counted:
            return 0.0
        if spare <= 0:
            return math.inf
        return float(rdp_privacy_accountant.compute_epsilon(self.orders, self.rdp, spare)[0])

    def delta(self, *, epsilon: float) -> float:
        """See ``Accountant.delta``."""
        if not self._counted:
            return 0.0
        log_kept = self._log_kept()
        rest = float(rdp_privacy_accountant.compute_delta(self.orders, self.rdp, _total(epsilon))[0])
        return min(1.0, -math.expm1(log_kept) + math.exp(log_kept) * rest)

    def _log_kept(self) -> float:
        """Logarithm of the probability that no stated delta strikes."""
        stated = [(cost, times) for cost, times in self._counted.items() if isinstance(cost, StatedCost)]
        return math.fsum(times * math.log1p(-cost.delta) for cost, times in stated)

    def _check(self, cost: Cost, mechanism: str) -> None:
        if isinstance(cost, DiscreteLaplaceCost) or (isinstance(cost, SampledCost) and isinstance(cost.of, LaplaceCost)):
            raise IncompatibleGuarantees(f"{mechanism}: no Rényi formula for {type(cost).__name__}; use PldAccountant")


class PldAccountant(Accountant):
    """Privacy-loss distributions on a grid, rounded against us: close to the optimum, slower.

    Args:
        adjacency: see ``Accountant``.
        interval: width of the grid of losses; the total errs upward by at most about this much per distinct event.

    Reference: Koskela, Jälkö and Honkela 2020; Doroshenko et al. 2022 (connect the dots); dp-accounting's implementation.

    Edge cases: delta = 0 gives the largest possible loss, infinite for Gaussian noise.

    Example:
        >>> from dp_accounting import GaussianDpEvent
        >>> from reticent.core import AddRemove, Guarantee
        >>> event = PrivacyEvent("gaussian", Guarantee(0.5, 1e-5, AddRemove()), GaussianDpEvent(20.0))
        >>> round(PldAccountant(AddRemove()).compose(event, 100).epsilon(delta=1e-5), 4)
        1.9931
    """

    name = "PLD"

    def __init__(self, adjacency: Adjacency, interval: float = 1e-4) -> None:
        super().__init__(adjacency)
        self.interval = positive(interval, name="interval")
        self._total: Any = None

    def compose(self, event: PrivacyEvent, answers: int = 1) -> Self:
        """See ``Accountant.compose``."""
        super().compose(event, answers)
        self._total = None
        return self

    def epsilon(self, *, delta: float) -> float:
        """See ``Accountant.epsilon``."""
        return float(self._distribution().get_epsilon_for_delta(probability(delta, name="delta")))

    def delta(self, *, epsilon: float) -> float:
        """See ``Accountant.delta``."""
        return float(self._distribution().get_delta_for_epsilon(_total(epsilon)))

    def _distribution(self) -> Any:
        if self._total is None:
            total = privacy_loss_distribution.identity(value_discretization_interval=self.interval)
            for cost, times in self._counted.items():
                total = total.compose(_loss_distribution(cost, times, self.interval))
            self._total = total
        return self._total

    def _check(self, cost: Cost, mechanism: str) -> None:
        if isinstance(cost, ZeroConcentratedCost):
            raise IncompatibleGuarantees(f"{mechanism}: no single worst pair of distributions for zCDP; use RdpAccountant")


@lru_cache(maxsize=1024)
def rdp_curve(cost: Cost, orders: tuple[float, ...]) -> Array:
    """Rényi divergence of one elementary cost at ``orders``, shape (k,), read-only; a stated delta is left to the caller."""
    curve = _rdp_curve(cost, np.asarray(orders))
    curve.setflags(write=False)
    return curve


def _rdp_curve(cost: Cost, orders: Array) -> Array:
    if isinstance(cost, StatedCost):
        lie = -np.logaddexp(0.0, cost.epsilon)
        return np.asarray(np.logaddexp(orders * cost.epsilon + lie, (1 - orders) * cost.epsilon + lie) / (orders - 1))
    step, rate = (cost.of, cost.sampling_probability) if isinstance(cost, SampledCost) else (cost, 1.0)
    if isinstance(step, ScreeningDpEvent):
        return screening_rdp(step, orders, sampling_probability=rate)
    if isinstance(step, NoisyArgmaxDpEvent):
        return _between_integers(step.sigma / math.sqrt(2), rate, orders)
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(cost, RandomizedResponseCost):
        relation = NeighboringRelation.REPLACE_ONE
    accountant = rdp_privacy_accountant.RdpAccountant(orders=orders, neighboring_relation=relation)
    return np.asarray(accountant.compose(_as_dp_event(cost)).rdp, dtype=np.float64)


def _between_integers(noise_multiplier: float, rate: float, orders: Array) -> Array:
    """Discrete Gaussian noise on a sample at any order: (a - 1) D_a is convex in a and 0 at 1, so chords lie above it."""
    # The label's own smaller cost comes with a slack in delta, which only private_knn_total takes off.
    below, above = np.floor(orders), np.ceil(orders)
    whole = np.unique(np.concatenate([below, above, [2.0]]))
    whole = whole[whole >= 2]
    curve = sampled_gaussian_rdp(whole, noise_multiplier=noise_multiplier, sampling_probability=rate)
    moments = np.interp(orders, np.concatenate([[1.0], whole]), np.concatenate([[0.0], (whole - 1) * curve]))
    return np.asarray(moments / (orders - 1))


def _as_dp_event(cost: Cost) -> Any:
    if isinstance(cost, SampledCost):
        return dp_event.PoissonSampledDpEvent(cost.sampling_probability, _as_dp_event(cost.of))
    if isinstance(cost, GaussianCost):
        return dp_event.GaussianDpEvent(cost.noise_multiplier)
    if isinstance(cost, LaplaceCost):
        return dp_event.LaplaceDpEvent(cost.noise_multiplier)
    if isinstance(cost, RandomizedResponseCost):
        return dp_event.RandomizedResponseDpEvent(cost.noise_parameter, cost.num_buckets)
    if isinstance(cost, ZeroConcentratedCost):
        return dp_event.ZCDpEvent(cost.rho, cost.xi)
    raise IncompatibleGuarantees(f"no dp-accounting event for {type(cost).__name__}")


def _loss_distribution(cost: Cost, times: int, interval: float) -> Any:
    """Privacy-loss distribution of ``times`` independent costs."""
    build = privacy_loss_distribution
    step, rate = (cost.of, cost.sampling_probability) if isinstance(cost, SampledCost) else (cost, 1.0)
    if isinstance(cost, GaussianCost):
        # Gaussian steps add up exactly, which saves the convolutions and their rounding.
        return build.from_gaussian_mechanism(cost.noise_multiplier / math.sqrt(times), value_discretization_interval=interval)
    if isinstance(cost, StatedCost):
        pair = common.DifferentialPrivacyParameters(cost.epsilon, cost.delta)
        one = build.from_privacy_parameters(pair, value_discretization_interval=interval)
    elif isinstance(cost, LaplaceCost):
        one = build.from_laplace_mechanism(cost.noise_multiplier, value_discretization_interval=interval)
    elif isinstance(cost, DiscreteLaplaceCost):
        one = build.from_discrete_laplace_mechanism(
            cost.parameter, sensitivity=cost.sensitivity, value_discretization_interval=interval
        )
    elif isinstance(cost, RandomizedResponseCost):
        one = build.from_randomized_response(cost.noise_parameter, cost.num_buckets, value_discretization_interval=interval)
    elif isinstance(step, ScreeningDpEvent):
        one = screening_loss_distribution(step, sampling_probability=rate, interval=interval)
    elif isinstance(step, NoisyArgmaxDpEvent):
        one = votes_loss_distribution(step.sigma, sampling_probability=rate, interval=interval)
    elif isinstance(cost, SampledCost) and isinstance(step, GaussianCost | LaplaceCost):
        gaussian = isinstance(step, GaussianCost)
        make = build.from_gaussian_mechanism if gaussian else build.from_laplace_mechanism
        one = make(step.noise_multiplier, sampling_prob=rate, value_discretization_interval=interval)
    else:
        raise IncompatibleGuarantees(f"no privacy-loss distribution for {type(cost).__name__}")
    return one.self_compose(times)


def _total(epsilon: float) -> float:
    if not epsilon >= 0:
        raise InvalidParameter(f"epsilon={epsilon!r}: expected a number of at least 0")
    return float(epsilon)
