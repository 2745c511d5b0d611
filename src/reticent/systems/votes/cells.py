"""``CellsClassifier``: one noisy histogram over public cells, which answers every query for good."""

from __future__ import annotations

from typing import Any

from reticent.systems.record_labels import Classes
from reticent.systems.votes.released_model import ReleasedModel


class CellsClassifier(ReleasedModel):
    """Each record votes once, for its label, in the cell of its nearest public centroid.

    Args:
        epsilon, delta, classes, feature_map, feature_range, components, whitening, counting,
            data_set, random_state, student_share: see ``ReleasedModel``.
        cells: how many; a list of rising numbers for several resolutions, which share the total,
            each finer one shrunk towards the coarser. The centroids are k-means of the public rows
            (uniform in ``feature_range`` without public rows).
        smoothing: records that every class of a cell is given beforehand in ``predict_proba``.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        cells: int | list[int] | tuple[int, ...] = 256,
        smoothing: float = 1.0,
        feature_map: Any = None,
        feature_range: Any = None,
        components: int | None = None,
        whitening: float = 0.5,
        counting: str = "add-remove",
        data_set: str | None = None,
        random_state: int = 0,
        student_share: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.cells = cells
        self.smoothing = smoothing
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
        self.student_share = student_share
