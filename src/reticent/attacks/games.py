"""Games between a fitted system and an attacker who knows candidates and sees its answers.

In each game the input is drawn uniformly from the candidates. The attacker goes by exact
probabilities, which no attacker can beat. The share of right guesses stands beside its proved cap.
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
"""Number of standard errors below its floor at which a mean error counts as below it."""


@dataclass(frozen=True)
class Game:
    """The success of an attacker in one game.

    Attributes:
        name: the question, in words.
        trials: number of guesses.
        right: number of right guesses.
        cap: proved cap on the chance of a right guess.
        blind: chance of a right guess without an answer.
        confidence: confidence of ``lower``.
    """

    name: str
    trials: int
    right: int
    cap: float
    blind: float
    confidence: float

    @property
    def success(self) -> float:
        """The share of right guesses."""
        return self.right / self.trials

    @property
    def lower(self) -> float:
        """The lower limit of the chance of a right guess.

        It is exact if all trials are alike. If they are not, it is on the safe side (Hoeffding
        1956: sums of different trials vary less).
        """
        if self.right == 0:
            return 0.0
        rest = self.trials - self.right + 1.0
        return float(betaincinv(float(self.right), rest, 1.0 - self.confidence))

    @property
    def exceeded(self) -> bool:
        """Return whether the guarantee cannot stand."""
        return self.lower > self.cap


@dataclass(frozen=True)
class Reconstruction:
    """The error of an attacker's estimate of an input.

    Attributes:
        name: the estimate, in words.
        error: mean squared error per coordinate.
        standard_error: standard error of ``error``.
        floor: proved least mean squared error of any estimate, for inputs drawn uniformly from the
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
        """Return whether the guarantee cannot stand, by a mean and its standard error."""
        return self.error + _ERRORS * self.standard_error < self.floor


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """The common settings of all games.

    Attributes:
        claim: guarantee of one answer.
        trials: number of trials of each game.
        confidence: confidence of each game.
        sampler: sampler of answers.
        random: generator of inputs and of ties' decisions.
    """

    claim: Guarantee
    trials: int
    confidence: float
    sampler: Sampler
    random: np.random.Generator

    def apart(self, steps: npt.ArrayLike, answers: int = 1) -> tuple[Array, Array]:
        """Return epsilon and delta between inputs that are ``steps`` apart."""
        claim = self.claim
        return beyond(epsilon=claim.epsilon, delta=claim.delta, hops=steps, answers=answers)


def which_of_two(
    candidates: Candidates, pairs: Integers, setting: Setting, *, name: str
) -> list[Game]:
    """Play the game of guessing which of the two candidates of a pair was the input.

    There is a game over all answers, and one over the tenth that the attacker is surest about. How
    sure that is, is learnt on the first half of the trials.

    Args:
        candidates: the inputs.
        pairs: positions, shape (k, 2). The input's pair is drawn uniformly as well.
        setting: the common settings.
        name: name of the pairs, in words.
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
    """Play the game of guessing which candidate was the input, after some answers about it.

    Args:
        candidates: the inputs, N of them.
        answers: number of answers about each input, all seen.
        setting: the common settings.
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
    """Play the game of guessing an attribute's value of the input.

    The attacker knows the candidates and their values.

    Args:
        candidates: the inputs.
        codes: values as codes 0 .. values - 1, shape (N,).
        setting: the common settings.
        name: name of the attribute.
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
    """Return the cap on naming the value of an input drawn uniformly from rows with known values.

    *Proof.* Take a group of rows with different values. To name a value is then to name the row of
    the group that has it, and any other value is a wrong name. So the chances to name each row's
    value rightly add up to at most the cap on naming one of these rows, times their number. Any cut
    of all rows into such groups gives a bound. A group of one row counts 1.

    Args:
        codes: values, as whole numbers from 0, shape (N,).
        epsilons, deltas: epsilon and delta between any two rows, shape (N, N).
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
    """Estimate by the mean of the candidates, weighed by their probabilities after the answer.

    No estimate has a smaller expected squared error.

    Args:
        candidates: the inputs.
        targets: the vector to estimate of each candidate, shape (N, t).
        setting: the common settings.
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
    """Return the errors of estimates ``found`` (n, t) of candidates at places ``truth`` (n,)."""
    errors = np.square(found - targets[truth]).mean(axis=1)
    return Reconstruction(
        name,
        float(errors.mean()),
        float(errors.std() / np.sqrt(len(errors))),
        error_floor(candidates, targets, setting),
        float(np.square(targets - targets.mean(axis=0)).mean()),
    )


def named(found: Array, candidates: Candidates, targets: Array) -> Integers:
    """Return the candidate whose target is nearest to each estimate, shape (n,)."""
    return np.asarray(Norm.L2.between(found, targets).argmin(axis=1), dtype=np.int64)


def error_floor(candidates: Candidates, targets: Array, setting: Setting) -> float:
    """Return the proved least mean squared error per coordinate of any estimate of an input.

    The input is drawn uniformly from the candidates. Rows are put into pairs, and the input is
    either one of its pair with the same chance. Someone who is told the pair as well errs no more.
    The pairs come from the best assignment between random halves.
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
    """Return pairs of different candidates, shape (count, 2)."""
    first = random.integers(len(candidates), size=count)
    second = (first + random.integers(1, len(candidates), size=count)) % len(candidates)
    return np.stack([first, second], axis=1)


def _weights(candidates: Candidates, truth: Integers, answers: int, setting: Setting) -> Array:
    """Return log-probabilities of all answers about each input together, shape (n, N)."""
    rounds: Sequence[Answers] = [candidates.answer(truth, setting.sampler) for _ in range(answers)]
    total = candidates.weigh(rounds[0])
    for seen in rounds[1:]:
        total = total + candidates.weigh(seen)
    return total


def _best(weights: Array, random: np.random.Generator) -> Integers:
    """Return the position of the largest entry of each row, a random one of several."""
    top = weights >= weights.max(axis=1, keepdims=True)
    return np.asarray((top * random.random(weights.shape)).argmax(axis=1), dtype=np.int64)
