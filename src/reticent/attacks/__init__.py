"""Evidence against a release: what an adversary who holds it can get back."""

from reticent.attacks.hijacking import (
    Hijacker,
    HijackingConfig,
    HijackingQuality,
    hijacking_quality,
    majority_guess,
    train_hijacker,
)
from reticent.attacks.inversion import invert, relative_errors
from reticent.attacks.picture_quality import PictureQuality, picture_quality
from reticent.attacks.reconstruction import ReconstructionConfig, Reconstructor, train_reconstructor

__all__ = [
    "Hijacker",
    "HijackingConfig",
    "HijackingQuality",
    "PictureQuality",
    "ReconstructionConfig",
    "Reconstructor",
    "hijacking_quality",
    "invert",
    "majority_guess",
    "picture_quality",
    "relative_errors",
    "train_hijacker",
    "train_reconstructor",
]
