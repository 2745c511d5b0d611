"""The choice of the mechanism that releases table rows.

All that may be chosen are fitted on public rows, and the best by the user's scoring answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.guarantees import Guarantee
from reticent.release.bundle import rebuilding
from reticent.systems.class_labels import FEW_ROWS
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.protection import (
    LARGEST_SHARED_RADIUS,
    AttributeRadii,
    Protection,
)
from reticent.systems.power.query import (
    PROTECTED,
    VECTORS,
    PowerQuery,
    PowerSetting,
    RowQuery,
    neighbours_within,
    rank,
)
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report

Labels = npt.NDArray[np.int64]

ANY_TWO_RECORDS = ("code",)
"""What "auto" takes where any two records are neighbours. Noise on vectors would have to cover the
diameter of the encoded box; it stays available by name."""

_LEAST_OF_LABEL = 10


def compared(plan: PowerSetting, schema: TabularSchema) -> tuple[str, ...]:
    """Return what "auto" compares for the budget and the radius of ``plan``.

    Noise on the outputs of an encoder of all coordinates alike is left out where some are free:
    noise on the protected ones alone leaves the others as they are. The code hides any two records,
    and is compared within every radius.
    """
    radius = plan.radius
    if radius is None:
        return ANY_TWO_RECORDS
    if isinstance(radius, AttributeRadii):
        return (*ANY_TWO_RECORDS, *PROTECTED)
    gaussian = ("gaussian",) if plan.delta else ()
    if radius > LARGEST_SHARED_RADIUS or not len(Protection(schema, radius).free):
        protected = ("clear-noise",) if radius <= LARGEST_SHARED_RADIUS else ()
        return (*protected, "k-norm-l2", *ANY_TWO_RECORDS, *gaussian)
    return (*ANY_TWO_RECORDS, *PROTECTED, *gaussian)


def few(labels: Labels, mechanisms: Sequence[str]) -> bool:
    """Return whether public rows are so few that mechanisms are compared across folds.

    That is for those that give log odds of labels, where every label has rows enough.
    """
    several = len(mechanisms) > 1 and set(mechanisms) <= {*ANY_TWO_RECORDS, *PROTECTED}
    return several and len(labels) < FEW_ROWS and int(np.bincount(labels).min()) >= _LEAST_OF_LABEL


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Encoded rows that are public, cut in two.

    Attributes:
        train, held: shapes (n, d) and (k, d). Encoders are trained on the first and scored on the
            second.
        train_labels, held_labels: shapes (n,) and (k,).
    """

    train: Array
    held: Array
    train_labels: Labels
    held_labels: Labels

    @classmethod
    def cut(cls, rows: Array, labels: Labels, share: float) -> PublicRows:
        """The first rows held out, that share of them and at least one."""
        held = max(1, round(share * len(rows)))
        return cls(rows[held:], rows[:held], labels[held:], labels[:held])


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """The settings of training that the user may choose.

    Attributes:
        outputs: numbers of released values that are tried for vectors.
        hidden: widths of the hidden layers of encoder and classifier.
        epochs: passes over the rows.
        head_epochs: passes of the models that utility is measured with.
        seed: seed of training.
    """

    outputs: tuple[int, ...]
    hidden: tuple[int, ...]
    epochs: int
    head_epochs: int
    seed: int


def fit_mechanisms(
    schema: TabularSchema,
    required: PowerSetting,
    rows: PublicRows,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    report: Report,
) -> tuple[RowQuery | CodeQuery, tuple[PowerSetting, ...]]:
    """Return the query of the highest utility among ``mechanisms``, and every plan that was scored.

    The best plan comes first.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring.
        rows: public rows.
        mechanisms: names of mechanisms that may be chosen.
        settings: settings of training.
        report: receiver of the progress, called after every epoch and every public model.

    Raises:
        InvalidInput: too few rows.
        CalibrationFailed: no mechanism meets the requirement.
    """
    if len(rows.train) < 2 or len(np.unique(rows.train_labels)) < 2:
        raise InvalidInput(
            f"X: n_samples={len(rows.train) + len(rows.held)} is too few to train and calibrate "
            "on; expected rows of two classes"
        )
    found: list[tuple[RowQuery | CodeQuery, tuple[PowerSetting, ...]]] = []
    if "code" in mechanisms:
        from reticent.systems.power.code_choice import code_query

        code, plan = code_query(schema, required, rows, seed=settings.seed)
        found.append((code, (plan,)))
    protected = [name for name in mechanisms if name in PROTECTED]
    if protected:
        from reticent.systems.power.protected_fitting import fit_protected

        found.append(
            fit_protected(
                schema, required, rows, mechanisms=protected, settings=settings, report=report
            )
        )
    others = [name for name in mechanisms if name in VECTORS]
    if others:
        from reticent.systems.power.fitting import fit_query

        found.append(
            fit_query(schema, required, rows, mechanisms=others, settings=settings, report=report)
        )
    best, _ = min(found, key=lambda part: rank(part[1][0]))
    return best, tuple(sorted((plan for _, plans in found for plan in plans), key=rank))


def stored_query(
    settings: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
) -> tuple[RowQuery | CodeQuery, PowerSetting]:
    """The query that a bundle describes, and its plan.

    Raises:
        CorruptBundle: fields or arrays that are missing or do not fit together.
    """
    plan = settings.get("plan")
    mechanism = plan.get("mechanism") if isinstance(plan, dict) else None
    if mechanism == "code":
        with rebuilding():
            schema = TabularSchema.from_dict(settings["inputs"]["schema"])
            stated = PowerSetting.from_dict(settings["plan"], schema)
            adjacency = neighbours_within(stated.radius, schema)
            code = CodeQuery.from_description(settings, arrays, adjacency=adjacency)
            if code.mechanism.guarantee != Guarantee(stated.epsilon, stated.delta, adjacency):
                raise CorruptBundle("bundle: its code does not cost what its plan says")
        return code, stated
    kind: type[RowQuery] = PowerQuery
    if mechanism in PROTECTED:
        kind = LikeliestQuery if mechanism == "clear-code" else ProtectedQuery
    query = kind.from_description(settings, arrays)
    return query, query.plan
