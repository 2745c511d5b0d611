"""An audit of a system from end to end: through its public ``fit`` and ``release``, against what it
claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent, ZeroConcentratedCost
from reticent.audit import Refutation, refute
from reticent.release.fits import not_counted
from reticent.systems.votes.released_model import ReleasedModel
from reticent.testing.cases import Case, Rows, expect
from reticent.testing.records import watched_fit

Array = npt.NDArray[np.float64]
Draws = Callable[[npt.NDArray[np.bool_]], Array]

ALPHA = 1e-6
"""How often a sound system is refuted."""


def check_audit(case: Case, seconds: float) -> None:
    """Fits and releases on two neighbours do not contradict the guarantee.

    A fair coin chooses the data set (or the input) of every run, and an anytime-valid test bets
    on the coin. A sound system is refuted once in a million. Where the cost is that of Gaussian
    noise, the noise itself is the claim, which is refuted sooner than its (epsilon, delta).
    """
    found = audited(case, seconds=seconds)
    expect(not found.refuted, "audit", found.summary)


def audited(case: Case, *, seconds: float) -> Refutation:
    """Return the audit of a case; see ``check_audit``."""
    fitted = case.fitted()
    with not_counted("an audit: nothing leaves"):
        if case.kind == "model":
            draws, event, batch = _model_draws(case), fitted.mechanism_.event, 16
        elif case.kind == "input":
            draws, event = _input_draws(case, fitted), fitted.query_.mechanism.event
            batch = 1024
        else:
            rows = case.asking
            price = fitted.price(fitted.checked(rows))
            event = price.event
            if price.prepaid is None:
                draws, batch = _answer_draws(case, fitted), 1024
            else:
                draws, batch = _plan_draws(case), 16
        claim: Any = claim_of(event)
        return refute(draws, **claim, alpha=ALPHA, seconds=seconds, batch=batch)


def claim_of(event: PrivacyEvent) -> dict[str, float]:
    """Return the strongest claim about one event that a test can take: mu for Gaussian noise, or
    its epsilon and delta.

    Discrete Gaussian noise of thousands of grid steps differs from the continuous one by less than
    what a test can see, which 1e-3 of mu covers.
    """
    if isinstance(event.cost, ZeroConcentratedCost) and event.guarantee.delta > 0:
        return {"mu": math.sqrt(2.0 * event.cost.rho) * (1.0 + 1e-3)}
    return {"epsilon": event.guarantee.epsilon, "delta": event.guarantee.delta}


def worst_change(case: Case) -> tuple[Rows, Rows]:
    """Return the neighbour of the records that moves a model's sums furthest, or the first."""
    changes = list(case.changed())
    if not isinstance(case.fitted(), ReleasedModel):
        return changes[0]
    _, first, _ = watched_fit(case, case.X, case.y)
    sizes = []
    for X, y in changes:
        _, other, _ = watched_fit(case, X, y, released=first.released)
        sizes.append(
            sum(
                float(np.square(here - there).sum()) / sigma**2
                for mine, others in zip(first.exact, other.exact, strict=True)
                for here, there, sigma in zip(mine, others, first.sigmas, strict=True)
            )
        )
    return changes[int(np.argmax(sizes))]


def _model_draws(case: Case) -> Draws:
    here, there = (case.X, case.y), worst_change(case)

    def draw(coins: npt.NDArray[np.bool_]) -> Array:
        return np.array([_numbers(case.fitted(*(here if coin else there))) for coin in coins])

    return draw


def _plan_draws(case: Case) -> Draws:
    here, there = (case.X, case.y), worst_change(case)
    labels = _labels(case)

    def draw(coins: npt.NDArray[np.bool_]) -> Array:
        found = [
            case.asked(case.fitted(*(here if coin else there))).values.tolist() for coin in coins
        ]
        return np.array(
            [[row == label for row in rows for label in labels] for rows in found], float
        )

    return draw


def _answer_draws(case: Case, fitted: Any) -> Draws:
    """One answer a draw, of a query whose exact answer a neighbour changes, where there is one."""
    best, other = 0, fitted
    gap = -1.0
    for X, y in case.changed():
        twin = case.fitted(X, y)
        apart = (fitted.exact_predict(case.queries) != twin.exact_predict(case.queries)) * 1.0
        if apart.max() > gap:
            gap, best, other = float(apart.max()), int(apart.argmax()), twin
        if gap > 0:
            break
    labels, row = _labels(case), case.asking[best : best + 1]

    def draw(coins: npt.NDArray[np.bool_]) -> Array:
        found = np.empty((len(coins), len(labels)))
        for side, system in ((True, fitted), (False, other)):
            places = np.flatnonzero(coins == side)
            if len(places):
                values = system.release(np.repeat(row, len(places), axis=0)).values.tolist()
                found[places] = [[value == label for label in labels] for value in values]
        return found

    return draw


def _input_draws(case: Case, fitted: Any) -> Draws:
    assert case.neighbours is not None
    here, there = np.asarray(case.neighbours)

    def draw(coins: npt.NDArray[np.bool_]) -> Array:
        rows = np.array([here if coin else there for coin in coins])
        found = fitted.release(rows)
        values = found.values
        if values.ndim == 1:
            labels = _labels(case)
            values = np.array([[value == label for label in labels] for value in values.tolist()])
        numbers = np.where(found.withheld[:, None], 0.0, np.nan_to_num(values.astype(float)))
        return np.column_stack([numbers, found.withheld])

    return draw


def _labels(case: Case) -> list[Any]:
    return list(dict.fromkeys(np.asarray(case.y).tolist()))


def _numbers(model: Any) -> Array:
    return np.concatenate(
        [np.asarray(array, dtype=np.float64).ravel() for array in model.arrays().values()]
    )
