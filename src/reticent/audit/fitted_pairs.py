"""Neighbours that a fitted system is audited on, found around the rows that its owner gives.

Each finder takes a fitted query and checked rows, and gives named pairs. For either neighbour a
pair has a function from a number of runs and a sampler to what comes out. The fitted query computes
everything up to the mechanism once for each pair. The mechanism then runs as often as an audit
wants.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.attacks.candidates import Candidates, points_of, worst_neighbours
from reticent.audit.cases import Outputs, additive_outputs, label_outputs, vector_outputs
from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.core.norms import Norm
from reticent.noise import Sampler
from reticent.noise.coins import coins
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
from reticent.systems.power.protection import UNIT, Protection

if TYPE_CHECKING:
    from reticent.attacks.candidates import Query
    from reticent.published.certified import PublishedCertifiedClassifier
    from reticent.published.private_knn import PublishedPrivateKNN

_MOST_ROWS = 64
"""Rows around which neighbours are looked for; more cost time and seldom find a worse pair."""

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
    """

    name: str
    first: Outputs
    second: Outputs


def near_pairs(query: Query, rows: Any, *, random: np.random.Generator) -> list[Pair]:
    """Return the neighbours around or among rows whose answers differ most.

    Args:
        query: the fitted release, whose law ``candidates_of`` knows.
        rows: at least one row, as its ``checked`` gives them. Up to 512 of a table are used, and 64
            others.
        random: source of directions, and of the rows that are used, where there are more.
    """
    some = _part(rows, 8 * _MOST_ROWS if isinstance(rows, CodedRows) else _MOST_ROWS, random)
    points = points_of(query, some)
    found = worst_neighbours(query, some, points, around=_MOST_ROWS, random=random)
    return [
        Pair(name, *(partial(_answers, pair, place) for place in (0, 1)))
        for name, pair in found.items()
    ]


def _answers(pair: Candidates, place: int, runs: int, sampler: Sampler) -> Array:
    """Return labels as they are, and of a vector how much likelier it is for the first."""
    found = pair.answer(np.full(runs, place), sampler)
    if pair.labels:
        return label_outputs(found.values, found.withheld)
    return vector_outputs(found.values, found.withheld, density=pair.density)


def printed_votes_pair(system: PublishedPrivateKNN) -> Pair:
    """Return the worst known neighbours of Private-kNN as printed, over all queries of a run."""
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


def printed_response_pair(system: PublishedCertifiedClassifier) -> Pair:
    """Return the worst known neighbours of certified training as printed."""
    one, other = (_response(system.mechanism_, *side) for side in system.worst_sides())
    return Pair(system.worst_pair().description, one, other)


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
    query: ProtectedQuery, rows: CodedRows, *, random: np.random.Generator
) -> list[Pair]:
    """The neighbours whose answers differ most among those tried; and, where what is released
    without noise tells two neighbours apart, these.

    Args:
        query: the fitted release.
        rows: coded rows, at least two. Up to 128 are used.
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
    query: LikeliestQuery, rows: CodedRows, *, random: np.random.Generator
) -> list[Pair]:
    """Neighbours of which another candidate is named; and, where the candidates or the log odds
    tell two neighbours apart, these.

    Args:
        query: the fitted release.
        rows: coded rows, at least two. Up to 128 are used.
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
    query: ProtectedQuery | LikeliestQuery, coded: CodedRows, random: np.random.Generator
) -> tuple[Array, Array]:
    """The rows several times over, and a neighbour of each. They are made from the stated radii
    and the schema alone: what the query takes for free or protected may be what is at fault.
    """
    assert query.plan.radius is not None  # the plan refuses it
    stated = Protection(query.schema, query.plan.radius)
    rows = _part(coded, 2 * _MOST_ROWS, random).dense()
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
            _response(query.mechanism, 0, level),
            _response(query.mechanism, 0, level - 1),
        )
        for level in levels
    ]
    changed = "certified distance 0, and another label"
    return [
        Pair(changed, _response(query.mechanism, 0, 0), _response(query.mechanism, 1, 0)),
        *pairs,
    ]


def _response(mechanism: Any, label: int, level: int) -> Outputs:
    def run(runs: int, sampler: Sampler) -> Array:
        labels, levels = np.full(runs, label), np.full(runs, level)
        return label_outputs(mechanism.release(labels, levels, sampler=sampler))

    return run


def _part(rows: Any, most: int, random: np.random.Generator) -> Any:
    chosen = np.sort(random.permutation(len(rows))[:most])
    return rows.part(chosen) if isinstance(rows, CodedRows) else rows[chosen]
