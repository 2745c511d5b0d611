"""The one way to release: check, price, pay, draw, book the receipt.

All output goes through ``release`` or, if it is paid for in ``fit``, through ``paid``. The files of
a fitted system (``Bundle``) and answers for streams of rows are also here. No torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.release.bundle import Bundle
    from reticent.release.paying import Books, Drawn, Payment, Price, Scopes, paid
    from reticent.release.prepaid import Prepaid
    from reticent.release.system import Releasing, System, release
else:
    from reticent.core.lazy import lazy_names

    # A card is shown without numpy and without a ledger.
    __getattr__ = lazy_names(__name__)

__all__ = [
    "Books",
    "Bundle",
    "Drawn",
    "Payment",
    "Prepaid",
    "Price",
    "Releasing",
    "Scopes",
    "System",
    "paid",
    "release",
]
