"""Settings of the students in every round, checked against the pictures before anything is paid."""

from __future__ import annotations

import math
from typing import Literal

from reticent.core.errors import InvalidParameter
from reticent.systems.private_knn.inputs import picture_shape
from reticent.training.students import StudentConfig


def student_configs(
    student: StudentConfig | Literal["svm"] | None,
    last_student: StudentConfig | None,
    shape: tuple[int, ...],
) -> tuple[StudentConfig | None, StudentConfig | None]:
    """Settings of the students and of the last one; both None for a support vector machine.

    Args:
        student: of all rounds; None for the usual ones.
        last_student: of the last round; None for the same.
        shape: of one picture.

    Raises:
        InvalidParameter: neither settings, "svm" nor None, or for pictures of another size.

    Example:
        >>> first, last = student_configs(None, None, (8, 8))
        >>> first.image_shape, last == first
        ((1, 8, 8), True)
        >>> student_configs("svm", None, (8, 8))
        (None, None)
    """
    if isinstance(student, str):
        if student != "svm" or last_student is not None:
            raise InvalidParameter(
                f"student={student!r}: expected 'svm' without last_student, a StudentConfig or None"
            )
        return None, None
    config = StudentConfig(image_shape=picture_shape(shape)) if student is None else student
    last = config if last_student is None else last_student
    pixels = math.prod(shape)
    for settings in (config, last):
        if not isinstance(settings, StudentConfig):
            raise InvalidParameter(
                f"student: expected a StudentConfig, 'svm' or None, got {type(settings).__name__}"
            )
        if math.prod(settings.image_shape) != pixels:
            raise InvalidParameter(
                f"student: expected image_shape of {pixels} pixels, got {settings.image_shape}"
            )
    return config, last
