"""``StartedModel``: a few noisy gradients under public curvature, started from public models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.mechanisms import SumSession
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.systems.public_reference import start_details
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import (
    RESIDUAL,
    LinearModel,
    Mover,
    cut_weights,
    scores_of,
)
from reticent.systems.votes.outputs import Columns, Output
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.training.public_space import LENGTH, RowMap
from reticent.training.public_start import KINDS, OFFSET_STEPS, PublicColumn, PublicStart

_STEPS, _STEPS_SURE = 6, 12
_NOISE_RULES = 50.0  # variance of one gradient over mean curvature, beyond which one step is taken
_NOISE_FADES = 1.0  # the same, below which there are steps enough to mend an overshoot
_FURTHER = 2.0  # rows of which nothing is known, beside the public ones
_SURE = 4.0  # deviations of the noise, beyond which a gradient tells curvature
_VARIANCES = np.exp(np.linspace(np.log(1e-2), np.log(1e5), 40))
_SPREAD, _UNCHANGED = 1.0, 0.3


@with_settings
class StartedModel(LinearModel):
    """Offsets of public models, and weights of public features that noisy gradients tell.

    Every column of labels has offsets, weights and a block of the sums of its own. The features
    are the same for all.
    """

    pool: Sequence[Any] | None = None
    rows: str = "table"

    space_: Any = learned()
    _unit: Array = learned()

    _space_kind: ClassVar[Any] = PublicStart
    _shapes = ("schema", "map", "components", "whitening")

    @override
    def check_settings(self) -> None:
        super().check_settings()
        one_of(self.rows, tuple(KINDS), name="rows")

    @override
    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[Any, Array | None]:
        if public_features is None:
            raise InvalidInput("public_X: expected public rows, got none")
        asked, each = self._shaping, [None] * len(labels.outputs)
        if public_codes is not None:
            each = [codes for _, codes in labels.each(public_codes)]  # type: ignore[misc]
        space, self.held_out_ = self._space_kind.around(
            public_features,
            [
                self._column(output, codes)
                for output, codes in zip(labels.outputs, each, strict=True)
            ],
            components=KINDS[self.rows] if asked.components is None else asked.components,
            whitening=asked.whitening,
            table=self.rows == "table",
        )
        return space, space.points(public_features)

    @abstractmethod
    def _column(self, output: Output, codes: Integers | None) -> PublicColumn:
        """Return what public models are made of, for one column of labels."""

    @abstractmethod
    def _residuals(self, at: int, offsets: Array, linear: Array, codes: Integers) -> Array:
        """Return residuals of one column of labels, as ``_all_residuals`` does of all.

        Args:
            at: place of the column of labels.
            offsets: shape (n, width), of the public models.
            linear: shape (n, free), what the weights add.
            codes: shape (n,), labels.
        """

    @abstractmethod
    def _bends(self, at: int, offsets: Array, linear: Array) -> Array:
        """Return the curvature of each public row's loss by its scores, shape (n, free), positive.

        Its arguments are those of ``_residuals``, of public rows.
        """

    def _sampling(self, at: int) -> float:
        """Return the variance of a sum of residuals over its curvature, from public rows."""
        return 1.0

    @property
    @abstractmethod
    def _middle(self) -> float:
        """The likeliest variance of a weight."""

    @property
    def _alone(self) -> bool:
        """Return whether the start is no public model."""
        return False

    @property
    @override
    def _rows(self) -> int:
        return int(self.space_.space.dimension) + 1

    @override
    def _directions(self, points: Array) -> Array:
        return super()._directions(points[:, : self.space_.space.dimension])

    def _offsets(self, points: Array) -> Array:
        return points[:, self.space_.space.dimension :] / OFFSET_STEPS

    @override
    def prepare(self, public: PublicRows | None) -> None:
        assert public is not None  # ``_space`` refused
        self._unit = self._directions(public.points) / LENGTH

    @override
    def _steps(self) -> int:
        """Return T, from public numbers: one step where noise is all that more would show, and many
        where there is next to none. All T cost what one does, so more only linearise better.
        """
        if self.records is None:
            return _STEPS
        records = float(self.records if self._start is None else self._start.records)
        moved = 2.0 if self.counting == "replace" else 1.0
        sigma = moved * analytic_sigma(sensitivity=1.0, epsilon=self.epsilon, delta=self.delta)
        start = np.zeros((self._rows, self._parts[-1].stop))
        bends = [
            np.trace(self._curvature(at, start, records)[0]) / len(start)
            for at in range(len(self._parts))
        ]
        noise = len(bends) * sigma**2 / max(float(np.mean(bends)), 1e-300)
        return 1 if noise > _NOISE_RULES else _STEPS_SURE if noise < _NOISE_FADES else _STEPS

    @override
    def learn(
        self, voters: Voters | ReadVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        super().learn(voters, public, session)
        del self._unit

    @override
    def _all_residuals(self, voting: Voters, directions: Array, weights: Array) -> list[Array]:
        offsets = self._offsets(voting.points)
        linear = scores_of(directions, weights)
        labels = self._columns.each(voting.codes)
        return [
            self._residuals(at, offsets[:, self.space_.parts[at]], linear[:, part], codes)
            for at, (part, (_, codes)) in enumerate(zip(self._parts, labels, strict=True))
        ]

    @override
    def _mover(self, session: SumSession) -> Mover:
        parts, size = self._parts, self._rows
        shift = np.zeros((size, parts[-1].stop))
        curvature = np.zeros((len(parts), size, size))
        scale = np.zeros(parts[-1].stop)
        noises = [(session.sigmas[at] / (LENGTH * RESIDUAL)) ** 2 for at in range(len(parts))]

        def move(
            step: int, weights: Array, sums: list[Array], records: float, counter: Any
        ) -> Array:
            for at, (part, gradient) in enumerate(zip(parts, sums, strict=True)):
                bent, each = self._curvature(at, weights, records)
                bent += curvature_told(
                    gradient, noises[at], max(1.0, records * self._sampling(at)), bent
                )
                shift[:, part] += gradient + bent @ (weights[:, part] * each)
                curvature[at] += bent
                scale[part] += each
            if counter is not None and step == 1:
                shift[:] += self._recentred(counter, records)
            found = np.empty_like(weights)
            for at, part in enumerate(parts):
                found[:, part] = moved(
                    shift[:, part] / step,
                    curvature[at] / step,
                    scale[part] / step,
                    noises[at] / step,
                    middle=self._middle,
                    sampling=self._sampling(at),
                )
            return cut_weights(found)

        return move

    def _recentred(self, counter: Any, records: float) -> Array | float:
        """Return how the first gradient moves with what was counted beside it."""
        return 0.0

    def _curvature(self, at: int, weights: Array, records: float) -> tuple[Array, Array]:
        """Return the curvature of so many records like the public ones, and its share by column.

        Two further rows, of which nothing is known, keep it from 0 where public models are sure of
        every one of a few rows (Agresti and Coull 1998).

        Returns:
            Shape (m, m), and shape (free,), of mean 1.
        """
        unit = self._unit
        offsets = self.held_out_[:, self.space_.parts[at]]
        bends = self._bends(at, offsets, unit @ weights[:, self._parts[at]])
        even = self._bends(at, np.zeros((1, offsets.shape[1])), np.zeros((1, bends.shape[1])))
        found, mean = steadied(unit * np.sqrt(bends.mean(axis=1))[:, None]), float(bends.mean())
        more = _FURTHER * (float(even.mean()) - mean) / (len(unit) + _FURTHER)
        return records * (1.0 + more / max(mean, 1e-300)) * found, bends.mean(axis=0) / mean

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        stated = "a noisy count" if self.records is None else f"{self.records:,}, stated as public"
        return (
            *start_details(self.space_),
            ("records, for the curvature of public rows", stated),
        )


def steadied(rows: Array) -> Array:
    """Return second moments of rows, shrunk halfway to what Ledoit and Wolf would take.

    Beside the direction of the largest, in which rows have a constant, other directions are drawn
    to their mean. Halfway, for labels follow large directions more than small ones.

    Args:
        rows: shape (n, m), n >= 1, m >= 2.

    Returns:
        Shape (m, m), of the same trace.

    References:
        - Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional covariance
          matrices", doi:10.1016/S0047-259X(03)00096-4, lemma 3.4.
    """
    values, basis = np.linalg.eigh(rows.T @ rows / len(rows))
    others, middle = values[:-1], float(values[:-1].mean())
    lengths = np.square(rows @ basis[:, :-1]).sum(axis=1)
    wander = (np.square(lengths).mean() - np.square(others).sum()) / len(rows)
    apart = max(float(np.square(others - middle).sum()), 1e-300)
    values[:-1] += 0.5 * min(1.0, max(0.0, wander / apart)) * (middle - others)
    return np.asarray(basis * values @ basis.T)


def curvature_told(gradient: Array, noise: float, records: float, curvature: Array) -> Array:
    """Return the curvature that a released gradient shows to be missing.

    The gradient G is a sum of n gradients of records. So v' G G' v <= n sum_i (v' g_i)^2 for every
    v, by Cauchy and Schwarz. The empirical Fisher information of the records is at least G G' / n,
    also where no public row points and where public models are sure of a wrong label. The result
    raises the curvature to the least matrix below neither. Only what is beyond four deviations of
    the noise counts, for curvature from noise would lengthen steps along that very noise.

    Args:
        gradient: shape (m, width), released. Its information is the mean over columns.
        noise: the variance of its noise.
        records: n, at least 1.
        curvature: shape (m, m), symmetric, of public rows for n records.

    Returns:
        Shape (m, m), positive semidefinite. It is post-processing.

    References:
        - Martens (2020), "New insights and perspectives on the natural gradient method",
          arXiv:1412.1193 (the empirical Fisher information as a curvature).
    """
    values, basis = np.linalg.eigh(curvature)
    values, width = np.maximum(values, 1e-6), gradient.shape[1]
    told = basis.T @ gradient / np.sqrt(width * records * values)[:, None]
    each = noise / (width * records * values)
    of_noise = width * each.sum() + _SURE * (2.0 * width * np.square(each).sum()) ** 0.5
    sure = max(0.0, 1.0 - of_noise / max(float(np.square(told).sum()), 1e-300))
    turn, lengths, _ = np.linalg.svd(told, full_matrices=False)
    turned = basis * np.sqrt(values) @ turn
    return np.asarray(turned * np.maximum(sure * lengths**2 - 1.0, 0.0) @ turned.T)


def all_scores(linear: Array, labels: int) -> Array:
    """Return scores of all labels, of which the first of two has none of its own.

    Args:
        linear: shape (n, 1) for two labels, else (n, labels).
        labels: their number.
    """
    if labels != 2:
        return linear
    return np.column_stack([np.zeros(len(linear)), linear])


def moved(
    shift: Array,
    curvature: Array,
    scale: Array,
    noise: float,
    *,
    middle: float,
    sampling: float = 1.0,
) -> Array:
    """Return the weights that noisy gradients tell, shrunk to none where they tell nothing.

    In the basis of the curvature a shift is b = lam w + N(0, s lam + noise), with w ~ N(0, tau) of
    log tau ~ N(log middle, 1), or w = 0 with probability .3. The weights are the mean of w given b.

    Args:
        shift: shape (m, width), released.
        curvature: shape (m, m), symmetric, public.
        scale: shape (width,), the curvature's share by column.
        noise: the variance of the noise in ``shift``.
        middle: the likeliest variance of a weight.
        sampling: s, the variance of a shift without noise over its curvature.

    Returns:
        Shape (m, width). It is post-processing.
    """
    values, basis = np.linalg.eigh(curvature)
    lam = np.maximum(values, 1e-6)[:, None] * scale[None, :]
    b, error = basis.T @ shift, sampling * lam + noise
    totals = lam**2 * _VARIANCES[:, None, None] + error
    likely = -0.5 * (np.log(totals) + b**2 / totals).sum(axis=(1, 2))
    prior = -0.5 * ((np.log(_VARIANCES) - np.log(middle)) / _SPREAD) ** 2
    prior -= np.logaddexp.reduce(prior)
    none = -0.5 * (np.log(error) + b**2 / error).sum() + np.log(_UNCHANGED)
    logs = np.r_[none, likely + prior + np.log(1.0 - _UNCHANGED)]
    chances = np.exp(logs - np.logaddexp.reduce(logs))[1:]
    means = (chances * _VARIANCES)[:, None, None] * lam / totals
    return np.asarray(basis @ (b * means.sum(axis=0)))
