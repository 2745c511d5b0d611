"""A certificate for a network with one hidden layer: the ball that one record can move the weights
in, over all data sets, and how far a label is from changing in such steps.
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
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
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

_BEND = 0.769801
"""4 / (3 sqrt 3), the largest second derivative of tanh, rounded up."""

_MOST_UNITS = 2**14
_MOST_STEPS = 1024
_LARGEST_ERROR = 2.0**-6
_SQRT_3 = 1.7320508075688773


@dataclass(frozen=True, kw_only=True)
class HiddenSettings(ReserveSettings):
    """A network of tanh units with two labels; nothing here may depend on records.

    f(z) = o + h^(-1/2) sum_j a_j tanh(v_j.z), with z a point of ``ReserveSettings``, o the offset,
    and h ``units``. a_j is 1 for the first half of the units and -1 for the others. All v_j are
    trained by ``steps`` steps of gradient descent on the sum of the losses of all records, at the
    public rate ``reach / (steps records)``. A loss has the logistic slope, cut to 1/2.

    Attributes:
        features, norm_bound, intercept, class_weights, counting, offset_bound: as of
            ``ReserveSettings``.
        records: the largest number of records, 1 to 2^22; public. A condition of the guarantee.
        units: number of hidden units, even, 2 to 16,384.
        reach: tau, above 0; twice what all records together can move the weights.
        steps: number of steps T, 1 to 1,024; tau/T (1/4 + c/2) at most 2 with c = .7698/sqrt(h).
        spread: standard deviation of the starting weights, above 0 and at most 64.

    Raises:
        InvalidParameter, UnknownName: a value out of its range, too few steps, or settings for
            which rounding is not far below what a record moves.

    Utility:
        Distances fall with ``spread`` and with exp(tau c/2); a small spread is a nearly linear
        network.

    Runtime:
        Checked in O(steps).

    Example:
        >>> settings = HiddenSettings(features=2, records=1000)
        >>> 1.0 < settings.radius / (0.5 * settings.reach / 1000) < 1.3
        True

    References:
        - Hardt, Recht and Singer (2016), "Train faster, generalize better: stability of stochastic
          gradient descent", arXiv:1509.01240, growth of distances under gradient steps.
        - The proof: docs/certified.md, section 11.

    See Also:
        reticent.retraining.hidden_model: trains it.
        reticent.retraining.ConvexSettings: no hidden layer, no limit of records.
    """

    records: int
    units: int = 128
    reach: float = 8.0
    steps: int = 4
    spread: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if count(self.records, name="records") > MOST_RECORDS:
            raise InvalidParameter(f"records={self.records}: expected at most {MOST_RECORDS}")
        if count(self.units, name="units") % 2 or self.units > _MOST_UNITS:
            raise InvalidParameter(
                f"units={self.units}: expected an even number up to {_MOST_UNITS}"
            )
        if count(self.steps, name="steps") > _MOST_STEPS:
            raise InvalidParameter(f"steps={self.steps}: expected at most {_MOST_STEPS}")
        for name, most in (("reach", 1e4), ("spread", 64.0)):
            object.__setattr__(self, name, positive(getattr(self, name), name=name))
            if getattr(self, name) > most:
                raise InvalidParameter(f"{name}={getattr(self, name)!r}: expected at most {most:g}")
        least = math.ceil(self.reach * (0.25 + self.bend / 2) / 2)
        if self.steps < least:
            raise InvalidParameter(
                f"steps={self.steps}: expected at least {least} for reach={self.reach:g}, so that "
                "a step does not overshoot"
            )
        if not self.radius < math.inf or not self.proved_error <= _LARGEST_ERROR:
            raise InvalidParameter(
                f"features={self.features}, reach={self.reach:g}, intercept={self.intercept:g}: "
                "rounding errors may exceed what is proved; expected a smaller reach, fewer "
                "features or a larger intercept"
            )

    @property
    def bend(self) -> float:
        """c, a bound on the norm of the second derivative of f in the weights."""
        return _BEND / math.sqrt(self.units) * (1.0 + 4.0 * UNIT)

    @property
    def rate(self) -> float:
        """What a sum of gradients is multiplied by in each step."""
        return self.reach / (self.steps * self.records)

    @property
    def longest(self) -> float:
        """A bound on the l2 norm of one unit's weights after any number of steps."""
        start = _SQRT_3 * self.spread * math.sqrt(self.features + 1)
        return 1.01 * (start + 0.5 * self.reach / math.sqrt(self.units))

    @cached_property
    def radius(self) -> float:
        """rho: how far one record that comes or goes can move the weights as computed, in l2 norm,
        whatever the data set of up to ``records`` records.
        """
        growth = 1.0 + self.reach / self.steps * self.bend / 2.0
        size = math.sqrt(self.units) * self.longest + self.reach
        step = self.rate / 2.0 + 2.0 * (self.rate * self._sum_error + 2.0 * UNIT * size)
        moved = 0.0
        for _ in range(self.steps):
            moved = (growth * moved + step) * (1.0 + 16.0 * UNIT)
        return moved

    @property
    def proved_error(self) -> float:
        """How far ``HiddenModel.reserves`` can be from the exact reserve of the weights."""
        least = 0.99 * self.intercept / math.hypot(1.0, self.intercept)
        largest = self.offset_bound + math.sqrt(self.units)
        error = self._answer_error + largest * (length_error(self.features + 1) + 8.0 * UNIT)
        return 1.01 * error / (least * self.radius)

    @property
    def _unit_error(self) -> float:
        """A bound on the error of a hidden unit's value: of the product, and of tanh."""
        return self.longest * length_error(self.features + 1) + 8.0 * UNIT

    @property
    def _answer_error(self) -> float:
        """A bound on the error of f as computed."""
        of_units = math.sqrt(self.units) * (self._unit_error + (self.units + 12.0) * UNIT)
        return 1.01 * (of_units + 4.0 * UNIT * self.offset_bound)

    @property
    def _sum_error(self) -> float:
        """A bound on the l2 error of the sum of all records' gradients as computed."""
        residual = 0.25 * self._answer_error + 16.0 * UNIT
        of_each = residual + self._unit_error + 4.0 * UNIT
        return 1.01 * self.records * (of_each + 0.5 * (sum_error(self.records) + 8.0 * UNIT))

    @property
    def signs(self) -> Array:
        """a_j over sqrt(h), shape (units,)."""
        half = np.ones(self.units // 2)
        return np.concatenate([half, -half]) / math.sqrt(self.units)

    def start(self, seed: int) -> Array:
        """Return starting weights, shape (units, features + 1), at which f is the offset.

        Args:
            seed: public; of a draw that no record has a part in.
        """
        shape = self.units // 2, self.features + 1
        bound = _SQRT_3 * self.spread
        half = np.random.default_rng(seed).uniform(-bound, bound, shape)
        return np.concatenate([half, half])


@dataclass(frozen=True, eq=False)
class HiddenModel(ReserveModel):
    """Weights of the hidden layer after training. As private as the records.

    Attributes:
        settings: how they were trained.
        weights: shape (units, features + 1), the intercept's last.

    Utility:
        A query with point z has the distance ceil(r) - 1, half of that where records are replaced,
        with r = |f(z)| / (|z| radius).

    Runtime:
        O(units features) a row, as an answer of the network itself.

    References:
        - Hardt, Recht and Singer (2016), "Train faster, generalize better: stability of stochastic
          gradient descent", arXiv:1509.01240, growth of distances under gradient steps.
        - Higham (2002), "Accuracy and stability of numerical algorithms",
          doi:10.1137/1.9780898718027, theorem 3.5 (sums).
        - The proof: docs/certified.md, section 11.

    See Also:
        reticent.retraining.hidden_model: makes one from records.
        reticent.retraining.ConvexModel: logistic regression.
    """

    settings: HiddenSettings
    weights: Array

    kind: ClassVar[str] = "hidden layer"

    def reserves(
        self, X: npt.ArrayLike, offsets: npt.ArrayLike | None = None
    ) -> tuple[Integers, Array]:
        """See ``ReserveModel.reserves``."""
        rows = finite_array(X, name="X", ndim=2, columns=self.settings.features, allow_empty=True)
        points = self.settings.points(rows)
        given = self.settings.cut_offsets(offsets, len(rows))
        margins = np.tanh(points @ self.weights.T) @ self.settings.signs + given
        return (margins > 0).astype(np.int64), (
            np.abs(margins) / (lengths(points) * self.settings.radius)
        )


def hidden_model(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    settings: HiddenSettings,
    *,
    seed: int,
    offsets: npt.ArrayLike | None = None,
) -> HiddenModel:
    """Return a network trained on private records, with its certificate.

    Args:
        X: shape (n, features), finite; at most ``settings.records`` records, or none.
        labels: shape (n,), 0 or 1.
        settings: chosen without looking at the records.
        seed: of the starting weights; public.
        offsets: shape (n,), finite, each a public function of its row, such as the log odds that a
            model of public rows gives it; None without ``offset_bound``.

    Raises:
        InvalidInput: shapes or labels that do not fit, or more records than
            ``settings.records``; values are never shown.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 2))
        >>> settings = HiddenSettings(features=2, records=500, norm_bound=2.0)
        >>> model = hidden_model(X, (X[:, 0] > 0).astype(int), settings, seed=0)
        >>> labels, distances = model.stable_distances([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
        >>> labels.tolist()[:2], bool(distances[0] > 20), bool(distances[2] < 5)
        ([1, 0], True, True)

    Utility:
        Accuracy is that of plain descent of so many steps from the same start.

    Runtime:
        O(steps n units features): that of the same training without a certificate.

    References:
        - Hardt, Recht and Singer (2016), "Train faster, generalize better: stability of stochastic
          gradient descent", arXiv:1509.01240, growth of distances under gradient steps.

    See Also:
        reticent.CertifiedNetwork: the estimator.
        reticent.retraining.convex_model: logistic regression.
    """
    records = Records.of(X, labels, settings, offsets)
    if len(records.points) > settings.records:
        raise InvalidInput(
            f"X: expected at most records={settings.records} records of two labels, got more; the "
            "guarantee is for data sets within that limit"
        )
    weights, signs = settings.start(seed), settings.signs
    for _ in range(settings.steps):
        gradient = np.zeros_like(weights)
        for part in records.blocks():
            units = np.tanh(part.points @ weights.T)
            margins = part.signs * (units @ signs + part.offsets)
            pull = part.signs * part.shares * np.minimum(expit(-margins), 0.5)
            gradient += ((1.0 - units * units) * pull[:, None]).T @ part.points
        weights = weights + settings.rate * (gradient * signs[:, None])
    return HiddenModel(settings, weights)
