"""Which settings every round's student gets, and what is refused before anything is paid."""

from __future__ import annotations

from typing import Any

import pytest

from reticent.core.errors import InvalidParameter
from reticent.systems.private_knn.student_configs import student_configs
from reticent.training.students import StudentConfig

SMALL = StudentConfig(image_shape=(1, 8, 8), epochs=1)
LONG = StudentConfig(image_shape=(1, 8, 8), epochs=9)


@pytest.mark.parametrize(
    ("student", "last", "expected"),
    [
        (None, None, (StudentConfig(image_shape=(1, 8, 8)),) * 2),
        (SMALL, None, (SMALL, SMALL)),
        (SMALL, LONG, (SMALL, LONG)),
        (None, LONG, (StudentConfig(image_shape=(1, 8, 8)), LONG)),
        ("svm", None, (None, None)),
    ],
)
def test_the_last_student_has_its_own_or_the_same(student: Any, last: Any, expected: Any) -> None:
    assert student_configs(student, last, (8, 8)) == expected


@pytest.mark.parametrize(
    ("student", "last", "message"),
    [
        ("forest", None, "student='forest'"),
        ("svm", SMALL, "without last_student"),
        (3, None, "expected a StudentConfig, 'svm' or None, got int"),
        (SMALL, "svm", "expected a StudentConfig, 'svm' or None, got str"),
        (StudentConfig(image_shape=(1, 28, 28)), None, "image_shape of 64 pixels"),
        (None, StudentConfig(image_shape=(1, 28, 28)), "image_shape of 64 pixels"),
    ],
)
def test_other_settings_are_refused(student: Any, last: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        student_configs(student, last, (8, 8))
