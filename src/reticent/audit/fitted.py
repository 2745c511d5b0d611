"""An audit of a fitted system: its claim, against what its answers can be told apart by.

A fitted system is run on neighbours found around rows that its owner gives, and its mechanism on
the worst pair that is known for it. What answers tell is learnt from the draws, by the shape of the
noise at most, never from the probabilities that a mechanism states. So a mechanism that states
wrong ones is caught.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from reticent.attacks.candidates import is_attackable, is_posthoc, stated
from reticent.audit.cases import (
    AuditCase,
    additive_case,
    finite_channel_case,
    hop_release_case,
    propose_test_release_case,
    worst_levels,
    worst_shift,
)
from reticent.audit.claims import Book, ClaimAudit, bet_on, results_of
from reticent.audit.fitted_pairs import (
    Pair,
    certified_pairs,
    likeliest_pairs,
    near_pairs,
    printed_response_pair,
    printed_votes_pair,
    protected_pairs,
)
from reticent.core.checks import count, probability
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Guarantee
from reticent.mechanisms import (
    AdditiveMechanism,
    FiniteChannel,
    HopRelease,
    ProposeTestRelease,
)
from reticent.noise import AuditSampler
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import PowerQuery, RowQuery
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from reticent.systems.posthoc.query import PrivateQuery

    Query = PrivateQuery | CodeQuery | RowQuery | CertifiedQuery


_BATCH = 1024
"""Draws of a pair at once."""


def audit_fitted(
    system: Any,
    X: npt.ArrayLike,
    *,
    draws: int,
    alpha: float,
    seed: int,
    report: Report = silent,
) -> ClaimAudit:
    """Test the claim of a fitted system by draws on neighbours around the rows of X.

    No budget is charged. The answers are about rows that the caller owns, drawn by the code of the
    release on words of a seeded generator, and thrown away. What comes out is as private as
    X and the bundle: which neighbours are worst depends on both.

    Guarantee:
        If the mechanism is as private between the neighbours that were tried as
        the bundle states, it is refuted with probability at most ``alpha`` over the seed.
        An audit gives no guarantee for neighbours that it did not try.

    Args:
        system: a fitted estimator that releases: a posthoc, certified or table one, or an algorithm
            as printed, of which the statement of its paper is tested.
        X: rows as its ``release`` takes them, at least one.
        draws: the most draws of all pairs together. It ends when the claim is refuted.
        alpha: the chance of refuting a claim that holds, in (0, 1).
        seed: seed of coins and noise, at least 0.
        report: function that is told of the state after each batch.

    Raises:
        InvalidInput, InvalidParameter: an argument is refused before anything is run, or the system
            cannot be audited by itself.

    See Also:
        reticent.audit.claim: the same engine, on anything that answers.
    """
    from reticent.published.research import PublishedSystem

    count(draws, name="draws")
    probability(alpha, name="alpha", allow_zero=False)
    query = auditable_query(system)
    rows = system.checked(X)
    if len(rows) == 0:
        raise InvalidInput("data: expected at least one row to look for neighbours around, got 0")
    sequence = np.random.SeedSequence(count(seed, name="seed", minimum=0))
    directions, words, coins = (np.random.default_rng(part) for part in sequence.spawn(3))
    sampler, start = AuditSampler(words), time.monotonic()
    claim = stated(query)
    pairs, not_examined = _pairs(query, rows, directions)
    cases = [
        *(
            AuditCase(pair.name, claim.epsilon, claim.delta, pair.first, pair.second)
            for pair in pairs
        ),
        *_known_cases(query, claim),
    ]
    if not cases:
        raise InvalidInput(
            "data: no two that were tried are neighbours whose answers differ, and no worst pair "
            "of this mechanism is known; give rows of which two are neighbours"
        )
    books = [
        Book(case.name, case.draw(sampler), case.test(alpha=alpha / len(cases))) for case in cases
    ]
    made, refuted = bet_on(
        books, draws=draws, seconds=None, batch=_BATCH, level=alpha, random=coins, report=report
    )
    return ClaimAudit(
        subject=type(system).__name__,
        epsilon=claim.epsilon,
        delta=claim.delta,
        source=query.totals() if isinstance(query, PublishedSystem) else claim.describe(),
        alpha=alpha,
        pairs=results_of(books, delta=claim.delta),
        draws=made,
        seconds=time.monotonic() - start,
        replay=f"audit_fitted(system, X, draws={draws}, alpha={alpha:g}, seed={seed})",
        refuted=refuted,
        not_examined=not_examined,
    )


def auditable_query(system: Any) -> Query:
    """Return the fitted query of a system that can be audited by itself.

    Raises:
        InvalidInput: a system that answers with no noise of its own, or has no guarantee. The
            message says why.
        NotFittedYet: the system is not fitted.
    """
    # Late: all bring scikit-learn, which the audits of mechanisms do without.
    from reticent.published.research import PublishedSystem
    from reticent.systems.private_knn.classifier import PrivateKNNClassifier
    from reticent.systems.releasing_system import ReleasingSystem
    from reticent.systems.votes.estimator import VoteEstimator

    if isinstance(system, PublishedSystem):
        return cast("Query", system)
    if isinstance(system, PrivateKNNClassifier):
        raise InvalidInput(
            f"system: a {type(system).__name__} cannot be audited by itself. Its labels are "
            "released once, by votes of private records, which a bundle does not hold. Audit the "
            "method on your records by reticent.audit.audit_records, or the mechanisms by "
            "noisy_argmax_case and noisy_screening_case"
        )
    if isinstance(system, VoteEstimator):
        raise InvalidInput(
            f"system: a {type(system).__name__} cannot be audited by itself. Its noise goes into "
            "sums over private records, and an audit needs neighbouring sets of these. Audit the "
            "method on your records by reticent.audit.audit_records, or the mechanism, with the "
            "same blocks and total, by noisy_sums_case or stability_response_case"
        )
    if not isinstance(system, ReleasingSystem):
        raise InvalidInput(
            "system: expected a fitted posthoc, certified or table estimator, got "
            f"{type(system).__name__}; no audit of it is known"
        )
    query = system._fitted()
    if is_posthoc(query) or isinstance(query, CodeQuery | RowQuery | CertifiedQuery):
        return query
    raise InvalidInput(f"system: no audit of a {type(query).__name__} is known")


def _pairs(query: Query, rows: Any, random: np.random.Generator) -> tuple[list[Pair], str]:
    """Return the pairs around the rows, and what stays unexamined."""
    searched = "neighbours that were not tried: the search is no proof that there are no worse ones"
    if isinstance(query, CertifiedQuery):
        return certified_pairs(query, rows), (
            "the certified distances: to examine them takes the training records and training again"
        )
    if isinstance(query, ProtectedQuery):
        return protected_pairs(query, rows, random=random), searched
    if isinstance(query, LikeliestQuery):
        return likeliest_pairs(query, rows, random=random), searched
    if is_attackable(query):
        return near_pairs(query, rows, random=random), searched
    # By name: the modules load what a client does without.
    system: Any = query
    votes = type(query).__name__ == "PublishedPrivateKNN"
    return [printed_votes_pair(system) if votes else printed_response_pair(system)], searched


def _known_cases(query: Query, claim: Guarantee) -> list[AuditCase]:
    """Return the worst pairs that are known of the query's mechanism.

    Their values are our own, and lie as far apart as the bundle's certificate allows.
    """
    mechanism = getattr(query, "mechanism", None)
    epsilon, delta = claim.epsilon, claim.delta
    if isinstance(mechanism, FiniteChannel):
        return [finite_channel_case(mechanism, epsilon=epsilon)]
    if isinstance(mechanism, HopRelease):
        return [hop_release_case(mechanism, epsilon=epsilon)]
    if isinstance(mechanism, AdditiveMechanism):
        shift = worst_shift(mechanism) * (_allowed_change(query) / mechanism.sensitivity)
        return [_named(additive_case(mechanism, shift=shift, epsilon=epsilon, delta=delta))]
    if isinstance(mechanism, ProposeTestRelease) and isinstance(mechanism.inner, AdditiveMechanism):
        inner = mechanism.inner
        case = propose_test_release_case(
            mechanism,
            levels=worst_levels(mechanism),
            shift=worst_shift(inner) * (_allowed_change(query) / inner.sensitivity),
            epsilon=epsilon,
            delta=delta,
        )
        return [_named(case)]
    return []


def _allowed_change(query: Query) -> float:
    """Return how far released values of neighbours may lie apart by the certificate of the bundle.

    The mechanism's own sensitivity may be what is at fault.
    """
    if is_posthoc(query):
        from reticent.systems.posthoc.plans import effective_radius

        radius = query.requirement.adjacency.radius
        return query.plan.proposal * effective_radius(query.bound, radius)
    if isinstance(query, ProtectedQuery):
        return query.constant
    assert isinstance(query, PowerQuery)
    assert not isinstance(query.plan.radius, AttributeRadii)  # the plan refuses it
    distance = query.schema.diameter if query.plan.radius is None else query.plan.radius
    return query.constant * distance


def _named(case: AuditCase) -> AuditCase:
    return replace(case, name=f"{case.name} at the worst pair that its sensitivity allows")
