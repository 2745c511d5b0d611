"""An audit of a fitted system: what it claims, against what its answers can be told apart by.

A fitted system is run on neighbours found around rows that its owner gives, and its mechanism on
the worst pair that is known for it. What comes out is a lower confidence bound on epsilon, at the
delta that the system claims. Scores are learnt from pilot runs or from the noise's shape, never
from the probabilities that a mechanism states, so a mechanism that states wrong ones is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.audit.fitted_pairs import (
    certified_pairs,
    code_pairs,
    is_posthoc,
    posthoc_pairs,
    power_pairs,
)
from reticent.audit.label_rule_cases import (
    finite_channel_case,
    hop_release_case,
)
from reticent.audit.lower_bounds import AuditResult, binomial_limits
from reticent.audit.pairs import Pair
from reticent.audit.worst_case import (
    AuditCase,
    Scores,
    additive_case,
    propose_test_release_case,
    worst_levels,
    worst_shift,
)
from reticent.core.arrays import Array
from reticent.core.checks import count, probability
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Guarantee
from reticent.mechanisms import (
    AdditiveMechanism,
    DistanceToInstability,
    FiniteChannel,
    GaussianMechanism,
    HopRelease,
    ProposeTestRelease,
)
from reticent.noise import AuditSampler, Sampler
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import PowerQuery, RowQuery
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from reticent.systems.posthoc.query import PrivateQuery

    Query = PrivateQuery | CodeQuery | RowQuery | CertifiedQuery


LEAST_RUNS = 2_000
"""Fewer establish nothing."""

_WITH_DELTA = (GaussianMechanism, DistanceToInstability)

_VOTES = ("PrivateKNNClassifier", "PrivateKNNStudent")
"""By name, since the student is a network, and nothing else here needs torch."""

_PILOT_SHARE = 0.1
"""Share of the runs, in addition to them, that scores are learnt from."""


@dataclass(frozen=True)
class AuditedPair:
    """What the runs on one pair of neighbours establish.

    Attributes:
        name: which neighbours.
        result: the lower bound on epsilon.
    """

    name: str
    result: AuditResult


@dataclass(frozen=True)
class FittedAudit:
    """What an audit of a fitted system found.

    Attributes:
        system: name of the estimator.
        claim: the guarantee that was examined.
        pairs: every pair that was tried, the worst first.
        confidence: probability, over the runs, that the bounds of *all* pairs hold.
        runs: runs on each neighbour of each pair.
        not_examined: what the audit takes on trust, in words.
        seed: of the words that the noise was drawn from.
    """

    system: str
    claim: Guarantee
    pairs: tuple[AuditedPair, ...]
    confidence: float
    runs: int
    not_examined: tuple[str, ...]
    seed: int

    @property
    def epsilon_lower(self) -> float:
        """The system's epsilon at the claimed delta is at least this, with ``confidence``."""
        return self.pairs[0].result.epsilon_lower

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot stand."""
        return self.epsilon_lower > self.claim.epsilon

    @property
    def largest_bound(self) -> float:
        """The largest bound that this many runs could establish; a claim above it cannot be
        refuted by them.
        """
        half = self.runs // 2
        level = (1.0 - self.pairs[0].result.confidence) / 4.0
        low = float(binomial_limits(half, half, level=level)[0]) - self.claim.delta
        high = float(binomial_limits(0, half, level=level)[1])
        return math.log(max(low, high) / high)

    @property
    def verdict(self) -> str:
        """What the numbers say, and what they do not."""
        claimed, found = self.claim.epsilon, self.epsilon_lower
        if self.refuted:
            return (
                f"refuted: the claim is epsilon={claimed:g}, and these runs show at least "
                f"{found:.3g} (confidence {self.confidence:g})"
            )
        if self.largest_bound <= claimed:
            return (
                f"undecided: {self.runs} runs show at most {self.largest_bound:.3g}, and the claim "
                f"is epsilon={claimed:g}; ask for more runs, or audit a smaller epsilon"
            )
        return (
            f"not refuted: these runs show at least {found:.3g} of the claimed epsilon={claimed:g} "
            f"(confidence {self.confidence:g}); an audit can refute a claim, never prove it"
        )


def audit_fitted(
    system: Any,
    X: npt.ArrayLike,
    *,
    runs: int,
    confidence: float,
    seed: int,
    report: Report = silent,
) -> FittedAudit:
    """The lower bounds on epsilon that runs on neighbours around the rows of X establish.

    No budget is charged: the answers are about rows that the caller owns, drawn by the code of the
    release on words of a seeded generator, and thrown away. What comes out is as private as
    X and the bundle: which neighbours are worst depends on both.

    Guarantee:
        If the mechanism is as private between the neighbours that were tried as
        ``stated_guarantee`` says, the verdict is "refuted" with probability at most 1 -
        ``confidence`` over the seed. An audit gives no guarantee for neighbours that it did not
        try.

    Args:
        system: a fitted estimator that releases: a posthoc, certified or table one.
        X: rows as its ``release`` takes them, at least one.
        runs: on each neighbour of each pair, at least 2,000.
        confidence: in (0, 1), of all pairs together.
        seed: at least 0.
        report: told after each pair.

    Raises:
        InvalidInput, InvalidParameter: before anything is run; a system that cannot be audited by
            itself.

    References:
        Jagielski, Ullman and Oprea (2020), "Auditing differentially private machine learning: how
        private is private SGD?", arXiv:2006.07709, algorithm 2.
    """
    if count(runs, name="runs") < LEAST_RUNS:
        raise InvalidInput(f"runs={runs}: expected at least {LEAST_RUNS}; fewer establish nothing")
    probability(confidence, name="confidence", allow_zero=False)
    query = auditable_query(system)
    rows = system.checked(X)
    if len(rows) == 0:
        raise InvalidInput("data: expected at least one row to look for neighbours around, got 0")
    sequence = np.random.SeedSequence(count(seed, name="seed", minimum=0))
    directions, words = (np.random.default_rng(part) for part in sequence.spawn(2))
    sampler = AuditSampler(words)
    pilot = max(1_000, round(_PILOT_SHARE * runs))
    claim = stated_guarantee(query)
    pairs, not_examined = _pairs(query, rows, directions)
    cases = [
        *(_case(pair, query, claim, pilot=pilot, sampler=sampler) for pair in pairs),
        *_known_cases(query, claim),
    ]
    if not cases:
        raise InvalidInput(
            "data: no two of the rows are neighbours, and no worst pair of this mechanism is "
            "known; give rows of which two are neighbours"
        )
    each = 1.0 - (1.0 - confidence) / len(cases)
    found = []
    for number, case in enumerate(cases):
        result = case.run(runs=runs, confidence=each, sampler=sampler)
        found.append(AuditedPair(case.name, result))
        report("pairs of neighbours", number + 1, len(cases), float("nan"))
    found.sort(key=lambda pair: -pair.result.epsilon_lower)
    return FittedAudit(
        type(system).__name__, claim, tuple(found), confidence, runs, not_examined, seed
    )


def auditable_query(system: Any) -> Query:
    """The fitted query of a system that can be audited by itself.

    Raises:
        InvalidInput: a system that answers with no noise of its own, or has no guarantee; the
            message says why.
        NotFittedYet: not fitted.
    """
    # Late: all bring scikit-learn, which the audits of mechanisms do without.
    from reticent.systems.power.row_encoder import RowEncoder
    from reticent.systems.releasing_system import ReleasingSystem
    from reticent.systems.votes.estimator import VoteEstimator

    if type(system).__name__ in _VOTES:
        raise InvalidInput(
            f"system: a {type(system).__name__} cannot be audited by itself. Its labels are "
            "released once, by votes of private records, which a bundle does not hold; what a "
            "student predicts is post-processing without noise. Audit the method on your records "
            "by reticent.audit.audit_records, or the mechanisms by noisy_argmax_case and "
            "noisy_screening_case"
        )
    if isinstance(system, VoteEstimator):
        raise InvalidInput(
            f"system: a {type(system).__name__} cannot be audited by itself. Its noise goes into "
            "sums over private records, and an audit needs neighbouring sets of these. Audit the "
            "method on your records by reticent.audit.audit_records, or the mechanism, with the "
            "same blocks and total, by noisy_sums_case or stability_response_case"
        )
    if not isinstance(system, ReleasingSystem | RowEncoder):
        raise InvalidInput(
            "system: expected a fitted posthoc, certified or table estimator, got "
            f"{type(system).__name__}; no audit of it is known"
        )
    query = system._fitted()
    if is_posthoc(query) or isinstance(query, CodeQuery | RowQuery | CertifiedQuery):
        return query
    raise InvalidInput(f"system: no audit of a {type(query).__name__} is known")


def stated_guarantee(query: Query) -> Guarantee:
    """What one answer may cost by the settings that the bundle states. The guarantee that a
    mechanism computes of itself may be what is at fault.
    """
    if is_posthoc(query):
        stated = query.requirement
        return Guarantee(stated.epsilon, stated.delta, stated.adjacency)
    if isinstance(query, CodeQuery):
        return query.stated
    stated_by = query.plan if isinstance(query, RowQuery) else query.choice
    delta = stated_by.delta if isinstance(query.mechanism, _WITH_DELTA) else 0.0
    return Guarantee(stated_by.epsilon, delta, query.adjacency)


def _pairs(
    query: Query, rows: Array | CodedRows, directions: np.random.Generator
) -> tuple[list[Pair], tuple[str, ...]]:
    """The pairs around the rows, and what stays unexamined."""
    searched = "neighbours that were not tried: the search is no proof that there are no worse ones"
    if is_posthoc(query):
        assert not isinstance(rows, CodedRows)
        return posthoc_pairs(query, rows, random=directions), (searched,)
    if isinstance(query, CodeQuery):
        assert isinstance(rows, CodedRows)
        return code_pairs(query, rows, random=directions), (searched,)
    if isinstance(query, RowQuery):
        assert isinstance(rows, CodedRows)
        return power_pairs(query, rows, random=directions), (searched,)
    assert not isinstance(rows, CodedRows)
    return certified_pairs(query, rows), (
        "the certified distances: to examine them takes the training records and training again",
    )


def _known_cases(query: Query, claim: Guarantee) -> list[AuditCase]:
    """The worst pairs that are known of the query's mechanism, at values of our own that lie as far
    apart as the bundle's certificate allows.
    """
    mechanism = query.mechanism
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
    """How far released values of neighbours may lie apart by the certificate of the bundle. The
    mechanism's own sensitivity may be what is at fault.
    """
    if is_posthoc(query):
        from reticent.systems.posthoc.plans import effective_radius

        radius = query.requirement.adjacency.radius
        return query.plan.proposal * effective_radius(query.bound, radius)
    if isinstance(query, ProtectedQuery):
        return query.bound.constant
    assert isinstance(query, PowerQuery)
    assert not isinstance(query.plan.radius, AttributeRadii)  # the plan refuses it
    distance = query.schema.diameter if query.plan.radius is None else query.plan.radius
    return query.bound.constant * distance


def _named(case: AuditCase) -> AuditCase:
    name = f"{case.name} at the worst pair that its sensitivity allows"
    return AuditCase(name, case.epsilon, case.delta, case.first, case.second)


def _case(pair: Pair, query: Query, claim: Guarantee, *, pilot: int, sampler: Sampler) -> AuditCase:
    """A pair with the score that tells its neighbours apart best, as far as pilot runs know."""
    answers = [draw(pilot, sampler) for draw in (pair.first, pair.second)]
    score = (
        _label_score(answers)
        if pair.values is None
        else _vector_score(query, pair.values, [withheld for _, withheld in answers])
    )

    def scored(draw: Callable[[int, Sampler], Any]) -> Scores:
        return lambda runs, noise: score(*draw(runs, noise))

    return AuditCase(pair.name, claim.epsilon, claim.delta, scored(pair.first), scored(pair.second))


def _label_score(answers: list[Any]) -> Callable[..., Array]:
    """Log-ratio of how often each answer came out; withheld is an answer too."""
    seen = [_codes(values, withheld) for values, withheld in answers]
    known = np.unique(np.concatenate(seen))
    counts = [np.array([(codes == code).sum() for code in known]) for codes in seen]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def score(values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Array:
        codes = _codes(values, withheld)
        place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        # An answer that no pilot run gave says nothing: it is rare with both.
        return np.where(known[place] == codes, ratio[place], 0.0)

    return score


def _codes(values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    labels = values.argmax(axis=1) if values.ndim == 2 else values
    return np.where(withheld, -1, labels).astype(np.int64)


def _vector_score(
    query: Query, values: Array, withheld: list[npt.NDArray[np.bool_]]
) -> Callable[..., Array]:
    """Log-likelihood ratio of the noise at either value, and of passing as often as it did."""
    mechanism = query.mechanism
    noise = mechanism.inner if isinstance(mechanism, ProposeTestRelease) else mechanism
    assert isinstance(noise, AdditiveMechanism)
    held = [float(one.sum()) for one in withheld]
    passed = [float(len(one)) - count for one, count in zip(withheld, held, strict=True)]
    refusal = math.log((held[0] + 0.5) / (held[1] + 0.5))
    passing = math.log((passed[0] + 0.5) / (passed[1] + 0.5))

    def score(released: Array, withheld: npt.NDArray[np.bool_]) -> Array:
        away = [released - value for value in values]
        if isinstance(noise, GaussianMechanism):
            squares = [np.square(one).sum(axis=1) for one in away]
            ratio = (squares[1] - squares[0]) / (2.0 * noise.scale**2)
        else:
            ratio = (noise.norm.of(away[1]) - noise.norm.of(away[0])) / noise.scale
        return np.where(withheld, refusal, passing + ratio)

    return score
