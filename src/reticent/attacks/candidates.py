"""Candidates that an attacker knows, and the evidence of a fitted system's answers about each.

The mechanism of a fitted system is public, so an attacker computes the exact probability of an
answer for every candidate. With the same knowledge, no other attack does better.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeIs

from reticent.accounting.telling_apart import hops
from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Guarantee, Neighborhood
from reticent.core.norms import Norm, unit_moves
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE
from reticent.mechanisms import (
    AdditiveMechanism,
    AnyTwo,
    FiniteChannel,
    GaussianMechanism,
    HopRelease,
    ProposeTestRelease,
    SignedDistanceRelease,
)
from reticent.mechanisms.finite_channel import draw
from reticent.noise import Sampler
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.query import PowerQuery, RowQuery

if TYPE_CHECKING:
    from reticent.core.regions import Box
    from reticent.published.posthoc_encoder import PublishedPosthocEncoder
    from reticent.published.power import PublishedPowerEncoder
    from reticent.systems.posthoc.query import PrivateQuery
    from reticent.systems.power.code_query import EmbeddedPoints

    Printed: TypeAlias = PublishedPosthocEncoder | PublishedPowerEncoder
    Query: TypeAlias = PrivateQuery | CodeQuery | PowerQuery


_NOWHERE = 1e300
"""Stands for what is withheld: no embedding reaches it. Minus it is the log of no chance."""

_LEAST = np.finfo(np.float64).tiny

_WITH_DELTA = (GaussianMechanism, SignedDistanceRelease)

_DIRECTIONS = 32
"""Random directions tried around each row, beside the axes."""

_WITHIN = 1.0 - 2.0**-40
"""Keeps rounding from putting a neighbour a last bit beyond the radius."""


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
        density: log-probability of values that are released for each candidate, shape (n, N), up
            to a number for each value that all candidates share.
        passing: chance that an answer about each candidate is released, shape (N,), or None where
            ``density`` knows withheld values too, or none is withheld.
        labels: whether an answer is a label or a code.
    """

    points: Array
    adjacency: Neighborhood | None
    outputs: int
    shown: Array
    norm: Norm
    answer: Callable[[Integers, Sampler], Answers]
    density: Callable[[npt.NDArray[Any]], Array]
    passing: Array | None = None
    labels: bool = False

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def steps(self) -> Integers:
        """Return the number of neighbour steps from each candidate to another, shape (N, N)."""
        if self.adjacency is None:
            return np.asarray(Norm.LINF.between(self.points, self.points) > 0, dtype=np.int64)
        apart = self.adjacency.metric.between(self.points, self.points)
        return hops(apart, self.adjacency.radius)

    @property
    def neighbours(self) -> tuple[Integers, Integers]:
        """Return the numbers of two candidates that are neighbours and differ, for all such two."""
        first, second = np.nonzero(np.triu(self.steps == 1))
        return first, second

    def weigh(self, answers: Answers) -> Array:
        """Return the log-probability of each answer for each candidate, shape (n, N), up to a
        number for each answer that all candidates share.
        """
        if self.passing is None:
            return self.density(answers.values)
        known = ~answers.withheld
        with np.errstate(divide="ignore"):
            weights = np.tile(np.log1p(-self.passing), (len(known), 1))
            weights[known] = np.log(self.passing) + self.density(answers.values[known])
        return weights


def is_posthoc(query: object) -> TypeIs[PrivateQuery]:
    """Return whether ``query`` is a posthoc one, without an import of its module and of torch."""
    module = sys.modules.get("reticent.systems.posthoc.query")
    return module is not None and isinstance(query, module.PrivateQuery)


_PRINTED = ("PublishedPosthocEncoder", "PublishedPowerEncoder")
"""Algorithms as printed that release about an input. By name: their modules load torch."""


def is_printed(query: object) -> TypeGuard[Printed]:
    """Return whether ``query`` is an algorithm as printed, fitted, whose claim is a paper's."""
    return type(query).__name__ in _PRINTED


def is_attackable(query: object) -> TypeGuard[Query]:
    """Return whether the law of a fitted query's answers is known."""
    known = is_posthoc(query) or is_printed(query)
    return known or isinstance(query, CodeQuery | PowerQuery)


def attackable_query(system: Any) -> Query:
    """Return the fitted query of a system whose exact probabilities are known.

    Raises:
        InvalidInput: another system, or one without a guarantee.
        NotFittedYet: not fitted.
    """
    if is_printed(system):
        return cast("Query", system)
    query = system._fitted() if hasattr(system, "_fitted") else None
    if is_attackable(query):
        return query
    raise InvalidInput(
        f"system: a {type(system).__name__} cannot be attacked here; expected a fitted "
        "PosthocEncoder, PosthocClassifier, CodeEncoder or PowerEncoder, with a guarantee and a "
        "mechanism that reads no attribute as it is"
    )


def stated(query: Any) -> Guarantee:
    """Return the guarantee of one answer by the settings that the bundle states.

    The mechanism's own figure is not used, because it may be wrong.
    """
    from reticent.published.research import PublishedSystem

    if isinstance(query, PublishedSystem):
        return query.guarantee
    if is_posthoc(query):
        wanted = query.requirement
        return Guarantee(wanted.epsilon, wanted.delta, wanted.adjacency)
    if isinstance(query, CodeQuery):
        return query.stated
    settings = query.plan if isinstance(query, RowQuery) else query.choice
    delta = settings.delta if isinstance(query.mechanism, _WITH_DELTA) else 0.0
    return Guarantee(settings.epsilon, delta, query.adjacency)


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
        return _by_rule(query, points) if query.rule is not None else _posthoc(query, points)
    if is_printed(query):
        return _printed(query, points)
    mechanism, graph = query.mechanism, _graph(query)
    if not isinstance(query, CodeQuery):
        assert isinstance(mechanism, AdditiveMechanism)
        values = query.exact(points)
        return Candidates(
            points,
            _neighbourhood(query.adjacency),
            query.outputs,
            values,
            mechanism.norm,
            lambda which, sampler: Answers(*query.answer(points[which], sampler=sampler)),
            partial(mechanism.log_likelihood, values=values),
        )
    assert isinstance(mechanism, FiniteChannel)
    # A node is 0 edges from itself alone.
    rows = points if graph is None else graph.points[points.argmin(axis=1)]
    weights = np.log(np.maximum(mechanism.matrix[query.nodes(rows)], _LEAST)).T
    any_two = isinstance(mechanism.nodes, AnyTwo)
    return Candidates(
        points,
        None if any_two else _neighbourhood(mechanism.adjacency),
        query.outputs,
        weights.T,
        Norm.LINF,
        lambda which, sampler: Answers(*query.answer(rows[which], sampler=sampler)),
        lambda seen: weights[seen.argmax(axis=1)],
        labels=True,
    )


def worst_neighbours(
    query: Query, rows: Any, points: Array, *, around: int, random: np.random.Generator
) -> dict[str, Candidates]:
    """Return tried neighbours whose answers differ most, two candidates by what differs, in words.

    Tried are points at the radius around some of the rows or, of tables and where any two inputs
    are neighbours, the rows themselves. Where a test decides about release, there are also two
    whose chances to pass differ most. The result is empty if no two of the tried are neighbours
    whose answers differ.

    Args:
        query: the fitted release.
        rows: checked rows, at least one.
        points: the same as ``points_of`` gives them, shape (n, d).
        around: number of rows, the first ones, around which points are tried.
        random: source of directions.
    """
    if isinstance(query, CodeQuery):
        found = query.worst_pair(rows, random=random)
        if found is None:
            return {}
        pair = candidates_of(query, points_of(query, CodedRows.of(found)))
        return {"neighbours among or around your rows: largest change of a code's chance": pair}
    box, near = _box(query), candidates_of(query, points[:1]).adjacency
    if box is None or near is None:
        tried, words = candidates_of(query, points), "two of your rows"
        first, second = tried.neighbours
    else:
        here, dimension = points[:around], points.shape[1]
        moves = unit_moves(dimension, near.metric, directions=_DIRECTIONS, random=random)
        ends = here[:, None, :] + _WITHIN * near.radius * moves
        tried = candidates_of(query, np.concatenate([here, box.clip(ends.reshape(-1, dimension))]))
        words = f"embeddings of your rows within {near.metric.value} distance {near.radius:g}"
        first = np.repeat(np.arange(len(here)), len(moves))
        second = len(here) + np.arange(len(first))
    if not len(first):
        return {}
    shown = "a label's chance" if tried.labels else "the released value"
    changes = {shown: tried.norm.of(tried.shown[first] - tried.shown[second])}
    if tried.passing is not None:
        odds = np.log((tried.passing + 1e-12) / (1.0 - tried.passing + 1e-12))
        changes["the chance to pass"] = np.abs(odds[first] - odds[second])
    worst = {what: int(change.argmax()) for what, change in changes.items() if change.any()}
    return {
        f"{words}: largest change of {what}": candidates_of(
            query, tried.points[[first[at], second[at]]]
        )
        for what, at in worst.items()
    }


def _box(query: Query) -> Box | EmbeddedPoints | None:
    """Return the public box around all points of an embedding, or None for rows of a table."""
    if is_posthoc(query):
        return query.bound.domain
    return getattr(query, "inputs_", None)


def _graph(query: Query) -> PublicGraph | None:
    """Return the graph whose edges the guarantee counts, or None."""
    nodes = query.mechanism.nodes if isinstance(query, CodeQuery) else None
    return nodes if isinstance(nodes, PublicGraph) else None


def _posthoc(query: PrivateQuery, points: Array) -> Candidates:
    from reticent.lipschitz import snap

    mechanism = query.mechanism
    assert not isinstance(mechanism, FiniteChannel | HopRelease)
    steps = snap(query.bound, points)
    values = query.network.forward_each(steps * query.bound.input_step)
    inner: Any
    passing: Array | None = None
    levels: Integers | None = None
    if isinstance(mechanism, ProposeTestRelease):
        assert query.test is not None
        levels = np.minimum(query.test.levels_on_grid(steps), mechanism.max_level)
        inner, passing = mechanism.inner, mechanism.pass_probabilities[levels]
    else:
        inner = mechanism

    def answer(which: Integers, sampler: Sampler) -> Answers:
        if isinstance(mechanism, ProposeTestRelease):
            assert levels is not None
            return Answers(*mechanism.release(values[which], levels[which], sampler=sampler))
        released = mechanism.release(values[which], sampler=sampler)
        return Answers(released, np.zeros(len(which), dtype=np.bool_))

    density: Callable[[npt.NDArray[Any]], Array]
    if isinstance(inner, AdditiveMechanism):
        shown, norm, density = values, inner.norm, partial(inner.log_likelihood, values=values)
    else:
        shown = np.log(np.maximum(inner.probabilities(values), _LEAST))
        norm, density = Norm.LINF, lambda seen: shown.T[seen]
    return Candidates(
        points,
        query.requirement.adjacency,
        query.network.output_dimension,
        shown,
        norm,
        answer,
        density,
        passing,
        labels=not isinstance(inner, AdditiveMechanism),
    )


def _printed(query: Printed, points: Array) -> Candidates:
    """Return candidates of an algorithm as printed, with the law that its mechanism has."""
    near = query.within
    if query.mechanism_ is None:  # nothing is drawn, so an answer rules every other point out
        known = query.released(points)

        def exactly(seen: npt.NDArray[Any]) -> Array:
            shown, given = (np.nan_to_num(each, nan=_NOWHERE) for each in (known, seen))
            return np.where(Norm.LINF.between(given, shown) == 0, 0.0, -_NOWHERE)

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
    return Candidates(
        points,
        near,
        mechanism.dimension,
        values,
        Norm.L1,
        lambda which, sampler: Answers(
            *mechanism.release(values[which], radii[which], sampler=sampler)
        ),
        lambda seen: -Norm.L1.between(seen, values) / mechanism.scale,
        mechanism.pass_probabilities(radii),
    )


def _by_rule(query: PrivateQuery, points: Array) -> Candidates:
    rule = query.rule
    assert rule is not None
    shares = rule.at(points, query.network.forward_each(points))
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
        lambda seen: weights[seen],
        labels=True,
    )


def _neighbourhood(adjacency: object) -> Neighborhood | None:
    return adjacency if isinstance(adjacency, Neighborhood) else None
