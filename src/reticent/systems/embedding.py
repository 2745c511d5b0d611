"""From a picture to the embedding in which neighbours are measured: a beta-VAE, a user's module,
or nothing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from math import prod
from secrets import token_hex
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from torch import nn
from typing_extensions import override

from reticent.bundles.bundle import rebuilding
from reticent.core.checks import count, finite_array, real, words
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.regions import Box
from reticent.core.rows import each_row, finite_or_zero
from reticent.systems.space_identity import module_structure, space_identity
from reticent.training.embedder import Embedder, EmbedderConfig
from reticent.training.features import LARGEST_INPUT

Array = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]

_ROWS_AT_ONCE = 1000
_MOST_FEATURES = 2**24
"""Features of one input at most, of a module that only a run can tell about."""

_OF_AN_EMBEDDER = frozenset(vars(nn.Module())) | {"config"}


class Embedding(ABC):
    """A fixed map from inputs (n, features) to embeddings (n, dimension), float64.

    Attributes:
        name: what its owner calls it, who vouches that everything of that name maps inputs
            alike; "" for no name.
    """

    kind: ClassVar[str]
    name: str = ""

    lower: float = -LARGEST_INPUT
    upper: float = LARGEST_INPUT
    """The public range that every input value is clipped to before the map sees it."""

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Features of an input and of an embedding; None where only a run can tell."""
        return None

    def embed(self, inputs: Array) -> Array:
        """Embeddings, shape (n, dimension), of checked inputs (n, features).

        Total, and row by row: inputs are clipped to the public range, each row is computed
        alone, so that no other row has a say in its last bits, and a row whose embedding is not
        finite is mapped to the origin.
        """
        return finite_or_zero(self.alone(inputs))

    def alone(self, inputs: Array) -> Array:
        """As ``embed``, with NaN and infinity where the map gives them; for the owner's checks
        in ``fit``.
        """
        return each_row(self.compute, np.clip(inputs, self.lower, self.upper))

    @abstractmethod
    def compute(self, inputs: Array) -> Array:
        """What the map gives for a batch (n, features) as it is: may be NaN, and may depend on
        the batch in its last bits.
        """

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``restore`` reads."""

    @property
    @abstractmethod
    def space(self) -> str:
        """What an embedding is, in plain words."""

    def identity(self, box: Box) -> str:
        """Digest of all that maps an input to an embedding clipped to ``box``; see
        ``space_identity``.
        """
        return space_identity(*self.describe(), box)

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32] | None:
        """Decoded pictures of embeddings, or None if there is no decoder."""
        return None


class IdentityEmbedding(Embedding):
    """Inputs are embeddings already."""

    kind: ClassVar[str] = "identity"

    def __init__(self, dimension: int, *, name: str = "") -> None:
        self.dimension = dimension
        self.name = name

    @property
    @override
    def sizes(self) -> tuple[int, int]:
        """The dimension, twice."""
        return self.dimension, self.dimension

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
        return {"kind": self.kind, "name": self.name, "dimension": self.dimension}, {}

    @property
    def space(self) -> str:
        """Plain words for the input space."""
        return f"{self.dimension}-dimensional input space"


class BetaVaeEmbedding(Embedding):
    """The posterior mean of a beta-VAE trained by reticent."""

    kind: ClassVar[str] = "beta-VAE"
    lower, upper = 0.0, 1.0

    def __init__(self, embedder: Embedder, *, name: str = "") -> None:
        self.embedder = embedder
        self.name = name

    @staticmethod
    def describes(module: nn.Module) -> bool:
        """Whether ``module`` computes what its settings and weights say, with nothing added and
        nothing exchanged.
        """
        if type(module) is not Embedder or frozenset(vars(module)) != _OF_AN_EMBEDDER:
            return False
        with torch.device("meta"):
            plain = Embedder(module.config).eval()
        parts = [module_structure(part) for part in (module.encoder, module.decoder)]
        return None not in parts and parts == [
            module_structure(part, weights=False) for part in (plain.encoder, plain.decoder)
        ]

    @property
    @override
    def sizes(self) -> tuple[int, int]:
        """Pixels and latents."""
        return prod(self.embedder.config.image_shape), self.embedder.config.latent_dimension

    @override
    def compute(self, inputs: Array) -> Array:
        """Posterior means of flattened pictures in [0, 1]."""
        return _in_blocks(
            self.embedder.eval(), inputs, torch.float32, self.embedder.config.image_shape
        )

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Decoded pictures, shape (n, height, width)."""
        return self.embedder.pictures(embeddings)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The architecture, and the weights under ``embedder.``."""
        config = self.embedder.config
        fields = {
            name: getattr(config, name)
            for name in ("latent_dimension", "architecture", "beta", "dropout", "width")
        }
        arrays = {
            f"embedder.{name}": tensor.numpy()
            for name, tensor in self.embedder.state_dict().items()
        }
        return {
            "kind": self.kind,
            "name": self.name,
            "image_shape": list(config.image_shape),
            **fields,
        }, arrays

    @property
    def space(self) -> str:
        """Plain words for the latent space."""
        return (
            f"{self.embedder.config.latent_dimension}-dimensional beta-VAE embedding of the picture"
        )


class ModuleEmbedding(Embedding):
    """A copy of a user's torch module, run in eval mode without gradients.

    A copy, so that training the module further does not change what a fitted system measures
    distances by.

    Args:
        module: from (n, *input_shape) to (n, ...). It must give an answer for every input in the
            public range: one that raises, or takes its time, for some inputs tells something about
            them.
        input_shape: shape of one input of the module; None for flat ones.
        lower, upper: the public range of input values, from public rows or from settings.
        name: see ``Embedding``.
        serial: of a stored module that cannot be read and has no name; None draws one where it is
            needed.

    Raises:
        InvalidInput: the module cannot be copied.
    """

    kind: ClassVar[str] = "module"

    def __init__(
        self,
        module: nn.Module,
        input_shape: tuple[int, ...] | None,
        *,
        lower: float = -LARGEST_INPUT,
        upper: float = LARGEST_INPUT,
        name: str = "",
        serial: str | None = None,
    ) -> None:
        self.module = copied(module).eval()
        self.input_shape = input_shape
        # What float32 holds, whatever the caller's rows held.
        self.lower, self.upper = max(float(lower), -LARGEST_INPUT), min(float(upper), LARGEST_INPUT)
        self.name = name
        self.structure = module_structure(self.module)
        self.serial = (
            ""
            if self.structure is not None or name
            else token_hex(16)
            if serial is None
            else serial
        )

    @override
    def compute(self, inputs: Array) -> Array:
        """What the module computes for inputs reshaped to (n, *input_shape), flattened per row."""
        first = next(iter(self.module.parameters()), None)
        dtype = torch.float32 if first is None else first.dtype
        return _in_blocks(self.module.eval(), inputs, dtype, self.input_shape or inputs.shape[1:])

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Class name and structure, and the weights under ``embedder.``; the code itself is not
        stored.

        A module that cannot be read has a serial in place of a structure, unless its owner
        vouches for it by a name.
        """
        arrays = {
            f"embedder.{name}": tensor.detach().cpu().numpy()
            for name, tensor in self.module.state_dict().items()
        }
        settings = {
            "kind": self.kind,
            "name": self.name,
            "module": type(self.module).__qualname__,
            "input_shape": None if self.input_shape is None else list(self.input_shape),
            "lower": self.lower,
            "upper": self.upper,
            "structure": self.structure,
            "serial": self.serial,
        }
        return settings, arrays

    @property
    def space(self) -> str:
        """Plain words for the module's output space."""
        return f"embedding computed by the user's {type(self.module).__qualname__}"


def copied(module: nn.Module) -> nn.Module:
    """A copy of a module that shares nothing with it.

    Raises:
        InvalidInput: it cannot be copied.
    """
    try:
        return copy.deepcopy(module)
    except Exception as error:  # a module's own __deepcopy__ may raise anything
        raise InvalidInput(
            f"embedder: a {type(module).__qualname__} cannot be copied "
            f"({type(error).__name__}); expected a module that "
            "copy.deepcopy takes"
        ) from error


def restore(described: dict[str, Any], arrays: Arrays, module: nn.Module | None) -> Embedding:
    """The embedding that ``describe`` took apart.

    Args:
        described: its JSON values.
        arrays: the bundle's arrays.
        module: for a user's module, one like it, which is copied and given the stored weights.
            Where the stored one could be read it must have the same structure; of others only the
            class is compared, and whoever passes it answers for the rest.

    Raises:
        InvalidInput: the bundle needs the user's module, and none or another one was given.
        CorruptBundle: weights that do not fit.
    """
    with rebuilding():
        kind, name = described["kind"], words(described["name"], name="name", minimum=0)
        state = {
            key.removeprefix("embedder."): torch.from_numpy(np.array(array))
            for key, array in arrays.items()
            if key.startswith("embedder.")
        }
        if kind == IdentityEmbedding.kind:
            return IdentityEmbedding(count(described["dimension"], name="dimension"), name=name)
        if kind == BetaVaeEmbedding.kind:
            return _restored_beta_vae(described, state, name)
        if kind != ModuleEmbedding.kind:
            raise CorruptBundle(f"embedding: unknown kind {kind!r}")
        stored, structure = (
            words(described["module"], name="module", most=1000),
            described["structure"],
        )
        serial = words(described["serial"], name="serial", minimum=0)
        shape = (
            None
            if described["input_shape"] is None
            else tuple(count(n, name="shape") for n in described["input_shape"])
        )
        lower, upper = (
            real(described["lower"], name="lower"),
            real(described["upper"], name="upper"),
        )
        if not -LARGEST_INPUT <= lower <= upper <= LARGEST_INPUT:
            raise CorruptBundle(
                "embedding: its public input range is empty or beyond what is clipped to"
            )
    if module is None:
        raise InvalidInput(
            f"embedder: this bundle was made with your own {stored}; pass embedder=<an instance>"
        )
    found = type(module).__qualname__
    another = InvalidInput(
        f"embedder: this bundle was made with another {stored} than the {found} that was "
        "passed; expected the same layers "
        "with the same settings, and nothing added to them"
    )
    if found != stored:
        raise another
    own = copied(module)
    _load(own, state)
    embedding = ModuleEmbedding(own, shape, lower=lower, upper=upper, name=name, serial=serial)
    if embedding.structure != structure:
        raise another
    return embedding


def _restored_beta_vae(
    described: dict[str, Any], state: dict[str, torch.Tensor], name: str
) -> BetaVaeEmbedding:
    fields = {
        field: described[field]
        for field in ("latent_dimension", "architecture", "beta", "dropout", "width")
    }
    height, width = described["image_shape"]
    if any(tensor.dtype is not torch.float32 for tensor in state.values()):
        raise CorruptBundle("embedding: expected weights of 32 bits")
    with torch.device(
        "meta"
    ):  # sizes from a file are compared with the weights before any memory is taken for them
        embedder = Embedder(EmbedderConfig(image_shape=(height, width), **fields)).eval()
    _load(embedder, state)
    return BetaVaeEmbedding(embedder, name=name)


def _load(module: nn.Module, state: dict[str, torch.Tensor]) -> None:
    try:
        module.load_state_dict(
            state, assign=any(parameter.is_meta for parameter in module.parameters())
        )
    except RuntimeError as error:
        raise CorruptBundle("embedding: the stored weights do not fit the architecture") from error


def _in_blocks(
    module: nn.Module, inputs: Array, dtype: torch.dtype, shape: tuple[int, ...]
) -> Array:
    """Outputs of ``module`` for inputs reshaped to (n, *shape), flattened per row, in blocks,
    without gradients.
    """
    parts = []
    with torch.no_grad():
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            # torch's own copy is aligned in memory, whatever the array was.
            rows = (
                torch.from_numpy(inputs[start : start + _ROWS_AT_ONCE])
                .to(dtype, copy=True)
                .reshape(-1, *shape)
            )
            try:
                parts.append(module(rows).reshape(len(rows), -1).double().numpy())
            except Exception as error:
                raise InvalidInput(
                    f"embedder: {type(module).__name__} does not take inputs of shape "
                    f"{tuple(rows.shape)}, {dtype} "
                    f"({type(error).__name__})"
                ) from error
    return np.concatenate(parts)


def check_sizes(embedding: Embedding, input_shape: tuple[int, ...], dimension: int) -> None:
    """Nothing, if inputs of that shape become embeddings of that dimension.

    Raises:
        CorruptBundle: they do not.
    """
    inputs = prod(input_shape)
    sizes = embedding.sizes
    if sizes is None and 0 < inputs <= _MOST_FEATURES:
        with rebuilding():
            sizes = inputs, embedding.embed(np.zeros((1, inputs))).shape[1]
    if sizes != (inputs, dimension):
        raise CorruptBundle(
            f"bundle: its embedder does not take inputs of {inputs} features to {dimension}; "
            "fetch or fit it again"
        )


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
            f"{name}: expected shape (n, features) or (n, height, width), got "
            f"shape={array.shape}. Reshape your data"
        )
    for length, what in ((len(array), "sample(s)"), (prod(array.shape[1:]), "feature(s)")):
        if length == 0:
            raise InvalidInput(
                f"{name}: 0 {what} (shape={array.shape}) while a minimum of 1 is required."
            )
    return array.reshape(len(array), -1), array.shape[1:]
