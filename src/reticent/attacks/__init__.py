"""Evidence against a release: what an adversary who holds it can get back."""

from reticent.attacks.picture_quality import PictureQuality, picture_quality
from reticent.attacks.reconstruction import ReconstructionConfig, Reconstructor, train_reconstructor

__all__ = ["PictureQuality", "ReconstructionConfig", "Reconstructor", "picture_quality", "train_reconstructor"]
