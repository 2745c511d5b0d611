"""The worth of a certified model, on rows that are public."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


class NoBetterThanConstant(UserWarning):
    """A model is right no more often than one and the same label for every row."""


@dataclass(frozen=True)
class PublicCheck:
    """Right answers of a model, and of a constant, on public rows.

    The first number is private: the model knows the records.

    Attributes:
        rows: number of public rows.
        accuracy: accuracy of the model without noise.
        constant: accuracy of the best constant label.
        balanced: mean over labels of the model's accuracy on that label. A constant has one over
            the number of labels.
        labels: number of labels that occur among the rows.
    """

    rows: int
    accuracy: float
    constant: float
    balanced: float
    labels: int

    @classmethod
    def of(cls, predicted: npt.NDArray[Any], truth: npt.NDArray[Any]) -> PublicCheck:
        """The check of predicted labels against the true ones, each of shape (n,)."""
        right = predicted == truth
        known, place = np.unique(truth, return_inverse=True)
        sizes = np.bincount(place, minlength=len(known))
        return cls(
            rows=len(truth),
            accuracy=float(right.mean()),
            constant=float(sizes.max() / len(truth)),
            balanced=float((np.bincount(place, right, len(known)) / sizes).mean()),
            labels=len(known),
        )

    @property
    def no_better(self) -> bool:
        """Whether the constant is right as often, and the model is no better balanced either."""
        return self.accuracy <= self.constant and self.balanced <= 1.05 / self.labels

    @property
    def sentence(self) -> str:
        """The comparison in words, as private as the records."""
        found = (
            f"right for {self.accuracy:.4g} of {self.rows} public rows ({self.balanced:.4g} on "
            f"average over labels), the best constant label for {self.constant:.4g}"
        )
        return f"{found}: no better than a constant" if self.no_better else found

    def warn(self, *, stacklevel: int) -> None:
        """Warn the owner where the model is no better than a constant."""
        if self.no_better:
            warnings.warn(
                f"the certified model, without any noise, is {self.sentence}; more noise will not "
                "help. Try prevalence=, other settings, or a plan of another method. This count is "
                "private: it is for the owner of the records",
                NoBetterThanConstant,
                stacklevel=stacklevel + 1,
            )
