"""How a release with free attributes is fitted: which of its answers serves a server best, on
public rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.core.arrays import Array
from reticent.core.errors import InvalidParameter
from reticent.mechanisms import StabilityResponse
from reticent.noise import SeededSampler
from reticent.systems.power.held_scores import HeldScores, answer_scores, served, simplest
from reticent.systems.power.likeliest_fitting import FittedLikeliest, fit_likeliest
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.lipschitz_scores import WEIGHT, LipschitzScores
from reticent.systems.power.mechanism_choice import FitSettings, PublicRows
from reticent.systems.power.protected_query import ANSWER_UNIT, ProtectedQuery
from reticent.systems.power.protection import UNIT, Protection
from reticent.systems.power.query import PowerSetting, rank
from reticent.systems.scores import Scores
from reticent.tables.schema import TabularSchema
from reticent.training.noise import training_noise
from reticent.training.power.partial_lipschitz import (
    PartialLipschitzConfig,
    train_partial_scores,
    train_reader,
)
from reticent.training.progress import Report
from reticent.training.public_models import label_shares

Fitted = ProtectedQuery | FittedLikeliest

SIMPLEST = ("clear-noise", "clear-code", "score-levels", "score-noise")
"""Mechanisms from the simplest to the least simple."""

_DROPOUTS = (0.0, 0.3)  # of free coordinates: none where rows are many, some where they are few
_DRAWS = 4  # of the noise, for each calibration row
_MOST_TOLD = 4  # coordinates, if not all are told
_RANKED_ROWS = 5_000  # public rows, at most, on which coordinates are ranked
_RANKING: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "max_iter": 40,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
_LEAST = 1e-12


def fit_protected(
    schema: TabularSchema,
    required: PowerSetting,
    rows: PublicRows,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    report: Report,
) -> tuple[ProtectedQuery | LikeliestQuery, tuple[PowerSetting, ...]]:
    """The simplest query among ``mechanisms`` that serves as well as the best, up to two standard
    errors; and the best plan of each kind, best first.

    The simplest is noise on the protected coordinates themselves, on all of them, then on some,
    then one of the likeliest labels, then scores with levels and with noise. Of each kind the one
    is taken whose own log odds are worth most on the rows held out; these are compared by what the
    same booster makes of them, which sees what is free too.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring; mechanism and utility are replaced.
        rows: public rows.
        mechanisms: some of ``PROTECTED``.
        settings: of training. Of ``outputs`` for scores no more are tried than there are log odds,
            one less than labels.
        report: told after every epoch.

    Raises:
        InvalidParameter: a radius that leaves no attribute of the schema free or protected as a
            whole, or no hidden width.
    """
    assert required.radius is not None  # the plan refuses it
    protection = Protection(schema, required.radius)
    if not settings.hidden:
        raise InvalidParameter("hidden=(): expected a width, of the layers of scores and models")
    kinds: list[list[Fitted]] = []
    dropout: float | None = None
    # The share of dropout is settled by what is trained first, and a reader takes the least time.
    for mechanism in sorted(mechanisms, key=SIMPLEST.index):
        if mechanism == "clear-code":
            seed = settings.seed
            kinds.append(list(fit_likeliest(protection, required, rows, seed=seed, report=report)))
            continue
        plan = replace(required, mechanism=mechanism, delta=0.0, candidates=0, choice="")
        tried: list[tuple[PowerSetting, int]]
        if mechanism == "clear-noise":
            told = told_columns(protection, rows, epsilon=required.epsilon, seed=settings.seed)
            ways = {(), told} if protection.answers_all else {told}
            tried = [(replace(plan, columns=columns), 1) for columns in sorted(ways)]
        else:
            most = int(rows.train_labels.max()) if mechanism == "score-noise" else 1
            sizes = sorted({min(size, most) for size in settings.outputs})
            tried = [(plan, size) for size in sizes]
        several: list[Fitted] = []
        for asked, size in tried:
            shares = _DROPOUTS if dropout is None else (dropout,)
            here: list[Fitted] = list(
                _queries(protection, asked, rows, size, settings, shares, report)
            )
            dropout = shares[here.index(_best(here))]
            several += here
            if mechanism == "clear-noise":
                kinds.append(here)
        if mechanism != "clear-noise":
            kinds.append(several)
    best = [_best(kind) for kind in kinds]
    found = [_served(fitted, protection, rows, settings.seed) for fitted in best]
    ranked = sorted((plan for plan, _ in found), key=rank)
    order = [(place, held) for place, (_, held) in enumerate(found)]
    place = simplest(order, scoring=required.scoring)
    fitted = best[place]
    # Models whose worth was estimated on rows held out may learn from these as well.
    chosen = (
        fitted.again(rows, seed=settings.seed) if isinstance(fitted, FittedLikeliest) else fitted
    )
    return replace(chosen, plan=found[place][0]), tuple(ranked)


def _best(found: Sequence[Fitted]) -> Fitted:
    """The one of the highest utility."""
    return min(found, key=lambda fitted: rank(_query(fitted).plan))


def _query(fitted: Fitted) -> ProtectedQuery | LikeliestQuery:
    return fitted.query if isinstance(fitted, FittedLikeliest) else fitted


def _served(
    fitted: Fitted, protection: Protection, rows: PublicRows, seed: int
) -> tuple[PowerSetting, HeldScores]:
    """The plan with its utility to a server that gets what is free along."""
    if isinstance(fitted, FittedLikeliest):
        query: ProtectedQuery | LikeliestQuery = fitted.query
        released = fitted.released(seed=seed)
        values, weights = fitted.answers()
    else:
        query = fitted
        answer = fitted.private_answer(rows.train, sampler=SeededSampler(seed + 1))
        released = fitted.read(rows.train, answer)
        values, weights = protected_answers(fitted, rows.held, seed=seed)
    free = protection.given(rows.held)
    held = served(
        np.column_stack([protection.given(rows.train), released]),
        rows.train_labels,
        [np.column_stack([free, value]) for value in values],
        weights,
        rows.held_labels,
        scoring=query.plan.scoring,
        seed=seed,
    )
    return _worth(query.plan, held.scores), held


def _worth(plan: PowerSetting, found: Scores) -> PowerSetting:
    return replace(plan, utility=found.of(plan.scoring), information=found.information)


def _queries(
    protection: Protection,
    plan: PowerSetting,
    rows: PublicRows,
    outputs: int,
    settings: FitSettings,
    dropouts: Sequence[float],
    report: Report,
) -> Iterator[ProtectedQuery]:
    """One query for each share of dropout, scored."""
    free, near = protection.given(rows.train), protection.steps(rows.train) / UNIT
    for dropout in dropouts:
        config = PartialLipschitzConfig(
            epsilon=plan.epsilon,
            norm=protection.norm,
            groups=tuple(
                (part.stop - part.start, one_hot) for part, one_hot, _ in protection.groups
            ),
            answer="levels" if plan.mechanism == "score-levels" else "noise",
            outputs=outputs,
            hidden=settings.hidden[0],
            epochs=settings.epochs,
            batch_size=int(np.clip(len(free) // 40, 20, 500)),
            dropout=dropout,
            answer_unit=ANSWER_UNIT,
            seed=settings.seed,
        )
        if plan.mechanism == "clear-noise":
            told = near[:, list(plan.columns)] if plan.columns else near
            model = train_reader(free, told, rows.train_labels, config, report=report)
            query = ProtectedQuery(protection.schema, None, model, plan)
        else:
            trained = train_partial_scores(
                free, near, rows.train_labels, config, whole=WEIGHT, report=report
            )
            scores = LipschitzScores(protection, trained.weights, trained.shifts)
            query = ProtectedQuery(protection.schema, scores, trained.model, plan)
        yield replace(query, plan=_worth(plan, held_scores(query, rows, seed=settings.seed)))


def told_columns(
    protection: Protection, rows: PublicRows, *, epsilon: float, seed: int
) -> tuple[int, ...]:
    """Places of the protected coordinates that "clear-noise" answers about; () for all of them.

    Noise of m coordinates in l2 has a variance that grows with m + 1, so what says little about the
    label is better left out. Coordinates are ranked by what each, alone with its noise, adds to the
    free ones; the first, the first two and so on are compared, and the best of these is taken if it
    is better than all of them by more than two standard errors of the difference, or if they are
    more than noise is drawn for. A booster learns from some of the public rows and is scored, in
    nats, on the others.

    Args:
        protection: what is free and what is protected.
        rows: public rows.
        epsilon: above 0.
        seed: of rows and noise.
    """
    torch.manual_seed(seed)
    random, norm = np.random.default_rng(seed), protection.norm
    count = len(protection.protected)
    train = random.permutation(len(rows.train))[:_RANKED_ROWS]
    held = random.permutation(len(rows.held))[:_RANKED_ROWS]
    parts = (rows.train[train], rows.held[held])
    targets = (rows.train_labels[train], rows.held_labels[held])
    free = [protection.given(values) for values in parts]
    near = [protection.steps(values) / UNIT for values in parts]

    def losses(places: tuple[int, ...]) -> Array:
        """Of held rows, shape (k,); the least chance stands for a label that was not learnt."""
        noise = [training_noise(len(part), len(places), output_norm=norm) for part in near]
        noisy = [
            part[:, list(places)] + drawn.numpy() / epsilon
            for part, drawn in zip(near, noise, strict=True)
        ]
        seen = [np.column_stack(pair) for pair in zip(free, noisy, strict=True)]
        model = HistGradientBoostingClassifier(**_RANKING, random_state=seed)
        chances = model.fit(seen[0], targets[0]).predict_proba(seen[1])
        right = (chances * (targets[1][:, None] == model.classes_)).sum(axis=1)
        return np.asarray(-np.log(np.maximum(right, _LEAST)))

    alone = [losses((place,)) for place in range(count)]
    order = np.argsort([found.mean() for found in alone], kind="stable")
    tried: dict[tuple[int, ...], Array] = {(int(order[0]),): alone[order[0]]}
    for size in range(2, min(_MOST_TOLD, count - 1) + 1):
        places = tuple(sorted(int(place) for place in order[:size]))
        tried[places] = losses(places)
    best = min(tried, key=lambda places: float(tried[places].mean()))
    if count == 1 or not protection.answers_all:
        return best if count > 1 else ()
    gain = losses(tuple(range(count))) - tried[best]
    error = float(gain.std()) / math.sqrt(len(gain))
    return best if gain.mean() > 2.0 * error else ()


def held_scores(query: ProtectedQuery, rows: PublicRows, *, seed: int) -> Scores:
    """Scores of the query's own model on the rows held out."""
    values, weights = protected_answers(query, rows.held, seed=seed)
    size = query.model.output_dimension
    chances = [label_shares(value[:, :size]) for value in values]
    return answer_scores(chances, weights, rows.held_labels)


def protected_answers(
    query: ProtectedQuery, rows: Array, *, seed: int
) -> tuple[list[Array], list[Array]]:
    """What may be released about rows, and how likely it is: both sides of a level response
    exactly, noise by a few draws.
    """
    mechanism = query.mechanism
    if isinstance(mechanism, StabilityResponse):
        sides, levels = query.levels(rows)
        right = mechanism.right_probabilities[np.minimum(levels, mechanism.max_level)]
        upper = np.where(sides == 1, right, 1.0 - right)
        weights = [upper, 1.0 - upper]
        answers = [np.full((len(rows), 1), side) for side in (1.0, -1.0)]
    else:
        sampler = SeededSampler(seed)
        weights = [np.ones(len(rows))] * _DRAWS
        answers = [query.private_answer(rows, sampler=sampler) for _ in range(_DRAWS)]
    return [query.read(rows, answer) for answer in answers], weights
