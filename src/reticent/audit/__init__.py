"""Statistical lower bounds on epsilon: evidence against a claim, and planted faults that must be
caught.
"""

from reticent.audit.certified_cases import (
    binary_response_case,
    distance_to_instability_case,
    signed_distance_case,
)
from reticent.audit.claim_page import claim_page, claim_report
from reticent.audit.claims import ClaimAudit, claim
from reticent.audit.exact_laws import (
    LossLaw,
    exponential_law,
    finite_law,
    gaussian_law,
    laplace_law,
    response_law,
    staircase_law,
)
from reticent.audit.fitted import AuditedPair, FittedAudit, audit_fitted
from reticent.audit.label_rule_cases import (
    finite_channel_case,
    hop_release_case,
)
from reticent.audit.lower_bounds import (
    AuditResult,
    binomial_limits,
    epsilon_lower_bound,
)
from reticent.audit.neighbour_pairs import (
    NeighbourPair,
    read_pairs,
    schema_pairs,
    searched_pairs,
)
from reticent.audit.noisy_sums_cases import noisy_sums_case
from reticent.audit.private_knn_cases import noisy_argmax_case, noisy_screening_case
from reticent.audit.records import RecordsAudit, audit_records
from reticent.audit.sequential import Refutation, SequentialTest, refute
from reticent.audit.stated_noise import ScaleTest, reachable_laplace
from reticent.audit.subjects import (
    CommandSubject,
    EstimatorSubject,
    HttpSubject,
    RecordedScores,
)
from reticent.audit.worst_case import (
    AuditCase,
    additive_case,
    laplace_test_case,
    logits_case,
    propose_test_release_case,
    stability_release_case,
    stability_response_case,
    worst_levels,
    worst_shift,
)

__all__ = [
    "AuditCase",
    "AuditResult",
    "AuditedPair",
    "ClaimAudit",
    "CommandSubject",
    "EstimatorSubject",
    "FittedAudit",
    "HttpSubject",
    "LossLaw",
    "NeighbourPair",
    "RecordedScores",
    "RecordsAudit",
    "Refutation",
    "ScaleTest",
    "SequentialTest",
    "additive_case",
    "audit_fitted",
    "audit_records",
    "binary_response_case",
    "binomial_limits",
    "claim",
    "claim_page",
    "claim_report",
    "distance_to_instability_case",
    "epsilon_lower_bound",
    "exponential_law",
    "finite_channel_case",
    "finite_law",
    "gaussian_law",
    "hop_release_case",
    "laplace_law",
    "laplace_test_case",
    "logits_case",
    "noisy_argmax_case",
    "noisy_screening_case",
    "noisy_sums_case",
    "propose_test_release_case",
    "reachable_laplace",
    "read_pairs",
    "refute",
    "response_law",
    "schema_pairs",
    "searched_pairs",
    "signed_distance_case",
    "stability_release_case",
    "stability_response_case",
    "staircase_law",
    "worst_levels",
    "worst_shift",
]
