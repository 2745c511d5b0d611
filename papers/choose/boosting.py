"""A rival that is not in the package: differentially private explainable boosting, of the package
``interpret-core``, where that is installed.

It is fitted on private rows alone. Ends of numeric columns come from public rows, as do kinds of
columns. Two labels are all that it takes.

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
    ends = {}
    for at in np.flatnonzero(numeric):
        known = [float(cell) for cell in public[:, at] if cell is not None and cell == cell]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        ends[int(at)] = (low, high if high > low else low + 1.0)
    rows, asked = (_cells(part, numeric) for part in (private, scored))
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


def _cells(part: npt.NDArray[Any], numeric: Sequence[bool]) -> npt.NDArray[Any]:
    found = np.empty(part.shape, dtype=object)
    for at, number in enumerate(numeric):
        cells = part[:, at]
        found[:, at] = (
            [np.nan if cell is None else float(cell) for cell in cells]
            if number
            else [str(cell) for cell in cells]
        )
    return found
