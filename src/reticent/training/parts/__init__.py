"""Parts of the posthoc estimators, each a small scikit-learn estimator that is trained."""

from reticent.training.parts.contract import PlannedRelease
from reticent.training.parts.embedders import BetaVAE, Identity, Named
from reticent.training.parts.label_classifiers import LabelAware
from reticent.training.parts.ladder import Ladder
from reticent.training.parts.linear_maps import LiveCoordinates, PublicDiscriminants, PublicPCA
from reticent.training.parts.obfuscators import NoiseAware
from reticent.training.parts.public_nodes import PublicParts, PublicSigns

__all__ = [
    "BetaVAE",
    "Identity",
    "LabelAware",
    "Ladder",
    "LiveCoordinates",
    "Named",
    "NoiseAware",
    "PlannedRelease",
    "PublicDiscriminants",
    "PublicPCA",
    "PublicParts",
    "PublicSigns",
]
