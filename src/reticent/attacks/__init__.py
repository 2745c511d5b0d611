"""Evidence against a release: what an adversary who holds it can get back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.attacks.picture_quality import PictureQuality, picture_quality

if TYPE_CHECKING:
    from reticent.attacks.decoder import Decoder, DecoderConfig, train_decoder
    from reticent.attacks.fitted import FittedAttack, attack_fitted
    from reticent.attacks.games import Game, Reconstruction
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Decoder",
    "DecoderConfig",
    "FittedAttack",
    "Game",
    "PictureQuality",
    "Reconstruction",
    "attack_fitted",
    "picture_quality",
    "train_decoder",
]
