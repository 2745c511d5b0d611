"""Everything that yields a sound number: upper bounds on local Lipschitz constants, and radii."""

from reticent.certify.bounds import LipschitzBound, Output
from reticent.certify.enumeration import EnumerationBound
from reticent.certify.interval import IntervalBound
from reticent.certify.radius import LevelTest, grid_radius, snap, stability_radius

__all__ = [
    "EnumerationBound",
    "IntervalBound",
    "LevelTest",
    "LipschitzBound",
    "Output",
    "grid_radius",
    "snap",
    "stability_radius",
]
