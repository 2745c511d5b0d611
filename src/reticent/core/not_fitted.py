"""The one error that is scikit-learn's as well. ``reticent.core.errors`` offers it."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from reticent.core.errors import ReticentError


class NotFittedYet(ReticentError, NotFittedError):
    """A release was asked of a system that has not been fitted or loaded."""

    code = 10
