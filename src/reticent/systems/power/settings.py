"""A part of the settings of ``PowerEncoder``: how vectors are trained."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.checks import count, counts, flag, probability
from reticent.core.settings import Group


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
