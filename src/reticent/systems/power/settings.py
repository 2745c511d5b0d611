"""Settings of the fit of a release of rows, and all that every fit is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, counts, flag, probability
from reticent.core.settings import Group
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report

if TYPE_CHECKING:
    from reticent.systems.power.query import PowerSetting
    from reticent.training.networks import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class VectorTraining(Group):
    """Settings of the training of vectors' encoders, and of the comparison of mechanisms.

    Args:
        outputs: numbers of released values that are tried for vectors.
        hidden: hidden widths of the encoder, even numbers.
        epochs: passes of training over the rows.
        head_epochs: passes of the models that utility is measured with.
        calibration_share: share of the fitted rows that mechanisms are compared on, in (0, 1).
        verbose: whether training shows progress bars on standard error.

    Raises:
        InvalidParameter: a value out of its range.

    Example:
        >>> VectorTraining(epochs=5).outputs
        (1, 2)

    References:
        - Hardt and Talwar (2010), "On the geometry of differential privacy", arXiv:0907.3754, the
          noise that vectors are trained for.
        - docs/power.md, the mechanisms that are compared.

    See Also:
        reticent.PowerEncoder: trains by it.
    """

    outputs: int | tuple[int, ...] = (1, 2)
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 20
    head_epochs: int = 5
    calibration_share: float = 0.2
    verbose: bool = False

    def __post_init__(self) -> None:
        counts(self.sizes, name="outputs")
        counts(self.hidden, name="hidden")
        count(self.epochs, name="epochs")
        count(self.head_epochs, name="head_epochs")
        probability(self.calibration_share, name="calibration_share", allow_zero=False)
        flag(self.verbose, name="verbose")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of outputs."""
        return self.outputs if isinstance(self.outputs, tuple) else (self.outputs,)


@dataclass(frozen=True, eq=False)
class RowFit:
    """All that the fit of a mechanism is told: what is required, and public rows cut in two.

    Attributes:
        schema: the public description of rows.
        required: budget, radius and scoring. Mechanism and utility are replaced.
        rows, labels: public rows in a random order, shapes (n, d) and (n,). The first of them, the
            share ``training.calibration_share`` and at least one, are held out: models learn from
            the others and are scored on these.
        training: settings of training.
        seed: seed of training.
        report: receiver of the progress, called after every epoch and every public model.
    """

    schema: TabularSchema
    required: PowerSetting
    rows: Array
    labels: Integers
    training: VectorTraining
    seed: int
    report: Report

    @property
    def _cut(self) -> int:
        return max(1, round(self.training.calibration_share * len(self.rows)))

    @property
    def train(self) -> Array:
        """The rows that models learn from."""
        return self.rows[self._cut :]

    @property
    def train_labels(self) -> Integers:
        """Their labels."""
        return self.labels[self._cut :]

    @property
    def held(self) -> Array:
        """The rows that are held out."""
        return self.rows[: self._cut]

    @property
    def held_labels(self) -> Integers:
        """Their labels."""
        return self.labels[: self._cut]

    def config(self) -> TrainingConfig:
        """Return settings of the training of a network through its release's noise."""
        from reticent.training.networks import TrainingConfig

        batch = min(max(len(self.train) // 40, 20), 500)
        return TrainingConfig(
            epochs=self.training.epochs, batch_size=batch, learning_rate=5e-3, seed=self.seed
        )
