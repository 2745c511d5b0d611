"""Reports of many devices, which a shuffler forwards without their senders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.fleet.aggregator import Aggregator, Counted
    from reticent.fleet.estimates import Shares
    from reticent.fleet.models import ServerModel
    from reticent.fleet.plans import CodePlan, planned_code
    from reticent.fleet.rounds import Round
    from reticent.fleet.shuffler import Shuffler, check_counts
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Aggregator",
    "CodePlan",
    "Counted",
    "Round",
    "ServerModel",
    "Shares",
    "Shuffler",
    "check_counts",
    "planned_code",
]
