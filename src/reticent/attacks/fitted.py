"""Attacks on a fitted system by someone who knows candidates and all that is public.

The mechanism is public too. Each result stands beside the guarantee's cap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.accounting.telling_apart import which_of_many_cap
from reticent.attacks.candidates import (
    Candidates,
    attackable_query,
    candidates_of,
    is_posthoc,
    points_of,
    stated,
    worst_neighbours,
)
from reticent.attacks.games import (
    Game,
    Reconstruction,
    Setting,
    named,
    random_pairs,
    reconstruction,
    weighed_mean,
    which_of_many,
    which_of_two,
    which_value,
)
from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, flag, probability, real
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Guarantee, GuaranteeKind
from reticent.noise import AuditSampler
from reticent.systems.power.code_query import CodeQuery
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from reticent.attacks.candidates import Query


LEAST_ROWS = 8
LEAST_TRIALS = 1_000

_PAIRS = 64
_SEARCHED = 16
_TAUGHT = 4_000
_COPIES = 2
_LESSONS = 80_000
"""Least number of answers in a decoder's training, several about each of the attacker's rows."""

_NEIGHBOURS = "which of two neighbours, the worst that were tried, after one answer"


@dataclass(frozen=True)
class FittedAttack:
    """The results of attacks on a fitted system.

    Attributes:
        system: name of the estimator.
        claim: the guarantee of one answer, as the bundle states it.
        candidates: number of rows that the attacker knows. One of them is the input.
        games: every question, with the share of right guesses and its cap.
        reconstructions: every estimate, with its error and its proved floor.
        confidence: probability over the trials that no game is called exceeded, if the system keeps
            its guarantee.
        seed: seed of words, inputs and training.
    """

    system: str
    claim: Guarantee
    candidates: int
    games: tuple[Game, ...]
    reconstructions: tuple[Reconstruction, ...]
    confidence: float
    seed: int

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Return the names of the attacks that achieved more than the guarantee allows."""
        found: list[Game | Reconstruction] = [*self.games, *self.reconstructions]
        return tuple(one.name for one in found if one.exceeded)

    @property
    def stated(self) -> bool:
        """Return whether caps and floors are what a paper states, which no proof supports."""
        return self.claim.kind is GuaranteeKind.NO_PRIVACY

    @property
    def claim_words(self) -> str:
        """The claim in words."""
        if not self.stated:
            return self.claim.describe()
        numbers = f"epsilon={self.claim.epsilon:g}, delta={self.claim.delta:g}"
        return f"{numbers}, as the paper states without a proof that holds"

    @property
    def cap(self) -> str:
        """What the cap of a game is called."""
        return "stated cap" if self.stated else "proved cap"

    @property
    def floor(self) -> str:
        """What the floor of an error is called."""
        return "stated floor" if self.stated else "proved floor"

    @property
    def verdict(self) -> str:
        """Return a sentence on what the numbers show and what they do not."""
        if self.exceeded:
            return (
                f"refuted: {'; '.join(self.exceeded)}: more than epsilon={self.claim.epsilon:g} "
                "allows"
            )
        if self.stated:
            return "no attack exceeded its cap; that proves nothing, and the caps are not proved"
        return (
            "no attack exceeded its cap; that proves nothing: the caps are what is proved, if the "
            "mechanism is what the bundle states"
        )


def attack_fitted(
    system: Any,
    X: npt.ArrayLike,
    *,
    columns: Mapping[str, npt.ArrayLike] | None = None,
    candidates: int = 64,
    trials: int = 10_000,
    answers: Sequence[int] = (1, 4, 16),
    decoder: bool = True,
    critic: float = 0.0,
    confidence: float = 0.999,
    seed: int,
    report: Report = silent,
) -> FittedAttack:
    """Attack a system as someone who knows it and public rows, and report the proved caps too.

    No budget is charged. Answers are about rows that the caller owns. The code of the release draws
    them on words of a seeded generator, and they are thrown away.

    Guarantee:
        If the mechanism is as private as the bundle states, no game is called exceeded, with
        probability ``confidence`` over the seed. The caps hold for every attacker, if the input was
        drawn uniformly from the candidates.

    Args:
        system: a fitted posthoc system or table encoder, or one as printed.
        X: PUBLIC rows as its ``release`` takes them, at least 8. Some are drawn as candidates. The
            decoder learns from the others, which are the attacker's own.
        columns: attributes to be inferred, shape (n,) each.
        candidates: number of candidate rows, at least 4 and at most half of X.
        trials: number of answers of each game, at least 1,000.
        answers: numbers of answers seen about the same input, with one game for each.
        decoder: whether a network learns to draw inputs from answers (needs torch).
        critic: weight, at least 0, of a critic in the loss of a second decoder, for pictures in
            [0, 1]. With 0 there is none.
        confidence: confidence in (0, 1) of all games together.
        seed: seed, at least 0.
        report: receiver of the progress of the games and of the decoder's training.

    Raises:
        InvalidInput, InvalidParameter: arguments that cannot be used. Nothing is drawn.

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), decoders as attackers.
        - Hoeffding (1956), "On the distribution of the number of successes in independent trials",
          doi:10.1214/aoms/1177728178.
    """
    if count(trials, name="trials") < LEAST_TRIALS:
        raise InvalidInput(f"trials={trials}: expected at least {LEAST_TRIALS}")
    probability(confidence, name="confidence", allow_zero=False)
    query = attackable_query(system)
    rows = system.checked(X)
    size = len(rows)
    if size < LEAST_ROWS:
        raise InvalidInput(f"data: expected at least {LEAST_ROWS} public rows, got {size}")
    wanted = min(count(candidates, name="candidates", minimum=4), size // 2)
    rounds = [count(number, name="answers") for number in answers]
    codes = {name: _codes(values, size, name) for name, values in (columns or {}).items()}
    sequence = np.random.SeedSequence(count(seed, name="seed", minimum=0))
    random, words = (np.random.default_rng(part) for part in sequence.spawn(2))
    order = random.permutation(size)
    known, own = order[:wanted], order[wanted : wanted + _TAUGHT]
    points = points_of(query, rows)
    asked = candidates_of(query, points[known])
    targets, shape = _targets(system, query, rows, points)
    weights = _critics(critic, targets, shape, decoder=flag(decoder, name="decoder"))
    games = len(rounds) + len(codes) + 4 + len(weights)
    setting = Setting(
        claim=stated(query),
        trials=trials,
        confidence=1.0 - (1.0 - confidence) / games,
        sampler=AuditSampler(words),
        random=random,
    )
    found: list[Game] = []
    near = rows.part(known) if isinstance(rows, CodedRows) else rows[known]
    worst = worst_neighbours(query, near, points[known], around=_SEARCHED, random=random)
    if worst:
        pair = next(iter(worst.values()))
        found += which_of_two(pair, np.array([[0, 1]]), setting, name=_NEIGHBOURS)
    pairs = random_pairs(asked, _PAIRS, random)
    found += which_of_two(asked, pairs, setting, name="which of two random rows, after one answer")
    report("attacks", 1, 3, float("nan"))
    found += [which_of_many(asked, number, setting) for number in rounds]
    found += [
        which_value(asked, values[known], setting, name=name) for name, values in codes.items()
    ]
    estimates = [weighed_mean(asked, targets[known], setting)]
    report("attacks", 2, 3, float("nan"))
    if weights:
        taught = candidates_of(query, points[own])
        lessons = _Lessons(targets[own], shape, seed, report)
        for weight in weights:
            game, estimate = _decoded(asked, taught, targets[known], lessons, setting, weight)
            found.append(game)
            estimates.append(estimate)
    report("attacks", 3, 3, float("nan"))
    return FittedAttack(
        type(system).__name__,
        setting.claim,
        wanted,
        tuple(found),
        tuple(estimates),
        confidence,
        seed,
    )


def _codes(values: npt.ArrayLike, rows: int, name: str) -> Integers:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise InvalidInput(
            f"columns[{name!r}]: expected one value for each of {rows} rows, got "
            f"shape={array.shape}"
        )
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def _targets(system: Any, query: Query, rows: Any, points: Array) -> tuple[Array, tuple[int, ...]]:
    """Return the reconstruction target of each row, and the shape of one.

    A target is the input itself, or the encoded row of a table.
    """
    if isinstance(query, CodeQuery):
        points = rows.dense()
    if is_posthoc(query) or type(query).__name__ == "PublishedPosthocEncoder":
        return np.asarray(rows, dtype=np.float64), tuple(system.input_shape_)
    return points, (points.shape[1],)


def _pictures(targets: Array, shape: tuple[int, ...]) -> bool:
    """Return whether inputs are pictures that a decoder of pictures draws."""
    return bool(len(shape) == 2 and targets.min() >= 0 and targets.max() <= 1)


def _critics(
    critic: float, targets: Array, shape: tuple[int, ...], *, decoder: bool
) -> list[float]:
    """Return the critic's weight for every decoder."""
    weight = real(critic, name="critic")
    if weight < 0:
        raise InvalidParameter(f"critic={critic!r}: expected a weight of at least 0")
    if weight == 0:
        return [0.0] if decoder else []
    if not decoder:
        raise InvalidParameter(f"critic={weight:g}, decoder=False: expected a decoder to criticise")
    if not _pictures(targets, shape):
        raise InvalidInput(
            f"critic={weight:g}: expected inputs that are pictures (n, height, width) in [0, 1], "
            "for a critic to tell from drawn ones; leave it at 0"
        )
    return [0.0, weight]


@dataclass(frozen=True, eq=False)
class _Lessons:
    """The data and the seed of decoders' training.

    Attributes:
        targets: the attacker's own rows, shape (n, t).
        shape: shape of one row.
        seed: seed of training.
        report: receiver of the progress of training.
    """

    targets: Array
    shape: tuple[int, ...]
    seed: int
    report: Report


def _decoded(
    asked: Candidates,
    taught: Candidates,
    targets: Array,
    lessons: _Lessons,
    setting: Setting,
    critic: float,
) -> tuple[Game, Reconstruction]:
    """Attack by a network that learns from answers about the attacker's own rows.

    Return the game of naming the candidate nearest to its drawing, and the drawing's errors.
    """
    which = np.tile(np.arange(len(taught)), _COPIES)
    seen = taught.answer(which, setting.sampler).vectors(taught.outputs)
    truth = setting.random.integers(len(asked), size=setting.trials)
    values = asked.answer(truth, setting.sampler).vectors(asked.outputs)
    found = _drawn(seen, which, values, lessons, critic)
    who = "a decoder" if critic == 0 else f"a decoder with a critic of weight {critic:g}"
    estimate = reconstruction(who, found, truth, asked, targets, setting)
    right = int((named(found, asked, targets) == truth).sum())
    cap = which_of_many_cap(*setting.apart(asked.steps))
    name = f"which of {len(asked)} rows, the nearest to what {who} draws"
    game = Game(name, len(truth), right, cap, 1.0 / len(asked), setting.confidence)
    return game, estimate


def _drawn(seen: Array, which: Integers, values: Array, lessons: _Lessons, critic: float) -> Array:
    """Return a decoder's drawings of ``values``, shape (n, t).

    The decoder learns from ``seen`` answers about the rows ``which``.
    """
    from reticent.attacks.decoder import DecoderConfig, train_decoder

    wanted, settings = lessons.targets[which], dict[str, Any]()
    if _pictures(lessons.targets, lessons.shape):
        wanted = wanted.reshape(-1, *lessons.shape)
        square = not any(side % 4 for side in lessons.shape)
        kind = "convolutional" if square else "dense"
        settings = {"hidden": (128,), "architecture": kind, "channels": 16, "critic": critic}
    config = DecoderConfig(epochs=_epochs(len(seen)), seed=lessons.seed, **settings)
    drawn = train_decoder(seen, wanted, config, report=lessons.report).reconstruct(values)
    return np.asarray(drawn, dtype=np.float64).reshape(len(values), -1)


def _epochs(rows: int) -> int:
    return max(8, math.ceil(_LESSONS / rows))
