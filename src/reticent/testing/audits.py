"""An audit of a system from end to end: through its public ``fit`` and ``release``, against its
claim.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent, ZeroConcentratedCost
from reticent.audit import SequentialTest
from reticent.audit.records import Reader, Records
from reticent.audit.sequential import Draw, bet
from reticent.core.arrays import Array
from reticent.release.fits import not_counted
from reticent.systems.votes.query_votes import QueryVotes
from reticent.systems.votes.released_model import ReleasedModel
from reticent.testing.cases import Case, expect
from reticent.testing.records import watched_fit

ALPHA = 1e-6
"""How often a sound system is refuted."""

_INPUTS_AT_ONCE = 1024


def check_audit(case: Case, seconds: float) -> None:
    """Check that fits and releases on two neighbours do not contradict the guarantee.

    A fair coin chooses the data set (or the input) of every run, and an anytime-valid test bets
    on the coin. A sound system is refuted once in a million. Where the cost is that of Gaussian
    noise, the noise itself is the claim, which is refuted sooner than its (epsilon, delta).
    """
    found = audited(case, seconds=seconds)
    expect(not found.refuted, "audit", found.describe())


def audited(case: Case, *, seconds: float) -> SequentialTest:
    """Return the test of a case's claim, which ends when it is refuted or the time is up.

    Its ``excluded`` is how much of epsilon the runs show.
    """
    fitted = case.fitted()
    with not_counted("an audit: nothing leaves"):
        if case.kind == "model":
            event = fitted.mechanism_.event
        elif case.kind == "input":
            event = fitted.query_.mechanism.event
        else:
            event = fitted.price(fitted.checked(case.asking[:1])).event
        draw, batch = _input_draws(case, fitted) if case.kind == "input" else _draws(case)
        test = SequentialTest(**claim_of(event), alpha=ALPHA)
        random, clock = np.random.default_rng(), time.process_time
        bet(draw, [test], batch=batch, seconds=seconds, random=random, clock=clock)
        return test


def claim_of(event: PrivacyEvent) -> dict[str, Any]:
    """Return the strongest claim about one event that a test can take.

    It is mu for Gaussian noise, or else the event's epsilon and delta. Discrete Gaussian noise of
    thousands of grid steps differs from the continuous one by less than what a test can see, which
    1e-3 of mu covers.
    """
    if isinstance(event.cost, ZeroConcentratedCost) and event.guarantee.delta > 0:
        return {"mu": math.sqrt(2.0 * event.cost.rho) * (1.0 + 1e-3)}
    return {"epsilon": event.guarantee.epsilon, "delta": event.guarantee.delta}


def worst_change(case: Case) -> Records:
    """Return the neighbour of the records that moves sums, votes or the exact answer furthest, or
    the first.
    """
    changes = list(case.changed())
    fitted = case.fitted()
    if isinstance(fitted, ReleasedModel):
        _, first, _ = watched_fit(case, case.records)
        sizes = []
        for records in changes:
            _, other, _ = watched_fit(case, records, released=first.released)
            sizes.append(
                sum(
                    float(np.square(here - there).sum()) / sigma**2
                    for mine, others in zip(first.exact, other.exact, strict=True)
                    for here, there, sigma in zip(mine, others, first.sigmas, strict=True)
                )
            )
        return changes[int(np.argmax(sizes))]
    here = _exact(case, fitted)
    gaps = []
    for records in changes:
        there = _exact(case, case.fitted(records))
        pairs = zip(here, there, strict=True)
        gaps.append(tuple(float(np.abs(one - other).max()) for one, other in pairs))
    return changes[max(range(len(changes)), key=gaps.__getitem__)]


def _exact(case: Case, fitted: Any) -> tuple[Array, ...]:
    """Return the exact answer to the first query, and its votes, as numbers, where there are
    such.
    """
    query, found = case.asking[:1], []
    if hasattr(fitted, "exact_predict"):
        exact = fitted.exact_predict(query)
        labels = hasattr(fitted, "classes_")
        found.append(np.asarray(exact[:, None] == fitted.classes_ if labels else exact, float))
    if isinstance(fitted, QueryVotes):
        found.append(np.asarray(fitted.vote_table(query), dtype=np.float64))
    return tuple(found)


def _draws(case: Case) -> tuple[Draw, int]:
    """Return what a system that protects records releases: everything for one query, or the
    model.
    """
    read = Reader(case.fresh(), case.fit)
    return read.draws(case.records, worst_change(case), case.asking[:1], repeated=True)


def _input_draws(case: Case, fitted: Any) -> tuple[Draw, int]:
    assert case.neighbours is not None
    here, there = np.asarray(case.neighbours)
    labels = list(dict.fromkeys(np.asarray(case.y).tolist()))

    def draw(coins: npt.NDArray[np.bool_]) -> Array:
        found = fitted.release(np.array([here if coin else there for coin in coins]))
        values = found.values
        if values.ndim == 1:
            values = np.array([[value == label for label in labels] for value in values.tolist()])
        numbers = np.where(found.withheld[:, None], 0.0, np.nan_to_num(values.astype(float)))
        return np.column_stack([numbers, found.withheld])

    return draw, _INPUTS_AT_ONCE
