"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""

from reticent.systems.bundle import Bundle
from reticent.systems.certified_classifier import CertifiedClassifier
from reticent.systems.certified_ensemble import CertifiedEnsemble
from reticent.systems.posthoc_classifier import PosthocClassifier
from reticent.systems.posthoc_encoder import PosthocEncoder
from reticent.systems.power_encoder import PowerEncoder
from reticent.systems.power_servers import Server, train_server
from reticent.systems.private_knn_classifier import PrivateKNNClassifier
from reticent.systems.private_knn_student import PrivateKNNStudent
from reticent.systems.tabular import Categorical, Numeric, OneHot, TabularSchema
from reticent.systems.tabular_schemas import adult_schema, atlas_schema, covertype_schema, higgs_schema

__all__ = [
    "Bundle",
    "Categorical",
    "CertifiedClassifier",
    "CertifiedEnsemble",
    "Numeric",
    "OneHot",
    "PosthocClassifier",
    "PosthocEncoder",
    "PowerEncoder",
    "PrivateKNNClassifier",
    "PrivateKNNStudent",
    "Server",
    "TabularSchema",
    "adult_schema",
    "atlas_schema",
    "covertype_schema",
    "higgs_schema",
    "train_server",
]
