"""Obfuscators as parts, trained through the noise of their release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from typing_extensions import override

from reticent.core.checks import counts, positive
from reticent.core.errors import InvalidParameter, NotFittedYet
from reticent.core.norms import MAX_SIGN_BITS, Norm
from reticent.core.settings import with_settings
from reticent.networks import Network
from reticent.training.parts.contract import Part, PlannedRelease, training_config
from reticent.training.parts.linear_maps import LinearMap
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from torch import nn

    from reticent.training.networks import TrainingConfig

Outputs = int | tuple[int, ...]


class Obfuscator(Part):
    """A part that trains a network on embeddings with labels.

    Attributes:
        network_: the trained network.
    """

    needs_labels: ClassVar[bool] = True

    network_: nn.Sequential | Network
    outputs: Outputs
    hidden: tuple[int, ...]

    @override
    def variants(self) -> list[Part]:
        """Return one part for each number of outputs."""
        return [clone(self).set_params(outputs=size) for size in self._sizes()]

    def network(self) -> nn.Sequential | Network:
        """Return Linear and ReLU layers in turn, or affine layers and pair sorts, from embeddings
        to released values.
        """
        if not hasattr(self, "network_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")
        return self.network_

    def _sizes(self) -> tuple[int, ...]:
        sizes = counts(
            self.outputs if isinstance(self.outputs, tuple | list) else (self.outputs,),
            name="outputs",
        )
        if not sizes:
            raise InvalidParameter("outputs: expected at least one number of released values")
        return sizes

    def _size(self) -> int:
        sizes = self._sizes()
        if len(sizes) > 1:
            raise InvalidParameter(
                f"outputs={sizes}: fit trains one network; expected one number, or an estimator "
                "that tries each"
            )
        return sizes[0]


@with_settings
class NoiseAware(Obfuscator):
    """Our obfuscator, trained through the very noise that its release will add.

    For l-infinity and l1 neighbours and up to 20 inputs it has linear and ReLU layers, charged
    their sign enumeration. For l2 neighbours, or more inputs, it has orthonormal layers with sorted
    pairs, which have constant 1 in l2 at any width. l-infinity neighbours within R are l2
    neighbours within sqrt(inputs) R.

    Args:
        outputs: released values per row. A tuple is tried out on calibration data.
        hidden: widths of the hidden layers, even ones where pairs are sorted.
        epochs: passes over the embeddings.
        batch_size: embeddings per step. None for 1000, or fewer so that one pass over few
            embeddings is still 24 steps.
        learning_rate: the rate of Adam at the start.
        first_noise: noise at the start of training as a share of the full noise, in (0, 1]. None
            for a share that grows with epsilon, from .2 to .7, because the noise of a small budget
            drowns an untrained network.
        start: a linear map, such as ``LiveCoordinates()``, that the network computes before
            training, at the noise of that map. It then decides how many values are released, in
            place of ``outputs``. None for random weights. For ReLU layers only.
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        network_: the trained network.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> release = PlannedRelease(
        ...     epsilon=2.0, delta=0.0, radius=0.1, input_norm=Norm.LINF,
        ...     mechanism="laplace", output=Norm.L1,
        ... )
        >>> part = NoiseAware(outputs=1, hidden=(4,), epochs=1, random_state=0)
        >>> part = part.fit(points, (points[:, 0] > 0).astype(int), release=release)
        >>> part.network()[-1].out_features
        1

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), table 1, the published obfuscators.
        - Its training: docs/training.md.

    See Also:
        reticent.published.PublishedObfuscator: the obfuscators of earlier papers.
        reticent.LabelAware: labels instead of vectors.
    """

    outputs: Outputs = (4, 6)
    hidden: tuple[int, ...] = (64,)
    epochs: int = 20
    batch_size: int | None = None
    learning_rate: float = 1e-2
    first_noise: float | None = None
    start: LinearMap | None = None
    random_state: int | np.random.RandomState | None = None

    @override
    def variants(self) -> list[Part]:
        """Return one part for each number of outputs, or one in all for a start."""
        return super().variants() if self.start is None else [clone(self)]

    @override
    def check(self) -> None:
        if self.start is not None and not isinstance(self.start, LinearMap):
            raise InvalidParameter(
                f"start: expected LiveCoordinates, PublicPCA or PublicDiscriminants, or None, got "
                f"{type(self.start).__name__}"
            )
        if self.start is not None:
            self.start.check()
        self._sizes()
        counts(self.hidden, name="hidden")
        self._first_noise(1.0)
        training_config(self, 1)

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        release: PlannedRelease,
        report: Report = silent,
    ) -> Self:
        """Train one network for one mechanism.

        Args:
            X: embeddings, shape (n, d).
            y: shape (n,), classes 0, 1, ...
            release: the release of the outputs.
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: embeddings and labels do not fit.
            InvalidParameter: the release is one of labels, or there are several numbers of outputs.
        """
        if not isinstance(release.output, Norm):
            raise InvalidParameter(
                f"mechanism={release.mechanism!r}: releases labels; expected one for vectors"
            )
        import torch

        start = None if self.start is None else clone(self.start).fit(X, y).weight_
        inputs = int(np.shape(X)[-1])
        config = training_config(self, len(np.asarray(X)))
        settings: dict[str, Any] = {
            "outputs": self._size() if start is None else len(start),
            "hidden": counts(self.hidden, name="hidden"),
            "first_noise": self._first_noise(release.epsilon),
            "report": report,
        }
        sorted_pairs = release.input_norm is Norm.L2 or (
            release.input_norm is Norm.LINF and inputs > MAX_SIGN_BITS
        )
        if sorted_pairs and start is not None:
            raise InvalidParameter(
                f"start: expected None for l2 neighbours or more than {MAX_SIGN_BITS} inputs, "
                "whose layers are orthonormal; the linear map itself is a rung of Ladder"
            )
        with torch.random.fork_rng(devices=[]):
            if sorted_pairs:
                self.network_ = _sorting(X, y, release, config, inputs, settings)
            else:
                from reticent.training.noise_aware import train_noise_aware

                self.network_ = train_noise_aware(X, y, release, config, start=start, **settings)
        return self

    def _first_noise(self, epsilon: float) -> float:
        if self.first_noise is None:
            return float(np.clip(0.1 * epsilon, 0.2, 0.7))
        if positive(self.first_noise, name="first_noise") > 1:
            raise InvalidParameter(
                f"first_noise={self.first_noise!r}: expected a share in (0, 1], or None"
            )
        return self.first_noise


def _sorting(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    release: PlannedRelease,
    config: TrainingConfig,
    inputs: int,
    settings: dict[str, Any],
) -> Network:
    """Return orthonormal layers with sorted pairs, which have constant 1 in l2 at any width."""
    from reticent.training.power.lipschitz import train_lipschitz_encoder

    # The largest l2 distance of neighbours.
    radius = release.radius * (math.sqrt(inputs) if release.input_norm is Norm.LINF else 1.0)
    gaussian = release.mechanism == "gaussian"
    unit = release.unit_sigma if gaussian else 1.0 / release.epsilon
    if unit is None:
        raise InvalidParameter(
            "mechanism='gaussian': needs delta above 0; raise delta or choose another mechanism"
        )
    return train_lipschitz_encoder(X, y, config, sigma=unit * radius, gaussian=gaussian, **settings)
