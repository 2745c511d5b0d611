"""Beliefs about a coin, learnt from past draws: which of two neighbours gave an output.

Each learner turns earlier coins and outputs into a function from an output to the log odds of
heads. ``reticent.audit.sequential`` decides what a bet does with a belief. A wrong
belief costs power and never validity, because it never sees the draw that it is used for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, softmax

from reticent.core.arrays import Array

Coins = npt.NDArray[np.bool_]

_TRIM = 0.01
"""Share of the past values on either side that ``linear_score`` trims, so that no outlier rules."""

_CORRELATED = 256
"""Up to so many numbers in an output, the linear score takes their correlations into account."""

_MODELLED = 48
"""Columns of the largest logistic model; wider outputs are reduced to one score first."""

_NEWTON_STEPS = 5
_ENOUGH = 1e-3
_RIDGE = 0.01
_TINY = 1e-100
_LARGEST = 1e100
_SUREST = 1e-12

_FIRST_BOOST, _BOOSTED = 1024, 2**14
"""Draws before trees are grown, and the latest draws that they are grown from."""

_SEEN = 4
"""Times that an output was seen before its own odds are believed."""


class Learner(Protocol):
    """A belief that learns from the past, and answers for the future.

    Attributes:
        name: the facts that its guesses rest on, in words.
    """

    name: str

    def learn(self, coins: Coins, values: Array) -> None:
        """Learn from coins, shape (n,), of both sides, and outputs, shape (n, d)."""

    def log_odds(self, values: Array) -> Array:
        """Return the believed log odds of heads, shape (m,), of outputs, shape (m, d)."""


class _Standard:
    """Trims and standardises columns by past outputs.

    Args:
        values: shape (n, d), past outputs.
        trim: share of them on either side that is trimmed.
    """

    def __init__(self, values: Array, trim: float) -> None:
        self.low, self.high = _ends(values, trim)
        trimmed = np.clip(values, self.low, self.high)
        self.middle, self.spread = trimmed.mean(axis=0), np.maximum(trimmed.std(axis=0), _TINY)

    def __call__(self, values: Array) -> Array:
        """Rows, shape (m, d)."""
        return np.asarray((np.clip(values, self.low, self.high) - self.middle) / self.spread)


@dataclass
class Logistic:
    """A Bayesian logistic model of trimmed, standardised columns.

    The log odds are shrunk by the model's own uncertainty (MacKay's approximation), so that a model
    of few draws believes little.

    Args:
        trim: share of past values on either side that is trimmed. Much trimming suits noise whose
            log-likelihood ratio saturates, as that of Laplace noise does. Little suits Gaussian
            noise.
        columns: "all", or "both" for the column that speaks most for heads with the one that speaks
            most for tails.
        prior: prior variance of a weight.

    References:
        MacKay (1992), "The evidence framework applied to classification networks",
        doi:10.1162/neco.1992.4.5.720, section 4.
    """

    trim: float
    columns: str = "all"
    prior: float = 1.0
    name: str = "a linear score of the answer"

    def __post_init__(self) -> None:
        self._ready = False

    def learn(self, coins: Coins, values: Array) -> None:
        """Fit the weights by Newton's method."""
        self._reduce = None
        if self.columns == "all" and values.shape[1] > _MODELLED:
            # One half of the past gives the score, the other half says what it is worth.
            half = np.arange(len(values)) % 2 == 0
            if coins[half].all() or not coins[half].any():
                return
            self._reduce = linear_score(coins[half], values[half])
            coins, values = coins[~half], self._reduce(values[~half])[:, None]
            if coins.all() or not coins.any():
                return
        self._standard = _Standard(values, self.trim)
        rows = self._standard(values)
        self._chosen = self._choose(coins, rows)
        rows = rows[:, self._chosen]
        weights, precision = np.zeros(rows.shape[1]), np.eye(rows.shape[1]) / self.prior
        for _ in range(_NEWTON_STEPS):
            chance = expit(rows @ weights)
            curvature = (rows * (chance * (1.0 - chance))[:, None]).T @ rows + precision
            step = np.linalg.solve(curvature, rows.T @ (coins - chance) - precision @ weights)
            weights += step
            if np.abs(step).max() < _ENOUGH:
                break
        self._weights, self._covariance = weights, np.linalg.inv(curvature)
        self._ready = True

    def log_odds(self, values: Array) -> Array:
        """Return the shrunk log odds."""
        if not self._ready:
            return np.zeros(len(values))
        if self._reduce is not None:
            values = self._reduce(values)[:, None]
        rows = self._standard(values)[:, self._chosen]
        doubt = np.einsum("ni,ij,nj->n", rows, self._covariance, rows)
        return _shrunk(rows @ self._weights, doubt)

    def _choose(self, coins: Coins, rows: Array) -> npt.NDArray[np.int64]:
        if self.columns == "all":
            return np.arange(rows.shape[1])
        gaps = rows[coins].mean(axis=0) - rows[~coins].mean(axis=0)
        return np.array(sorted({int(gaps.argmax()), int(gaps.argmin())}))


@dataclass
class Averaged:
    """The average of one such model for each column, weighted by its evidence.

    It suits answers of which one number tells, as one count of a histogram does: while the past
    does not say which one, all that may be it have a say.

    Args:
        trim, prior: as for ``Logistic``.

    References:
        MacKay (1992), "Bayesian interpolation", doi:10.1162/neco.1992.4.3.415, section 4 (the
        evidence, by a Gaussian around the best weight).
    """

    trim: float
    prior: float
    name: str = "single numbers of the answer"

    def __post_init__(self) -> None:
        self._ready = False

    def learn(self, coins: Coins, values: Array) -> None:
        """Fit each column's weight by Newton's method, and weigh the columns."""
        self._standard = _Standard(values, self.trim)
        rows = self._standard(values)
        weights = np.zeros(rows.shape[1])
        for _ in range(_NEWTON_STEPS):
            chance = expit(rows * weights)
            curvature = (rows**2 * chance * (1.0 - chance)).sum(axis=0) + 1.0 / self.prior
            slope = (rows * (coins[:, None] - chance)).sum(axis=0) - weights / self.prior
            weights += slope / curvature
        sides = np.where(coins, -1.0, 1.0)[:, None]
        evidence = -np.logaddexp(0.0, sides * rows * weights).sum(axis=0)
        evidence -= 0.5 * (weights**2 / self.prior + np.log(self.prior * curvature))
        self._shares = softmax(evidence)
        self._weights, self._variances = weights, 1.0 / curvature
        self._ready = True

    def log_odds(self, values: Array) -> Array:
        """Return the log odds of the average chance of heads."""
        if not self._ready:
            return np.zeros(len(values))
        rows = self._standard(values)
        odds = _shrunk(rows * self._weights, rows**2 * self._variances)
        chance = np.clip(expit(odds) @ self._shares, _SUREST, 1.0 - _SUREST)
        return np.asarray(logit(chance))


class Pooled:
    """The average of several beliefs, weighted by how well each foretold earlier coins.

    Their losses count half after each learning, so that a belief that was late can still lead.

    Args:
        learners: the beliefs.
        shares: their shares before any coin was foretold, which sum to 1.

    References:
        - Vovk (1990), "Aggregating strategies", Workshop on Computational Learning Theory (COLT),
          section 2 (log loss: the average of chances).
    """

    def __init__(self, learners: Sequence[Learner], shares: Sequence[float]) -> None:
        self.learners = tuple(learners)
        self._losses = -np.log(np.asarray(shares, dtype=np.float64))

    def learn(self, coins: Coins, values: Array) -> None:
        """Let every belief learn from the past."""
        self._losses = 0.5 * self._losses
        for learner in self.learners:
            learner.learn(coins, values)

    def foretell(self, coins: Coins, values: Array) -> tuple[Array, Array]:
        """Return the log odds of heads of draws in their order, shape (n,), by earlier draws alone,
        and those of each belief, shape (n, beliefs). Remember how well each foretold them.
        """
        odds = np.stack([learner.log_odds(values) for learner in self.learners], axis=1)
        losses = np.logaddexp(0.0, np.where(coins, -1.0, 1.0)[:, None] * odds)
        # One sum from the start, so that its bits do not depend on how draws are cut.
        lost = np.cumsum(np.vstack([self._losses, losses]), axis=0)
        self._losses = lost[-1]
        chance = (softmax(-lost[:-1], axis=1) * expit(odds)).sum(axis=1)
        return np.asarray(logit(np.clip(chance, _SUREST, 1.0 - _SUREST))), odds


def _shrunk(odds: Array, doubt: Array) -> Array:
    """Log odds whose variance is ``doubt``, as one chance has them."""
    return np.asarray(odds / np.sqrt(1.0 + math.pi / 8.0 * doubt))


def _ends(values: Array, trim: float) -> tuple[Array, Array]:
    """Ends that each column is trimmed to, shape (d,)."""
    low, high = np.quantile(values, (trim, 1.0 - trim), axis=0, method="inverted_cdf")
    rare = low == high  # a value that is nearly always the same may still tell
    low = np.where(rare, values.min(axis=0), low)
    high = np.where(rare, values.max(axis=0), high)
    return np.clip(low, -_LARGEST, _LARGEST), np.clip(high, -_LARGEST, _LARGEST)


class Atoms:
    """The odds of each output that comes again and again, whatever its size.

    It finds a label, a rounded value or a constant that one neighbour gives more often.
    """

    name = "answers that came again and again"

    def __init__(self) -> None:
        self._known = np.empty(0)
        self._odds = np.empty(0)

    def learn(self, coins: Coins, values: Array) -> None:
        """Count the outputs that were seen several times."""
        keys, places = np.unique(_keys(values), return_inverse=True)
        heads = np.bincount(places, weights=coins, minlength=len(keys))
        every = np.bincount(places, minlength=len(keys))
        kept = every >= _SEEN
        of_heads = np.asarray(heads[kept], dtype=np.float64) + 1.0
        of_tails = np.asarray((every - heads)[kept], dtype=np.float64) + 1.0
        self._known = keys[kept]
        self._odds = _shrunk(np.log(of_heads / of_tails), 1.0 / of_heads + 1.0 / of_tails)

    def log_odds(self, values: Array) -> Array:
        """Return the odds of known outputs, and 0 of others."""
        if not len(self._known):
            return np.zeros(len(values))
        keys = _keys(values)
        places = np.minimum(np.searchsorted(self._known, keys), len(self._known) - 1)
        return np.where(self._known[places] == keys, self._odds[places], 0.0)


class Boosted:
    """Boosted trees, for what neither a sum of columns nor a single output shows.

    They grow from 1,024 draws on. Their odds are shrunk by what the latest quarter of the past,
    which they have not seen, says of them.
    """

    name = "boosted trees on the answer"

    def __init__(self) -> None:
        self._model: object | None = None
        self._scale = 0.0
        self._due = _FIRST_BOOST

    def learn(self, coins: Coins, values: Array) -> None:
        """Grow trees anew when the past has doubled."""
        if len(coins) < self._due:
            return
        from sklearn.ensemble import HistGradientBoostingClassifier

        self._due = 2 * len(coins)
        coins, values = coins[-_BOOSTED:], values[-_BOOSTED:]
        held = len(coins) // 4
        if coins[:-held].all() or not coins[:-held].any():
            return
        inside = np.clip(values, -_LARGEST, _LARGEST)
        model = HistGradientBoostingClassifier(
            max_iter=24,
            max_leaf_nodes=8,
            min_samples_leaf=16,
            learning_rate=0.2,
            early_stopping=False,
            random_state=0,
        ).fit(inside[:-held], coins[:-held])
        self._model = model
        odds = np.asarray(model.decision_function(inside[-held:]), dtype=np.float64)
        sides = np.where(coins[-held:], 1.0, -1.0)
        scales = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
        losses = np.logaddexp(0.0, -scales[:, None] * sides * odds).sum(axis=1)
        self._scale = float(scales[losses.argmin()])

    def log_odds(self, values: Array) -> Array:
        """Return the trees' odds, shrunk."""
        if self._model is None or self._scale == 0.0:
            return np.zeros(len(values))
        inside = np.clip(values, -_LARGEST, _LARGEST)
        return self._scale * np.asarray(self._model.decision_function(inside), dtype=np.float64)  # type: ignore[attr-defined]


class LowBits:
    """The odds of the place of a number's lowest set bit, whatever its size.

    Textbook noise in floating point leaves the exact answer in the last bits: a sum of a small
    noise and a large answer is rounded more coarsely than the noise itself. Of several numbers the
    one is taken that told most in the past.

    References:
        Mironov (2012), "On significance of the least significant bits for differential privacy",
        doi:10.1145/2382196.2382264, section 4.
    """

    name = "the last bits of the answer"

    def __init__(self) -> None:
        self._atoms = Atoms()
        self._column, self._low, self._high = 0, 0.0, 0.0

    def learn(self, coins: Coins, values: Array) -> None:
        """Count the places of lowest bits, the outer tenths as one place each."""
        places = low_bits(values)
        signs, told = np.where(coins, 1.0, -1.0), -math.inf
        for column in range(min(places.shape[1], _MODELLED)):
            ends = np.quantile(places[:, column], (0.1, 0.9), method="inverted_cdf")
            rows = np.clip(places[:, column : column + 1], *ends)
            atoms = Atoms()
            atoms.learn(coins, rows)
            sure = float(np.maximum(signs * atoms.log_odds(rows), -1.0).sum())
            if sure > told:
                told, self._atoms, self._column = sure, atoms, column
                self._low, self._high = (float(end) for end in ends)

    def log_odds(self, values: Array) -> Array:
        """Return the odds of each place."""
        rows = low_bits(values)[:, self._column : self._column + 1]
        return self._atoms.log_odds(np.clip(rows, self._low, self._high))


def low_bits(values: Array) -> Array:
    """Return for each number the exponent of its lowest set bit, and how far that lies below its
    highest, shape (n, 2 d).

    Example:
        >>> low_bits(np.array([[0.75], [8.0]])).tolist()
        [[-2.0, 1.0], [3.0, 0.0]]
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    mantissa, exponent = np.frexp(finite)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    place = np.where(whole > 0, np.log2(np.maximum(lowest, 1.0)), 53.0)  # 0 to 52, or 53 for zero
    return np.concatenate([exponent - 53.0 + place, 52.0 - place], axis=1)


def linear_score(coins: Coins, values: Array) -> Callable[[Array], Array]:
    """Return Fisher's discriminant of past coins, shape (n,), by outputs, shape (n, d): a function
    from further outputs to scores.
    """
    low, high = _ends(values, _TRIM)
    trimmed = np.clip(values, low, high)
    size, width = values.shape

    def scores(weights: Array) -> Callable[[Array], Array]:
        return lambda outputs: np.asarray(np.clip(outputs, low, high) @ weights)

    if not coins.any() or coins.all():
        return scores(np.zeros(width))
    means = [trimmed[coins].mean(axis=0), trimmed[~coins].mean(axis=0)]
    rest = trimmed - np.where(coins[:, None], *means)
    spread = rest.std(axis=0)
    # A number that each side always gives alike tells everything where the sides differ.
    scale = np.where(spread > 0, spread, np.maximum(np.abs(means[0] - means[1]), _TINY))
    rest, change = rest / scale, (means[0] - means[1]) / scale
    if width > _CORRELATED:
        return scores(change / scale)
    shrinkage = max(_RIDGE, width / (width + size))
    moments = (1.0 - shrinkage) * rest.T @ rest / size + shrinkage * np.eye(width)
    return scores(np.linalg.solve(moments, change) / scale)


def _keys(values: Array) -> Array:
    """Return one number for each row, equal for equal rows."""
    if values.shape[1] == 1:
        return values[:, 0]
    # Row by row, so that a row's key does not depend on its neighbours in the batch.
    weights = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]))
    return np.asarray((np.clip(values, -_LARGEST, _LARGEST) * weights).sum(axis=1))
