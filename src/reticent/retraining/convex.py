"""A certificate for regularised logistic regression: how many records must come or go before a
label can change, from the curvature of the loss at its minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from reticent.core.arrays import Array, Integers
from reticent.core.checks import finite_array, positive
from reticent.core.errors import CertificationFailed, InvalidParameter
from reticent.retraining.reserves import (
    MOST_RECORDS,
    UNIT,
    Records,
    ReserveModel,
    ReserveSettings,
    length_error,
    lengths,
    sum_error,
)

_RESIDUAL = 2.0**-10
"""The minimiser is searched until its gradient, rounding errors included, is proved to be no longer
than this: a thousandth of what one record can add.
"""

_EIGENVALUE_GRID = 2.0**-11
_SMALLEST_REGULARIZATION = 2.0**-4


@dataclass(frozen=True, kw_only=True)
class ConvexSettings(ReserveSettings):
    """Logistic regression with two labels; nothing here may depend on records.

    The weights minimise ``sum of weight of label * log(1 + exp(-y (o + w.z)))
    + regularization/2 |w|^2`` with y = +-1, where z is a row cut to the l2 ball of radius
    ``norm_bound``, divided by it, with ``intercept`` as one coordinate more, all divided by
    sqrt(1 + intercept^2): so |z| <= 1. The intercept's weight is regularised like the others. o is
    the row's offset, a public function of it: the log odds of a public model, or 0.

    Attributes:
        features, norm_bound, intercept, class_weights, counting, offset_bound: as of
            ``ReserveSettings``.
        regularization: lambda, at least 1/16. Distances grow with it; accuracy wants it small.

    Raises:
        InvalidParameter, UnknownName: a value out of its range, or so many features at so small a
            regularization that double precision proves nothing for 2^22 records.

    Utility:
        Distances grow with ``regularization`` (the formula: ``ConvexModel``), and accuracy falls.

    Runtime:
        Checked in O(1).

    References:
        - Bach (2010), "Self-concordant analysis for logistic regression", arXiv:0910.4627,
          proposition 1.

    See Also:
        reticent.retraining.convex_model: the minimiser.
        reticent.retraining.TrainingSettings: networks trained by certified steps.
    """

    regularization: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "regularization", positive(self.regularization, name="regularization")
        )
        if not _SMALLEST_REGULARIZATION <= self.regularization <= 1e6:
            raise InvalidParameter(
                f"regularization={self.regularization!r}: expected {_SMALLEST_REGULARIZATION:g} to "
                "1e6"
            )
        if gradient_error(self, MOST_RECORDS, self.largest_weights) > _RESIDUAL / 4:
            raise InvalidParameter(
                f"features={self.features}, regularization={self.regularization!r}: rounding "
                "errors may exceed what is proved; expected fewer features or more regularization"
            )

    @property
    def largest_weights(self) -> float:
        """A bound on the l2 norm of the minimiser of any data set: the loss at 0 bounds it."""
        loss = math.log(2.0) + self.offset_bound
        return math.sqrt(2.0 * MOST_RECORDS * loss / self.regularization) + 1.0

    @cached_property
    def proved_error(self) -> float:
        """How far ``ConvexModel.reserves`` can be from the exact reserve of any data set of up to
        2^22 records: by the distance of the weights from the minimiser, and by rounding.
        """
        most, limit = MOST_RECORDS / 4.0, self.largest_weights
        solver = _RESIDUAL * (1.0 + math.exp(_RESIDUAL / self.regularization))
        eigenvalue = eigenvalue_error(self, MOST_RECORDS, limit) + _EIGENVALUE_GRID
        # The angle is |o + w.z| / |z|, and no z is shorter than its last coordinate.
        reach = limit + 1.01 * self.offset_bound * math.hypot(1.0, 1.0 / self.intercept)
        cosine = (most + self.regularization) * length_error(self.features + 1) * reach
        return 1.01 * (solver + eigenvalue + cosine + 16.0 * UNIT * most)


@dataclass(frozen=True, eq=False)
class ConvexModel(ReserveModel):
    """Weights near the minimiser, and the curvature there. As private as the records.

    Attributes:
        settings: what is minimised.
        weights: shape (features + 1,), the intercept's last.
        eigenvalue: of the Hessian of the sum of losses at ``weights``, the least one; at least 0.

    Utility:
        A row at a = |o + w.z|/|z| from the boundary has the distance ceil(r) - 1, half of that
        where records are replaced, with r = eigenvalue (1 - e^-a) + regularization a.

    Runtime:
        O(features) a row; 0.6 microseconds for 64 features on one core (benchmarks/runtimes.py).

    References:
        - Bach (2010), "Self-concordant analysis for logistic regression", arXiv:0910.4627,
          proposition 1.
        - Higham (2002), "Accuracy and stability of numerical algorithms",
          doi:10.1137/1.9780898718027, theorems 3.5, 10.3 and 10.7 (sums, Cholesky's method).
        - The proof: docs/certified.md, section 8.

    See Also:
        reticent.retraining.convex_model: makes one from records.
        reticent.retraining.stable_distances: distances of networks.
        reticent.mechanisms.StabilityResponse: labels from distances.
    """

    settings: ConvexSettings
    weights: Array
    eigenvalue: float

    kind: ClassVar[str] = "convex"

    def reserves(
        self, X: npt.ArrayLike, offsets: npt.ArrayLike | None = None
    ) -> tuple[Integers, Array]:
        """Each row's label, 0 or 1, and its reserve r: what all changes of records together must
        take away before the label can change. Private.

        Args:
            X: shape (n, features), finite.
            offsets: shape (n,), finite; None without ``offset_bound``.
        """
        rows = finite_array(X, name="X", ndim=2, columns=self.settings.features, allow_empty=True)
        points = self.settings.points(rows)
        margins = points @ self.weights + self.settings.cut_offsets(offsets, len(rows))
        angle = np.abs(margins) / lengths(points)
        reserve = self.eigenvalue * -np.expm1(-angle) + self.settings.regularization * angle
        return (margins > 0).astype(np.int64), reserve


def convex_model(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    settings: ConvexSettings,
    *,
    offsets: npt.ArrayLike | None = None,
) -> ConvexModel:
    """Logistic regression on private records, with its certificate.

    Damped Newton steps w -= log(1 + s)/s p, s = |p|, p the Newton direction, are taken until the
    gradient is *proved* to be at most 2^-10 long, rounding included. For losses of this kind they
    lower the objective from any start, and docs/certified.md shows that they end for every data
    set: no data set is treated in another way because its search took long.

    Args:
        X: shape (n, features), finite; at most 2^22 records, or none.
        labels: shape (n,), 0 or 1.
        settings: chosen without looking at the records.
        offsets: shape (n,), finite, each a public function of its row, such as the log odds that a
            model of public rows gives it; None without ``offset_bound``.

    Raises:
        InvalidInput: shapes or labels that do not fit; values are never shown.
        CertificationFailed: this machine's arithmetic is not IEEE float64.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 2))
        >>> model = convex_model(X, (X[:, 0] > 0).astype(int), ConvexSettings(features=2))
        >>> labels, distances = model.stable_distances([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
        >>> labels.tolist()[:2], bool(distances[0] > 20), bool(distances[2] < 5)
        ([1, 0], True, True)

    Utility:
        The minimiser itself, to a gradient of length 2^-10: no accuracy is given up for distances
        but by ``regularization``.

    Runtime:
        A few Newton steps of O(n features^2) each; 12 milliseconds for 10,000 rows of 20 features
        on one core, 0.4 seconds for 50,000 of 64 (benchmarks/runtimes.py).

    References:
        - Sun and Tran-Dinh (2019), "Generalized self-concordant functions: a recipe for Newton-type
          methods", arXiv:1703.04599, theorem 2 (the damped step).
        - Bach (2010), "Self-concordant analysis for logistic regression", arXiv:0910.4627,
          proposition 1.
        - Higham (2002), "Accuracy and stability of numerical algorithms",
          doi:10.1137/1.9780898718027, theorems 3.5, 10.3 and 10.7 (sums, Cholesky's method).

    See Also:
        reticent.ConvexCertifiedClassifier: the estimator.
        reticent.retraining.parameter_intervals: networks, by intervals around trained parameters.
    """
    records = Records.of(X, labels, settings, offsets)
    weights = _minimiser(records, settings)
    _, hessian = _derivatives(records, weights)
    return ConvexModel(settings, weights, _least_eigenvalue(hessian))


def gradient_error(settings: ConvexSettings, records: int, length: float) -> float:
    """A bound on the l2 error of the gradient as computed, at weights of l2 norm ``length``."""
    dimension = settings.features + 1
    of_each = 0.25 * length_error(dimension) * (length + settings.offset_bound) + 16.0 * UNIT
    own = 4.0 * UNIT * settings.regularization * length
    return 1.01 * (records * (of_each + sum_error(records)) + own)


def eigenvalue_error(settings: ConvexSettings, records: int, length: float) -> float:
    """A bound on the error of the least eigenvalue as computed, beside the grid that it is looked
    for on.
    """
    dimension = settings.features + 1
    of_each = 0.1 * length_error(dimension) * (length + settings.offset_bound) + 16.0 * UNIT
    cholesky = (dimension + 2) * (dimension + 2) * UNIT
    return 1.01 * records * (of_each + 0.25 * (sum_error(records) + cholesky + 4.0 * UNIT))


def _derivatives(records: Records, weights: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of the sum of losses, without the regularization."""
    dimension = len(weights)
    gradient, hessian = np.zeros(dimension), np.zeros((dimension, dimension))
    for part in records.blocks():
        margin = part.signs * (part.points @ weights + part.offsets)
        wrong = part.shares * expit(-margin)
        gradient -= (part.signs * wrong) @ part.points
        hessian += (part.points * (wrong * expit(margin))[:, None]).T @ part.points
    return gradient, hessian


def _minimiser(records: Records, settings: ConvexSettings) -> Array:
    """Weights at which the gradient is proved to be at most ``_RESIDUAL`` long."""
    size, ridge = len(records.points), settings.regularization
    weights = np.zeros(settings.features + 1)
    for _ in range(_most_steps(size, settings)):
        gradient, hessian = _derivatives(records, weights)
        gradient += ridge * weights
        length = float(np.linalg.norm(weights))
        error = gradient_error(settings, size, length)
        if 1.001 * float(np.linalg.norm(gradient)) + error <= _RESIDUAL:
            return weights
        np.fill_diagonal(hessian, hessian.diagonal() + ridge)
        direction = np.linalg.solve(hessian, gradient)
        step = float(np.linalg.norm(direction))
        weights = weights - (math.log1p(step) / step if step > 0 else 1.0) * direction
    raise CertificationFailed(
        "the minimiser was not found in the number of steps that is proved to be enough; this "
        "machine's arithmetic is not IEEE float64"
    )


def _most_steps(records: int, settings: ConvexSettings) -> int:
    """Steps that are enough for every data set of that size (docs/certified.md, section 8)."""
    fall = records * (1.0 + settings.offset_bound / math.log(2.0))
    return 64 * (math.ceil(25.0 * fall / settings.regularization) + 2)


def _least_eigenvalue(hessian: Array) -> float:
    """The least eigenvalue, at least 0, to ``_EIGENVALUE_GRID`` and the rounding of Cholesky's
    method.

    A matrix less mu has a Cholesky factor if its least eigenvalue is above mu, and has none if it
    is below, up to an error that is proved; an eigenvalue routine has no such bound in print.
    """
    low, high = 0.0, float(hessian.diagonal().min()) + _EIGENVALUE_GRID
    identity = np.eye(len(hessian))
    while high - low > _EIGENVALUE_GRID:
        middle = 0.5 * (low + high)
        try:
            np.linalg.cholesky(hessian - middle * identity)
        except np.linalg.LinAlgError:
            high = middle
        else:
            low = middle
    return low
