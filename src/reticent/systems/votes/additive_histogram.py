"""``AdditiveHistogramClassifier``: noisy histograms of columns, and an additive model of them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import clipped, softmax
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.features import ends_of
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.outputs import Columns, Output
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.systems.votes.started_model import all_scores, moved, steadied
from reticent.systems.votes.sums import VOTE, person_blocks
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_bins import PublicBins
from reticent.training.public_space import RowMap, range_of

_MOST_BINS = 1024
_MIDDLE = 0.5
_ROUNDS = 6
_HALVINGS = 14
_LARGEST_SCALE = 1.5
_MOST_CORRECTED = 1024
"""Bins beyond which naive Bayes is scaled and not corrected, which takes their number cubed."""

_LEAST_BEND = 1e-12
_RARE = 0.01
"""Least share of a label in the constant of a model."""


@with_settings
class AdditiveHistogramClassifier(ReleasedClassifier):
    """One noisy histogram of every column by label, and an additive model fitted to it.

    A record adds one to one bin of each of d columns, and to the count of its label: a vector of
    length sqrt(d + 1). One Gaussian sum of all bins is released. What follows is post-processing.
    Log odds of bins, shrunk by their noise, add up to naive Bayes. With public rows, labelled or
    not, it is calibrated and corrected: columns depend on one another as they do in public rows,
    and every bin is to hold the share of labels that was released. Public labels are counted in
    the histogram. Without public rows the model is naive Bayes.

    Bins are those of public quantiles, or of one width within ``Features(range=)``. Indicators
    side by side, of which no public row has two, are one column.

    Args:
        epsilon, delta, counting, data_set: see ``ReleasedModel``.
        features: a feature map, or the public range of columns; None where public rows are given.
        classes: see ``ReleasedClassifier``.
        student_share: None, for bins are no vectors that a student could learn from.
        bins: at most so many bins of a column of numbers, from 2 to 1024.

    Attributes:
        tables_: shape (bins of all columns + 1, labels), scores that a row adds up; the last row
            is the constant.

    Utility:
        It needs no public rows. Where there are any, with labels or without,
        ``PublicStartClassifier`` is usually ahead.

    Runtime:
        Less than a CPU second for 10,000 records of 14 columns.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = AdditiveHistogramClassifier(epsilon=1.0, delta=1e-5, classes=(0, 1))
        >>> model.fit(X[:400], y[:400], public_X=X[400:]).predict(X[:3]).shape
        (3,)

    References:
        - Vaidya, Shafiq, Basu and Hong (2013), "Differentially private naive Bayes classification",
          doi:10.1109/WI-IAT.2013.80 (noisy counts of bins by label).
        - Nori et al. (2021), "Accuracy, interpretability, and differential
          privacy via explainable boosting", arXiv:2106.09680 (additive models of noisy bins).
        - Hastie and Tibshirani (1986), "Generalized additive models", doi:10.1214/ss/1177013604.

    See Also:
        reticent.PublicStartClassifier: better from about epsilon .5 on for 10,000 records.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    bins: int = 8

    space_: Any = learned()
    tables_: Array = learned()
    _counted: list[Array] = learned()
    _public: Integers | None = learned()

    _space_kind: ClassVar[Any] = PublicBins
    _shapes = ("schema", "map", "range")

    @override
    def check_settings(self) -> None:
        if not 2 <= count(self.bins, name="bins") <= _MOST_BINS:
            raise InvalidParameter(f"bins={self.bins!r}: expected 2 to {_MOST_BINS}")
        if self.student_share is not None:
            raise InvalidParameter("student_share: expected None; bins are no vectors")

    @override
    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[Any, Array | None]:
        ends = None if row_map is not None else range_of(self._shaping.range, columns)
        if ends is not None:
            space = PublicBins.of_range(*ends, bins=self.bins)
        elif public_features is not None and len(public_features):
            space = PublicBins.around(public_features, bins=self.bins)
        elif (known := ends_of(self.schema_)) is not None:
            space = PublicBins.of_range(*known, bins=self.bins)
        else:
            raise InvalidParameter(
                "features, range: expected public (lower, upper) ends of every feature, or "
                "public_X in fit; neither may come from the private records"
            )
        return space, None if public_features is None else space.points(public_features)

    @override
    def prepare(self, public: PublicRows | None) -> None:
        rows = self._bins + 1
        self._public = None if public is None else public.points.astype(np.int64)
        self._counted = [np.zeros((rows, output.width)) for output in self._columns.outputs]
        if public is not None and public.codes is not None:
            told = Voters(public.points, public.codes, None)
            self._counted = [total / VOTE for total in self._histograms(told)]

    @property
    def _bins(self) -> int:
        return int(self.space_.sizes.sum())

    @property
    def _length(self) -> float:
        """Length of what a record adds, rounded up."""
        return math.nextafter(VOTE * math.sqrt(self.space_.dimension + 1), math.inf)

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        outputs = self._columns.outputs
        rows, share = self._bins + 1, 1.0 / len(outputs)
        return tuple(SumBlock(rows * out.width, self._length, share) for out in outputs), 1

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        totals = [np.zeros((self._bins + 1, out.width)) for out in self._columns.outputs]
        for voting in voters.blocks():
            for total, part in zip(totals, self._histograms(voting), strict=True):
                total += part
        noisy = session.release(totals)
        self.tables_ = np.hstack(
            [
                additive_tables(
                    np.asarray(counts, dtype=np.float64).reshape(told.shape) / VOTE + told,
                    sigma / VOTE,
                    sizes=self.space_.sizes,
                    public=self._public,
                )
                for counts, sigma, told in zip(noisy, session.sigmas, self._counted, strict=True)
            ]
        )
        del self._counted, self._public

    def _histograms(self, voting: Voters) -> list[Array]:
        """Return the sums of records by bin and label, for each column of labels, in ``VOTE``."""
        places = np.column_stack(
            [voting.points.astype(np.int64), np.full(len(voting), self._bins, dtype=np.int64)]
        )
        return [
            self._histogram(voting, places, output, codes)
            for output, codes in self._columns.each(voting.codes)
        ]

    def _histogram(
        self, voting: Voters, places: Integers, output: Output, codes: Integers
    ) -> Array:
        cells, width = places * output.width + codes[:, None], (self._bins + 1) * output.width
        if voting.starts is None:
            found = VOTE * np.bincount(cells.reshape(-1), minlength=width).astype(np.float64)
            return found.reshape(-1, output.width)
        total = np.zeros(width)
        for records, starts in person_blocks(voting, width):
            persons = np.zeros((len(starts), width))
            sizes = np.diff(starts, append=records.stop - records.start)
            owners = np.repeat(np.arange(len(starts)), sizes)
            np.add.at(persons, (owners[:, None], cells[records]), VOTE)
            total += clipped(persons, self._length).sum(axis=0)
        return total.reshape(-1, output.width)

    @override
    def scores(self, points: Array) -> Array:
        found = np.tile(self.tables_[-1], (len(points), 1))
        for places in points.T.astype(np.int64):
            found += self.tables_[places]
        return found

    @override
    def _check_model(self) -> None:
        if self.tables_.shape != (self._bins + 1, self._columns.width):
            raise InvalidInput("tables: expected a row for each bin, and one more")

    @override
    def arrays(self) -> Arrays:
        return {"tables": self.tables_}

    @override
    def restore(self, arrays: Arrays) -> None:
        self.tables_ = finite_array(arrays["tables"], name="tables", ndim=2)

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (("columns, bins", f"{self.space_.dimension}, {self._bins}"),)


def additive_tables(
    counts: Array, noise: float, *, sizes: Integers, public: Integers | None
) -> Array:
    """Return scores of bins, from noisy counts of them by label. It is post-processing.

    Args:
        counts: shape (bins + 1, labels), in records; the last row counts labels.
        noise: the standard deviation of their noise.
        sizes: shape (columns,), bins of each column.
        public: shape (m, columns), places of public rows among all bins, or None.

    Returns:
        Shape (bins + 1, labels); the last row is the constant.
    """
    bias = _constant(counts[-1], noise)
    odds = _log_odds(counts[:-1], bias, noise)
    if public is None or not len(public):
        return np.vstack([odds, bias])
    fit = _Calibration(counts, noise, bias, len(sizes), public)
    scaled = fit.scale(odds) * odds
    found = np.vstack([scaled, bias])
    return found + fit.corrected(scaled) if len(odds) <= _MOST_CORRECTED else found


def _constant(counts: Array, noise: float) -> Array:
    least = max(1.0, noise, _RARE * float(np.maximum(counts, 0.0).sum()) / len(counts))
    known = np.maximum(counts, least)
    return np.asarray(np.log(known / known.sum()))


def _log_odds(counts: Array, bias: Array, noise: float) -> Array:
    """Return log shares of labels in each bin less those of all, shrunk by what noise does."""
    known = np.maximum(counts, 0.0) + 1.0
    found = np.log(known) - bias
    found -= found.mean(axis=1, keepdims=True)
    spread = ((noise**2 + known) / np.maximum(known, noise) ** 2).mean(axis=1, keepdims=True)
    weights = np.broadcast_to(known.sum(axis=1, keepdims=True), found.shape)
    signal = max(1e-3, float(np.average(found**2 - spread, weights=weights)))
    return np.asarray(found * signal / (signal + spread))


class _Calibration:
    """Public rows on which an additive model is held against released counts.

    The counts of a bin are compared with the mean of the model's shares over the public rows of
    that bin, times the bin's released total.
    """

    def __init__(
        self, counts: Array, noise: float, bias: Array, columns: int, public: Integers
    ) -> None:
        self._counts, self._noise, self._bias = counts, noise, bias
        self._columns = columns
        rows = len(public)
        chosen = np.zeros((rows, len(counts)))
        chosen[np.arange(rows)[:, None], public] = 1.0
        chosen[:, -1] = 1.0
        self._chosen = chosen
        self._mass = chosen.sum(axis=0)[:, None]
        self._records = max(1.0, float(np.exp(bias).sum() * np.maximum(counts[-1], 0.0).sum()))

    def scale(self, odds: Array) -> float:
        """Return what log odds are multiplied by, so that along them nothing is left over."""
        lower, upper = 0.0, _LARGEST_SCALE
        for _ in range(_HALVINGS):
            middle = 0.5 * (lower + upper)
            left, _ = self._left(np.vstack([middle * odds, np.zeros(odds.shape[1])]))
            if float((left[:-1] * odds).sum()) > 0:
                lower = middle
            else:
                upper = middle
        return upper

    def corrected(self, tables: Array) -> Array:
        """Return what is added to the scores of bins, shrunk to nothing where noise is all."""
        free = 1 if tables.shape[1] == 2 else tables.shape[1]
        start = np.vstack([tables, np.zeros(tables.shape[1])])
        length = math.sqrt(self._columns + 1)
        weights = np.zeros((len(start), free))
        for _ in range(_ROUNDS):
            left, shares = self._left(start + all_scores(weights, tables.shape[1]) / length)
            own = shares[:, -free:]
            # Total: shares may be 0 and 1 for every public row, and this is after the charge.
            bends = np.maximum(own * (1.0 - own), _LEAST_BEND)
            curvature = steadied(self._chosen * np.sqrt(bends.mean(axis=1))[:, None] / length)
            curvature *= self._records
            each = bends.mean(axis=0) / bends.mean()
            mean = own.mean(axis=0)
            noise = self._noise**2 * float(np.mean(1.0 - 2.0 * mean + tables.shape[1] * mean**2))
            # Public rows stand for so many records that their own spread counts as noise.
            spread = self._records / len(self._chosen) * float(own.var(axis=0).mean())
            weights = moved(
                left[:, -free:] / length + curvature @ (weights * each),
                curvature,
                each,
                noise / length**2,
                middle=_MIDDLE,
                sampling=1.0 + spread / float(bends.mean()),
            )
        return all_scores(weights, tables.shape[1]) / length

    def _left(self, tables: Array) -> tuple[Array, Array]:
        """Return counts less those of the model, and the model's shares on public rows."""
        shares = softmax(self._chosen @ tables + self._bias)
        common = np.exp(self._bias)
        means = (self._chosen.T @ shares + common) / (self._mass + 1.0)
        return self._counts - self._counts.sum(axis=1, keepdims=True) * means, shares
