"""Randomised maps with a proved cost, one file each."""

from reticent.mechanisms.additive import AdditiveMechanism
from reticent.mechanisms.finite_channel import AnyTwo, FiniteChannel
from reticent.mechanisms.gaussian import GaussianMechanism, analytic_sigma, gaussian_delta
from reticent.mechanisms.hop_release import HopRelease
from reticent.mechanisms.k_norm import KNormMechanism
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.mechanisms.laplace import LaplaceMechanism
from reticent.mechanisms.noisy_argmax import NoisyArgmax
from reticent.mechanisms.noisy_max_release import NoisyMaxRelease
from reticent.mechanisms.noisy_screening import NoisyScreening
from reticent.mechanisms.noisy_sums import NoisySums, SumBlock, SumSession
from reticent.mechanisms.propose_test_release import ProposeTestRelease, optimal_test
from reticent.mechanisms.signed_distance import SignedDistanceRelease
from reticent.mechanisms.stability_release import StabilityRelease
from reticent.mechanisms.stability_response import StabilityResponse

__all__ = [
    "AdditiveMechanism",
    "AnyTwo",
    "FiniteChannel",
    "GaussianMechanism",
    "HopRelease",
    "KNormMechanism",
    "LabelMechanism",
    "LaplaceMechanism",
    "NoisyArgmax",
    "NoisyMaxRelease",
    "NoisyScreening",
    "NoisySums",
    "ProposeTestRelease",
    "SignedDistanceRelease",
    "StabilityRelease",
    "StabilityResponse",
    "SumBlock",
    "SumSession",
    "analytic_sigma",
    "gaussian_delta",
    "optimal_test",
]
