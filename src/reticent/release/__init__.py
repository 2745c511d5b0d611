"""The one way to release: check, price, pay, draw, book the receipt.

Whatever leaves goes through ``release`` or, where it is paid for in ``fit``, through ``paid``.
Here are also the files of a fitted system (``Bundle``) and answers for streams of rows. No torch.
"""

from reticent.release.bundle import Bundle
from reticent.release.paying import Books, Drawn, Payment, Price, Scopes, paid
from reticent.release.prepaid import Prepaid
from reticent.release.system import Releasing, System, release

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
