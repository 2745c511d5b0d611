"""Candidates that an attacker knows, and the evidence of a fitted system's answers about each.

The mechanism of a fitted system is public, so an attacker computes the exact probability of an
answer for every candidate. With the same knowledge, no other attack does better.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeIs

from reticent.accounting.telling_apart import hops
from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Guarantee, Neighborhood
from reticent.core.norms import Norm
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE
from reticent.mechanisms import (
    AdditiveMechanism,
    AnyTwo,
    FiniteChannel,
    HopRelease,
    ProposeTestRelease,
)
from reticent.mechanisms.finite_channel import draw
from reticent.mechanisms.gaussian import GaussianMechanism
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.noise import Sampler
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.query import PowerQuery

if TYPE_CHECKING:
    from reticent.published.posthoc_encoder import PublishedPosthocEncoder
    from reticent.published.power import PublishedPowerEncoder
    from reticent.systems.posthoc.query import PrivateQuery

    Printed = PublishedPosthocEncoder | PublishedPowerEncoder
    Query = PrivateQuery | CodeQuery | PowerQuery


_NOWHERE = 1e300
"""Stands for what is withheld: no embedding reaches it."""

_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers about inputs.

    Attributes:
        values: answers of shape (n, m), or (n,) for labels, with NaN or -1 where withheld.
        withheld: flags, shape (n,).
    """

    values: npt.NDArray[Any]
    withheld: Booleans

    def vectors(self, labels: int) -> Array:
        """Return values as rows of numbers, labels as one of ``labels`` unit vectors.

        Withheld rows are NaN.
        """
        if self.values.ndim == 2:
            return np.asarray(self.values, dtype=np.float64)
        rows = np.eye(labels)[np.maximum(self.values, 0)]
        rows[self.withheld] = np.nan
        return np.asarray(rows)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Inputs that an attacker knows.

    Attributes:
        points: points of shape (N, d) in the space where the guarantee measures distance.
        adjacency: the neighbouring relation, or None if any two inputs are neighbours.
        outputs: number of coordinates of one answer as a vector: released values, or labels.
        shown: parameters of the answers' law, shape (N, s): the exact values, or log-probabilities
            of labels.
        norm: norm of a change of ``shown``.
        answer: answers about the candidates of these numbers, shape (n,).
        weigh: log-probability of each answer for each candidate, shape (n, N), up to a number for
            each answer that all candidates share.
    """

    points: Array
    adjacency: Neighborhood | None
    outputs: int
    shown: Array
    norm: Norm
    answer: Callable[[Integers, Sampler], Answers]
    weigh: Callable[[Answers], Array]

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def steps(self) -> Integers:
        """Return the number of neighbour steps from each candidate to another, shape (N, N)."""
        if self.adjacency is None:
            return np.asarray(Norm.LINF.between(self.points, self.points) > 0, dtype=np.int64)
        apart = self.adjacency.metric.between(self.points, self.points)
        return hops(apart, self.adjacency.radius)


def is_posthoc(query: object) -> TypeIs[PrivateQuery]:
    """Return whether ``query`` is a posthoc one, without an import of its module and of torch."""
    module = sys.modules.get("reticent.systems.posthoc.query")
    return module is not None and isinstance(query, module.PrivateQuery)


_PRINTED = ("PublishedPosthocEncoder", "PublishedPowerEncoder")
"""Algorithms as printed that release about an input. By name: their modules load torch."""


def is_printed(query: object) -> TypeGuard[Printed]:
    """Return whether ``query`` is an algorithm as printed, fitted, whose claim is a paper's."""
    return type(query).__name__ in _PRINTED


def attackable_query(system: Any) -> Query:
    """Return the fitted query of a system whose exact probabilities are known.

    Raises:
        InvalidInput: another system, or one without a guarantee.
        NotFittedYet: not fitted.
    """
    if is_printed(system):
        return cast("Query", system)
    query = system._fitted() if hasattr(system, "_fitted") else None
    if is_posthoc(query) or isinstance(query, CodeQuery | PowerQuery):
        return query
    raise InvalidInput(
        f"system: a {type(system).__name__} cannot be attacked here; expected a fitted "
        "PosthocEncoder, PosthocClassifier, CodeEncoder or PowerEncoder, with a guarantee and a "
        "mechanism that reads no attribute as it is"
    )


def stated(query: Query) -> Guarantee:
    """Return the guarantee of one answer by the settings that the bundle states.

    The mechanism's own figure is not used, because it may be wrong.
    """
    if is_printed(query):
        return query.guarantee
    if is_posthoc(query):
        wanted = query.requirement
        return Guarantee(wanted.epsilon, wanted.delta, wanted.adjacency)
    if isinstance(query, CodeQuery):
        return query.stated
    plan = query.plan
    delta = plan.delta if isinstance(query.mechanism, GaussianMechanism) else 0.0
    return Guarantee(plan.epsilon, delta, query.adjacency)


def points_of(query: Query, rows: Any) -> Array:
    """Return checked rows as points where the guarantee measures distance, shape (n, d)."""
    if is_posthoc(query):
        return query.bound.domain.clip(query.embedding.embed(rows))
    if is_printed(query):
        return query.points(rows)
    dense: Array = rows.dense()
    graph = _graph(query)
    return dense if graph is None else graph.hop_counts(dense)


def candidates_of(query: Query, points: Array) -> Candidates:
    """Return the candidates at ``points``, which ``points_of`` gives."""
    if is_posthoc(query):
        return _posthoc(query, points)
    if is_printed(query):
        return _printed(query, points)
    mechanism, graph = query.mechanism, _graph(query)
    adjacency = None
    if isinstance(query, CodeQuery):
        rows = points
        assert isinstance(mechanism, FiniteChannel)
        if not isinstance(mechanism.nodes, AnyTwo):
            adjacency = _neighbourhood(mechanism.adjacency)
        if graph is not None:
            rows = graph.points[points.argmin(axis=1)]  # a node is 0 edges from itself alone
        shares = mechanism.matrix[query.nodes(rows)]
    else:
        assert isinstance(mechanism, AdditiveMechanism)
        values = query.exact(points)
        return Candidates(
            points,
            _neighbourhood(query.adjacency),
            query.outputs,
            values,
            mechanism.norm,
            lambda which, sampler: Answers(*query.answer(points[which], sampler=sampler)),
            lambda answers: mechanism.log_likelihood(answers.values, values),
        )
    weights = np.log(np.maximum(shares, _LEAST)).T
    return Candidates(
        points,
        adjacency,
        query.outputs,
        weights.T,
        Norm.LINF,
        lambda which, sampler: Answers(*query.answer(rows[which], sampler=sampler)),
        lambda answers: weights[answers.values.argmax(axis=1)],
    )


def _graph(query: Query) -> PublicGraph | None:
    """Return the graph whose edges the guarantee counts, or None."""
    nodes = query.mechanism.nodes if isinstance(query, CodeQuery) else None
    return nodes if isinstance(nodes, PublicGraph) else None


def _posthoc(query: PrivateQuery, points: Array) -> Candidates:
    if query.rule is not None:
        return _by_rule(query, points)
    from reticent.lipschitz import snap

    mechanism = query.mechanism
    assert not isinstance(mechanism, FiniteChannel | HopRelease)
    steps = snap(query.bound, points)
    values = query.network.forward_each(steps * query.bound.input_step)
    inner = mechanism.inner if isinstance(mechanism, ProposeTestRelease) else mechanism
    levels: Integers | None = None
    passing = np.ones(len(points))
    if isinstance(mechanism, ProposeTestRelease):
        assert query.test is not None
        levels = np.minimum(query.test.levels_on_grid(steps), mechanism.max_level)
        passing = mechanism.pass_probabilities[levels]
    with np.errstate(divide="ignore"):
        pass_weight, held_weight = np.log(passing), np.log(np.maximum(1.0 - passing, 0.0))

    def answer(which: Integers, sampler: Sampler) -> Answers:
        if isinstance(mechanism, ProposeTestRelease):
            assert levels is not None
            return Answers(*mechanism.release(values[which], levels[which], sampler=sampler))
        released = mechanism.release(values[which], sampler=sampler)
        return Answers(released, np.zeros(len(which), dtype=np.bool_))

    labels: Array | None = None
    if isinstance(inner, LabelMechanism):
        labels = np.log(np.maximum(inner.probabilities(values), _LEAST)).T

    def weigh(answers: Answers) -> Array:
        known = ~answers.withheld
        weights = np.tile(held_weight, (len(known), 1))
        if labels is not None:
            weights[known] = pass_weight + labels[answers.values[known]]
        else:
            assert isinstance(inner, AdditiveMechanism)
            weights[known] = pass_weight + inner.log_likelihood(answers.values[known], values)
        return weights

    return Candidates(
        points,
        query.requirement.adjacency,
        query.network.output_dimension,
        values if labels is None else labels.T,
        inner.norm if isinstance(inner, AdditiveMechanism) else Norm.LINF,
        answer,
        weigh,
    )


def _printed(query: Printed, points: Array) -> Candidates:
    """Return candidates of an algorithm as printed, with the law that its mechanism has."""
    near = query.within
    if query.mechanism_ is None:  # nothing is drawn, so an answer rules every other point out
        known = query.released(points)

        def exactly(answers: Answers) -> Array:
            shown, given = (np.nan_to_num(each, nan=_NOWHERE) for each in (known, answers.values))
            return np.where(Norm.LINF.between(given, shown) == 0, 0.0, -np.inf)

        return Candidates(
            points,
            near,
            known.shape[1],
            np.nan_to_num(known),
            Norm.L2,
            lambda which, _: Answers(known[which], np.isnan(known[which, 0])),
            exactly,
        )
    mechanism = query.mechanism_
    values, radii = query.before_noise(points)
    with np.errstate(divide="ignore"):
        passing = mechanism.pass_probabilities(radii)
        pass_weight, held_weight = np.log(passing), np.log1p(-passing)

    def weigh(answers: Answers) -> Array:
        shown = ~answers.withheld
        weights = np.tile(held_weight, (len(shown), 1))
        away = Norm.L1.between(answers.values[shown], values)
        weights[shown] = pass_weight - away / mechanism.scale
        return weights

    return Candidates(
        points,
        near,
        mechanism.dimension,
        values,
        Norm.L1,
        lambda which, sampler: Answers(
            *mechanism.release(values[which], radii[which], sampler=sampler)
        ),
        weigh,
    )


def _by_rule(query: PrivateQuery, points: Array) -> Candidates:
    rule = query.rule
    assert rule is not None
    logits = query.network.forward_each(points)
    shares = rule.at(points, logits)
    weights = np.log(shares / WHOLE)
    any_two = isinstance(rule, FiniteChannel) and isinstance(rule.nodes, AnyTwo)

    def answer(which: Integers, sampler: Sampler) -> Answers:
        return Answers(draw(shares[:, which], sampler), np.zeros(len(which), dtype=np.bool_))

    return Candidates(
        points,
        None if any_two else query.requirement.adjacency,
        len(shares),
        weights.T,
        Norm.LINF,
        answer,
        lambda answers: weights[answers.values],
    )


def _neighbourhood(adjacency: object) -> Neighborhood | None:
    return adjacency if isinstance(adjacency, Neighborhood) else None
