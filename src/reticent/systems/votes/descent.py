"""``Descent``: full-batch gradient descent on noisy sums of clipped residuals."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.core.settings import with_settings
from reticent.grids.whole_numbers import exact_product
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import Directions, LinearModel
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount
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
    """A noisy sum of clipped residuals times directions in every step, for every column of labels.

    What is divided by, the momentum, the rate and the average of the iterates of the second half
    are post-processing of released sums with public numbers.
    """

    steps: int
    records: int | None = None

    _momentum: ClassVar[float] = 0.0

    @override
    def check_settings(self) -> None:
        super().check_settings()
        count(self.steps, name="steps")
        if self.records is not None and count(self.records, name="records") > _MOST_RECORDS:
            raise InvalidParameter(f"records: expected at most {_MOST_RECORDS}")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        """Settle nothing: descent starts at 0."""

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        outputs, bound = self._columns.outputs, LENGTH * RESIDUAL
        counted = 0.0 if self.records is not None or self.counting == "replace" else COUNT_SHARE
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
        columns = self._columns
        weights = np.zeros((self.space_.dimension + 1, columns.width))
        blocks = Directions(voters, self)
        counted = len(session.mechanism.blocks) > len(columns.outputs)
        noisy_count = NoisyCount(session.sigmas[-1]) if counted else None
        # With counting="replace" the number of units is the same for neighbours. It may be 0.
        known = self.records
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
                noisy_count.add([units])
                records = noisy_count.records
            mean = np.concatenate(
                [
                    output.contrast(sums / (LENGTH * RESIDUAL * records))
                    for output, sums in zip(columns.outputs, noisy, strict=True)
                ],
                axis=1,
            )
            momentum = self._momentum * momentum + mean
            weights = cut_weights(weights - self._rate * self._turned(momentum))
            if step >= self.steps // 2:
                total += weights
        self.weights_ = total / (self.steps - self.steps // 2)

    @property
    @abstractmethod
    def _rate(self) -> float:
        """Return the factor of a mean gradient."""

    def _turned(self, gradient: Array) -> Array:
        """Return a mean gradient as the direction of a step."""
        return gradient

    @abstractmethod
    def _residuals(
        self, directions: Array, codes: Integers, weights: Array, output: Output
    ) -> Array:
        """Return derivatives of every record's loss by its scores, cut, in steps of 1 /
        ``RESIDUAL``.

        They have shape (n, output.width) and are whole numbers of an l2 norm of at most
        ``RESIDUAL``. Each row is from that record and the weights alone, to the last bit.
        """

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("steps", str(self.steps)),
            ("learning rate, momentum", f"{self._rate:g}, {self._momentum:g}"),
        )


def scores_of(directions: Array, weights: Array) -> Array:
    """Return directions of length 1 times weights, shape (n, columns).

    Each row is from its own direction alone, to the last bit.

    Args:
        directions: shape (n, m), whole numbers, of an l2 norm of at most ``LENGTH``.
        weights: shape (m, columns), from ``cut_weights``.
    """
    whole = np.rint(weights * _WEIGHT_STEPS)
    longest = (_LONGEST_WEIGHTS + 1.0) * _WEIGHT_STEPS
    return exact_product(directions, whole, bound=LENGTH * longest) / (LENGTH * _WEIGHT_STEPS)


def cut_weights(weights: Array) -> Array:
    """Return weights of which no column is longer than 2^16, so that logits are exact.

    They are released numbers, hence public.
    """
    lengths = np.linalg.norm(weights, axis=0)
    return np.asarray(weights * np.minimum(1.0, _LONGEST_WEIGHTS / np.maximum(lengths, 1.0)))
