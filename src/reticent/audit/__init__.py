"""Statistical lower bounds on epsilon: evidence against a claim, and planted faults that must be
caught.
"""

from reticent.audit.certified_cases import (
    binary_response_case,
    distance_to_instability_case,
    signed_distance_case,
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
    guessing_lower_bound,
)
from reticent.audit.noisy_sums_cases import noisy_sums_case
from reticent.audit.private_knn_cases import noisy_argmax_case, noisy_screening_case
from reticent.audit.records import RecordsAudit, audit_records
from reticent.audit.sequential import Refutation, SequentialTest, refute
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
    "FittedAudit",
    "RecordsAudit",
    "Refutation",
    "SequentialTest",
    "additive_case",
    "audit_fitted",
    "audit_records",
    "binary_response_case",
    "binomial_limits",
    "distance_to_instability_case",
    "epsilon_lower_bound",
    "finite_channel_case",
    "guessing_lower_bound",
    "hop_release_case",
    "laplace_test_case",
    "logits_case",
    "noisy_argmax_case",
    "noisy_screening_case",
    "noisy_sums_case",
    "propose_test_release_case",
    "refute",
    "signed_distance_case",
    "stability_release_case",
    "stability_response_case",
    "worst_levels",
    "worst_shift",
]
