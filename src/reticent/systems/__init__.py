"""The front doors: scikit-learn estimators with release, guarantee, card, save and load."""

from reticent.systems.bundle import Bundle
from reticent.systems.certified.classifier import CertifiedClassifier
from reticent.systems.certified.ensemble import CertifiedEnsemble
from reticent.systems.posthoc.classifier import PosthocClassifier
from reticent.systems.posthoc.encoder import PosthocEncoder
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.servers import Server, train_server
from reticent.systems.private_knn.classifier import PrivateKNNClassifier
from reticent.systems.private_knn.student import PrivateKNNStudent
from reticent.systems.public_ranges import PublicRanges
from reticent.systems.tables.files import read_names, read_rows
from reticent.systems.tables.known_schemas import adult_schema, atlas_schema, covertype_schema, higgs_schema
from reticent.systems.tables.schema import Categorical, Numeric, OneHot, TabularSchema

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
    "PublicRanges",
    "Server",
    "TabularSchema",
    "adult_schema",
    "atlas_schema",
    "covertype_schema",
    "higgs_schema",
    "read_names",
    "read_rows",
    "train_server",
]
