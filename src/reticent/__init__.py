"""reticent: release what was computed from private data, with a guarantee that can be proved."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reticent.version import __version__ as __version__

if TYPE_CHECKING:
    from reticent.core.errors import PrivacyWarning as PrivacyWarning
    from reticent.planning import InputPlan, Plan, plan, plan_inputs
    from reticent.systems import (
        BetaVAE,
        Calibration,
        CellsClassifier,
        CellsRegressor,
        CertifiedClassifier,
        CertifiedEnsemble,
        ConvexCertifiedClassifier,
        Identity,
        IndividualKNNClassifier,
        LabelAware,
        LinearVoteClassifier,
        MomentClassifier,
        MomentRegressor,
        Named,
        NearestRowClassifier,
        NoiseAware,
        NoisyGradientClassifier,
        NoisyGradientRegressor,
        PosthocClassifier,
        PosthocEncoder,
        PowerEncoder,
        PrivateKNNClassifier,
        PrivateKNNStudent,
        PublicRanges,
        Published,
    )
    from reticent.systems.loading import load

__all__ = [
    "BetaVAE",
    "Calibration",
    "CellsClassifier",
    "CellsRegressor",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "ConvexCertifiedClassifier",
    "Identity",
    "IndividualKNNClassifier",
    "InputPlan",
    "LabelAware",
    "LinearVoteClassifier",
    "MomentClassifier",
    "MomentRegressor",
    "Named",
    "NearestRowClassifier",
    "NoiseAware",
    "NoisyGradientClassifier",
    "NoisyGradientRegressor",
    "Plan",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivacyWarning",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "PublicRanges",
    "Published",
    "__version__",
    "load",
    "plan",
    "plan_inputs",
]

_ELSEWHERE = {
    "InputPlan": "reticent.planning",
    "Plan": "reticent.planning",
    "PrivacyWarning": "reticent.core.errors",
    "load": "reticent.systems.loading",
    "plan": "reticent.planning",
    "plan_inputs": "reticent.planning",
}
"""What is not an estimator, and the module that has it."""


def __getattr__(name: str) -> Any:
    """What this package gives, imported when first asked for: torch takes seconds, and ``reticent
    --help`` should not.
    """
    if name not in __all__:
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "reticent.systems")), name)
