"""Sound bounds on local Lipschitz constants, exact constants, and radii."""

from reticent.lipschitz.bounds import LipschitzBound, Output
from reticent.lipschitz.cells import CellBound
from reticent.lipschitz.enumeration import EnumerationBound
from reticent.lipschitz.exact import (
    ExactBound,
    ExactResult,
    Violation,
    lipschitz_constant,
    nearest_violation,
)
from reticent.lipschitz.exact_search import Limits
from reticent.lipschitz.interval import IntervalBound
from reticent.lipschitz.layered import LayeredBound
from reticent.lipschitz.linear import LinearBound
from reticent.lipschitz.operator_norms import OperatorNormBound
from reticent.lipschitz.radius import LevelTest, grid_radius, snap, stability_radius

__all__ = [
    "CellBound",
    "EnumerationBound",
    "ExactBound",
    "ExactResult",
    "IntervalBound",
    "LayeredBound",
    "LevelTest",
    "Limits",
    "LinearBound",
    "LipschitzBound",
    "OperatorNormBound",
    "Output",
    "Violation",
    "grid_radius",
    "lipschitz_constant",
    "nearest_violation",
    "snap",
    "stability_radius",
]
