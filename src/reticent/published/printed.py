"""The mark of an algorithm as its paper prints it, a type that no release takes."""

from __future__ import annotations

from typing import NoReturn

from typing_extensions import override

from reticent.core.errors import IncompatibleGuarantees
from reticent.mechanisms.mechanism import Mechanism


class AsPrinted(Mechanism):
    """An algorithm as its paper prints it, flaws included, for study. It is not private by type.

    A release books an event before it draws. This type has none to book, whatever ``guarantee``
    says, so no estimator can release by it and no ledger can be charged for it.

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, the definition that such an algorithm need not
          meet.

    See Also:
        reticent.mechanisms: the mechanisms that a release takes.
    """

    @property
    @override
    def event(self) -> NoReturn:
        """No event, because such an algorithm is refused.

        Raises:
            IncompatibleGuarantees: always.
        """
        raise IncompatibleGuarantees(
            f"{self.name}: is for study and no release takes it; expected a mechanism of "
            "reticent.mechanisms"
        )
