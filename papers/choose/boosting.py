"""A rival that is not in the package: differentially private explainable boosting, of the package
``interpret-core``, where that is installed.

It is fitted on private rows alone. Kinds of columns, ends of numeric ones, and the medians that
stand for missing numbers come from public rows. Two labels are all that it takes.

References:
    - Nori, Caruana, Bu, Shen and Kulkarni (2021), "Accuracy, interpretability, and differential
      privacy via explainable boosting", arXiv:2106.09680.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers

BOOSTING = "explainable boosting"
THERE = importlib.util.find_spec("interpret") is not None
"""Whether the rival is installed."""


def boosted(
    public: npt.NDArray[Any],
    private: npt.NDArray[Any],
    labels: Integers,
    scored: npt.NDArray[Any],
    *,
    epsilon: float,
    delta: float,
    seeds: Sequence[int],
) -> list[Array]:
    """Return probabilities of two labels for scored rows, one array for each seed of the noise.

    Args:
        public, private, scored: shape (n, columns), numbers, words and None.
        labels: shape (n,), of the private rows.
        epsilon, delta: the total.
        seeds: of the noise.
    """
    rival = importlib.import_module("interpret.privacy").DPExplainableBoostingClassifier
    numeric = [all(_number(cell) for cell in column) for column in public.T]
    ends, medians = {}, {}
    for at in np.flatnonzero(numeric).tolist():
        known = [float(cell) for cell in public[:, at] if not _missing(cell)] or [0.0]
        ends[at] = (min(known), max(known) if max(known) > min(known) else min(known) + 1.0)
        medians[at] = float(np.median(known))
    rows, asked = (_cells(part, medians) for part in (private, scored))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of seeds, which are for experiments
        for seed in seeds:
            model = rival(
                feature_types=["continuous" if number else "nominal" for number in numeric],
                epsilon=epsilon,
                delta=delta,
                privacy_bounds=ends,
                random_state=seed,
                n_jobs=1,
            ).fit(rows, labels)
            found.append(np.asarray(model.predict_proba(asked), dtype=np.float64))
    return found


def _number(cell: Any) -> bool:
    return cell is None or isinstance(cell, int | float | np.number)


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _cells(part: npt.NDArray[Any], medians: dict[int, float]) -> npt.NDArray[Any]:
    found = np.empty(part.shape, dtype=object)
    for at in range(part.shape[1]):
        cells, median = part[:, at], medians.get(at)
        found[:, at] = [
            str(cell) if median is None else median if _missing(cell) else float(cell)
            for cell in cells
        ]
    return found
