"""``CellsClassifier``: one noisy histogram over public cells, which answers every query for
good.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from typing_extensions import override

from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.whole_numbers import clipped, exact_product
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.record_labels import Classes
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.sums import VOTE, centred_labels, centred_length, person_blocks
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import REACH, UNIT

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BLOCK = 2048
_MOST_CELLS = 2**16


class CellsClassifier(ReleasedModel):
    """Each record votes once, for its label, in the cell of its nearest public centroid.

    The votes K e_y - 1 have length K sqrt(1 - 1/K), and one record touches one cell: so the noise
    of every count does not grow with the number of cells. Several resolutions share the total;
    the noisy votes of a finer cell are shrunk (James and Stein) towards its part of the coarser
    one, and those of the coarsest towards the public labels, if there are any.

    Args:
        epsilon, delta, classes, feature_map, feature_range, components, whitening, counting,
            data_set, random_state, student_share: see ``ReleasedModel``.
        cells: how many; a list of rising numbers for several resolutions. The centroids are k-means
            of the public rows (uniform in ``feature_range`` without public rows, where counts are
            those of the whole grid of cells).
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
        reticent.MomentClassifier: one linear model in place of cells.
        reticent.NoisyGradientClassifier: a linear model by steps.
        reticent.RadiusVotesClassifier: a neighbourhood of its own for each query.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        cells: int | list[int] | tuple[int, ...] = 256,
        smoothing: float = 1.0,
        feature_map: Any = None,
        feature_range: Any = None,
        components: int | None = None,
        whitening: float = 0.5,
        counting: str = "add-remove",
        data_set: str | None = None,
        random_state: int = 0,
        student_share: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.cells = cells
        self.smoothing = smoothing
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
        self.student_share = student_share

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedModel.settings_grid``: numbers of cells as powers of 4, and dimensions."""
        most = max(4, min(n_public // 4, round(n_private * min(epsilon, 1.0) / 5) + 4, 2048))
        sizes = [size for size in (4, 16, 64, 256, 1024) if size <= most]
        dimensions = sorted({min(features, size) for size in (10, 40)})
        single: list[dict[str, Any]] = [
            {"cells": size, "components": kept, "whitening": 0.0}
            for size in sizes[-3:]
            for kept in dimensions
        ]
        if len(sizes) > 2:
            single.append(
                {"cells": list(sizes[-3::2]), "components": dimensions[-1], "whitening": 0.0}
            )
        return single

    @override
    def _check_settings(self) -> None:
        positive(self.smoothing, name="smoothing")
        for fewer, more in pairwise(self._sizes()):
            if more <= fewer:
                raise InvalidParameter(f"cells={self.cells!r}: expected rising numbers")

    @override
    def _before(self, public: PublicRows | None) -> None:
        levels, masses, priors = [], [], []
        for size in self._sizes():
            if public is None:
                centroids = self._uniform(size)
                mass = np.ones(size)
                prior = None
            else:
                centroids = _means(public.points, size, self.random_state)
                places = nearest(public.points, centroids)
                mass = np.bincount(places, minlength=len(centroids)).astype(np.float64)
                prior = self._public_votes(places, len(centroids), public.codes)
            levels.append(centroids)
            masses.append(mass)
            priors.append(prior)
        self._levels: list[Array] = levels
        self._masses: list[Array] = masses
        self._prior: Array | None = priors[0]

    @override
    def _blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        share = 1.0 / len(self._levels)
        classes = len(self.classes_)
        bound = VOTE * centred_length(classes)
        return tuple(SumBlock(len(level) * classes, bound, share) for level in self._levels), 1

    @override
    def _learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        classes = len(self.classes_)
        totals = [np.zeros((len(level), classes)) for level in self._levels]
        for part in voters.blocks():
            for total, level in zip(totals, self._levels, strict=True):
                total += VOTE * self._votes(part, nearest(part.points, level), len(level))
        noisy = session.release(totals)
        unit = VOTE * classes
        found: Array | None = None
        for place, votes in enumerate(noisy):
            centred = votes / unit
            centred -= centred.mean(axis=1, keepdims=True)
            noise = session.sigmas[place] / unit
            found = _shrunk(centred, self._expected(place, centred, found), noise)
            spread = noise
        assert found is not None
        self.centroids_, self.votes_, self.noise_ = self._levels[-1], found, spread
        del self._levels, self._masses, self._prior

    @override
    def _scores(self, points: Array) -> Array:
        return np.asarray(self.log_shares_[nearest(points, self.centroids_)])

    @property
    def log_shares_(self) -> Array:
        """Logarithm of every label's share of a cell, shape (cells, classes)."""
        votes = self.votes_ - self.votes_.min(axis=1, keepdims=True)
        return np.asarray(np.log(votes + self.smoothing + self.noise_))

    @override
    def _model(self) -> dict[str, Array]:
        return {
            "centroids": self.centroids_,
            "votes": self.votes_,
            "noise": np.array([self.noise_]),
        }

    @override
    def _remodel(self, arrays: dict[str, Array]) -> None:
        self.centroids_ = finite_array(
            arrays["centroids"], name="centroids", ndim=2, columns=self.space_.dimension
        )
        self.votes_ = finite_array(
            arrays["votes"], name="votes", ndim=2, columns=len(self.classes_)
        )
        self.noise_ = float(arrays["noise"][0])
        if len(self.votes_) != len(self.centroids_) or not self.noise_ > 0:
            raise InvalidInput("votes: expected those of every centroid, and their noise")

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("cells", ", ".join(str(size) for size in self._sizes())),
            ("noise of a count, in records", f"{self.noise_:.4g}"),
        )

    def _sizes(self) -> tuple[int, ...]:
        sizes = self.cells if isinstance(self.cells, Sequence) else (self.cells,)
        found = tuple(count(size, name="cells") for size in sizes)
        if not found or max(found) > _MOST_CELLS:
            raise InvalidParameter(f"cells={self.cells!r}: expected 1 to {_MOST_CELLS}")
        return found

    def _uniform(self, size: int) -> Array:
        """Centroids drawn from the public box, with a public seed."""
        rng = np.random.default_rng([self.random_state, size])
        half = UNIT / np.sqrt(self.space_.dimension / 3.0)
        return np.rint(rng.uniform(-half, half, size=(size, self.space_.dimension)))

    def _votes(self, voters: Voters, places: Integers, cells: int) -> Array:
        """K times the votes by cell and label, less their sum, shape (cells, classes)."""
        classes = len(self.classes_)
        if voters.starts is None:
            counts = np.zeros((cells, classes))
            np.add.at(counts, (places, voters.codes), 1.0)
            return np.asarray(classes * counts - counts.sum(axis=1, keepdims=True))
        labels = centred_labels(voters.codes, classes)
        total = np.zeros(cells * classes)
        for records, starts in person_blocks(voters, cells * classes):
            # By person, not by record: one person's records may be more than memory is for.
            persons = np.zeros((len(starts), cells, classes))
            owners = np.repeat(
                np.arange(len(starts)), np.diff(starts, append=records.stop - records.start)
            )
            np.add.at(persons, (owners, places[records]), labels[records])
            # Cut on the fine grid, where rounding towards 0 costs a millionth of a vote.
            total += clipped(
                VOTE * persons.reshape(len(starts), -1), VOTE * centred_length(classes)
            ).sum(axis=0)
        return total.reshape(cells, classes) / VOTE

    def _public_votes(self, places: Integers, cells: int, codes: Integers | None) -> Array | None:
        if codes is None:
            return None
        counts = np.zeros((cells, len(self.classes_)))
        np.add.at(counts, (places, codes), 1.0)
        return np.asarray(counts - counts.mean(axis=1, keepdims=True))

    def _expected(self, place: int, noisy: Array, coarser: Array | None) -> Array:
        """What the votes of one resolution are shrunk towards, from public things and released
        ones.
        """
        if coarser is None:
            prior = self._prior
            if prior is None or not prior.any():
                return np.zeros_like(noisy)
            # How many private records there are for a public one, by least squares.
            return prior * max(0.0, float((noisy * prior).sum() / np.square(prior).sum()))
        parents = nearest(self._levels[place], self._levels[place - 1])
        mass = self._masses[place]
        families = np.bincount(parents, weights=mass, minlength=len(coarser))
        return np.asarray(coarser[parents] * (mass / np.maximum(families[parents], 1.0))[:, None])


def nearest(points: Array, centroids: Array) -> Integers:
    """The nearest centroid of each point, the first of several; exact, so from that point alone.

    Args:
        points: shape (n, m), whole numbers of at most ``REACH``.
        centroids: shape (k, m), the same.
    """
    lengths = np.square(centroids).sum(axis=1)
    bound = 4.0 * REACH * REACH * points.shape[1]
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        products = exact_product(block, centroids.T, bound=bound)
        found[start : start + _BLOCK] = (lengths - 2.0 * products).argmin(axis=1)
    return found


def _means(points: Array, cells: int, seed: int) -> Array:
    """k-means of public points, whole numbers; as many as there are different points at most."""
    most = min(cells, len(np.unique(points, axis=0)))
    means = KMeans(most, n_init=1, max_iter=50, random_state=seed).fit(points / UNIT)
    return np.asarray(np.rint(np.clip(means.cluster_centers_ * UNIT, -REACH, REACH)))


def _shrunk(noisy: Array, expected: Array, noise: float) -> Array:
    """Each row of ``noisy`` moved towards ``expected``, by the positive part of James and Stein."""
    away = noisy - expected
    distance = np.square(away).sum(axis=1, keepdims=True)
    kept = 1.0 - (noisy.shape[1] - 1) * noise**2 / np.maximum(distance, 1e-300)
    return np.asarray(expected + np.maximum(kept, 0.0) * away)
