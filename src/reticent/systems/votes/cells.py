"""``CellsClassifier``: one noisy histogram over public cells, which answers every query for
good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.core.settings import with_settings
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.cell_model import CellModel, cell_sums, fine, nearest
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.features import Features
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.systems.votes.voters import ShardedVoters, Voters


@with_settings
class CellsClassifier(CellModel, ReleasedClassifier):
    """Each record votes once, for its label, in the cell of its nearest public centroid.

    The votes K e_y - 1 have length K sqrt(1 - 1/K), and one record touches one cell: so the noise
    of every count does not grow with the number of cells. Several resolutions share the total;
    the noisy votes of a finer cell are shrunk (James and Stein) towards its part of the coarser
    one, and those of the coarsest towards the public labels, if there are any.

    Args:
        epsilon, delta, features, counting, data_set: see ``ReleasedModel``.
        random_state: public seed, for centroids; never for noise.
        classes, student_share: see ``ReleasedClassifier``.
        cells: how many; a list of rising numbers for several resolutions. The centroids are k-means
            of the public rows (uniform in the range of ``features`` without public rows, where
            counts are those of the whole grid of cells).
        smoothing: records that every class of a cell is given beforehand in ``predict_proba``.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> model = CellsClassifier(epsilon=2.0, delta=1e-5, classes=range(10), cells=64)
        >>> model.fit(X[:1300], y[:1300], public_X=X[1300:]).predict(X[:3]).shape
        (3,)

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, noisy histograms.
        - James and Stein (1961), "Estimation with quadratic loss", Berkeley Symposium on
          Mathematical Statistics and Probability, shrinkage.

    See Also:
        reticent.CellsRegressor: means of targets in place of shares of labels.
        reticent.MomentClassifier: one linear model in place of cells.
        reticent.NoisyGradientClassifier: a linear model by steps.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    cells: int | list[int] | tuple[int, ...] = 256
    smoothing: float = 1.0

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedClassifier.settings_grid``."""
        most = max(4, min(n_public // 4, round(n_private * min(epsilon, 1.0) / 5) + 4, 2048))
        sizes = [size for size in (4, 16, 64, 256, 1024) if size <= most]
        dimensions = sorted({min(features, size) for size in (10, 40)})
        single: list[dict[str, Any]] = [
            {"cells": size, "features": Features(components=kept, whitening=0.0)}
            for size in sizes[-3:]
            for kept in dimensions
        ]
        if len(sizes) > 2:
            single.append(
                {
                    "cells": list(sizes[-3::2]),
                    "features": Features(components=dimensions[-1], whitening=0.0),
                }
            )
        return single

    @override
    def check_settings(self) -> None:
        positive(self.smoothing, name="smoothing")
        super().check_settings()

    @override
    def _before_labels(self, public: PublicRows | None) -> None:
        self._prior: Array | None = None
        if public is not None and public.codes is not None:
            self._prior = np.concatenate(
                [
                    output.contrast(self._levels[0].sums(output.vectors(codes))) / output.unit
                    for output, codes in self._columns.each(public.codes)
                ],
                axis=1,
            )

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        blocks = [
            SumBlock(
                len(level) * output.width,
                fine(output) * output.length,
                share / len(self._levels),
            )
            for level in self._levels
            for output, share in zip(self._columns.outputs, self._columns.shares, strict=True)
        ]
        return tuple(blocks), 1

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        outputs, parts = self._columns.outputs, self._columns.parts
        totals = [np.zeros((len(level), out.width)) for level in self._levels for out in outputs]
        for voting in voters.blocks():
            labels = self._columns.each(voting.codes)
            for place, level in enumerate(self._levels):
                places = nearest(voting.points, level.centroids)
                for at, (output, codes) in enumerate(labels):
                    totals[place * len(outputs) + at] += cell_sums(
                        voting,
                        places,
                        len(level),
                        fine(output) * output.vectors(codes),
                        length=fine(output) * output.length,
                    )
        noisy = session.release(totals)
        found: Array | None = None
        for place in range(len(self._levels)):
            centred = np.concatenate(
                [
                    output.contrast(noisy[place * len(outputs) + at] / (fine(output) * output.unit))
                    for at, output in enumerate(outputs)
                ],
                axis=1,
            )
            # In records, the same for all columns of labels: see ``Columns.shares``.
            noise = session.sigmas[place * len(outputs)] / (fine(outputs[0]) * outputs[0].unit)
            finer = np.empty_like(centred)
            for part in parts:
                coarser = None if found is None else found[:, part]
                expected = self._expected(place, centred[:, part], coarser, part)
                finer[:, part] = _shrunk(centred[:, part], expected, noise)
            found, spread = finer, noise
        assert found is not None
        self.centroids_, self.votes_ = self._levels[-1].centroids, found
        self.noise_ = spread
        del self._levels, self._prior

    @override
    def scores(self, points: Array) -> Array:
        return np.asarray(self.log_shares_[nearest(points, self.centroids_)])

    @property
    def log_shares_(self) -> Array:
        """Logarithm of every label's share of a cell, shape (cells, classes); with several labels
        their columns one after the other.
        """
        votes = np.concatenate(
            [
                self.votes_[:, part] - self.votes_[:, part].min(axis=1, keepdims=True)
                for part in self._columns.parts
            ],
            axis=1,
        )
        return np.asarray(np.log(votes + self.smoothing + self.noise_))

    @override
    def arrays(self) -> dict[str, Array]:
        return super().arrays() | {"votes": self.votes_, "noise": np.array([self.noise_])}

    @override
    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.votes_ = self._by_cell(arrays, "votes", self._columns.width)
        self.noise_ = float(arrays["noise"][0])
        if not self.noise_ > 0:
            raise InvalidInput("noise: expected a number above 0")

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            *super()._card_details(),
            ("noise of a count, in records", f"{self.noise_:.4g}"),
        )

    def _expected(self, place: int, noisy: Array, coarser: Array | None, part: slice) -> Array:
        """What the votes of one resolution are shrunk towards, from public things and released
        ones.
        """
        if coarser is None:
            if self._prior is None or not self._prior[:, part].any():
                return np.zeros_like(noisy)
            prior = self._prior[:, part]
            # How many private records there are for a public one, by least squares.
            return prior * max(0.0, float((noisy * prior).sum() / np.square(prior).sum()))
        parents, mass = self._parents(place)
        families = np.bincount(parents, weights=mass, minlength=len(coarser))
        return np.asarray(coarser[parents] * (mass / np.maximum(families[parents], 1.0))[:, None])


def _shrunk(noisy: Array, expected: Array, noise: float) -> Array:
    """Each row of ``noisy`` moved towards ``expected``, by the positive part of James and Stein."""
    away = noisy - expected
    distance = np.square(away).sum(axis=1, keepdims=True)
    kept = 1.0 - (noisy.shape[1] - 1) * noise**2 / np.maximum(distance, 1e-300)
    return np.asarray(expected + np.maximum(kept, 0.0) * away)
