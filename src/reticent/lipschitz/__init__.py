"""Sound bounds on local Lipschitz constants, and radii."""

from reticent.lipschitz.bounds import LipschitzBound, Output
from reticent.lipschitz.interval import IntervalBound
from reticent.lipschitz.layered import LayeredBound
from reticent.lipschitz.linear import LinearBound
from reticent.lipschitz.operator_norms import OperatorNormBound
from reticent.lipschitz.radius import LevelTest, grid_radius, snap, stability_radius

__all__ = [
    "IntervalBound",
    "LayeredBound",
    "LevelTest",
    "LinearBound",
    "LipschitzBound",
    "OperatorNormBound",
    "Output",
    "grid_radius",
    "snap",
    "stability_radius",
]
