"""How a release with free attributes is fitted: which of its answers serves a server best, on
public rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from reticent.core.errors import CalibrationFailed, InvalidParameter
from reticent.core.norms import Norm
from reticent.mechanisms import StabilityResponse
from reticent.mechanisms.k_norm import MOST_L2_COORDINATES
from reticent.noise import SeededSampler
from reticent.systems.power.lipschitz_scores import WEIGHT, LipschitzScores
from reticent.systems.power.mechanism_choice import FitSettings, PublicRows
from reticent.systems.power.protected_query import ANSWER_UNIT, ProtectedQuery
from reticent.systems.power.protection import UNIT, Protection
from reticent.systems.power.query import PowerPlan, rank
from reticent.systems.power.score_fitting import label_shares
from reticent.systems.power.scoring import Scores, prediction_scores
from reticent.tables.schema import TabularSchema
from reticent.training.power.partial_lipschitz import (
    PartialLipschitzConfig,
    train_partial_scores,
    train_reader,
)
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]

_DROPOUTS = (0.0, 0.3)  # of free coordinates: none where rows are many, some where they are few
_DRAWS = 4  # of the noise, for each calibration row


def fit_protected(
    schema: TabularSchema,
    required: PowerPlan,
    rows: PublicRows,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    report: Report,
) -> tuple[ProtectedQuery, tuple[PowerPlan, ...]]:
    """The query of the highest utility among ``mechanisms``, and every plan that was scored, best
    first.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring; mechanism and utility are replaced.
        rows: public rows.
        mechanisms: some of ``PROTECTED``.
        settings: of training; passes over the rows are twice as many as ``epochs``, because
            constants are learnt beside slopes.
        report: told after every epoch.

    Raises:
        InvalidParameter: a radius that leaves no attribute of the schema free or protected as a
            whole, or no hidden width.
        CalibrationFailed: noise on the columns alone was asked for, and they are too many.
    """
    assert required.radius is not None  # the plan refuses it
    protection = Protection(schema, required.radius)
    if not settings.hidden:
        raise InvalidParameter("hidden=(): expected a width, of the layers of scores and models")
    queries: list[ProtectedQuery] = []
    dropout: float | None = None
    for mechanism in mechanisms:
        if mechanism == "clear-noise" and (
            protection.norm is Norm.L2 and len(protection.protected) > MOST_L2_COORDINATES
        ):
            continue
        sizes = settings.outputs if mechanism == "score-noise" else (1,)
        for size in sizes:
            shares = _DROPOUTS if dropout is None else (dropout,)
            found = list(
                _queries(protection, required, rows, mechanism, size, settings, shares, report)
            )
            dropout = shares[_first(found)]
            queries += found
    if not queries:
        raise CalibrationFailed(
            f"mechanism='clear-noise': {len(protection.protected)} protected coordinates are more "
            f"than the {MOST_L2_COORDINATES} that noise in l2 is drawn for; allow 'score-noise'"
        )
    best = queries[_first(queries)]
    return best, tuple(sorted((query.plan for query in queries), key=rank))


def _first(queries: Sequence[ProtectedQuery]) -> int:
    return min(range(len(queries)), key=lambda place: rank(queries[place].plan))


def _queries(
    protection: Protection,
    required: PowerPlan,
    rows: PublicRows,
    mechanism: str,
    outputs: int,
    settings: FitSettings,
    dropouts: Sequence[float],
    report: Report,
) -> Iterator[ProtectedQuery]:
    """One query for each share of dropout, scored."""
    plan = replace(required, mechanism=mechanism, delta=0.0, codes=())
    free, near = protection.given(rows.train), protection.steps(rows.train) / UNIT
    for dropout in dropouts:
        config = PartialLipschitzConfig(
            epsilon=required.epsilon,
            norm=protection.norm,
            groups=tuple(
                (part.stop - part.start, one_hot) for part, one_hot, _ in protection.groups
            ),
            answer="levels" if mechanism == "score-levels" else "noise",
            outputs=outputs,
            hidden=settings.hidden[0],
            epochs=2 * settings.epochs,
            batch_size=int(np.clip(len(free) // 40, 20, 500)),
            dropout=dropout,
            answer_unit=ANSWER_UNIT,
            seed=settings.seed,
        )
        if mechanism == "clear-noise":
            model = train_reader(free, near, rows.train_labels, config, report=report)
            query = ProtectedQuery(protection.schema, None, model, plan)
        else:
            trained = train_partial_scores(
                free, near, rows.train_labels, config, whole=WEIGHT, report=report
            )
            scores = LipschitzScores(protection, trained.weights, trained.shifts)
            query = ProtectedQuery(protection.schema, scores, trained.model, plan)
        found = held_scores(query, rows, seed=settings.seed)
        yield replace(
            query,
            plan=replace(plan, utility=found.of(plan.scoring), information=found.information),
        )


def held_scores(query: ProtectedQuery, rows: PublicRows, *, seed: int) -> Scores:
    """Scores of the query's own model on calibration rows: the chances of both sides of a level
    response exactly, noise by a few draws.
    """
    mechanism = query.mechanism
    if isinstance(mechanism, StabilityResponse):
        sides, levels = query.levels(rows.held)
        right = mechanism.right_probabilities[np.minimum(levels, mechanism.max_level)]
        upper = np.where(sides == 1, right, 1.0 - right)
        weights = [upper, 1.0 - upper]
        answers = [np.full((len(rows.held), 1), side) for side in (1.0, -1.0)]
    else:
        sampler = SeededSampler(seed)
        weights = [np.ones(len(rows.held))] * _DRAWS
        answers = [query.private_answer(rows.held, sampler=sampler) for _ in range(_DRAWS)]
    seen = np.unique(rows.held_labels)
    chances, counted = [], []
    for answer, weight in zip(answers, weights, strict=True):
        odds = query.read(rows.held, answer)[:, : query.model.output_dimension]
        found = np.maximum(label_shares(odds)[:, seen], np.finfo(np.float64).tiny)
        chances.append(found / found.sum(axis=1, keepdims=True))
        counted.append(weight[:, None] * (rows.held_labels[:, None] == seen))
    return prediction_scores(np.concatenate(chances), np.concatenate(counted))
