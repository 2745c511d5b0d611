"""Exact nearest neighbours of Poisson samples, and their votes.

Nothing here adds noise to a vote or knows a budget. Only the choice of the records that take part
is random. Distances are integers, so that a record's place depends on the record, the query and
nothing else.
"""

from reticent.neighbours.integer_points import POINT_RADIUS, PointGrid
from reticent.neighbours.kernels import LEAST_WEIGHT, WEIGHT_STEPS, RadiusKernel
from reticent.neighbours.records import Records
from reticent.neighbours.sampled import SampledNeighbours
from reticent.neighbours.search import NeighbourLists, NeighbourSearch
from reticent.neighbours.votes import label_votes

__all__ = [
    "LEAST_WEIGHT",
    "POINT_RADIUS",
    "WEIGHT_STEPS",
    "NeighbourLists",
    "NeighbourSearch",
    "PointGrid",
    "RadiusKernel",
    "Records",
    "SampledNeighbours",
    "label_votes",
]
