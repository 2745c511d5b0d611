"""The estimators, scikit-learn's way, with release, guarantee, card, save and load."""

from reticent.systems.certified.classifier import CertifiedClassifier
from reticent.systems.certified.ensemble import CertifiedEnsemble
from reticent.systems.posthoc.classifier import PosthocClassifier
from reticent.systems.posthoc.encoder import PosthocEncoder
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.servers import Server, train_server
from reticent.systems.private_knn.classifier import PrivateKNNClassifier
from reticent.systems.private_knn.student import PrivateKNNStudent
from reticent.systems.public_ranges import PublicRanges
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.moment import MomentClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.radius_votes import RadiusVotesClassifier

__all__ = [
    "CellsClassifier",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "LinearVoteClassifier",
    "MomentClassifier",
    "NoisyGradientClassifier",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "PublicRanges",
    "RadiusVotesClassifier",
    "Server",
    "train_server",
]
