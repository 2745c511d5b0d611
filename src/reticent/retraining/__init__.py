"""Sound numbers about training: intervals around every weight over all data sets a few records
apart, and what follows.
"""

from reticent.retraining.convex import (
    ConvexModel,
    ConvexSettings,
    convex_model,
)
from reticent.retraining.hidden_layer import HiddenModel, HiddenSettings, hidden_model
from reticent.retraining.record_keys import record_buckets, record_keys
from reticent.retraining.reserves import one_against_one
from reticent.retraining.stability import stable_distances, vote_distances
from reticent.retraining.training import ParameterIntervals, parameter_intervals
from reticent.retraining.training_settings import TrainingSettings

__all__ = [
    "ConvexModel",
    "ConvexSettings",
    "HiddenModel",
    "HiddenSettings",
    "ParameterIntervals",
    "TrainingSettings",
    "convex_model",
    "hidden_model",
    "one_against_one",
    "parameter_intervals",
    "record_buckets",
    "record_keys",
    "stable_distances",
    "vote_distances",
]
