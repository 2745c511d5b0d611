"""Everything that yields a sound number: upper bounds on local Lipschitz constants, and radii."""

from reticent.certify.bounds import LipschitzBound, Output
from reticent.certify.enumeration import EnumerationBound
from reticent.certify.exact import ExactBound, ExactResult, Violation, lipschitz_constant, nearest_violation
from reticent.certify.exact_search import Limits
from reticent.certify.interval import IntervalBound
from reticent.certify.layered import LayeredBound
from reticent.certify.milp import MilpResult, milp_lipschitz, milp_nearest_violation
from reticent.certify.radius import LevelTest, grid_radius, snap, stability_radius
from reticent.certify.record_keys import record_buckets, record_keys
from reticent.certify.stability import published_vote_distances, stable_distances, vote_distances
from reticent.certify.training import ParameterIntervals, parameter_intervals
from reticent.certify.training_settings import TrainingSettings

__all__ = [
    "EnumerationBound",
    "ExactBound",
    "ExactResult",
    "IntervalBound",
    "LayeredBound",
    "LevelTest",
    "Limits",
    "LipschitzBound",
    "MilpResult",
    "Output",
    "ParameterIntervals",
    "TrainingSettings",
    "Violation",
    "grid_radius",
    "lipschitz_constant",
    "milp_lipschitz",
    "milp_nearest_violation",
    "nearest_violation",
    "parameter_intervals",
    "published_vote_distances",
    "record_buckets",
    "record_keys",
    "snap",
    "stability_radius",
    "stable_distances",
    "vote_distances",
]
