"""Classifiers of embeddings as parts, trained for the mechanism that releases their label."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import counts
from reticent.core.errors import NotFittedYet
from reticent.core.settings import learned, with_settings
from reticent.training.parts.contract import Part, PlannedRelease, training_config
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from torch import nn


@with_settings
class LabelAware(Part):
    """Our classifier, trained for exactly the mechanism that will release its label.

    Args:
        hidden: widths of the hidden layers.
        epochs: passes over the embeddings.
        batch_size: embeddings per step. None for 1000, or fewer so that one pass over few
            embeddings is still 24 steps.
        learning_rate: the rate of Adam at the start.
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        network_: the trained network.

    Example:
        >>> from reticent.core.norms import Norm
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> release = PlannedRelease(
        ...     epsilon=2.0, delta=0.0, radius=0.1, input_norm=Norm.LINF,
        ...     mechanism="noisy-max", output="spread",
        ... )
        >>> part = LabelAware(hidden=(4,), epochs=1, random_state=0)
        >>> part = part.fit(points, (points[:, 0] > 0).astype(int), release=release)
        >>> part.network()[-1].out_features
        2

    References:
        - McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private
          selection", arXiv:2010.12603, the noisy maximum, whose chances it is trained on.
        - Its training: docs/training.md.

    See Also:
        reticent.PosthocClassifier: the estimator that it is a part of.
        reticent.NoiseAware: vectors instead of labels.
    """

    needs_labels: ClassVar[bool] = True

    hidden: tuple[int, ...] = (64,)
    epochs: int = 20
    batch_size: int | None = None
    learning_rate: float = 1e-2
    random_state: int | np.random.RandomState | None = None

    network_: nn.Sequential = learned()

    @override
    def check(self) -> None:
        counts(self.hidden, name="hidden")
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
            release: the release of the label.
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: embeddings and labels do not fit.
            UnknownName: the mechanism releases no labels.
        """
        import torch

        from reticent.training.label_aware import train_label_release

        hidden = counts(self.hidden, name="hidden")
        config = training_config(self, len(np.asarray(X)))
        with torch.random.fork_rng(devices=[]):
            self.network_ = train_label_release(X, y, release, config, hidden=hidden, report=report)
        return self

    def network(self) -> nn.Sequential:
        """Return Linear and ReLU layers in turn, from embeddings to one logit for each class."""
        if not hasattr(self, "network_"):
            raise NotFittedYet("this LabelAware is not fitted yet; call fit")
        return self.network_


CLASSIFIERS = {"noise-aware": LabelAware}
"""Classifiers by name."""
