"""Embedders as parts: a beta-VAE trained on pictures, the identity, and a name for any of them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import finite_array, words
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.settings import learned, with_settings
from reticent.training.parts.contract import Part, seed_of
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from torch import nn

    from reticent.training.embedder import Embedder, EmbedderConfig

_SETTINGS = (
    "latent_dimension",
    "architecture",
    "beta",
    "epochs",
    "batch_size",
    "learning_rate",
    "dropout",
    "width",
)


@with_settings
class BetaVAE(Part):
    """A beta-VAE, whose posterior mean is the embedding.

    Args:
        latent_dimension: size of the embedding (published: 8 for MNIST, 10 for UTKFace).
        architecture: "dense", or "convolutional" for pictures with sides that are multiples of 4.
        beta: weight of the divergence term (published: 5, for pictures of 784 pixels and more).
        epochs: passes over the pictures.
        batch_size: pictures per step.
        learning_rate: the rate of Adam.
        dropout: share of hidden units dropped in the dense encoder.
        width: units of the first dense layer.
        random_state: seed of training. None takes that of the estimator which it is a part of.

    Attributes:
        embedder_: the trained module.

    Example:
        >>> pictures = np.random.default_rng(0).uniform(size=(20, 4, 4))
        >>> part = BetaVAE(latent_dimension=2, epochs=1, width=8, random_state=0).fit(pictures)
        >>> part.network().embed(pictures.astype(np.float32)).shape
        (20, 2)

    References:
        - Higgins et al. (2017), "beta-VAE: learning basic visual concepts with a constrained
          variational framework", International Conference on Learning Representations (ICLR),
          equation 4.

    See Also:
        reticent.Identity: inputs that are embeddings already.
        reticent.Named: an embedder of your own, with a name.
    """

    latent_dimension: int = 8
    architecture: str = "dense"
    beta: float = 5.0
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 1e-3
    dropout: float = 0.1
    width: int = 512
    random_state: int | np.random.RandomState | None = None

    embedder_: Embedder = learned()

    @override
    def check(self) -> None:
        self._config((4, 4), seed_of(self.random_state))

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, *, report: Report = silent
    ) -> Self:
        """Train on pictures. Labels are not looked at.

        Args:
            X: shape (n, height, width), or (n, pixels) for square pictures and rows, in [0, 1].
            y: not used.
            report: a callback that is told after every epoch.

        Raises:
            InvalidInput: values are beyond [0, 1], pictures have colours, or the architecture does
                not take their sides.
        """
        import torch

        from reticent.training.embedder import train_embedder

        pictures = finite_array(X, name="X")
        if pictures.min() < 0 or pictures.max() > 1:
            raise InvalidInput(
                f"X: a {self.architecture} embedder reads pictures with values in [0, 1]; scale "
                "yours, or use identity"
            )
        shape = _picture_shape(pictures.shape[1:])
        config = self._config(shape, seed_of(self.random_state))
        images = pictures.astype(np.float32).reshape(-1, *shape)
        with torch.random.fork_rng(devices=[]):
            self.embedder_ = train_embedder(images, config, report=report)
        return self

    def network(self) -> Embedder:
        """Return the trained module, from (n, height, width) to (n, latents)."""
        if not hasattr(self, "embedder_"):
            raise NotFittedYet("this BetaVAE is not fitted yet; call fit")
        return self.embedder_

    def _config(self, shape: tuple[int, int], seed: int) -> EmbedderConfig:
        from reticent.training.embedder import EmbedderConfig

        settings: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        return EmbedderConfig(image_shape=shape, seed=seed, **settings)


class Identity(Part):
    """The identity: as an embedder for inputs that are embeddings already, as an obfuscator that
    releases the embedding itself.

    Attributes:
        n_features_in_: the size of an input.

    Example:
        >>> import torch
        >>> Identity().fit([[1.0, 2.0]]).network()(torch.tensor([[3.0, 4.0]])).tolist()
        [[3.0, 4.0]]

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), which protects an embedding, whatever made it.

    See Also:
        reticent.BetaVAE: an embedder for pictures.
    """

    n_features_in_: int

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn how many numbers an input has, and nothing else."""
        self.n_features_in_ = prod(np.shape(X)[1:])
        return self

    def network(self) -> nn.Module:
        """Return a linear layer that gives back its input."""
        import torch

        if not hasattr(self, "n_features_in_"):
            raise NotFittedYet("this Identity is not fitted yet; call fit")
        layer = torch.nn.Linear(self.n_features_in_, self.n_features_in_, bias=False)
        with torch.no_grad():
            layer.weight.copy_(torch.eye(self.n_features_in_))
        return layer


class Named(Part):
    """An embedder, and the name by which its owner vouches for it.

    Answers of two systems share a budget only if their embedders, names included, are the same.
    Whoever names two embedders alike says that they map all inputs alike. A torch module whose code
    cannot be read (docs/guarantees.md) needs a name for that. Without one, every fit is a space of
    its own.

    Args:
        embedder: the name of an embedder, a part, or a torch module.
        name: up to 200 printable characters.

    Example:
        >>> Named("identity", "clinic encoder 3")
        Named(embedder='identity', name='clinic encoder 3')

    References:
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, the metric that a
          guarantee is about, which an embedder makes one of inputs.

    See Also:
        reticent.BetaVAE: an embedder for pictures.
        reticent.Identity: inputs that are embeddings already.
    """

    def __init__(self, embedder: Any, name: str) -> None:
        self.embedder = embedder
        self.name = name

    @override
    def check(self) -> None:
        words(self.name, name="name")


EMBEDDERS = {
    "dense": BetaVAE,
    "convolutional": lambda: BetaVAE(architecture="convolutional"),
    "identity": Identity,
}
"""Embedders by name."""


def _picture_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    if len(shape) == 1:
        side = round(np.sqrt(shape[0]))
        return (side, side) if side * side == shape[0] else (1, shape[0])
    raise InvalidInput(
        f"X: expected grey pictures of shape (n, height, width), got pictures of shape {shape}"
    )
