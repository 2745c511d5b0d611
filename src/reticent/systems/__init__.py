"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""

from reticent.systems.bundle import Bundle
from reticent.systems.posthoc_classifier import PosthocClassifier
from reticent.systems.posthoc_encoder import PosthocEncoder

__all__ = ["Bundle", "PosthocClassifier", "PosthocEncoder"]
