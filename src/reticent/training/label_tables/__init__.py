"""Tables of label probabilities on a public lattice or graph: fitted on public rows, nearly
optimal, made exact.
"""

from reticent.training.label_tables.optimal import ExactTable, exact_table
from reticent.training.label_tables.repair import repaired, whole_table
from reticent.training.label_tables.weights import (
    cell_centres,
    cell_weights,
    chosen_lattice,
    correlation_ratio,
)

__all__ = [
    "ExactTable",
    "cell_centres",
    "cell_weights",
    "chosen_lattice",
    "correlation_ratio",
    "exact_table",
    "repaired",
    "whole_table",
]
