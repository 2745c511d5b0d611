"""The winner of a plan, fitted on the private records, and its expected score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.scopes import Scope
from reticent.planning.plans import ENDLESS, NOTHING, Plan, Score
from reticent.planning.rows import public_labels
from reticent.systems.scores import Predictions, row_scores
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.systems.votes.released_model import ReleasedModel
from reticent.tables.frames import rows_as_fitted
from reticent.training.public_pool import FOLDS
from reticent.training.public_start import offset_steps

if TYPE_CHECKING:
    from reticent.ledger.ledger import Ledger


@dataclass(frozen=True, eq=False)
class PlannedFit:
    """A fitted winner.

    Attributes:
        estimator: fitted estimator, with the threshold that the plan's scoring asks for.
        expected: its score on the labelled public rows, by offsets of models that did not see them.
            It is post-processing, so it costs nothing. Not measured for answers one by one.
    """

    estimator: Any
    expected: Score


def fit_plan(
    plan: Plan,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    public_X: npt.ArrayLike,
    public_y: npt.ArrayLike | None = None,
    persons: Sequence[Any] | None = None,
    data_set: str | None = None,
    ledger: Ledger | None = None,
    scope: Scope | None = None,
) -> PlannedFit:
    """Return the winner of a plan, fitted, with its threshold and its score on public rows.

    Args:
        plan: a plan with a winner that is a released model.
        X, y: the private records and their labels, as ``fit`` of the winner takes them.
        public_X, public_y: the rows that the plan was made on.
        persons, ledger, scope: arguments of ``ReleasedModel.fit``.
        data_set: the owner's name for the private records. With None no ledger can book them.

    Raises:
        InvalidInput: the plan takes nothing. The winner's ``fit`` may raise other errors.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from reticent import plan
        >>> from reticent.planning.methods import Constant, PublicModels
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> found = plan(
        ...     X[:150], y[:150], n_private=419, epsilon=0.1, delta=1e-6, random_state=0,
        ...     methods=[Constant(), PublicModels()],
        ... )
        >>> fitted = fit_plan(found, X[150:], y[150:], public_X=X[:150], public_y=y[:150])
        >>> fitted.estimator.score(X[150:], y[150:]) > 0.9
        True

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, proposition 2.1 (post-processing).

    See Also:
        reticent.plan: makes the plan.
    """
    made = plan.estimator
    if data_set is not None:
        made.set_params(data_set=data_set)
    given: dict[str, Any] = {} if persons is None else {"persons": persons}
    if plan.winner is not None and "labels" in plan.winner.uses:
        given["public_y"] = public_y
    if isinstance(made, ReleasedModel):  # others are charged when they answer
        given |= {"ledger": ledger, "scope": scope}
    model = made.fit(X, y, public_X=public_X, **given)
    costs = _costs(plan, public_y)
    if costs is not None and isinstance(model, ReleasedModel):
        model = model.with_costs(costs)
    if public_y is None or not isinstance(model, PublicStartClassifier):
        return PlannedFit(model, NOTHING)
    return PlannedFit(model, _score(plan, model, public_X, public_y))


def _costs(plan: Plan, public_y: npt.ArrayLike | None) -> Array | None:
    """Return a threshold's costs: the plan's, or 1 / share of a label for balanced accuracy."""
    if plan.costs is not None:
        return np.array(plan.costs)
    if plan.scoring != "balanced_accuracy" or public_y is None:
        return None
    codes, _ = public_labels(public_y, len(np.asarray(public_y)), plan.task.label_list)
    assert codes is not None
    counts = np.bincount(codes, minlength=plan.task.classes) + 1.0
    return np.asarray((1.0 - np.eye(len(counts))) * (counts.sum() / counts)[:, None])


def _score(
    plan: Plan, model: PublicStartClassifier, public_X: npt.ArrayLike, public_y: npt.ArrayLike
) -> Score:
    rows = finite_array(rows_as_fitted(model, public_X), name="public_X", ndim=2)
    codes, _ = public_labels(public_y, len(rows), plan.task.label_list)
    assert codes is not None
    points = model.space_.points(rows)
    points[:, model.space_.space.dimension :] = offset_steps(model.held_out_)
    scores = model.scores(points)
    found = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    costs = model.costs_
    labels = found.argmax(axis=1) if costs is None else (found @ costs).argmin(axis=1)
    shares = np.bincount(codes, minlength=plan.task.classes) + 1.0
    constant = Predictions.of(np.tile(shares / shares.sum(), (len(codes), 1)))
    own, floor = (
        row_scores(
            plan.scoring,
            one,
            codes,
            classes=plan.task.classes,
            costs=None if plan.costs is None else np.array(plan.costs),
        )
        for one in (Predictions(labels, found), constant)
    )
    return Score.of_rows(
        own[None, :],
        labels=codes if plan.scoring == "balanced_accuracy" else None,
        folds=FOLDS,
        worst=float(floor.mean()) if plan.scoring in ENDLESS else 0.0,
    )
