"""Which method to use for labels or a model from private records, ``reticent.plan``; and for
private inputs, ``reticent.plan_inputs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.planning.candidates import Candidate, PublicUse, Requirements, all_candidates
    from reticent.planning.inputs import plan_inputs
    from reticent.planning.planner import plan
    from reticent.planning.plans import Plan, PlanRow
    from reticent.planning.tasks import StandIns, Task
    from reticent.systems.scores import Predictions
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(
        __name__,
        {
            "reticent.planning.candidates": (
                "Candidate",
                "PublicUse",
                "Requirements",
                "all_candidates",
            ),
            "reticent.planning.plans": ("Plan", "PlanRow"),
            "reticent.planning.inputs": ("plan_inputs",),
            "reticent.planning.planner": ("plan",),
            "reticent.planning.tasks": ("StandIns", "Task"),
            "reticent.systems.scores": ("Predictions",),
        },
    )

__all__ = [
    "Candidate",
    "Plan",
    "PlanRow",
    "Predictions",
    "PublicUse",
    "Requirements",
    "StandIns",
    "Task",
    "all_candidates",
    "plan",
    "plan_inputs",
]
