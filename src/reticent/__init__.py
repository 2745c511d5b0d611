"""reticent: release what was computed from private data, with a guarantee that can be proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.version import __version__ as __version__

if TYPE_CHECKING:
    from reticent.audit import audit_fitted, audit_records
    from reticent.core import Guarantee, Scope
    from reticent.core.errors import PrivacyWarning as PrivacyWarning
    from reticent.ledger import Ledger
    from reticent.planning import Plan, plan, plan_inputs
    from reticent.systems import (
        BetaVAE,
        Calibration,
        CertifiedClassifier,
        CertifiedEnsemble,
        CertifiedNetwork,
        ClippedDescent,
        CodeEncoder,
        ConvexCertifiedClassifier,
        Features,
        HiddenLayer,
        Identity,
        IndividualKNNClassifier,
        LabelAware,
        LinearVoteClassifier,
        Named,
        NoiseAware,
        NoisyGradientClassifier,
        NoisyGradientRegressor,
        PateClassifier,
        PosthocClassifier,
        PosthocEncoder,
        PowerEncoder,
        PrivateKNNClassifier,
        PublicModelsClassifier,
        PublicRanges,
        PublicReference,
        PublicStartClassifier,
        PublicStartRegressor,
        Teachers,
        VectorTraining,
        train_server,
    )
    from reticent.systems.loading import load
    from reticent.tables import TabularSchema
    from reticent.testing import check_system
else:
    from reticent.core.lazy import lazy_names

    # Torch takes seconds to import, and ``reticent --help`` should not.
    __getattr__ = lazy_names(__name__)

__all__ = [
    "BetaVAE",
    "Calibration",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "CertifiedNetwork",
    "ClippedDescent",
    "CodeEncoder",
    "ConvexCertifiedClassifier",
    "Features",
    "Guarantee",
    "HiddenLayer",
    "Identity",
    "IndividualKNNClassifier",
    "LabelAware",
    "Ledger",
    "LinearVoteClassifier",
    "Named",
    "NoiseAware",
    "NoisyGradientClassifier",
    "NoisyGradientRegressor",
    "PateClassifier",
    "Plan",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivacyWarning",
    "PrivateKNNClassifier",
    "PublicModelsClassifier",
    "PublicRanges",
    "PublicReference",
    "PublicStartClassifier",
    "PublicStartRegressor",
    "Scope",
    "TabularSchema",
    "Teachers",
    "VectorTraining",
    "__version__",
    "audit_fitted",
    "audit_records",
    "check_system",
    "load",
    "plan",
    "plan_inputs",
    "train_server",
]
