"""Every error that reticent raises on purpose, one tree with stable codes.

::

    ReticentError                    1
    ├── InvalidInput (ValueError)    2   a value, shape or type that cannot be used
    │   ├── InvalidParameter         3   a privacy or model parameter out of its range
    │   └── UnknownName              4   a name that is not in the list of known ones
    ├── UnsupportedNetwork           5   a layer that cannot be certified
    ├── UnsupportedNorm              6   a norm pair that a bound or mechanism does not cover
    ├── IncompatibleGuarantees       7   guarantees of different kinds or adjacencies composed
    ├── CertificationFailed          8   a sound number could not be computed within its limit
    ├── CalibrationFailed            9   no setting meets the required total
    ├── NotFittedYet                10   release asked of a system that has no bundle yet
    ├── CorruptBundle               11   a saved bundle does not match its own checksums
    ├── BudgetExceeded              12   a request larger than what is left
    ├── LedgerUnavailable           13   the ledger cannot be reached or written
    ├── DataUnavailable             14   a data set that is neither local nor downloadable
    ├── MissingExtra (ImportError)  15   an optional dependency that is not installed
    ├── WriteFailed (OSError)       16   an output that could not be written whole
    ├── CorruptLedger               17   entries or totals of a ledger do not match its hash chain
    ├── UntrustedSignature          18   a signature that is missing, or not by the trusted key
    ├── GuaranteeRefuted            19   an audit that shows more than a guarantee claims
    ├── NotAuthenticated            20   no key of the service, or one that is not valid now
    ├── NotPermitted                21   what a key of the service was not granted
    ├── RequestUnderWay             22   a request that the service is answering already
    ├── AnswerLost                  23   a request that was charged and whose answer is gone
    ├── ServiceBusy                 24   more requests at once than the service takes
    └── ServiceUnreachable          25   a service that does not reply, or not as one

The codes are the exit statuses of the command line and the problem types of the service. A withheld
answer is a result, never an error. No message contains private input, its embedding, its local
Lipschitz constant or the margin of a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.core.not_fitted import NotFittedYet as NotFittedYet
else:
    from reticent.core.lazy import lazy_names

    # It is scikit-learn's error too, and that library takes seconds to import.
    __getattr__ = lazy_names(__name__)


class ReticentError(Exception):
    """Root of the tree. Catch it to catch everything that reticent raises on purpose."""

    code: int = 1


class InvalidInput(ReticentError, ValueError):
    """A value, shape or type that cannot be used."""

    code = 2


class InvalidParameter(InvalidInput):
    """A privacy or model parameter out of its range."""

    code = 3


class UnknownName(InvalidInput):
    """A name (data set, regulariser, mechanism, layer) that is not in the list of known ones."""

    code = 4


class UnsupportedNetwork(ReticentError):
    """A layer or structure that cannot be certified."""

    code = 5


class UnsupportedNorm(ReticentError):
    """A norm pair that a bound or a mechanism does not cover."""

    code = 6


class IncompatibleGuarantees(ReticentError):
    """Guarantees of different kinds or adjacencies composed with each other."""

    code = 7


class CertificationFailed(ReticentError):
    """A sound number could not be computed within its stated limit."""

    code = 8


class CalibrationFailed(ReticentError):
    """No setting of the mechanism meets the required total."""

    code = 9


class CorruptBundle(ReticentError):
    """A saved bundle does not match its own checksums or schema."""

    code = 11


class BudgetExceeded(ReticentError):
    """A request larger than the rest of a budget."""

    code = 12


class LedgerUnavailable(ReticentError):
    """The ledger cannot be reached or written. Nothing is released."""

    code = 13


class DataUnavailable(ReticentError):
    """A data set that is neither local nor can be downloaded."""

    code = 14


class MissingExtra(ReticentError, ImportError):
    """An optional dependency that is not installed. The message names the extra."""

    code = 15


class WriteFailed(ReticentError, OSError):
    """An output that could not be written whole. Nothing is left half-written."""

    code = 16


class CorruptLedger(ReticentError):
    """Entries or totals of a ledger, or entries of its export, do not match its hash chain."""

    code = 17


class UntrustedSignature(ReticentError):
    """A bundle or a receipt without a signature by the key that is trusted."""

    code = 18


class GuaranteeRefuted(ReticentError):
    """An audit shows, at its stated confidence, more than a guarantee claims."""

    code = 19


class NotAuthenticated(ReticentError):
    """A request to the service without a key, or with one that is unknown, expired or revoked."""

    code = 20


class NotPermitted(ReticentError):
    """A request for a bundle, a subject or a route that its key was not granted."""

    code = 21


class RequestUnderWay(ReticentError):
    """A request that is repeated while the service is answering it. Ask again a little later."""

    code = 22


class AnswerLost(ReticentError):
    """A charged request whose answer is gone: the server died before it answered, or the answer was
    removed since. Nothing is drawn again.
    """

    code = 23


class ServiceBusy(ReticentError):
    """More requests at once than the service takes. Nothing was charged."""

    code = 24


class ServiceUnreachable(ReticentError):
    """No valid reply of a service. A request may or may not have been charged."""

    code = 25


class PrivacyWarning(UserWarning):
    """The request costs more privacy than the guarantee of one release states."""
