"""The client's side of a service: ask for answers, or release on the device. No torch.

A device sends released values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.client.answers import Answers
    from reticent.client.asynchronous import AsyncClient
    from reticent.client.client import Client
    from reticent.client.device import Device
    from reticent.client.gateways import Gateway
    from reticent.client.pins import Pin
    from reticent.client.sessions import BudgetLine, Cost, Offer
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Answers",
    "AsyncClient",
    "BudgetLine",
    "Client",
    "Cost",
    "Device",
    "Gateway",
    "Offer",
    "Pin",
]
