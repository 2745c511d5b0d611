"""Neighbours of table rows within what a plan states: all that a release which reads some
attributes as they are is audited on.

They are made from the stated radii and the schema alone. What the fitted query takes for free or
protected may be what is at fault.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.audit.cases import Outputs, additive_outputs, label_outputs
from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.core.norms import Norm
from reticent.noise import Sampler
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.protection import UNIT, Protection

_WITHOUT_NOISE = "neighbours within the stated radii: what is released without noise"


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


_ROUNDS = 24
"""Neighbours that are tried around each row: of one attribute alone, and of all at once."""


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
    assert query.plan.radius is not None  # the plan refuses it
    stated = Protection(query.schema, query.plan.radius)
    start = np.concatenate([rows] * _ROUNDS)
    end = np.concatenate([near_rows(stated, rows, random=random) for _ in range(_ROUNDS)])
    pairs = []
    bare = [query.read(side, np.zeros((len(side), query.values))) for side in (start, end)]
    told = np.abs(bare[0] - bare[1]).max(axis=1)
    worst = int(told.argmax())
    if told[worst] > 0:
        pairs.append(Pair(_WITHOUT_NOISE, _side(0), _side(1)))
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

    name = "neighbours within the stated radii: largest change of the private answer"
    pairs.append(Pair(name, draw(start[worst]), draw(end[worst])))
    return pairs


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
    assert query.plan.radius is not None  # the plan refuses it
    stated = Protection(query.schema, query.plan.radius)
    start = np.concatenate([rows] * _ROUNDS)
    end = np.concatenate([near_rows(stated, rows, random=random) for _ in range(_ROUNDS)])
    pairs = []
    scores = [query.given_scores(side) for side in (start, end)]
    told = [
        np.concatenate(
            [query.read(side, np.full(len(side), place)) for place in range(query.plan.candidates)],
            axis=1,
        )
        for side in scores
    ]
    if not np.array_equal(told[0], told[1]):
        pairs.append(Pair(_WITHOUT_NOISE, _side(0), _side(1)))
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

    name = "neighbours within the stated radii: another candidate is named"
    pairs.append(Pair(name, draw(start[worst]), draw(end[worst])))
    return pairs


def _side(which: int) -> Outputs:
    """An answer that tells for certain which of the two it is about: nothing is drawn, and that is
    the fault.
    """
    return lambda runs, sampler: np.full(runs, float(which))
