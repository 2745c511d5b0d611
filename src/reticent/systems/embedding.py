"""From a picture to the embedding in which neighbours are measured: a beta-VAE, a user's module, or nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from torch import nn
from typing_extensions import override

from reticent.core.checks import finite_array, real
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.rows import each_row, finite_or_zero
from reticent.training.embedder import Embedder, EmbedderConfig
from reticent.training.features import LARGEST_INPUT

Array = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]

_ROWS_AT_ONCE = 1000


class Embedding(ABC):
    """A fixed map from inputs (n, features) to embeddings (n, dimension), float64."""

    kind: ClassVar[str]

    lower: float = -LARGEST_INPUT
    upper: float = LARGEST_INPUT
    """The public range that every input value is clipped to before the map sees it."""

    def embed(self, inputs: Array) -> Array:
        """Embeddings, shape (n, dimension), of checked inputs (n, features).

        Total, and row by row: inputs are clipped to the public range, each row is computed alone, so that no other row has a say
        in its last bits, and a row whose embedding is not finite is mapped to the origin.
        """
        return finite_or_zero(self.alone(inputs))

    def alone(self, inputs: Array) -> Array:
        """As ``embed``, with NaN and infinity where the map gives them; for the owner's checks in ``fit``."""
        return each_row(self.compute, np.clip(inputs, self.lower, self.upper))

    @abstractmethod
    def compute(self, inputs: Array) -> Array:
        """What the map gives for a batch (n, features) as it is: may be NaN, and may depend on the batch in its last bits."""

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``restore`` reads."""

    @property
    @abstractmethod
    def space(self) -> str:
        """What an embedding is, in plain words."""

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32] | None:
        """Decoded pictures of embeddings, or None if there is no decoder."""
        return None


class IdentityEmbedding(Embedding):
    """Inputs are embeddings already."""

    kind: ClassVar[str] = "identity"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    @override
    def alone(self, inputs: Array) -> Array:
        """The inputs themselves: whoever uses them clips them to a public box."""
        return inputs

    @override
    def compute(self, inputs: Array) -> Array:
        """The inputs themselves."""
        return inputs

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The dimension."""
        return {"kind": self.kind, "dimension": self.dimension}, {}

    @property
    def space(self) -> str:
        """Plain words for the input space."""
        return f"{self.dimension}-dimensional input space"


class BetaVaeEmbedding(Embedding):
    """The posterior mean of a beta-VAE trained by reticent."""

    kind: ClassVar[str] = "beta-VAE"
    lower, upper = 0.0, 1.0

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @override
    def compute(self, inputs: Array) -> Array:
        """Posterior means of flattened pictures in [0, 1]."""
        return _in_blocks(self.embedder.eval(), inputs, torch.float32, self.embedder.config.image_shape)

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Decoded pictures, shape (n, height, width)."""
        return self.embedder.pictures(embeddings)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The architecture, and the weights under ``embedder.``."""
        config = self.embedder.config
        fields = {name: getattr(config, name) for name in ("latent_dimension", "architecture", "beta", "dropout", "width")}
        arrays = {f"embedder.{name}": tensor.numpy() for name, tensor in self.embedder.state_dict().items()}
        return {"kind": self.kind, "image_shape": list(config.image_shape), **fields}, arrays

    @property
    def space(self) -> str:
        """Plain words for the latent space."""
        return f"{self.embedder.config.latent_dimension}-dimensional beta-VAE embedding of the picture"


class ModuleEmbedding(Embedding):
    """A user's torch module, run in eval mode without gradients.

    Args:
        module: from (n, *input_shape) to (n, ...). It must give an answer for every input in the public range: one that raises,
            or takes its time, for some inputs tells something about them.
        input_shape: shape of one input, or None for flat ones.
        lower, upper: the public range of input values, from public rows or from settings.
    """

    kind: ClassVar[str] = "module"

    def __init__(
        self,
        module: nn.Module,
        input_shape: tuple[int, ...] | None,
        *,
        lower: float = -LARGEST_INPUT,
        upper: float = LARGEST_INPUT,
    ) -> None:
        self.module = module.eval()
        self.input_shape = input_shape
        # What float32 holds, whatever the caller's rows held.
        self.lower, self.upper = max(float(lower), -LARGEST_INPUT), min(float(upper), LARGEST_INPUT)

    @override
    def compute(self, inputs: Array) -> Array:
        """What the module computes for inputs reshaped to (n, *input_shape), flattened per row."""
        first = next(iter(self.module.parameters()), None)
        dtype = torch.float32 if first is None else first.dtype
        return _in_blocks(self.module.eval(), inputs, dtype, self.input_shape or inputs.shape[1:])

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The class name, and the weights under ``embedder.``; the code itself is not stored."""
        arrays = {f"embedder.{name}": tensor.detach().cpu().numpy() for name, tensor in self.module.state_dict().items()}
        name = type(self.module).__qualname__
        shape = None if self.input_shape is None else list(self.input_shape)
        return {"kind": self.kind, "module": name, "input_shape": shape, "lower": self.lower, "upper": self.upper}, arrays

    @property
    def space(self) -> str:
        """Plain words for the module's output space."""
        return f"embedding computed by the user's {type(self.module).__qualname__}"


def restore(described: dict[str, Any], arrays: Arrays, module: nn.Module | None) -> Embedding:
    """The embedding that ``describe`` took apart.

    Args:
        described: its JSON values.
        arrays: the bundle's arrays.
        module: for a user's module, an instance to load the weights into.

    Raises:
        InvalidInput: the bundle needs the user's module and none was given.
        CorruptBundle: weights that do not fit.
    """
    kind = described.get("kind")
    if kind == IdentityEmbedding.kind:
        return IdentityEmbedding(int(described["dimension"]))
    state = {
        name.removeprefix("embedder."): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith("embedder.")
    }
    if kind == ModuleEmbedding.kind:
        if module is None:
            raise InvalidInput(f"embedder: this bundle was made with your own {described['module']}; pass embedder=<an instance>")
        try:
            shape = None if described["input_shape"] is None else tuple(int(size) for size in described["input_shape"])
            lower, upper = real(described["lower"], name="lower"), real(described["upper"], name="upper")
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptBundle(f"embedding: its settings do not fit together ({error})") from error
        if not -LARGEST_INPUT <= lower <= upper <= LARGEST_INPUT:
            raise CorruptBundle("embedding: its public input range is empty or beyond what is clipped to")
        embedding: Embedding = ModuleEmbedding(module, shape, lower=lower, upper=upper)
        target = module
    elif kind == BetaVaeEmbedding.kind:
        fields = {name: described[name] for name in ("latent_dimension", "architecture", "beta", "dropout", "width")}
        height, width = described["image_shape"]
        target = Embedder(EmbedderConfig(image_shape=(height, width), **fields)).eval()
        embedding = BetaVaeEmbedding(target)
    else:
        raise CorruptBundle(f"embedding: unknown kind {kind!r}")
    try:
        target.load_state_dict(state)
    except RuntimeError as error:
        raise CorruptBundle("embedding: the stored weights do not fit the architecture") from error
    return embedding


def _in_blocks(module: nn.Module, inputs: Array, dtype: torch.dtype, shape: tuple[int, ...]) -> Array:
    """Outputs of ``module`` for inputs reshaped to (n, *shape), flattened per row, in blocks, without gradients."""
    parts = []
    with torch.no_grad():
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            # torch's own copy is aligned in memory, whatever the array was.
            rows = torch.from_numpy(inputs[start : start + _ROWS_AT_ONCE]).to(dtype, copy=True).reshape(-1, *shape)
            try:
                parts.append(module(rows).reshape(len(rows), -1).double().numpy())
            except Exception as error:
                raise InvalidInput(
                    f"embedder: {type(module).__name__} does not take inputs of shape {tuple(rows.shape)}, {dtype} "
                    f"({type(error).__name__})"
                ) from error
    return np.concatenate(parts)


def check_pictures(inputs: Any, *, name: str) -> tuple[Array, tuple[int, ...]]:
    """Inputs as (n, features) float64, and the shape of one of them.

    Raises:
        InvalidInput: not numbers, empty, not finite, or without a feature axis.
    """
    if issparse(inputs):
        raise InvalidInput(f"{name}: sparse input is not supported; pass a dense array")
    array = finite_array(inputs, name=name, allow_empty=True)
    if array.ndim < 2:
        raise InvalidInput(
            f"{name}: expected shape (n, features) or (n, height, width), got shape={array.shape}. Reshape your data"
        )
    for length, what in ((len(array), "sample(s)"), (prod(array.shape[1:]), "feature(s)")):
        if length == 0:
            raise InvalidInput(f"{name}: 0 {what} (shape={array.shape}) while a minimum of 1 is required.")
    return array.reshape(len(array), -1), array.shape[1:]
