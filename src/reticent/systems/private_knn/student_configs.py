"""Settings of the students in every round, checked against the pictures before anything is paid."""

from __future__ import annotations

import math
from typing import Literal

from reticent.core.errors import InvalidParameter
from reticent.systems.private_knn.inputs import picture_shape
from reticent.training.students import StudentConfig


def student_configs(
    student: StudentConfig | tuple[StudentConfig, StudentConfig] | Literal["svm"] | None,
    shape: tuple[int, ...],
) -> tuple[StudentConfig | None, StudentConfig | None]:
    """Return settings of the students and of the last one, both None for a support vector machine.

    Args:
        student: settings of all rounds, or of all but the last and of the last, or None for the
            usual ones.
        shape: shape of one picture.

    Raises:
        InvalidParameter: neither settings, "svm" nor None, or for pictures of another size.

    Example:
        >>> first, last = student_configs(None, (8, 8))
        >>> first.image_shape, last == first
        ((1, 8, 8), True)
        >>> student_configs("svm", (8, 8))
        (None, None)
    """
    if isinstance(student, str):
        if student != "svm":
            raise InvalidParameter(
                f"student={student!r}: expected 'svm', a StudentConfig, two of them, or None"
            )
        return None, None
    if student is None:
        student = StudentConfig(image_shape=picture_shape(shape))
    both = student if isinstance(student, tuple) else (student, student)
    if len(both) != 2:
        raise InvalidParameter(f"student: expected two StudentConfigs, got {len(both)}")
    config, last = both
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
