"""``Descent``: full-batch gradient descent on noisy sums of clipped residuals."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count
from reticent.core.settings import with_settings
from reticent.mechanisms import SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import LinearModel, Mover, cut_weights
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.voters import Voters


@with_settings
class Descent(LinearModel):
    """A noisy sum of clipped residuals times directions in every step, for every column of labels.

    What is divided by, the momentum, the rate and the average of the iterates of the second half
    are post-processing of released sums with public numbers.
    """

    steps: int

    _momentum: ClassVar[float] = 0.0
    _once = True

    @override
    def check_settings(self) -> None:
        super().check_settings()
        count(self.steps, name="steps")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        """Settle nothing: descent starts at 0."""

    @override
    def _steps(self) -> int:
        return self.steps

    @override
    def _all_residuals(self, voting: Voters, directions: Array, weights: Array) -> list[Array]:
        labels = self._columns.each(voting.codes)
        return [
            self._residuals(directions, codes, weights[:, part], output)
            for part, (output, codes) in zip(self._parts, labels, strict=True)
        ]

    @override
    def _mover(self, session: SumSession) -> Mover:
        momentum = total = np.zeros((self._rows, self._columns.width))

        def move(
            step: int, weights: Array, sums: list[Array], records: float, counter: Any
        ) -> Array:
            nonlocal momentum, total
            outputs = zip(self._columns.outputs, sums, strict=True)
            mean = np.concatenate([o.contrast(each / records) for o, each in outputs], axis=1)
            momentum = self._momentum * momentum + mean
            found = cut_weights(weights - self._rate * self._turned(momentum))
            if step > self.steps // 2:
                total = total + found
            return found if step < self.steps else total / (self.steps - self.steps // 2)

        return move

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
        """Return residuals of one column of labels, as ``_all_residuals`` does of all."""

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("steps", str(self.steps)),
            ("learning rate, momentum", f"{self._rate:g}, {self._momentum:g}"),
        )
