"""``Descent``: full-batch gradient descent on noisy sums of clipped residuals."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, flag
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import a_part, with_settings
from reticent.grids.whole_numbers import exact_product
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import Directions, LinearModel
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount, Pace
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.sums import outer_sum
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import LENGTH

RESIDUAL = 2.0**13
"""Grid steps in a residual of the length that counts in full."""

_WEIGHT_STEPS = 2.0**20
_LONGEST_WEIGHTS = 2.0**16
_MOST_RECORDS = 2**53


@with_settings
class Descent(LinearModel):
    """Every step is a noisy sum of clipped residuals times directions, for every column of labels.

    What is divided by, the momentum, the rate and the average of the iterates of the second half
    are post-processing of released sums with public numbers.
    """

    steps: int
    warm_start: bool = False
    pace: Pace | None = None

    _momentum: ClassVar[float] = 0.0

    @property
    def _pace(self) -> Pace:
        return a_part(self.pace, Pace, name="pace")

    @override
    def check_settings(self) -> None:
        super().check_settings()
        count(self.steps, name="steps", minimum=0)
        flag(self.warm_start, name="warm_start")
        records = self._pace.records
        if records is not None and count(records, name="records") > _MOST_RECORDS:
            raise InvalidParameter(f"records: expected at most {_MOST_RECORDS}")
        if self.steps == 0 and not self.warm_start:
            raise InvalidParameter("steps=0: expected warm_start=True, or at least one step")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        columns = self._columns
        self._start = np.zeros((self.space_.dimension + 1, columns.width))
        self._signal = 0.0
        if not self.warm_start:
            return
        if public is None or public.codes is None:
            raise InvalidInput("public_y: expected labels of public rows for warm_start, got none")
        unit = self._directions(public.points) / LENGTH
        squares = 0.0
        for part, (output, codes) in zip(columns.parts, columns.each(public.codes), strict=True):
            # Absent labels have an intercept as large as the constant column is short.
            self._start[:, part] = cut_weights(self._public_fit(unit, codes, output))
            squares += self._public_signal(unit, codes, output, self._start[:, part]) ** 2
        self._signal = math.sqrt(squares)

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        outputs, bound = self._columns.outputs, LENGTH * RESIDUAL
        counted = (
            0.0 if self._pace.records is not None or self.counting == "replace" else COUNT_SHARE
        )
        share = (1.0 - counted) / len(outputs)
        gradients = tuple(
            SumBlock((self.space_.dimension + 1) * output.width, bound, share) for output in outputs
        )
        if not counted:
            return gradients, self.steps
        return (*gradients, SumBlock(1, COUNT_STEPS, counted)), self.steps

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        weights, self.weights_ = self._start, self._start
        if self.steps == 0:
            return
        columns = self._columns
        blocks = Directions(voters, self)
        counted = len(session.mechanism.blocks) > len(columns.outputs)
        noisy_count = NoisyCount(session.sigmas[-1]) if counted else None
        # With counting="replace" the number of units is the same for neighbours. It may be 0.
        known = self._pace.records
        records = float(known if known is not None else max(1, voters.units))
        momentum, total = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(self.steps):
            gradients = [np.zeros_like(weights[:, part]) for part in columns.parts]
            for voting, directions in blocks:
                labels = columns.each(voting.codes)
                for gradient, part, (output, codes) in zip(
                    gradients, columns.parts, labels, strict=True
                ):
                    residuals = self._residuals(directions, codes, weights[:, part], output)
                    gradient += outer_sum(voting, directions, residuals, lengths=(LENGTH, RESIDUAL))
            if noisy_count is None:
                noisy = [*session.release(gradients)]
            else:
                *noisy, units = session.release((*gradients, [COUNT_STEPS * voters.units]))
                noisy_count.add(units)
                records = noisy_count.value
            mean = np.concatenate(
                [
                    output.contrast(sums / (LENGTH * RESIDUAL * records))
                    for output, sums in zip(columns.outputs, noisy, strict=True)
                ],
                axis=1,
            )
            momentum = self._momentum * momentum + mean
            rate = self._rate * self._kept(
                session, records, 1.0 if noisy_count is None else noisy_count.certain
            )
            weights = cut_weights(weights - rate * self._turned(momentum))
            if step >= self.steps // 2:
                total += weights
        self.weights_ = total / (self.steps - self.steps // 2)
        del self._start

    def _kept(self, session: SumSession, records: float, certain: float) -> float:
        """The share of a step that is kept: after a warm start signal^2 / (signal^2 + noise^2).

        The signal is a mean gradient of public rows; where the number of records is lost in its
        noise, so is the signal.
        """
        if not self.warm_start:
            return 1.0
        noise = session.sigmas[0] / (LENGTH * RESIDUAL * records)
        free = sum(max(1, output.width - 1) for output in self._columns.outputs)
        noise *= math.sqrt((self.space_.dimension + 1) * free)
        signal = self._signal * certain
        return signal**2 / (signal**2 + noise**2)

    @property
    @abstractmethod
    def _rate(self) -> float:
        """What a mean gradient is multiplied by."""

    def _turned(self, gradient: Array) -> Array:
        """A mean gradient as the direction of a step."""
        return gradient

    @abstractmethod
    def _residuals(
        self, directions: Array, codes: Integers, weights: Array, output: Output
    ) -> Array:
        """Derivatives of every record's loss by its scores, cut, in steps of 1 / ``RESIDUAL``:
        shape (n, output.width), whole numbers of an l2 norm of at most ``RESIDUAL``; each row from
        that record and the weights alone, to the last bit.
        """

    @abstractmethod
    def _public_fit(self, unit: Array, codes: Integers, output: Output) -> Array:
        """Weights that fit public rows, shape (m, output.width)."""

    @abstractmethod
    def _public_signal(self, unit: Array, codes: Integers, output: Output, weights: Array) -> float:
        """About how long a mean gradient is that is worth a step, in residuals of full length."""

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("steps", str(self.steps)),
            ("start", "public labels" if self.warm_start else "zero"),
            ("learning rate, momentum", f"{self._rate:g}, {self._momentum:g}"),
        )


def scores_of(directions: Array, weights: Array) -> Array:
    """Directions of length 1 times weights, shape (n, columns), each row from its own direction
    alone, to the last bit.

    Args:
        directions: shape (n, m), whole numbers, of an l2 norm of at most ``LENGTH``.
        weights: shape (m, columns), from ``cut_weights``.
    """
    whole = np.rint(weights * _WEIGHT_STEPS)
    longest = (_LONGEST_WEIGHTS + 1.0) * _WEIGHT_STEPS
    return exact_product(directions, whole, bound=LENGTH * longest) / (LENGTH * _WEIGHT_STEPS)


def cut_weights(weights: Array) -> Array:
    """Weights of which no column is longer than 2^16, so that logits are exact; released numbers,
    hence public.
    """
    lengths = np.linalg.norm(weights, axis=0)
    return np.asarray(weights * np.minimum(1.0, _LONGEST_WEIGHTS / np.maximum(lengths, 1.0)))
