"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""

from reticent.systems.bundle import Bundle
from reticent.systems.certified_classifier import CertifiedClassifier
from reticent.systems.certified_ensemble import CertifiedEnsemble
from reticent.systems.posthoc_classifier import PosthocClassifier
from reticent.systems.posthoc_encoder import PosthocEncoder
from reticent.systems.private_knn_classifier import PrivateKNNClassifier
from reticent.systems.private_knn_student import PrivateKNNStudent

__all__ = [
    "Bundle",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "PosthocClassifier",
    "PosthocEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
]
