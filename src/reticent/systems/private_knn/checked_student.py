"""The choice between a student and the labels that it learned from, on labelled public rows.

Everything here is public or released, so the choice is post-processing, and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput
from reticent.systems.private_knn.inputs import input_rows
from reticent.systems.record_labels import record_labels
from reticent.tables.frames import Names, rows_named_alike
from reticent.training.features import FeatureMap
from reticent.training.nearest_labels import NearestLabels
from reticent.training.students import Student
from reticent.training.surest_student import SurestStudent

AnyStudent = Student | SurestStudent | NearestLabels


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Labelled public rows that a student is checked on.

    Attributes:
        inputs: shape (n, pixels).
        codes: shape (n,), places of their labels.
    """

    inputs: Array
    codes: Integers


@dataclass(frozen=True)
class StudentCheck:
    """Right answers of the student and of its labels' own classifier on the validation rows.

    Attributes:
        student: share of right answers of the trained student, from 0 to 1.
        labels: the same share of the nearest released label.
    """

    student: float
    labels: float

    @property
    def kept(self) -> bool:
        """Whether the student stays. It has to be better, not as good."""
        return self.student > self.labels


def validation_rows(
    X: npt.ArrayLike | None,
    y: npt.ArrayLike | None,
    *,
    classes: npt.NDArray[np.generic],
    names: Names | None,
    shape: tuple[int, ...],
) -> ValidationRows | None:
    """Return the rows, checked, or None where there are none.

    Args:
        X: public inputs of ``shape`` that are not among those that the student learns from.
        y: their labels.
        classes: the labels that there are.
        names: columns of the private records, if they have names.
        shape: shape of one private input.

    Raises:
        InvalidInput: only one of both, no row, another shape, or labels that are not in
            ``classes``.
    """
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise InvalidInput("validation_X and validation_y: expected both or neither")
    alike = rows_named_alike(X, names, of="the private records", name="validation_X")
    inputs, given = input_rows(alike)
    if given != shape:
        raise InvalidInput(
            f"validation_X: expected inputs of shape {shape}, as the private ones have, got {given}"
        )
    try:
        _, codes = record_labels(y, len(inputs), classes.tolist())
    except InvalidInput as error:
        raise InvalidInput(f"validation_{error}") from error
    return ValidationRows(inputs, codes)


def checked_student(
    student: AnyStudent,
    own: NearestLabels,
    rows: ValidationRows,
    feature_map: FeatureMap,
) -> tuple[AnyStudent, StudentCheck]:
    """Return the student where it beats its labels on ``rows``, else the labels' own classifier.

    Return how both did as well.

    Args:
        student: the trained student, or ``own`` where there was nothing to train on.
        own: the released labels it learned from, as a classifier on features.
        rows: public rows.
        feature_map: map from inputs to the features of ``own`` and of a support vector machine.
    """
    features = feature_map.features(rows.inputs)
    found = student.probabilities(rows.inputs if isinstance(student, Student) else features)
    check = StudentCheck(
        float((found.argmax(axis=1) == rows.codes).mean()),
        float((own.predict(features) == rows.codes).mean()),
    )
    return (student if check.kept else own), check
