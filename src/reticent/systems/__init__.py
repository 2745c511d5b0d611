"""The estimators, scikit-learn's way, with release, guarantee, card, save and load."""

from reticent.systems.certified.classifier import CertifiedClassifier
from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier
from reticent.systems.certified.ensemble import CertifiedEnsemble
from reticent.systems.posthoc.classifier import PosthocClassifier
from reticent.systems.posthoc.encoder import PosthocEncoder
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.servers import Server, train_server
from reticent.systems.private_knn.classifier import PrivateKNNClassifier
from reticent.systems.private_knn.student import PrivateKNNStudent
from reticent.systems.public_ranges import PublicRanges

__all__ = [
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "ConvexCertifiedClassifier",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "PublicRanges",
    "Server",
    "train_server",
]
