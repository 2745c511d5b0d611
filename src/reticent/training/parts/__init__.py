"""Parts of the posthoc estimators: what is trained, as small scikit-learn estimators."""

from reticent.training.parts.contract import PlannedRelease
from reticent.training.parts.embedders import BetaVAE, Identity, Named
from reticent.training.parts.label_classifiers import LabelAware
from reticent.training.parts.obfuscators import NoiseAware, Published

__all__ = [
    "BetaVAE",
    "Identity",
    "LabelAware",
    "Named",
    "NoiseAware",
    "PlannedRelease",
    "Published",
]
