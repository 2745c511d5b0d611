"""The contract of everything that releases, as tests: for the estimators here, and for yours.

``check_system`` runs all checks that apply to a system. ``checks_of`` lists them, for a test
runner that shows each by itself.
"""

from reticent.testing.cases import Case, CheckFailed
from reticent.testing.suite import Check, check_system, checks_of

__all__ = ["Case", "Check", "CheckFailed", "check_system", "checks_of"]
