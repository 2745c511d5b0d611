"""Immutable privacy events, and the total cost of many answers.

``composition``, ``accountants`` and ``calibration`` compute the cost of Q answers. ``filters`` keep
a total that is spent adaptively. ``reticent.ledger`` keeps totals on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.accounting.accountants import Accountant, RdpAccountant
    from reticent.accounting.approximate_rdp import ApproximateRdp
    from reticent.accounting.calibration import epsilon_per_answer, noise_multiplier
    from reticent.accounting.composition import (
        Composition,
        optimal_delta,
        optimal_epsilon,
        smallest_epsilon,
    )
    from reticent.accounting.conversion import epsilon_of_rdp
    from reticent.accounting.events import (
        Composed,
        Cost,
        GaussianCost,
        PoissonSampled,
        PrivacyEvent,
        StatedCost,
        ZeroConcentratedCost,
    )
    from reticent.accounting.exact_gaussian import GaussianAccountant
    from reticent.accounting.individual_filter import IndividualFilter
    from reticent.accounting.individual_gaussian import (
        IndividualGaussianBudget,
        calibrate_individual_gaussian,
    )
    from reticent.accounting.loss_accountant import PldAccountant
    from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent, noisy_argmax_rdp
    from reticent.accounting.private_knn import (
        PrivateKnnSteps,
        PrivateKnnTotal,
        private_knn_rdp,
        private_knn_total,
    )
    from reticent.accounting.private_knn_calibration import calibrate_private_knn
    from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
    from reticent.accounting.shuffling import (
        ShuffledChannel,
        local_epsilon_for,
        shuffled_epsilon,
    )
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Accountant",
    "ApproximateRdp",
    "Composed",
    "Composition",
    "Cost",
    "GaussianAccountant",
    "GaussianCost",
    "IndividualFilter",
    "IndividualGaussianBudget",
    "NoisyArgmaxDpEvent",
    "PldAccountant",
    "PoissonSampled",
    "PrivacyEvent",
    "PrivateKnnSteps",
    "PrivateKnnTotal",
    "RdpAccountant",
    "ScreeningDpEvent",
    "ShuffledChannel",
    "StatedCost",
    "ZeroConcentratedCost",
    "calibrate_individual_gaussian",
    "calibrate_private_knn",
    "epsilon_of_rdp",
    "epsilon_per_answer",
    "local_epsilon_for",
    "noise_multiplier",
    "noisy_argmax_rdp",
    "optimal_delta",
    "optimal_epsilon",
    "private_knn_rdp",
    "private_knn_total",
    "screening_rdp",
    "shuffled_epsilon",
    "smallest_epsilon",
]
