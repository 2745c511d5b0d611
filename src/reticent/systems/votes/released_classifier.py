"""``ReleasedClassifier``: the common part of released models of class labels."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.svm import LinearSVC
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import finite_array, flag
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import softmax
from reticent.systems.record_labels import OBSERVED, Classes, is_observed, restored_labels
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.outputs import ClassOutput, Columns, class_columns, is_several
from reticent.systems.votes.released_model import ReleasedModel
from reticent.training.public_space import INTERCEPT, LENGTH, directions_of, share_of

_FEWEST = 2  # public rows that teach a student
_TEMPERATURES = 2.0 ** np.arange(-3, 7)


@with_settings
class ReleasedClassifier(ClassifierMixin, ReleasedModel):
    """The common part of classifiers whose noise is drawn in ``fit``, once, for any number of
    answers.

    Guarantee:
        The guarantee of ``ReleasedModel``. Several labels of a record are one release. Sums of all
        labels together are apart by the square root of the sum of squares of what each is apart
        by, and that is what the noise is for.

    Args:
        classes: the labels that there are, a public list, or a list of such lists, one for each
            column of ``y``, for several labels of a record, or "observed", which publishes them.
        student_share: share of the public rows, the surest, whose released labels a linear support
            vector machine is trained on. It then answers in place of the model. None for no such
            student. It is post-processing, for one label only.

    Attributes:
        classes_: the labels, sorted, or with several columns a list of them.

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, sensitivity.
        - docs/write-your-own.md, the hooks of a model of your own.

    See Also:
        reticent.NoisyGradientClassifier: a model of this kind.
        reticent.testing.check_system: what tests one.
    """

    classes: Classes | Sequence[Sequence[Any]]
    student_share: float | None = None

    classes_: npt.NDArray[Any] | list[npt.NDArray[Any]] = learned()
    student_: SurestLabels | None = learned()
    costs_: Array | None = learned()

    _kind = "classifier"

    def with_student(self, public_X: npt.ArrayLike, share: float | None) -> Self:
        """Return this fitted model with another student, or none.

        That is post-processing, which costs nothing.

        Args:
            public_X: public rows, with or without those of ``fit``.
            share: the share of ``student_share``.

        Returns:
            A copy. This model stays as it is.
        """
        points = self._points(public_X)
        self._check_fitted()
        found = copy(self)
        found.student_share = share
        found._check_student(self._columns)
        found.student_ = None
        if share is not None:
            found.student_ = self._taught(points, share)
        return found

    def with_costs(self, costs: npt.ArrayLike | None) -> Self:
        """Return this fitted model with another threshold: post-processing, which costs nothing.

        ``predict`` then answers the label of least expected cost. Costs 1 / share of the true label
        cut at prevalence, which balanced accuracy asks for.

        Args:
            costs: public costs, shape (classes, classes), of answering column j where row i is
                true, or None for the likeliest label.

        Returns:
            A copy. This model stays as it is. Its bundle holds the costs.

        Raises:
            InvalidInput: another shape, or numbers that are not finite.
            InvalidParameter: several labels of a record.
        """
        self._check_fitted()
        if self._columns.several:
            raise InvalidParameter("costs: expected a model of one label")
        found = copy(self)
        found.costs_ = None if costs is None else finite_array(costs, name="costs", ndim=2)
        if found.costs_ is not None and found.costs_.shape != (len(self.classes_),) * 2:
            raise InvalidInput(
                f"costs: expected shape={(len(self.classes_),) * 2}, got {found.costs_.shape}"
            )
        return found

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return labels, shape (n,), or (n, L) for several, for anyone and any number of times."""
        scores = self._answers(X)
        if self.costs_ is not None:
            scores = -(softmax(scores) @ self.costs_)
        found = [
            known[scores[:, part].argmax(axis=1)]
            for known, part in zip(self._known, self._columns.parts, strict=True)
        ]
        if not self._columns.several:
            return np.asarray(found[0])
        kinds = {column.dtype.kind for column in found}
        return np.stack([c if len(kinds) == 1 else c.astype(object) for c in found], axis=1)

    def predict_proba(self, X: npt.ArrayLike) -> Array | list[Array]:
        """Return probabilities of ``classes_``, shape (n, classes), or a list of them for several
        labels.

        ``predict`` gives the label of the largest.
        """
        scores = self._answers(X)
        found = [softmax(scores[:, part]) for part in self._columns.parts]
        return found if self._columns.several else found[0]

    def decision_function(self, X: npt.ArrayLike) -> Array | list[Array]:
        """Return logarithms of probabilities up to a constant, or a list of them for several
        labels.

        They have shape (n, classes). For two classes they are the second's less the first's, shape
        (n,).
        """
        scores = self._answers(X)
        found = [
            scores[:, part.stop - 1] - scores[:, part.start]
            if part.stop - part.start == 2
            else scores[:, part]
            for part in self._columns.parts
        ]
        return found if self._columns.several else found[0]

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the share of right labels, or with several columns the mean over them.

        Args:
            X: rows, as ``predict`` takes them.
            y: true labels, shape (n,) or (n, L).
            sample_weight: shape (n,), or None.
        """
        if not is_several(self.classes):
            return float(super().score(X, y, sample_weight))
        found, truth = self.predict(X), np.asarray(y)
        if truth.shape != found.shape:
            raise InvalidInput(f"y: expected shape={found.shape}, got shape={truth.shape}")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average((found == truth).mean(axis=1), weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = is_several(self.classes)
        tags.target_tags.multi_output = is_several(self.classes)
        return tags

    @property
    def _known(self) -> list[npt.NDArray[Any]]:
        return [output.classes for output in class_outputs(self._columns)]

    @override
    def _read(self, y: npt.ArrayLike | None, rows: int) -> tuple[Columns, Integers]:
        columns, codes = class_columns(y, rows, self.classes)
        self._check_student(columns)
        return columns, codes

    @override
    def _keep_columns(self, columns: Columns) -> None:
        super()._keep_columns(columns)
        self.classes_ = self._known if columns.several else self._known[0]

    def _check_student(self, columns: Columns) -> None:
        if self.student_share is None:
            return
        share_of(self.student_share, name="student_share")
        if columns.several:
            raise InvalidParameter(
                f"student_share={self.student_share!r}: expected None with several labels"
            )

    @override
    def _finish(self, public: PublicRows | None) -> None:
        self.student_ = self.costs_ = None
        if self.student_share is not None and public is not None:
            self.student_ = self._taught(public.points, self.student_share)

    def _taught(self, points: Array, share: float) -> SurestLabels | None:
        return surest_labels(
            points,
            self.scores(points),
            share=share_of(share, name="student_share"),
        )

    def _answers(self, X: npt.ArrayLike) -> Array:
        points = self._points(X)
        self._check_fitted()
        return self.scores(points) if self.student_ is None else self.student_.scores(points)

    @override
    def _more_arrays(self) -> dict[str, Array]:
        found = {} if self.student_ is None else {"student": self.student_.weights}
        return found if self.costs_ is None else {**found, "costs": self.costs_}

    @override
    def _restore_more(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        student = arrays.get("student")
        self.student_ = None if student is None else SurestLabels(student)
        self.costs_ = None
        if "costs" in arrays:
            self.costs_ = self.with_costs(arrays["costs"]).costs_

    @override
    def _label_settings(self) -> dict[str, Any]:
        listed = [known.tolist() for known in self._known]
        return {
            "labels": listed if self._columns.several else listed[0],
            "classes_given": is_several(self.classes) or not is_observed(self.classes),
        }

    @classmethod
    @override
    def _restored_labels(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Columns]:
        stored = settings["labels"]
        several = is_several(stored)
        known = [restored_labels(entry) for entry in (stored if several else [stored])]
        columns = Columns(tuple(ClassOutput(labels) for labels in known), several)
        listed: Any = [labels.tolist() for labels in known]
        given = flag(settings["classes_given"], name="classes_given")
        return {"classes": (listed if several else listed[0]) if given else OBSERVED}, columns


def class_outputs(columns: Columns) -> list[ClassOutput]:
    """Return the columns of a classifier."""
    found = [output for output in columns.outputs if isinstance(output, ClassOutput)]
    assert len(found) == len(columns.outputs)
    return found


@dataclass(frozen=True, eq=False)
class SurestLabels:
    """The student that ``surest_labels`` makes.

    Attributes:
        weights: shape (m + 1, classes), weights of directions of length 1.
    """

    weights: Array

    def scores(self, points: Array) -> Array:
        """Return logarithms of probabilities up to a constant, shape (n, classes)."""
        return np.asarray(directions_of(points, intercept=INTERCEPT) / LENGTH @ self.weights)


def surest_labels(points: Array, scores: Array, *, share: float) -> SurestLabels | None:
    """Return the student of the ``share`` of public rows that the model is surest of.

    It sees public rows and what a released model says of them, nothing else: post-processing.

    Args:
        points: shape (n, m), public rows in the public space.
        scores: shape (n, classes), the model's, logarithms of probabilities up to a constant.
        share: share of the rows, in (0, 1].

    Returns:
        The student, or None where the surest labels are all alike, or fewer than two.
    """
    ranked = np.sort(scores, axis=1)
    surest = np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable")
    surest = surest[: max(_FEWEST, round(share * len(points)))]
    labels = scores.argmax(axis=1)
    found = np.unique(labels[surest])
    if len(found) < 2:
        return None
    directions = directions_of(points, intercept=INTERCEPT) / LENGTH
    machine = LinearSVC(C=1.0, fit_intercept=False, dual=True, random_state=0, max_iter=5000)
    machine.fit(directions[surest], labels[surest])
    columns = np.vstack([-machine.coef_, machine.coef_]) if len(found) == 2 else machine.coef_
    weights = np.zeros((directions.shape[1], scores.shape[1]))
    margins = directions @ columns.T
    # A label that no sure row has is never given: it stays below all others.
    weights[:, found] = columns.T
    absent = np.setdiff1d(np.arange(scores.shape[1]), found)
    if len(absent):
        weights[-1, absent] = (margins.min() - 1.0) / directions[:, -1].min()
    margins = directions @ weights
    losses = [_log_loss(margins * scale, labels) for scale in _TEMPERATURES]
    return SurestLabels(weights * _TEMPERATURES[int(np.argmin(losses))])


def _log_loss(scores: Array, labels: npt.NDArray[np.int64]) -> float:
    spread = np.logaddexp.reduce(scores, axis=1)
    return float((spread - scores[np.arange(len(labels)), labels]).mean())
