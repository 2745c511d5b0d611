"""A certificate for regularised logistic regression: how many records must come or go before a
label can change, from the curvature of the loss at its minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, one_of, positive, real
from reticent.core.errors import CertificationFailed, InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Replace
from reticent.retraining.class_weights import checked_weights
from reticent.retraining.training_settings import Counting

MOST_RECORDS = 2**22
MOST_FEATURES = 4095

_UNIT = 2.0**-53
"""Relative error of one rounded operation."""

_BLOCK = 1024
"""Records that are summed by one matrix product; blocks are added one by one."""

_RESIDUAL = 2.0**-10
"""The minimiser is searched until its gradient, rounding errors included, is proved to be no longer
than this: a thousandth of what one record can add.
"""

_EIGENVALUE_GRID = 2.0**-11
_SMALLEST_REGULARIZATION = 2.0**-4
_LARGEST_OFFSET = 64.0


@dataclass(frozen=True, kw_only=True)
class ConvexSettings:
    """Logistic regression with two labels; nothing here may depend on records.

    The weights minimise ``sum of weight of label * log(1 + exp(-y (o + w.z)))
    + regularization/2 |w|^2`` with y = +-1, where z is a row cut to the l2 ball of radius
    ``norm_bound``, divided by it, with ``intercept`` as one coordinate more, all divided by
    sqrt(1 + intercept^2): so |z| <= 1. The intercept's weight is regularised like the others. o is
    the row's offset, a public function of it: the log odds of a public model, or 0.

    Attributes:
        features: number of inputs, 1 to 4095.
        regularization: lambda, at least 1/16. Distances grow with it; accuracy wants it small.
        norm_bound: longer rows are cut to this l2 norm, above 0; public.
        intercept: above 0; small if the two labels are about equally frequent.
        class_weights: one weight in (0, 1] for each label, the largest 1; from public prevalence.
        counting: what a distance of k means: k records come or go in total ("add-remove"), or are
            replaced ("replace").
        offset_bound: offsets are cut to [-offset_bound, offset_bound], 0 to 64; public. 0 where
            there are none.

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

    features: int
    regularization: float = 10.0
    norm_bound: float = 1.0
    intercept: float = 0.1
    class_weights: tuple[float, ...] = (1.0, 1.0)
    counting: Counting = "add-remove"
    offset_bound: float = 0.0

    classes: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if count(self.features, name="features") > MOST_FEATURES:
            raise InvalidParameter(
                f"features={self.features}: expected at most {MOST_FEATURES}; reduce them by a "
                "public map"
            )
        for name in ("regularization", "norm_bound", "intercept"):
            object.__setattr__(self, name, positive(getattr(self, name), name=name))
        if not _SMALLEST_REGULARIZATION <= self.regularization <= 1e6:
            raise InvalidParameter(
                f"regularization={self.regularization!r}: expected {_SMALLEST_REGULARIZATION:g} to "
                "1e6"
            )
        for name in ("norm_bound", "intercept"):
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(
                    f"{name}={getattr(self, name)!r}: expected 1e-9 to 1e9; rescale the features"
                )
        if not 0 <= real(self.offset_bound, name="offset_bound") <= _LARGEST_OFFSET:
            raise InvalidParameter(
                f"offset_bound={self.offset_bound!r}: expected 0 to {_LARGEST_OFFSET:g}"
            )
        object.__setattr__(self, "class_weights", checked_weights(self.class_weights, classes=2))
        one_of(self.counting, ("add-remove", "replace"), name="counting")
        if gradient_error(self, MOST_RECORDS, self.largest_weights) > _RESIDUAL / 4:
            raise InvalidParameter(
                f"features={self.features}, regularization={self.regularization!r}: rounding "
                "errors may exceed what is proved; expected fewer features or more regularization"
            )

    @property
    def adjacency(self) -> AddRemove | Replace:
        """The neighbours between which certified distances change by at most 1."""
        return AddRemove(1) if self.counting == "add-remove" else Replace(1)

    @property
    def changed(self) -> int:
        """Records that come or go in one change."""
        return 1 if self.counting == "add-remove" else 2

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
        cosine = (most + self.regularization) * _length_error(self.features + 1) * reach
        return 1.01 * (solver + eigenvalue + cosine + 16.0 * _UNIT * most)

    @cached_property
    def worth(self) -> float:
        """What one change of records takes from a reserve as computed, at most."""
        return self.changed + 2.0 * self.proved_error

    def distances(self, reserves: Array) -> Integers:
        """Return how many changes of records are survived with these reserves, shape (n,)."""
        return np.maximum(np.ceil(reserves / self.worth) - 1.0, 0.0).astype(np.int64)

    def cut_offsets(self, offsets: npt.ArrayLike | None, rows: int) -> Array:
        """Return offsets as the loss takes them, shape (rows,).

        Args:
            offsets: shape (rows,), finite; None where ``offset_bound`` is 0.
            rows: their number.

        Raises:
            InvalidInput: offsets that are missing, or that there should not be.
        """
        if offsets is None and not self.offset_bound:
            return np.zeros(rows)
        if offsets is None or not self.offset_bound:
            raise InvalidInput("offsets: expected them with offset_bound above 0, and only then")
        found = finite_array(offsets, name="offsets", ndim=1, allow_empty=True)
        if len(found) != rows:
            raise InvalidInput(f"offsets: expected {rows}, got {len(found)}")
        return np.clip(found, -self.offset_bound, self.offset_bound)

    def points(self, X: Array) -> Array:
        """Rows as the loss takes them, each computed from itself alone: shape (n, features + 1),
        of l2 norm at most 1.

        Args:
            X: shape (n, features), finite.
        """
        size = np.maximum(np.abs(X).max(axis=1, initial=0.0), self.norm_bound)
        rows = X / size[:, None]
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.minimum(size / self.norm_bound, 1.0 / _lengths(rows))
        # 2^-40 is more than all rounding of the norm: no row is longer than 1.
        share = (1.0 - 2.0**-40) / math.sqrt(1.0 + self.intercept**2)
        points = np.empty((len(X), self.features + 1))
        np.multiply(rows, (scale * share)[:, None], out=points[:, :-1])
        points[:, -1] = share * self.intercept
        return points


@dataclass(frozen=True, eq=False)
class ConvexModel:
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
        angle = np.abs(margins) / _lengths(points)
        reserve = self.eigenvalue * -np.expm1(-angle) + self.settings.regularization * angle
        return (margins > 0).astype(np.int64), reserve

    def stable_distances(
        self, X: npt.ArrayLike, offsets: npt.ArrayLike | None = None
    ) -> tuple[Integers, Integers]:
        """Each row's label, and how many changes of records it survives, of what ``counting`` says.

        **Guarantee.** (1) For data sets at distance 1 the distances of one query differ by at most
        1. (2) If their labels differ, both distances are 0.

        *Why.* docs/certified.md, section 8. One record that comes or goes takes at most 1 from the
        exact reserve r, and where it changes the label r <= 1 on both sides. The reserve as
        computed is within the public ``proved_error`` t of r for every data set, so that max(0,
        ceil(r / (1 + 2 t)) - 1) has both properties.

        Args:
            X, offsets: as of ``reserves``.

        Returns:
            Labels 0 or 1 and distances of at least 0, each of shape (n,), int64. Private.
        """
        labels, reserve = self.reserves(X, offsets)
        return labels, self.settings.distances(reserve)


def one_against_one(labels: Integers, reserves: Array, *, classes: int) -> tuple[Integers, Array]:
    """Return the label that wins all its pairs, and the least reserve of these; label 0 at reserve
    0 where none does.

    **Guarantee.** With distances by ``ConvexSettings.distances``, where each pair's model is made
    of the records of its two labels alone, both properties of ``ConvexModel.stable_distances``
    hold, whatever the number of labels.

    *Why.* A record is in the models of all pairs of its label, and moves each of their reserves as
    computed by at most w = ``ConvexSettings.worth``; a pair whose label changes has w at most on
    either side. (1) Where the winner stays, a minimum of numbers that each move by at most w does
    too. (2) Where the winner j of one data set is none of the other, a pair of j changed, so j's
    reserve is at most w and the distance 0. The other data set's is 0 for want of a winner; or its
    winner is some k, and the pair of j and k changed, so it is at most w too.

    Args:
        labels, reserves: shape (pairs, n), of ``ConvexModel.reserves`` for each pair in the order
            of ``itertools.combinations(range(classes), 2)``; label 1 is the pair's second.
        classes: the number of labels, at least 2.

    Returns:
        Labels 0 to classes - 1, and reserves, each of shape (n,). Private.

    Example:
        >>> wins = np.array([[0, 1], [0, 0], [1, 1]])
        >>> one_against_one(wins, np.array([[5.0, 2.0], [3.0, 4.0], [9.0, 1.0]]), classes=3)
        (array([0, 0]), array([3., 0.]))

    References:
        - Knerr, Personnaz and Dreyfus (1990), "Single-layer learning revisited: a stepwise
          procedure for building and training a neural network",
          doi:10.1007/978-3-642-76153-9_5, one against one.
        - The proof: docs/certified.md, section 8.

    See Also:
        reticent.ConvexCertifiedClassifier: the estimator.
        reticent.retraining.vote_distances: votes of models that any record may be in.
    """
    wins = np.zeros((classes, labels.shape[1]), dtype=np.int64)
    least = np.full(wins.shape, np.inf)
    for pair, second, reserve in zip(
        combinations(range(classes), 2), labels, reserves, strict=True
    ):
        for place, label in enumerate(pair):
            wins[label] += second == place
            np.minimum(least[label], reserve, out=least[label])
    top, columns = wins.argmax(axis=0), np.arange(wins.shape[1])
    sure = wins[top, columns] == classes - 1
    return np.where(sure, top, 0), np.where(sure, least[top, columns], 0.0)


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
    rows = finite_array(X, name="X", ndim=2, columns=settings.features, allow_empty=True)
    truth = np.asarray(labels)
    if truth.shape != (len(rows),) or (truth.dtype.kind not in "iu" and len(rows)):
        raise InvalidInput(
            f"labels: expected {len(rows)} integers, got shape={truth.shape}, dtype={truth.dtype}"
        )
    if len(rows) and (truth.min() < 0 or truth.max() > 1):
        raise InvalidInput("labels: expected 0 or 1")
    if len(rows) > MOST_RECORDS:
        raise InvalidInput(f"X: expected at most {MOST_RECORDS} records, got {len(rows)}")
    records = _Records(
        settings.points(rows),
        np.where(truth == 1, 1.0, -1.0),
        settings.cut_offsets(offsets, len(rows)),
        np.array(settings.class_weights)[truth.astype(np.int64)],
    )
    weights = _minimiser(records, settings)
    _, hessian = _derivatives(records, weights)
    return ConvexModel(settings, weights, _least_eigenvalue(hessian))


@dataclass(frozen=True, eq=False)
class _Records:
    """Records as the loss takes them: points of length at most 1, signs of labels, offsets, and
    weights of labels.
    """

    points: Array
    signs: Array
    offsets: Array
    shares: Array


def gradient_error(settings: ConvexSettings, records: int, length: float) -> float:
    """A bound on the l2 error of the gradient as computed, at weights of l2 norm ``length``."""
    dimension = settings.features + 1
    of_each = 0.25 * _length_error(dimension) * (length + settings.offset_bound) + 16.0 * _UNIT
    own = 4.0 * _UNIT * settings.regularization * length
    return 1.01 * (records * (of_each + _sum_error(records)) + own)


def eigenvalue_error(settings: ConvexSettings, records: int, length: float) -> float:
    """A bound on the error of the least eigenvalue as computed, beside the grid that it is looked
    for on.
    """
    dimension = settings.features + 1
    of_each = 0.1 * _length_error(dimension) * (length + settings.offset_bound) + 16.0 * _UNIT
    cholesky = (dimension + 2) * (dimension + 2) * _UNIT
    return 1.01 * records * (of_each + 0.25 * (_sum_error(records) + cholesky + 4.0 * _UNIT))


def _length_error(dimension: int) -> float:
    """Relative error of an inner product, and of one divided by a length."""
    return 1.01 * 2.0 * (dimension + 8) * _UNIT


def _sum_error(records: int) -> float:
    """Relative error of a sum over records, by blocks."""
    return 1.01 * (_BLOCK + records / _BLOCK + 8.0) * _UNIT


def _lengths(rows: Array) -> Array:
    """l2 norms, column by column, so that a row's does not depend on the other rows."""
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    return np.asarray(np.sqrt(squares))


def _derivatives(records: _Records, weights: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of the sum of losses, without the regularization."""
    dimension = len(weights)
    gradient, hessian = np.zeros(dimension), np.zeros((dimension, dimension))
    for start in range(0, len(records.points), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows, signs = records.points[block], records.signs[block]
        margin = signs * (rows @ weights + records.offsets[block])
        wrong = records.shares[block] * expit(-margin)
        gradient -= (signs * wrong) @ rows
        hessian += (rows * (wrong * expit(margin))[:, None]).T @ rows
    return gradient, hessian


def _minimiser(records: _Records, settings: ConvexSettings) -> Array:
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
