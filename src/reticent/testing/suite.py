"""All checks, in the order in which a reader wants them to fail."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.testing.audits import check_audit
from reticent.testing.books import (
    check_copies,
    check_forks,
    check_price,
    check_refusals,
    check_threads,
    check_totality,
)
from reticent.testing.cases import Case, Run
from reticent.testing.records import (
    check_few_records,
    check_noise,
    check_seeds,
    check_sizes,
    check_sums,
)

_CHECKS: tuple[tuple[str, Run, float], ...] = (
    ("price", check_price, 0.0),
    ("refusals", check_refusals, 0.0),
    ("totality", check_totality, 0.0),
    ("few records", check_few_records, 0.0),
    ("sums", check_sums, 0.0),
    ("sizes", check_sizes, 0.0),
    ("noise", check_noise, 0.4),
    ("seeds", check_seeds, 0.0),
    ("threads", check_threads, 0.0),
    ("copies", check_copies, 0.0),
    ("forks", check_forks, 0.0),
    ("audit", check_audit, 0.6),
)
"""Name, check, and its share of the time that may be chosen."""


@dataclass(frozen=True)
class Check:
    """One check of one system.

    Attributes:
        name: name of the check.
        case: the system.
    """

    name: str
    case: Case
    _run: Run
    _seconds: float

    def __call__(self) -> None:
        """Run it.

        Raises:
            CheckFailed: the system breaks the contract.
        """
        self._run(self.case, self._seconds)


def checks_of(case: Case, *, seconds: float = 6.0) -> list[Check]:
    """Return all checks of a system, for a test runner.

    Args:
        case: the system and tiny data.
        seconds: the processor time that the statistical checks may take together. The variance of
            sums refutes half the noise in any time. The power of an audit grows with it.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from reticent import LinearVoteClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> case = Case(
        ...     estimator=LinearVoteClassifier(epsilon=1.0, delta=0.0, classes=(0, 1), answers=1),
        ...     X=X[:8], y=y[:8], fit={"public_X": X[8:40]}, queries=X[40:41],
        ... )
        >>> [check.name for check in checks_of(case)][:3]
        ['price', 'refusals', 'totality']
    """
    return [Check(name, case, run, share * seconds) for name, run, share in _CHECKS]


def check_system(case: Case, *, seconds: float = 6.0) -> None:
    """Check that a system keeps the contract of everything that releases.

    It checks:

    - threads, forks, pickles and copies,
    - refusals before the charge and none after it,
    - sums against the bounds that are charged, for all neighbours of tiny data,
    - no records and one, and sizes that may not show,
    - the variance of the noise, and an audit from end to end.

    A system that passes is not proved to be private: a check can refute a claim, never prove it.

    Args:
        case: the system and tiny data.
        seconds: the processor time that the statistical checks may take together.

    Raises:
        CheckFailed: the first check that fails, with its name and what was found.
    """
    for check in checks_of(case, seconds=seconds):
        check()
