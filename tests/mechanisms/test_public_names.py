"""The public names of three packages, pinned."""

import reticent.audit
import reticent.mechanisms
import reticent.noise


def test_public_names() -> None:
    assert sorted(reticent.mechanisms.__all__) == [
        "AdditiveMechanism",
        "AnyTwo",
        "DistanceToInstability",
        "FiniteChannel",
        "GaussianMechanism",
        "HopRelease",
        "KNormMechanism",
        "LabelMechanism",
        "LaplaceMechanism",
        "LaplaceTestRelease",
        "NoisyArgmax",
        "NoisyAttributes",
        "NoisyMaxRelease",
        "NoisyScreening",
        "NoisySums",
        "ProposeTestRelease",
        "SignedDistanceRelease",
        "SoftmaxRelease",
        "SparseVectorScreening",
        "StabilityRelease",
        "StabilityResponse",
        "SumBlock",
        "SumSession",
        "analytic_sigma",
        "gaussian_delta",
        "optimal_test",
    ]
    assert sorted(reticent.noise.__all__) == [
        "AuditSampler",
        "ExactSampler",
        "Grid",
        "OpenDPSampler",
        "Sampler",
        "SecureSampler",
        "SeededSampler",
        "k_norm",
        "l2_epsilon_margin",
        "release_sampler",
    ]
    for package in (reticent.mechanisms, reticent.noise, reticent.audit):
        assert all(hasattr(package, name) for name in package.__all__)
