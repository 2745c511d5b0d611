from __future__ import annotations

import pytest
from sklearn.exceptions import NotFittedError

from reticent.core import errors


def classes():
    assert errors.NotFittedYet.code == 10  # made when it is first asked for
    return {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ReticentError)
    }


def test_codes_are_distinct_and_stable():
    codes = {name: kind.code for name, kind in classes().items()}
    assert len(set(codes.values())) == len(codes)
    assert codes["ReticentError"] == 1
    assert codes["CorruptBundle"] == 11
    assert codes["BudgetExceeded"] == 12
    assert codes["CorruptLedger"] == 17


def test_callers_can_catch_the_builtin_they_expect():
    assert issubclass(errors.InvalidInput, ValueError)
    assert issubclass(errors.InvalidParameter, errors.InvalidInput)
    assert issubclass(errors.MissingExtra, ImportError)
    assert issubclass(errors.WriteFailed, OSError)
    assert issubclass(errors.NotFittedYet, NotFittedError)
    with pytest.raises(NotFittedError) as caught:
        raise errors.NotFittedYet("call fit")
    assert isinstance(caught.value, errors.ReticentError)
