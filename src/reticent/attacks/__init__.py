"""Evidence against a release: what an adversary who holds it can get back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.attacks.picture_quality import PictureQuality, picture_quality

if TYPE_CHECKING:
    from reticent.attacks.fitted import FittedAttack, attack_fitted
    from reticent.attacks.games import Game, Reconstruction
    from reticent.attacks.hijacking import (
        Hijacker,
        HijackingConfig,
        HijackingQuality,
        hijacking_quality,
        majority_guess,
        train_hijacker,
    )
    from reticent.attacks.reconstruction import (
        ReconstructionConfig,
        Reconstructor,
        train_reconstructor,
    )
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "FittedAttack",
    "Game",
    "Hijacker",
    "HijackingConfig",
    "HijackingQuality",
    "PictureQuality",
    "Reconstruction",
    "ReconstructionConfig",
    "Reconstructor",
    "attack_fitted",
    "hijacking_quality",
    "majority_guess",
    "picture_quality",
    "train_hijacker",
    "train_reconstructor",
]
