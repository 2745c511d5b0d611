"""Embeddings by a torch module: a beta-VAE of ours, or a user's own."""

from __future__ import annotations

import copy
from math import prod
from secrets import token_hex
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, real, words
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.release.bundle import rebuilding
from reticent.systems.embedding.embedding import BETA_VAE, MODULE, Embedding
from reticent.systems.module_structure import module_from, module_structure
from reticent.training.embedder import Embedder, EmbedderConfig
from reticent.training.features import LARGEST_INPUT

_ROWS_AT_ONCE = 1000

_OF_AN_EMBEDDER = frozenset(vars(nn.Module())) | {"config"}


class BetaVaeEmbedding(Embedding):
    """The posterior mean of a beta-VAE trained by reticent."""

    kind: ClassVar[str] = BETA_VAE
    lower, upper = 0.0, 1.0

    def __init__(self, embedder: Embedder, *, name: str = "") -> None:
        self.embedder = embedder
        self.name = name

    @staticmethod
    def describes(module: nn.Module) -> bool:
        """Return whether ``module`` computes what its settings and weights say.

        Nothing may be added and nothing exchanged.
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
        """Return pixels and latents."""
        return prod(self.embedder.config.image_shape), self.embedder.config.latent_dimension

    @override
    def compute(self, inputs: Array) -> Array:
        """Return posterior means of flattened pictures in [0, 1]."""
        return _in_blocks(
            self.embedder.eval(), inputs, torch.float32, self.embedder.config.image_shape
        )

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return decoded pictures, shape (n, height, width)."""
        return self.embedder.pictures(embeddings)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return the architecture, and the weights under ``embedder.``."""
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
        """Describe the latent space in plain words."""
        return (
            f"{self.embedder.config.latent_dimension}-dimensional beta-VAE embedding of the picture"
        )


class ModuleEmbedding(Embedding):
    """A copy of a user's torch module, run in eval mode without gradients.

    A copy, so that training the module further does not change what a fitted system measures
    distances by.

    Args:
        module: map from (n, *input_shape) to (n, ...). It must give an answer for every input in
            the public range: one that raises, or takes its time, for some inputs tells something
            about them.
        input_shape: shape of one input of the module, or None for flat ones.
        lower, upper: the public range of input values, from public rows or from settings.
        name: its owner's name for it, as in ``Embedding``.
        serial: serial of a stored module that cannot be read and has no name. None draws one where
            it is needed.

    Raises:
        InvalidInput: the module cannot be copied.
    """

    kind: ClassVar[str] = MODULE

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
        """Return what the module computes for inputs reshaped to (n, *input_shape), flattened
        per row.
        """
        first = next(iter(self.module.parameters()), None)
        dtype = torch.float32 if first is None else first.dtype
        return _in_blocks(self.module.eval(), inputs, dtype, self.input_shape or inputs.shape[1:])

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Class name and structure, and the weights under ``embedder.``, from which a module that
        can be read is built again. No code is stored.

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
        """Describe the module's output space in plain words."""
        return f"embedding computed by the user's {type(self.module).__qualname__}"


def copied(module: nn.Module) -> nn.Module:
    """Return a copy of a module that shares nothing with it.

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


def restored_module(
    described: dict[str, Any], state: Arrays, name: str, module: nn.Module | None
) -> ModuleEmbedding:
    """Return the embedding by a user's module, for ``restore``. ``state`` holds its weights by
    name.

    Without ``module`` it is built from what was read of it.
    """
    with rebuilding():
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
    if module is None and structure is None:
        raise InvalidInput(
            f"embedder: this bundle was made with your own {stored}, whose code is not stored; "
            "pass embedder=<an instance>, or --embedder FILE:FUNCTION on the command line"
        )
    if module is None:
        with rebuilding():
            built = module_from(structure, state)
        return ModuleEmbedding(built, shape, lower=lower, upper=upper, name=name, serial=serial)
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


def restored_beta_vae(described: dict[str, Any], state: Arrays, name: str) -> BetaVaeEmbedding:
    """Return the embedding by a beta-VAE, for ``restore``. ``state`` holds its weights by name."""
    with rebuilding():
        fields = {
            field: described[field]
            for field in ("latent_dimension", "architecture", "beta", "dropout", "width")
        }
        height, width = described["image_shape"]
        if any(array.dtype != np.float32 for array in state.values()):
            raise CorruptBundle("embedding: expected weights of 32 bits")
        # Sizes from a file are compared with the weights before any memory is taken for them.
        with torch.device("meta"):
            embedder = Embedder(EmbedderConfig(image_shape=(height, width), **fields)).eval()
        _load(embedder, state)
        return BetaVaeEmbedding(embedder, name=name)


def _load(module: nn.Module, state: Arrays) -> None:
    try:
        weights = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        module.load_state_dict(
            weights, assign=any(parameter.is_meta for parameter in module.parameters())
        )
    except (RuntimeError, TypeError) as error:
        raise CorruptBundle("embedding: the stored weights do not fit the architecture") from error


def _in_blocks(
    module: nn.Module, inputs: Array, dtype: torch.dtype, shape: tuple[int, ...]
) -> Array:
    """Return outputs of ``module`` for inputs reshaped to (n, *shape), flattened per row.

    They are computed in blocks, without gradients.
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
