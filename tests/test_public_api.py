"""The public names of every package, pinned: a name that comes or goes is a change that users
notice.
"""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "reticent": (
        "BetaVAE Calibration CellsClassifier CellsRegressor CertifiedClassifier "
        "CertifiedEnsemble "
        "ConvexCertifiedClassifier Identity IndividualKNNClassifier InputPlan LabelAware "
        "LinearVoteClassifier MomentClassifier MomentRegressor Named NearestRowClassifier "
        "NoiseAware NoisyGradientClassifier NoisyGradientRegressor Plan "
        "PosthocClassifier PosthocEncoder PowerEncoder PrivacyWarning PrivateKNNClassifier "
        "PrivateKNNStudent PublicRanges Published __version__ load plan "
        "plan_inputs"
    ),
    "reticent.accounting": (
        "AboveThreshold Accountant ApproximateRdp BasicFilter BasicOdometer Composed "
        "Composition Cost DiscreteLaplaceCost "
        "Filter GaussianAccountant GaussianCost IndividualFilter IndividualGaussianBudget "
        "LaplaceCost NoisyArgmaxDpEvent PldAccountant "
        "PoissonSampled PrivacyEvent "
        "PrivateKnnFilter PrivateKnnSteps PrivateKnnTotal RandomizedResponseCost RdpAccountant "
        "RdpFilter RdpOdometer "
        "ScreeningDpEvent SelfComposed StatedCost ZeroConcentratedCost advanced_epsilon "
        "basic_epsilon calibrate_individual_gaussian calibrate_private_knn "
        "delta_of_rdp epsilon_of_rdp epsilon_per_answer noise_multiplier noisy_argmax_rdp "
        "optimal_delta optimal_epsilon "
        "optimal_epsilon_of private_knn_rdp private_knn_total screening_rdp smallest_epsilon"
    ),
    "reticent.attacks": (
        "FittedAttack Game Hijacker HijackingConfig HijackingQuality PictureQuality "
        "Reconstruction ReconstructionConfig Reconstructor attack_fitted hijacking_quality invert "
        "majority_guess picture_quality relative_errors train_hijacker train_reconstructor"
    ),
    "reticent.audit": (
        "AuditCase AuditResult AuditedPair FittedAudit RecordsAudit Refutation SequentialTest "
        "additive_case argmax_response_case audit_fitted audit_records binary_response_case "
        "binomial_limits distance_to_instability_case "
        "epsilon_lower_bound guessing_lower_bound hop_release_case label_table_case "
        "laplace_test_case logits_case "
        "noisy_argmax_case noisy_screening_case noisy_sums_case propose_test_release_case refute "
        "signed_distance_case stability_release_case stability_response_case worst_levels "
        "worst_shift"
    ),
    "reticent.release": (
        "Books Bundle Drawn Payment Prepaid Price Releasing Scopes System paid release"
    ),
    "reticent.client": "Answers AsyncClient BudgetLine Client Cost Device Offer Pin",
    "reticent.core": (
        "AddRemove Adjacency Box Guarantee GuaranteeCard GuaranteeKind Neighborhood Norm "
        "Policy Receipt Release Replace Scope "
        "Unit operator_norm sign_patterns"
    ),
    "reticent.datasets": (
        "DATASETS DATA_VARIABLE Dataset Table load load_adult load_adult_sample load_atlas "
        "load_blobs load_cifar10 "
        "load_covertype load_digits load_fashion load_higgs load_imdb load_mnist "
        "load_pneumonia load_utkface"
    ),
    "reticent.ledger": (
        "Account Budget Charge Lease Leases Ledger LedgerReport PlanCounter Preview PreviewEach "
        "Reservation Spending Verification check_export"
    ),
    "reticent.lipschitz": (
        "CellBound EnumerationBound ExactBound ExactResult IntervalBound LayeredBound LevelTest "
        "Limits LinearBound LipschitzBound MilpResult OperatorNormBound Output "
        "Violation grid_radius lipschitz_constant milp_lipschitz milp_nearest_violation "
        "nearest_violation snap stability_radius"
    ),
    "reticent.neighbours": (
        "LEAST_WEIGHT NeighbourLists NeighbourSearch POINT_RADIUS PointGrid RadiusKernel Records "
        "SampledNeighbours ShardedRecords VOTE_STEPS WEIGHT_STEPS clipped_votes label_votes "
        "weight_votes"
    ),
    "reticent.networks": (
        "Activation ActivationKind Affine Convolution Layer Linear Network Residual "
        "ResidualSum SUPPORTED_MODULES affine_chain "
        "average_pool from_torch to_torch"
    ),
    "reticent.noise": (
        "AuditSampler ExactSampler Grid OpenDPSampler Sampler SecureSampler SeededSampler "
        "k_norm l2_epsilon_margin "
        "release_sampler"
    ),
    "reticent.radius": "AtRadius Caps RadiusSurvey Rule survey_radius",
    "reticent.plots": ("Level Series attack budget empty_drawing one_panel png radius utility"),
    "reticent.retraining": (
        "ConvexModel ConvexSettings ParameterIntervals TrainingSettings convex_model "
        "parameter_intervals published_vote_distances "
        "record_buckets record_keys "
        "stable_distances vote_distances"
    ),
    "reticent.service": "ApiKey KeyStore Settings create_app",
    "reticent.systems": (
        "BetaVAE Calibration CellsClassifier CellsRegressor CertifiedClassifier "
        "CertifiedEnsemble ClippedDescent "
        "ConvexCertifiedClassifier Features Identity IndividualKNNClassifier LabelAware "
        "LinearVoteClassifier MomentClassifier MomentRegressor Named NearestRowClassifier "
        "NoiseAware NoisyGradientClassifier NoisyGradientRegressor "
        "PosthocClassifier PosthocEncoder PowerEncoder PrivateKNNClassifier PrivateKNNStudent "
        "PublicRanges Published PublishedMode ReleasedClassifier "
        "ReleasedRegressor Server VectorTraining train_server unit_sum"
    ),
    "reticent.tables": (
        "Categorical Hashed Instant NamedRows Numeric OneHot Ordered Shards TabularSchema Truth "
        "adult_schema atlas_schema covertype_schema higgs_schema read_names read_rows"
    ),
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_the_pinned_ones_and_all_exist(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_estimators_are_the_same_objects_everywhere():
    import reticent
    from reticent.systems import PosthocClassifier, PosthocEncoder

    assert reticent.PosthocEncoder is PosthocEncoder
    assert reticent.PosthocClassifier is PosthocClassifier
    with pytest.raises(AttributeError, match="no attribute 'PosthocDecoder'"):
        _ = reticent.PosthocDecoder
