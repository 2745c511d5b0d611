"""A server that knows the channel: calibrated probabilities of labels given each output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput

Labels = npt.NDArray[np.int64]

_STEPS = 2000
_CONVERGED = 1e-10


@dataclass(frozen=True, eq=False)
class ChannelServer:
    """Probabilities of labels given outputs, by maximum likelihood under the known channel.

    For each label the shares of bins are estimated from the outputs of the rows that have it
    (expectation-maximisation). Outputs have then the probabilities that the channel gives them for
    those shares, which no noise can push beyond what the channel allows. With the shares of labels
    they give each label's probability.

    Attributes:
        posterior: probabilities of labels given each output, shape (outputs, labels).

    References:
        - Dempster, Laird and Rubin (1977), "Maximum likelihood from incomplete data via the EM
          algorithm", doi:10.1111/j.2517-6161.1977.tb01600.x.

    See Also:
        reticent.systems.train_server: makes it.
    """

    posterior: Array

    @classmethod
    def fitted(cls, channel: npt.ArrayLike, released: Array, labels: Labels) -> ChannelServer:
        """Return what is learnt from one-hot outputs, shape (n, outputs), and labels from 0 without
        gaps.

        Args:
            channel: shape (bins, outputs), probabilities of outputs given the bin.
            released, labels: outputs and labels of rows.
        """
        matrix = finite_array(channel, name="channel", ndim=2)
        if (
            min(matrix.shape) < 2
            or (matrix <= 0).any()
            or not np.allclose(matrix.sum(axis=1), 1.0, rtol=0.0, atol=1e-6)
        ):
            raise InvalidInput(
                "channel: expected probabilities above 0 of shape (bins, outputs) whose rows sum "
                f"to 1, such as PowerEncoder.channel_, got shape={matrix.shape}"
            )
        counts = np.zeros((int(labels.max()) + 1, matrix.shape[1]))
        np.add.at(counts, (labels, _outputs(released, matrix.shape[1])), 1.0)
        together = np.array([row.sum() * (bin_shares(row, matrix) @ matrix) for row in counts])
        return cls(np.asarray((together / together.sum(axis=0)).T))

    def predict_proba(self, released: Array) -> Array:
        """Return the probability of each label, shape (n, labels)."""
        return np.asarray(self.posterior[_outputs(released, len(self.posterior))])


def _outputs(released: Array, outputs: int) -> Labels:
    if released.shape[1:] != (outputs,) or not (
        np.isin(released, (0.0, 1.0)).all() and (released.sum(axis=1) == 1.0).all()
    ):
        raise InvalidInput(
            f"released: expected one-hot rows of {outputs} outputs, as the channel has, got "
            f"shape={released.shape}"
        )
    return np.asarray(released.argmax(axis=1), dtype=np.int64)


def bin_shares(counts: Array, channel: Array) -> Array:
    """Return shares of bins that make counted outputs likeliest, shape (bins,).

    Args:
        counts: shape (outputs,), at least one of them above 0.
        channel: shape (bins, outputs), above 0.

    Example:
        >>> bin_shares(np.array([70.0, 30.0]), np.array([[0.8, 0.2], [0.3, 0.7]])).round(3).tolist()
        [0.8, 0.2]
    """
    observed = counts / counts.sum()
    shares = np.full(len(channel), 1.0 / len(channel))
    for _ in range(_STEPS):
        ratio = channel @ (observed / (shares @ channel))
        shares = shares * ratio
        # At the maximum no ratio is above 1; the largest bounds what likelihood is left to gain.
        if np.log(ratio.max()) < _CONVERGED:
            break
    return np.asarray(shares / shares.sum())
