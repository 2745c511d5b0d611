"""The estimators, scikit-learn's way, with release, guarantee, card, save and load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.systems.certified.interval_system import (
        CertifiedClassifier,
        CertifiedEnsemble,
        ClippedDescent,
    )
    from reticent.systems.certified.reserve_system import (
        CertifiedNetwork,
        ConvexCertifiedClassifier,
        HiddenLayer,
    )
    from reticent.systems.features import Features
    from reticent.systems.posthoc.classifier import PosthocClassifier
    from reticent.systems.posthoc.encoder import PosthocEncoder
    from reticent.systems.posthoc.settings import Calibration
    from reticent.systems.power.code_encoder import CodeEncoder
    from reticent.systems.power.code_targets import ExplainedVariance, NearRows, Recall, Within
    from reticent.systems.power.encoder import PowerEncoder
    from reticent.systems.power.servers import Server, train_server
    from reticent.systems.power.settings import VectorTraining
    from reticent.systems.private_knn.classifier import PrivateKNNClassifier
    from reticent.systems.private_knn.individual import IndividualKNNClassifier
    from reticent.systems.private_knn.plan import Neighbours
    from reticent.systems.private_knn.radii import Ball
    from reticent.systems.public_ranges import PublicRanges
    from reticent.systems.public_reference import PublicReference
    from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
    from reticent.systems.votes.linear_vote import LinearVoteClassifier
    from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
    from reticent.systems.votes.pate import PateClassifier
    from reticent.systems.votes.public_start import PublicModelsClassifier, PublicStartClassifier
    from reticent.systems.votes.public_start_regressor import PublicStartRegressor
    from reticent.systems.votes.released_classifier import ReleasedClassifier
    from reticent.systems.votes.released_regressor import ReleasedRegressor
    from reticent.systems.votes.sums import unit_sum
    from reticent.systems.votes.teachers import Teachers
    from reticent.training.parts.embedders import BetaVAE, Identity, Named
    from reticent.training.parts.label_classifiers import LabelAware
    from reticent.training.parts.obfuscators import NoiseAware
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Ball",
    "BetaVAE",
    "Calibration",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "CertifiedNetwork",
    "ClippedDescent",
    "CodeEncoder",
    "ConvexCertifiedClassifier",
    "ExplainedVariance",
    "Features",
    "HiddenLayer",
    "Identity",
    "IndividualKNNClassifier",
    "LabelAware",
    "LinearVoteClassifier",
    "Named",
    "NearRows",
    "Neighbours",
    "NoiseAware",
    "NoisyGradientClassifier",
    "NoisyGradientRegressor",
    "PateClassifier",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PublicModelsClassifier",
    "PublicRanges",
    "PublicReference",
    "PublicStartClassifier",
    "PublicStartRegressor",
    "Recall",
    "ReleasedClassifier",
    "ReleasedRegressor",
    "Server",
    "Teachers",
    "VectorTraining",
    "Within",
    "train_server",
    "unit_sum",
]
