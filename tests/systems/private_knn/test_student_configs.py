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
    ("student", "expected"),
    [
        (None, (StudentConfig(image_shape=(1, 8, 8)),) * 2),
        (SMALL, (SMALL, SMALL)),
        ((SMALL, LONG), (SMALL, LONG)),
        ("svm", (None, None)),
    ],
)
def test_the_last_student_has_its_own_or_the_same(student: Any, expected: Any) -> None:
    assert student_configs(student, (8, 8)) == expected


@pytest.mark.parametrize(
    ("student", "message"),
    [
        ("forest", "student='forest'"),
        (3, "student.*int"),
        ((SMALL, "svm"), "student.*str"),
        ((SMALL,), "student.*two"),
        (StudentConfig(image_shape=(1, 28, 28)), "image_shape"),
    ],
)
def test_other_settings_are_refused(student: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        student_configs(student, (8, 8))
