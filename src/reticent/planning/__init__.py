"""Plans: the method to use for private records, ``reticent.plan``, or for private inputs.

For records the result is labels or a model. For inputs there is ``reticent.plan_inputs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.planning.fitting import PlannedFit, fit_plan
    from reticent.planning.inputs import plan_inputs
    from reticent.planning.methods import PublicUse, RecordMethod, all_methods
    from reticent.planning.parts import PublicParts
    from reticent.planning.planner import plan
    from reticent.planning.plans import Plan, PlanRow, Score
    from reticent.planning.tasks import Task
    from reticent.systems.scores import Predictions
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = [
    "Plan",
    "PlanRow",
    "PlannedFit",
    "Predictions",
    "PublicParts",
    "PublicUse",
    "RecordMethod",
    "Score",
    "Task",
    "all_methods",
    "fit_plan",
    "plan",
    "plan_inputs",
]
