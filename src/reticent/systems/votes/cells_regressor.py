"""``CellsRegressor``: noisy means of targets over public cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.settings import with_settings
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.cell_model import CellModel, cell_sums, fine, nearest
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.features import Features
from reticent.systems.votes.outputs import TARGET_STEPS
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.voters import ShardedVoters, Voters

_COUNTS = 0.2
"""Share of the squared precision that goes to the number of records in each cell."""


@with_settings
class CellsRegressor(CellModel, ReleasedRegressor):
    """Each record adds its target, and one, to the cell of its nearest public centroid.

    A target t in [-1, 1] (halves of its public range from the middle) moves one cell's sum by at
    most 1, and its count by 1, so that noise does not grow with the number of cells; a record in
    place of another moves sums by at most 2 and counts by at most sqrt(2), where the noise is for
    2; with ``persons`` a person's sums over all cells are cut to length 1, as are its counts. L
    targets are L such sums beside one count. A cell's mean is its noisy sum over its noisy count,
    shrunk towards the mean of its part of the coarser cells (of all cells; of public targets, if
    there are any) by the noise and by what released means differ by: post-processing.

    Args:
        epsilon, delta, features, counting, data_set: see ``ReleasedModel``.
        random_state: public seed, for centroids; never for noise.
        target_range: see ``ReleasedRegressor``.
        cells: how many; a list of rising numbers for several resolutions. The centroids are k-means
            of the public rows (uniform in the range of ``features`` without public rows).
        smoothing: variance of targets within a cell over that of means between cells, about: so
            many records of a cell weigh as much as what it is shrunk towards.

    Attributes:
        means_: shape (cells, columns), in halves of the range from its middle.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = CellsRegressor(epsilon=10.0, delta=1e-5, target_range=(0, 400), cells=8)
        >>> model.fit(X[:300], y[:300], public_X=X[300:]).predict(X[:3]).shape
        (3,)

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, noisy histograms.
        - James and Stein (1961), "Estimation with quadratic loss", Berkeley Symposium on
          Mathematical Statistics and Probability, shrinkage.

    See Also:
        reticent.MomentRegressor: one linear model in place of cells.
        reticent.NoisyGradientRegressor: a linear model by steps.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    cells: int | list[int] | tuple[int, ...] = 64
    smoothing: float = 3.0

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, targets: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedRegressor.settings_grid``."""
        most = max(4, min(n_public // 4, round(n_private * min(epsilon, 1.0) / 5) + 4, 2048))
        sizes = [size for size in (4, 16, 64, 256, 1024) if size <= most]
        dimensions = sorted({min(features, size) for size in (5, 20)})
        choices: list[int | list[int]] = [*sizes[-3:]]
        if len(sizes) > 2:
            choices.append(list(sizes[-3::2]))
        return [
            {"cells": choice, "features": Features(components=kept)}
            for choice in choices
            for kept in dimensions
        ]

    @override
    def check_settings(self) -> None:
        positive(self.smoothing, name="smoothing")
        super().check_settings()

    @override
    def _before_labels(self, public: PublicRows | None) -> None:
        self._prior: Array | None = None
        if public is None or public.codes is None:
            return
        level = self._levels[0]
        targets = public.codes.reshape(len(public.points), -1) / TARGET_STEPS
        overall = targets.mean(axis=0)
        self._prior = overall + (level.sums(targets - overall)) / (
            level.mass + self.smoothing
        ).reshape(-1, 1)

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        outputs, levels = self._columns.outputs, self._levels
        share = (1.0 - _COUNTS) / (len(outputs) * len(levels))
        blocks: list[SumBlock] = []
        for level in levels:
            blocks += [SumBlock(len(level), fine(out) * out.length, share) for out in outputs]
            blocks.append(SumBlock(len(level), VOTE, _COUNTS / len(levels)))
        return tuple(blocks), 1

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        outputs = self._columns.outputs
        totals = [
            np.zeros((len(level), 1)) for level in self._levels for _ in range(len(outputs) + 1)
        ]
        for voting in voters.blocks():
            vectors = [
                (fine(output) * output.vectors(codes), fine(output) * output.length)
                for output, codes in self._columns.each(voting.codes)
            ]
            vectors.append((np.full((len(voting), 1), VOTE), VOTE))
            for place, level in enumerate(self._levels):
                places = nearest(voting.points, level.centroids)
                for at, (each, length) in enumerate(vectors):
                    totals[place * len(vectors) + at] += cell_sums(
                        voting, places, len(level), each, length=length
                    )
        noisy = session.release(totals)
        means: Array | None = None
        for place, level in enumerate(self._levels):
            first = place * (len(outputs) + 1)
            sums = np.column_stack(noisy[first : first + len(outputs)]) / VOTE
            spread = session.sigmas[first] / VOTE
            counted = noisy[first + len(outputs)] / VOTE
            noise = session.sigmas[first + len(outputs)] / VOTE
            counts = _counts(counted[:, 0], level.mass, noise)
            expected = self._prior if means is None else means[self._parents(place)[0]]
            if expected is None:
                # The mean of all: a noisy number of records, never lost in its noise.
                records = max(1.0, counts.sum(), 2.0 * noise * np.sqrt(len(level)))
                expected = np.clip(sums.sum(axis=0) / records, -1.0, 1.0)
            means = np.column_stack(
                [
                    _posterior(
                        sums[:, at],
                        counts,
                        np.broadcast_to(expected, sums.shape)[:, at],
                        noise=(spread, noise),
                        smoothing=self.smoothing,
                    )
                    for at in range(len(outputs))
                ]
            )
        assert means is not None
        self.centroids_, self.means_ = self._levels[-1].centroids, means
        del self._levels, self._prior

    @override
    def scores(self, points: Array) -> Array:
        return np.asarray(self.means_[nearest(points, self.centroids_)])

    @override
    def arrays(self) -> dict[str, Array]:
        return super().arrays() | {"means": self.means_}

    @override
    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.means_ = self._by_cell(arrays, "means", self._columns.width)


def _counts(noisy: Array, mass: Array, noise: float) -> Array:
    """Numbers of records of cells, at least 0: noisy ones shrunk towards those of public rows.

    Args:
        noisy: shape (cells,), in records.
        mass: shape (cells,), numbers of public rows, or ones.
        noise: standard deviation of ``noisy``.
    """
    expected = mass * max(0.0, float(noisy.sum() / mass.sum()))
    away = noisy - expected
    between = max(0.0, float(np.square(away).mean()) - noise**2)
    return np.maximum(0.0, expected + between / (between + noise**2) * away)


def _posterior(
    sums: Array, counts: Array, expected: Array, *, noise: tuple[float, float], smoothing: float
) -> Array:
    """Means of cells, given noisy sums and counts, if means are normal around what is expected.

    With S = N m + noise and m = g + u, D = S - g N has variance t^2 (N^2 + s N) + v, where t^2 is
    the variance of u, s the smoothing, and v that of the noise of D; t^2 is fitted to all D.

    Args:
        sums, counts: shape (cells,), in records.
        expected: g, shape (cells,), in [-1, 1].
        noise: standard deviations of sums and of counts.
        smoothing: variance of targets within a cell over t^2.
    """
    away = sums - expected * counts
    variance = noise[0] ** 2 + np.square(expected * noise[1])
    weight = np.square(counts) + smoothing * counts
    between = max(0.0, float((np.square(away) - variance).sum()))
    if between == 0.0 or not weight.any():
        return np.clip(expected, -1.0, 1.0)
    shares = counts / (weight + variance * float(weight.sum()) / between)
    return np.clip(expected + shares * away, -1.0, 1.0)
