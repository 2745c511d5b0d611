"""Neighbours that a fitted system is audited on, found around the rows that its owner gives.

Each finder takes a fitted query and checked rows, and gives named pairs. For either neighbour a
pair has a function from a number of runs and a sampler to what comes out. The fitted query computes
everything up to the mechanism once for each pair. The mechanism then runs as often as an audit
wants.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeIs

from reticent.audit.cases import Outputs, additive_outputs, label_outputs, vector_outputs
from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm, unit_moves
from reticent.grids.shares import WHOLE
from reticent.lipschitz import snap
from reticent.mechanisms import (
    AdditiveMechanism,
    FiniteChannel,
    HopRelease,
    ProposeTestRelease,
)
from reticent.mechanisms.finite_channel import draw as drawn
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.noise import Sampler
from reticent.noise.coins import coins
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.protection import UNIT, AttributeRadii, Protection
from reticent.systems.power.query import RowQuery

if TYPE_CHECKING:
    from reticent.published.certified import PublishedCertifiedClassifier
    from reticent.published.posthoc_encoder import PublishedPosthocEncoder
    from reticent.published.power import PublishedPowerEncoder
    from reticent.published.private_knn import PublishedPrivateKNN
    from reticent.published.research import PublishedSystem
    from reticent.systems.posthoc.query import PrivateQuery


_MOST_ROWS = 64
"""Rows around which neighbours are looked for; more cost time and seldom find a worse pair."""

_DIRECTIONS = 32
"""Random directions tried around each row, beside the axes."""

_ROUNDS = 24
"""Neighbours within the radii that are tried around each row of a table: of one attribute alone,
and of all at once.
"""

_WITHIN = "neighbours within the stated radii"


class Pair(NamedTuple):
    """Two neighbours, as the mechanism sees them.

    Attributes:
        name: which neighbours, in words without private values.
        first, second: what comes out of either.
        centers: released vectors of both without noise, shape (m,) each; None for labels.
    """

    name: str
    first: Outputs
    second: Outputs
    centers: tuple[Array, Array] | None = None


def is_posthoc(query: object) -> TypeIs[PrivateQuery]:
    """Return whether ``query`` is a posthoc one, without importing torch, which that module needs.

    Example:
        >>> is_posthoc("a query")
        False
    """
    module = sys.modules.get("reticent.systems.posthoc.query")
    return module is not None and isinstance(query, module.PrivateQuery)


def posthoc_pairs(query: PrivateQuery, inputs: Array, *, random: np.random.Generator) -> list[Pair]:
    """Return embeddings of rows, each against points at the radius around it.

    Of all these neighbours one pair is kept whose released values differ most. Where a test
    decides about release, one is kept whose chances to pass differ most.

    Args:
        query: the fitted release.
        inputs: shape (n, features), n at least 1. Up to 64 are used.
        random: source of directions.
    """
    here = query.bound.domain.clip(query.embedding.embed(_some(inputs, random)))
    radius, norm = query.requirement.adjacency.radius, query.bound.input_norm
    moves = unit_moves(here.shape[1], norm, directions=_DIRECTIONS, random=random) * radius
    start = np.repeat(here, len(moves), axis=0)
    end = query.bound.domain.clip(start + np.tile(moves, (len(here), 1)))
    if query.rule is not None:
        return [_rule_pair(query, start, end)]
    values = [
        query.network.forward_each(snap(query.bound, points) * query.bound.input_step)
        for points in (start, end)
    ]
    levels = None if query.test is None else [query.test.levels(points) for points in (start, end)]
    kept = {"largest change of the released value": int(_change(query, *values).argmax())}
    mechanism = query.mechanism
    if levels is not None:
        assert isinstance(mechanism, ProposeTestRelease)
        chances = [
            mechanism.pass_probabilities[np.minimum(at, mechanism.max_level)] for at in levels
        ]
        odds = [np.log((p + 1e-12) / (1.0 - p + 1e-12)) for p in chances]
        kept["largest change of the chance to pass"] = int(np.abs(odds[0] - odds[1]).argmax())

    inner = _inner(query)

    def draw(side: int, index: int) -> Outputs:
        value = values[side][index]
        level = None if levels is None else int(levels[side][index])
        centers = (values[0][index], values[1][index])

        def run(runs: int, sampler: Sampler) -> Array:
            tiled = np.broadcast_to(value, (runs, len(value)))
            if level is None:
                assert not isinstance(mechanism, ProposeTestRelease | HopRelease | FiniteChannel)
                released = mechanism.release(tiled, sampler=sampler), np.zeros(runs, dtype=np.bool_)
            else:
                assert isinstance(mechanism, ProposeTestRelease)
                released = mechanism.release(tiled, np.full(runs, level), sampler=sampler)
            if isinstance(inner, AdditiveMechanism):
                return additive_outputs(inner, released, centers)
            return label_outputs(*released)

        return run

    near = f"embeddings of your rows within {norm.value} distance {radius:g}"
    return [
        Pair(f"{near}: {what}", draw(0, at), draw(1, at), (values[0][at], values[1][at]))
        for what, at in kept.items()
    ]


def _rule_pair(query: PrivateQuery, start: Array, end: Array) -> Pair:
    """Return the two of neighbours ``start`` and ``end`` whose chances of some label differ
    most.
    """
    rule = query.rule
    assert rule is not None
    logits = [query.network.forward_each(points) for points in (start, end)]
    logs = [np.log(rule.at(x, f) / WHOLE) for x, f in zip((start, end), logits, strict=True)]
    index = int(np.abs(logs[0] - logs[1]).max(axis=0).argmax())

    def draw(point: Array, scores: Array) -> Outputs:
        def run(runs: int, sampler: Sampler) -> Array:
            shares = np.repeat(rule.at(point[None], scores[None]), runs, axis=1)
            return label_outputs(drawn(shares, sampler))

        return run

    adjacency = query.requirement.adjacency
    near = f"embeddings of your rows within {adjacency.metric.value} distance {adjacency.radius:g}"
    return Pair(
        f"{near}: largest change of a label's chance",
        draw(start[index], logits[0][index]),
        draw(end[index], logits[1][index]),
    )


def printed_pairs(system: PublishedSystem, rows: Any, *, random: np.random.Generator) -> list[Pair]:
    """Return neighbours of an algorithm as printed: around the rows where these are protected, and
    the worst ones that are known where records are.

    Args:
        system: the fitted algorithm.
        rows: at least one row, as its ``checked`` gives them.
        random: source of directions.

    Raises:
        InvalidInput: no two different rows are released within the distance that the statement of
            the power encoder is about.
    """
    # By name: the modules load torch, and hold what a client does without.
    found: Any = system
    match type(system).__name__:
        case "PublishedPosthocEncoder":
            return _printed_posthoc(found, rows, random)
        case "PublishedPowerEncoder":
            return [_printed_power(found, rows)]
        case "PublishedPrivateKNN":
            return [_printed_votes(found)]
    return [_printed_response(found)]


def _printed_posthoc(
    system: PublishedPosthocEncoder, rows: Array, random: np.random.Generator
) -> list[Pair]:
    here = system.points(_some(rows, random))
    moves = system.radius * unit_moves(
        here.shape[1], Norm.LINF, directions=_DIRECTIONS, random=random
    )
    start = np.repeat(here, len(moves), axis=0)
    end = system.inputs_.clip(start + np.tile(moves, (len(here), 1)))
    sides = [system.before_noise(points) for points in (start, end)]
    mechanism, (values, others) = system.mechanism_, (side[0] for side in sides)
    kept = {"largest change of the vector": int(Norm.L1.of(values - others).argmax())}
    if mechanism.switches.answers == "tested":
        chances = [mechanism.pass_probabilities(side[1]) for side in sides]
        odds = [np.log((p + 1e-12) / (1.0 - p + 1e-12)) for p in chances]
        kept["largest change of the chance to pass"] = int(np.abs(odds[0] - odds[1]).argmax())

    def draw(side: int, index: int) -> Outputs:
        value, radius = sides[side][0][index], sides[side][1][index]
        centers = (values[index], others[index])

        def run(runs: int, sampler: Sampler) -> Array:
            tiled = np.broadcast_to(value, (runs, len(value)))
            released = mechanism.release(tiled, np.full(runs, radius), sampler=sampler)
            return vector_outputs(*released, centers, norm=Norm.L1, scale=mechanism.scale)

        return run

    near = f"embeddings of your rows within linf distance {system.radius:g}"
    return [Pair(f"{near}: {what}", draw(0, at), draw(1, at)) for what, at in kept.items()]


def _printed_power(system: PublishedPowerEncoder, rows: Array) -> Pair:
    some = rows[: 8 * _MOST_ROWS]
    values = system.released(some)
    away = Norm.L2.between(some, some)
    shown = np.isfinite(values[:, 0])
    usable = (away > 0) & (away <= 1.0) & shown & shown[:, None]
    if not usable.any():
        raise InvalidInput(
            "data: expected two different rows that are released, at l2 distance 1 at most of each "
            "other once encoded"
        )
    first, second = np.unravel_index(int(np.where(usable, away, np.inf).argmin()), away.shape)
    same = float(np.array_equal(values[first], values[second]))
    one, other = (partial(_constant, which) for which in (same, 1.0))
    return Pair("two of your rows: what is released has no noise", one, other)


def _printed_votes(system: PublishedPrivateKNN) -> Pair:
    plan, steps = system.voting_.plan_, system.steps

    def votes(present: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        counts = np.zeros((len(present), plan.classes), dtype=np.int64)
        counts[:, 0], counts[:, 1] = present, steps.neighbours - present.astype(np.int64)
        return counts

    def draw(more: bool, runs: int, sampler: Sampler) -> Array:
        """Count labels 0, other labels and withheld answers over all queries of a run."""

        def sample() -> npt.NDArray[np.int64]:
            asked = coins(
                (runs * steps.queries,), probability=steps.sampling_probability, sampler=sampler
            )
            return votes(asked & more)

        first = sample()
        passed = np.ones(len(first), dtype=np.bool_)
        if plan.screening is not None:
            passed = plan.screening.release(first.max(axis=1), sampler=sampler)
        fresh = plan.screening is not None and not steps.shared_subsample
        labels = plan.argmax.release(sample() if fresh else first, sampler=sampler)
        shape = (runs, steps.queries)
        passes, zeros = passed.reshape(shape), labels.reshape(shape) == 0
        left = np.cumsum(passes, axis=1) - passes < steps.answers
        kinds = (left & passes & zeros, left & passes & ~zeros, left & ~passes)
        return np.stack([kind.sum(axis=1) for kind in kinds], axis=1).astype(np.float64)

    name = (
        f"k = {steps.neighbours} records of one label, and the same with a nearest one of another, "
        f"over {steps.queries} queries"
    )
    return Pair(name, partial(draw, False), partial(draw, True))


def _printed_response(system: PublishedCertifiedClassifier) -> Pair:
    mechanism, pair = system.mechanism_, system.worst_pair()

    def draw(label: int, level: int, runs: int, sampler: Sampler) -> Array:
        given = np.full(runs, label), np.full(runs, level)
        return label_outputs(mechanism.release(*given, sampler=sampler))

    one, other = (partial(draw, *side) for side in system.worst_sides())
    return Pair(pair.description, one, other)


def code_pairs(query: CodeQuery, rows: CodedRows, *, random: np.random.Generator) -> list[Pair]:
    """Return neighbours around your rows whose chances of some code differ most, or none.

    Args:
        query: the fitted release.
        rows: at least one row, as ``query.encode`` gives them. Up to 512 are used.
        random: source of directions, and of the rows that are used, where there are more.
    """
    found = query.worst_pair(_part(rows, random), random=random)
    if found is None:
        return []
    name = "neighbours among or around your rows: largest change of a code's chance"
    return [Pair(name, _answers(query, found[0]), _answers(query, found[1]))]


def power_pairs(
    query: RowQuery,
    rows: CodedRows,
    *,
    random: np.random.Generator,
) -> list[Pair]:
    """Return rows of the table against each other: any two, or those within the radius.

    Args:
        query: the fitted release.
        rows: n rows, coded by the query's schema. Up to 512 are used.
        random: source of the rows that are used, where there are more.

    Returns:
        The pair whose released values differ most, or none where no two of the rows are neighbours,
        or none differ.
    """
    dense = _part(rows, random).dense()
    if isinstance(query, ProtectedQuery):
        return protected_pairs(query, dense[: 2 * _MOST_ROWS], random=random)
    if isinstance(query, LikeliestQuery):
        return likeliest_pairs(query, dense[: 2 * _MOST_ROWS], random=random)
    values = query.exact(dense)
    radius = query.plan.radius
    if isinstance(radius, AttributeRadii):
        radius = None  # its codes hide any two records from each other, near ones too
    apart = Norm.L2.between(dense, dense)
    # No answer tells a row from itself or from an equal one: such a pair could refute nothing.
    neighbours = (apart > 0.0) & (apart <= (np.inf if radius is None else radius))
    change = np.where(neighbours, Norm.L2.between(values, values), 0.0)
    first, second = np.unravel_index(int(change.argmax()), change.shape)
    if change[first, second] == 0.0:
        return []

    centers = (values[first], values[second])
    near = "" if radius is None else f" within {radius:g}"
    name = f"two of your rows{near}: largest change of the released value"
    one, other = (_answers(query, dense[row], centers) for row in (first, second))
    return [Pair(name, one, other, centers)]


def near_rows(protection: Protection, rows: Array, *, random: np.random.Generator) -> Array:
    """A neighbour of each row, shape of ``rows``: what is protected is moved by its radius, each
    attribute by its own or all together by the common one, and stays in the public box.

    Args:
        protection: what neighbours are.
        rows: shape (n, dimension), encoded.
        random: of directions, of the attributes that change, and of the rows that lend values.
    """
    moved, groups = rows.copy(), protection.groups
    chosen = random.random((len(rows), len(groups))) < random.choice([1.0, 0.5, 1.0 / len(groups)])
    signs = random.choice([-1.0, 1.0], (len(rows), len(groups)))
    if protection.norm is Norm.L2:
        norms = np.maximum(np.sqrt(chosen.sum(axis=1, keepdims=True)), 1.0)
        signs = signs / norms
    for place, (part, one_hot, near) in enumerate(groups):
        if one_hot or near >= 1.0:
            lent = rows[random.permutation(len(rows)), part]
            moved[:, part] = np.where(chosen[:, place : place + 1], lent, moved[:, part])
            continue
        at = part.start
        # A missing number is 1/2 beside its mark, and has no neighbour within a finite radius.
        steps = np.where(_missing(protection, rows, at), 0.0, near * signs[:, place])
        stay = np.clip(rows[:, at] + steps, 0.0, 1.0)
        moved[:, at] = np.where(chosen[:, place], stay, rows[:, at])
    return moved


def _missing(protection: Protection, rows: Array, start: int) -> npt.NDArray[np.bool_]:
    for _, part, one_hot in protection.schema.groups:
        if part.start == start and not one_hot and part.stop - part.start == 2:
            return np.asarray(rows[:, start + 1] > 0)
    return np.zeros(len(rows), dtype=np.bool_)


def protected_pairs(
    query: ProtectedQuery, rows: Array, *, random: np.random.Generator
) -> list[Pair]:
    """The neighbours whose answers differ most among those tried; and, where what is released
    without noise tells two neighbours apart, these.

    Args:
        query: the fitted release.
        rows: shape (n, dimension), encoded; two at least.
        random: of neighbours.
    """
    start, end = _moved(query, rows, random)
    bare = [query.read(side, np.zeros((len(side), query.values))) for side in (start, end)]
    pairs = _told_without_noise(*bare)
    steps = [query.steps(side) for side in (start, end)]
    change = np.abs(steps[0] - steps[1]).sum(axis=1)
    worst = int(change.argmax())
    if change[worst] == 0:
        return pairs
    centers = (steps[0][worst] / UNIT, steps[1][worst] / UNIT)

    def draw(row: Array) -> Outputs:
        def run(runs: int, sampler: Sampler) -> Array:
            answer = query.private_answer(np.tile(row, (runs, 1)), sampler=sampler)
            return additive_outputs(query.mechanism, (answer, np.zeros(runs, np.bool_)), centers)

        return run

    name = f"{_WITHIN}: largest change of the private answer"
    return [*pairs, Pair(name, draw(start[worst]), draw(end[worst]))]


def likeliest_pairs(
    query: LikeliestQuery, rows: Array, *, random: np.random.Generator
) -> list[Pair]:
    """Neighbours of which another candidate is named; and, where the candidates or the log odds
    tell two neighbours apart, these.

    Args:
        query: the fitted release.
        rows: shape (n, dimension), encoded; two at least.
        random: of neighbours.
    """
    start, end = _moved(query, rows, random)
    scores = [query.given_scores(side) for side in (start, end)]
    told = [
        np.concatenate(
            [query.read(side, np.full(len(side), place)) for place in range(query.plan.candidates)],
            axis=1,
        )
        for side in scores
    ]
    pairs = _told_without_noise(*told)
    places = [
        query.places(score, query.forest.shares(CodedRows.of(side)))
        for score, side in zip(scores, (start, end), strict=True)
    ]
    changed = np.flatnonzero(places[0] != places[1])
    if not len(changed):
        return pairs
    worst = int(changed[0])

    def draw(row: Array) -> Outputs:
        return lambda runs, sampler: label_outputs(
            query.private_answer(np.tile(row, (runs, 1)), sampler=sampler)
        )

    name = f"{_WITHIN}: another candidate is named"
    return [*pairs, Pair(name, draw(start[worst]), draw(end[worst]))]


def _moved(
    query: ProtectedQuery | LikeliestQuery, rows: Array, random: np.random.Generator
) -> tuple[Array, Array]:
    """The rows several times over, and a neighbour of each. They are made from the stated radii
    and the schema alone: what the query takes for free or protected may be what is at fault.
    """
    assert query.plan.radius is not None  # the plan refuses it
    stated = Protection(query.schema, query.plan.radius)
    near = [near_rows(stated, rows, random=random) for _ in range(_ROUNDS)]
    return np.concatenate([rows] * _ROUNDS), np.concatenate(near)


def _told_without_noise(first: Array, second: Array) -> list[Pair]:
    """A pair that one answer tells apart for certain, where anything without noise differs: nothing
    is drawn, and that is the fault.
    """
    if np.array_equal(first, second):
        return []
    one, other = (partial(_constant, which) for which in (0.0, 1.0))
    return [Pair(f"{_WITHIN}: what is released without noise", one, other)]


def _constant(which: float, runs: int, sampler: Sampler) -> Array:
    return np.full(runs, which)


def certified_pairs(query: CertifiedQuery, inputs: Array) -> list[Pair]:
    """Return neighbouring training sets, as far as a fitted query can know them.

    At each of your rows the certified distance of a label changes by one at most, and a label
    changes at distance 0 only.

    Args:
        query: the fitted release.
        inputs: shape (n, features), n at least 1.
    """
    _, distances = query.stable_distances(inputs)
    found = np.unique(distances[distances > 0])
    # The mechanism is steepest where distances are small, and the rest stands for the others.
    levels = sorted(
        {int(level) for level in (*found[:2], *np.quantile(found, [0.5, 1.0]))}
        if len(found)
        else ()
    )
    pairs = [
        Pair(
            f"certified distance {level} against {level - 1}",
            _response(query, 0, level),
            _response(query, 0, level - 1),
        )
        for level in levels
    ]
    changed = "certified distance 0, and another label"
    return [Pair(changed, _response(query, 0, 0), _response(query, 1, 0)), *pairs]


def _response(query: CertifiedQuery, label: int, level: int) -> Outputs:
    def run(runs: int, sampler: Sampler) -> Array:
        labels, levels = np.full(runs, label), np.full(runs, level)
        return label_outputs(query.mechanism.release(labels, levels, sampler=sampler))

    return run


def _answers(
    query: RowQuery | CodeQuery, row: Array, centers: tuple[Array, Array] | None = None
) -> Outputs:
    mechanism = query.mechanism

    def run(runs: int, sampler: Sampler) -> Array:
        released = query.answer(np.tile(row, (runs, 1)), sampler=sampler)
        if centers is not None and isinstance(mechanism, AdditiveMechanism):
            return additive_outputs(mechanism, released, centers)
        return label_outputs(*released)

    return run


def _part(rows: CodedRows, random: np.random.Generator) -> CodedRows:
    chosen = np.sort(random.permutation(len(rows))[: 8 * _MOST_ROWS])
    return rows.part(chosen)


def _some(inputs: Array, random: np.random.Generator) -> Array:
    return inputs[np.sort(random.permutation(len(inputs))[:_MOST_ROWS])]


def _inner(query: PrivateQuery) -> AdditiveMechanism | LabelMechanism:
    mechanism = query.mechanism
    return mechanism.inner if isinstance(mechanism, ProposeTestRelease) else mechanism  # type: ignore[return-value]


def _change(query: PrivateQuery, first: Array, second: Array) -> Array:
    """Return how far apart two released values are for the noise that hides them, shape (n,)."""
    inner = _inner(query)
    if isinstance(inner, AdditiveMechanism):
        return np.asarray(inner.norm.of(first - second))
    chances = [np.maximum(inner.probabilities(logits), math.ulp(0.0)) for logits in (first, second)]
    return np.asarray(np.abs(np.log(chances[0]) - np.log(chances[1])).max(axis=1))
