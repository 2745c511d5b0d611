"""Tests of privacy claims by betting: evidence against a claim, and planted faults that must be
caught.
"""

from reticent.audit.cases import (
    AuditCase,
    additive_case,
    finite_channel_case,
    hop_release_case,
    propose_test_release_case,
    worst_levels,
    worst_shift,
)
from reticent.audit.claim_page import claim_page, claim_report
from reticent.audit.claims import ClaimAudit, claim
from reticent.audit.fitted import audit_fitted
from reticent.audit.neighbour_pairs import (
    NeighbourPair,
    read_pairs,
    schema_pairs,
    searched_pairs,
)
from reticent.audit.records import audit_records
from reticent.audit.sequential import SequentialTest
from reticent.audit.stated_noise import ScaleTest, reachable_laplace
from reticent.audit.subjects import (
    CommandSubject,
    EstimatorSubject,
    HttpSubject,
    RecordedScores,
)

__all__ = [
    "AuditCase",
    "ClaimAudit",
    "CommandSubject",
    "EstimatorSubject",
    "HttpSubject",
    "NeighbourPair",
    "RecordedScores",
    "ScaleTest",
    "SequentialTest",
    "additive_case",
    "audit_fitted",
    "audit_records",
    "claim",
    "claim_page",
    "claim_report",
    "finite_channel_case",
    "hop_release_case",
    "propose_test_release_case",
    "reachable_laplace",
    "read_pairs",
    "schema_pairs",
    "searched_pairs",
    "worst_levels",
    "worst_shift",
]
