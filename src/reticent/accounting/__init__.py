"""Immutable privacy events, their composition, and durable budgets.

``composition``, ``accountants`` and ``calibration`` answer "what do Q answers cost"; ``filters`` keep a total that is spent
adaptively; ``Ledger`` keeps it on disk, for many processes, through crashes.
"""

from reticent.accounting.accountants import Accountant, PldAccountant, RdpAccountant
from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.calibration import epsilon_per_answer, noise_multiplier
from reticent.accounting.charges import Budget, Charge
from reticent.accounting.composition import (
    Composition,
    advanced_epsilon,
    basic_epsilon,
    optimal_delta,
    optimal_epsilon,
    optimal_epsilon_of,
    smallest_epsilon,
)
from reticent.accounting.counters import PlanCounter
from reticent.accounting.events import PrivacyEvent
from reticent.accounting.exports import check_export
from reticent.accounting.filters import BasicFilter, BasicOdometer, Filter, RdpFilter, RdpOdometer
from reticent.accounting.ledger import Ledger, Preview
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent, noisy_argmax_rdp
from reticent.accounting.private_knn import PrivateKnnSteps, PrivateKnnTotal, private_knn_rdp, private_knn_total
from reticent.accounting.private_knn_calibration import calibrate_private_knn
from reticent.accounting.private_knn_filter import PrivateKnnFilter
from reticent.accounting.reports import Account, LedgerReport, Spending
from reticent.accounting.reservations import Reservation
from reticent.accounting.scopes import Policy, Scope
from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
from reticent.accounting.sparse_vector import AboveThreshold
from reticent.accounting.verification import Verification

__all__ = [
    "AboveThreshold",
    "Account",
    "Accountant",
    "ApproximateRdp",
    "BasicFilter",
    "BasicOdometer",
    "Budget",
    "Charge",
    "Composition",
    "Filter",
    "Ledger",
    "LedgerReport",
    "NoisyArgmaxDpEvent",
    "PlanCounter",
    "PldAccountant",
    "Policy",
    "Preview",
    "PrivacyEvent",
    "PrivateKnnFilter",
    "PrivateKnnSteps",
    "PrivateKnnTotal",
    "RdpAccountant",
    "RdpFilter",
    "RdpOdometer",
    "Reservation",
    "Scope",
    "ScreeningDpEvent",
    "Spending",
    "Verification",
    "advanced_epsilon",
    "basic_epsilon",
    "calibrate_private_knn",
    "check_export",
    "epsilon_per_answer",
    "noise_multiplier",
    "noisy_argmax_rdp",
    "optimal_delta",
    "optimal_epsilon",
    "optimal_epsilon_of",
    "private_knn_rdp",
    "private_knn_total",
    "screening_rdp",
    "smallest_epsilon",
]
