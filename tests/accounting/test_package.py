from __future__ import annotations

import reticent.accounting as accounting


def test_public_names_are_sorted_and_there() -> None:
    assert sorted(accounting.__all__) == accounting.__all__
    assert all(hasattr(accounting, name) for name in accounting.__all__)


def test_the_public_list_is_pinned() -> None:
    assert " ".join(accounting.__all__) == (
        "AboveThreshold Account Accountant BasicFilter BasicOdometer Budget Charge Composition Filter Ledger LedgerReport "
        "NoisyArgmaxDpEvent PldAccountant Policy "
        "Preview PrivacyEvent PrivateKnnFilter PrivateKnnSteps PrivateKnnTotal RdpAccountant "
        "RdpFilter RdpOdometer Reservation Scope ScreeningDpEvent Spending Verification advanced_epsilon basic_epsilon "
        "calibrate_private_knn check_export epsilon_per_answer noise_multiplier noisy_argmax_rdp optimal_delta "
        "optimal_epsilon optimal_epsilon_of private_knn_rdp private_knn_total screening_rdp smallest_epsilon"
    )
