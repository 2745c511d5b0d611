"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""

from reticent.systems.bundle import Bundle
from reticent.systems.posthoc_classifier import PosthocClassifier
from reticent.systems.posthoc_encoder import PosthocEncoder
from reticent.systems.private_knn_classifier import PrivateKNNClassifier

__all__ = ["Bundle", "PosthocClassifier", "PosthocEncoder", "PrivateKNNClassifier"]
