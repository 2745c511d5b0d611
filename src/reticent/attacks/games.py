"""Games between a fitted system and whoever knows candidates and sees its answers.

In each the input is drawn evenly from candidates, the attacker goes by exact probabilities, which
is the best that anybody can do, and the share of right names stands beside its proved cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import betaincinv, logsumexp

from reticent.accounting.telling_apart import (
    beyond,
    squared_error_floor,
    which_of_many_cap,
    which_of_two_cap,
)
from reticent.attacks.candidates import Answers, Candidates
from reticent.core.arrays import Array, Integers
from reticent.core.guarantees import Guarantee
from reticent.core.norms import Norm
from reticent.noise import Sampler

_SUREST = 0.1
_SPLITS = 8
_ERRORS = 5.0
"""Standard errors below its floor at which a mean error counts as below it."""


@dataclass(frozen=True)
class Game:
    """How often an attacker was right.

    Attributes:
        name: what was asked, in words.
        trials: names that he gave.
        right: how many of them were right.
        cap: proved cap on the chance of a right name.
        blind: chance of a right name for one who sees no answer.
        confidence: of ``lower``.
    """

    name: str
    trials: int
    right: int
    cap: float
    blind: float
    confidence: float

    @property
    def success(self) -> float:
        """Share of right names."""
        return self.right / self.trials

    @property
    def lower(self) -> float:
        """Lower limit of the chance of a right name: exact where all trials are alike, and on the
        safe side where they are not (Hoeffding 1956: sums of different trials vary less).
        """
        if self.right == 0:
            return 0.0
        rest = self.trials - self.right + 1.0
        return float(betaincinv(float(self.right), rest, 1.0 - self.confidence))

    @property
    def exceeded(self) -> bool:
        """Whether the guarantee cannot stand."""
        return self.lower > self.cap


@dataclass(frozen=True)
class Reconstruction:
    """How far an attacker's estimate of an input is from it.

    Attributes:
        name: how he estimates, in words.
        error: mean squared error per coordinate.
        standard_error: of ``error``.
        floor: proved least mean squared error of any estimate, inputs drawn evenly from the
            candidates.
        blind: mean squared error of the candidates' mean.
    """

    name: str
    error: float
    standard_error: float
    floor: float
    blind: float

    @property
    def exceeded(self) -> bool:
        """Whether the guarantee cannot stand, as far as a mean and its standard error can say."""
        return self.error + _ERRORS * self.standard_error < self.floor


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """What all games have in common.

    Attributes:
        claim: guarantee of one answer.
        trials: of each game.
        confidence: of each game.
        sampler: draws answers.
        random: draws inputs, and decides ties.
    """

    claim: Guarantee
    trials: int
    confidence: float
    sampler: Sampler
    random: np.random.Generator

    def apart(self, steps: npt.ArrayLike, answers: int = 1) -> tuple[Array, Array]:
        """Epsilon and delta between inputs that are ``steps`` apart."""
        claim = self.claim
        return beyond(epsilon=claim.epsilon, delta=claim.delta, hops=steps, answers=answers)


def which_of_two(
    candidates: Candidates, pairs: Integers, setting: Setting, *, name: str
) -> list[Game]:
    """Which of the two candidates of a pair it was: over all answers, and over those that the
    attacker is surest about, a tenth of them. How sure that is, is learnt on the first half of the
    trials.

    Args:
        candidates: the inputs.
        pairs: shape (k, 2), positions; the input's pair is drawn evenly as well.
        setting: see there.
        name: of the pairs, in words.
    """
    drawn = pairs[setting.random.integers(len(pairs), size=setting.trials)]
    second = setting.random.integers(2, size=setting.trials)
    truth = np.take_along_axis(drawn, second[:, None], axis=1)[:, 0]
    weights = candidates.weigh(candidates.answer(truth, setting.sampler))
    both = np.take_along_axis(weights, drawn, axis=1)
    lead = np.nan_to_num(both[:, 1] - both[:, 0], nan=0.0)
    ties = setting.random.integers(2, size=setting.trials)
    right = np.where(lead == 0.0, ties, lead > 0.0) == second
    epsilons, deltas = setting.apart(candidates.steps[drawn[:, 0], drawn[:, 1]])
    cap = float(which_of_two_cap(epsilons, deltas).mean())
    half = setting.trials // 2
    sure = np.abs(lead[half:]) >= np.quantile(np.abs(lead[:half]), 1.0 - _SUREST)
    games = [Game(name, setting.trials, int(right.sum()), cap, 0.5, setting.confidence)]
    if sure.any():
        share = 1.0
        confidence = setting.confidence
        if setting.claim.delta:
            confidence = (1.0 + confidence) / 2.0
            share = Game("", len(sure), int(sure.sum()), 1.0, 0.0, confidence).lower
        most = float(which_of_two_cap(epsilons, deltas, share=share).max())
        games.append(
            Game(
                f"{name}: the surest tenth of the answers",
                int(sure.sum()),
                int(right[half:][sure].sum()),
                most,
                0.5,
                confidence,
            )
        )
    return games


def which_of_many(candidates: Candidates, answers: int, setting: Setting) -> Game:
    """Which candidate it was, after some answers about it.

    Args:
        candidates: the inputs, N of them.
        answers: how many about each input, all seen.
        setting: see there.
    """
    size = len(candidates)
    truth = setting.random.integers(size, size=setting.trials)
    weights = _weights(candidates, truth, answers, setting)
    cap = which_of_many_cap(*setting.apart(candidates.steps, answers))
    seen = "one answer" if answers == 1 else f"{answers} answers"
    right = int((_best(weights, setting.random) == truth).sum())
    name = f"which of {size} rows, after {seen}"
    return Game(name, setting.trials, right, cap, 1.0 / size, setting.confidence)


def which_value(candidates: Candidates, codes: Integers, setting: Setting, *, name: str) -> Game:
    """Which value of an attribute the input has; the attacker knows the candidates and theirs.

    Args:
        candidates: the inputs.
        codes: shape (N,), 0 .. values - 1.
        setting: see there.
        name: of the attribute.
    """
    codes = np.unique(codes, return_inverse=True)[1]  # values that no candidate has are no answer
    truth = setting.random.integers(len(candidates), size=setting.trials)
    weights = _weights(candidates, truth, 1, setting)
    values = [logsumexp(weights[:, codes == code], axis=1) for code in range(int(codes.max()) + 1)]
    right = int((_best(np.stack(values, axis=1), setting.random) == codes[truth]).sum())
    cap = which_value_cap(codes, *setting.apart(candidates.steps))
    blind = float(np.bincount(codes).max() / len(codes))
    title = f"which {name}, after one answer"
    return Game(title, setting.trials, right, max(cap, blind), blind, setting.confidence)


def which_value_cap(codes: Integers, epsilons: Array, deltas: Array) -> float:
    """Cap on naming the value of an input that is drawn evenly from rows with known values.

    *Proof.* Take rows of different values. Naming their values is naming one of them, wrongly where
    another value is named, so the chances to name each value where it is right add up to the cap on
    naming one of these rows, times their number. Any cut of all rows into such groups gives a
    bound; a group of one row counts 1.

    Args:
        codes: shape (N,), values, as whole numbers from 0.
        epsilons, deltas: shape (N, N), between any two rows.
    """
    caps = which_of_two_cap(epsilons, deltas)
    sizes = np.bincount(codes)
    first = int(sizes.argmax())
    groups: dict[int, list[int]] = {row: [row] for row in np.flatnonzero(codes == first).tolist()}
    heads = np.array(list(groups))
    for code in np.flatnonzero(sizes).tolist():
        if code == first:
            continue
        rows = np.flatnonzero(codes == code)
        for head, row in zip(*linear_sum_assignment(caps[np.ix_(heads, rows)]), strict=True):
            groups[int(heads[head])].append(int(rows[row]))
    total = 0.0
    for group in groups.values():
        among = np.ix_(group, group)
        total += len(group) * which_of_many_cap(epsilons[among], deltas[among])
    return min(1.0, total / len(codes))


def weighed_mean(candidates: Candidates, targets: Array, setting: Setting) -> Reconstruction:
    """The mean of the candidates, each weighed by its probability after the answer: of all
    estimates the one with the least squared error.

    Args:
        candidates: the inputs.
        targets: shape (N, t), what is estimated of each.
        setting: see there.
    """
    truth = setting.random.integers(len(candidates), size=setting.trials)
    weights = _weights(candidates, truth, 1, setting)
    shares = np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    return reconstruction(
        "mean of the rows, weighed by their probability",
        shares @ targets,
        truth,
        candidates,
        targets,
        setting,
    )


def reconstruction(
    name: str,
    found: Array,
    truth: Integers,
    candidates: Candidates,
    targets: Array,
    setting: Setting,
) -> Reconstruction:
    """The errors of estimates ``found`` (n, t) of the candidates at positions ``truth`` (n,)."""
    errors = np.square(found - targets[truth]).mean(axis=1)
    return Reconstruction(
        name,
        float(errors.mean()),
        float(errors.std() / np.sqrt(len(errors))),
        error_floor(candidates, targets, setting),
        float(np.square(targets - targets.mean(axis=0)).mean()),
    )


def named(found: Array, candidates: Candidates, targets: Array) -> Integers:
    """The candidate whose target is nearest to each estimate, shape (n,)."""
    return np.asarray(Norm.L2.between(found, targets).argmin(axis=1), dtype=np.int64)


def error_floor(candidates: Candidates, targets: Array, setting: Setting) -> float:
    """Proved least mean squared error per coordinate of any estimate of an input that is drawn
    evenly from the candidates.

    Rows are put into pairs, and an input is one of its pair, each equally likely; whoever is told
    the pair as well errs no more. The pairs come from the best assignment between random halves.
    """
    squared = np.square(Norm.L2.between(targets, targets))
    epsilons, _ = setting.apart(candidates.steps)
    floors = squared_error_floor(squared, epsilons, 0.0)
    if setting.claim.delta:
        floors = squared * (1.0 - which_of_two_cap(*setting.apart(candidates.steps))) / 2.0
    best, half = 0.0, len(candidates) // 2
    for _ in range(_SPLITS):
        order = setting.random.permutation(len(candidates))
        table = floors[np.ix_(order[:half], order[half:])]
        best = max(best, float(table[linear_sum_assignment(table, maximize=True)].sum()))
    return float(2.0 * best / len(candidates) / targets.shape[1])


def random_pairs(candidates: Candidates, count: int, random: np.random.Generator) -> Integers:
    """Pairs of different candidates, shape (count, 2)."""
    first = random.integers(len(candidates), size=count)
    second = (first + random.integers(1, len(candidates), size=count)) % len(candidates)
    return np.stack([first, second], axis=1)


def farthest_neighbours(candidates: Candidates) -> Integers | None:
    """The neighbours among the candidates whose answers differ most, shape (1, 2), if there are."""
    best, pair = 0.0, None
    for row in range(len(candidates)):
        near = np.flatnonzero(candidates.steps[row] == 1)
        if not len(near):
            continue
        change = candidates.norm.of(candidates.shown[near] - candidates.shown[row])
        if change.max() > best:
            best, pair = float(change.max()), (row, int(near[change.argmax()]))
    return None if pair is None else np.array([pair])


def _weights(candidates: Candidates, truth: Integers, answers: int, setting: Setting) -> Array:
    """Log-probabilities of all answers about each input together, shape (n, N)."""
    rounds: Sequence[Answers] = [candidates.answer(truth, setting.sampler) for _ in range(answers)]
    total = candidates.weigh(rounds[0])
    for seen in rounds[1:]:
        total = total + candidates.weigh(seen)
    return total


def _best(weights: Array, random: np.random.Generator) -> Integers:
    """The largest entry of each row; one of them at random where there are several."""
    top = weights >= weights.max(axis=1, keepdims=True)
    return np.asarray((top * random.random(weights.shape)).argmax(axis=1), dtype=np.int64)
