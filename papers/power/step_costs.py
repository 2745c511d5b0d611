"""What one training step costs, whatever the machine: peak memory of its tensors and
floating-point operations.
"""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


@dataclass(frozen=True)
class StepCost:
    """Cost of one step.

    Attributes:
        peak_bytes: largest sum of what tensors (parameters and optimizer state included) and numpy
            arrays held at a time.
        operations: floating-point operations of matrix products and factorisations; a
            multiplication with its addition is two.
    """

    peak_bytes: int
    operations: float


def step_cost(
    step: Callable[[], object], *, held: Iterable[torch.Tensor], extra_operations: float = 0.0
) -> StepCost:
    """The cost of one call of ``step``.

    Args:
        step: a whole training step: loss, gradients, update. It is run three times: an optimizer
            gets its state, arrays are measured, tensors are measured.
        held: tensors that are there before the step: parameters, and the rows if they count.
        extra_operations: of arithmetic outside of torch.

    The peaks of tensors and of numpy arrays are added, though they need not coincide: the sum is
    at most too large.
    """
    with _Meter(()):  # the first use of anything makes things that stay, and are not the step's
        step()
    tracemalloc.start()  # without the meter, whose own notes would count
    try:
        step()
        arrays = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    with _Meter(held) as tensors:
        step()
    return StepCost(tensors.peak + arrays, tensors.operations + extra_operations)


class _Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the bytes of every storage from the operation that makes it to its end, and counts
    operations.
    """

    def __init__(self, held: Iterable[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.operations = 0.0
        self._known: set[int] = set()
        for tensor in held:
            self._follow(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(
            (args, result)
        ):  # arguments too: what was there before the first operation
            if isinstance(leaf, torch.Tensor):
                self._follow(leaf)
        formula = _FORMULAS.get(func._overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        return result

    def _follow(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if address == 0 or address in self._known:
            return
        self._known.add(address)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._end, address, size)

    def _end(self, address: int, size: int) -> None:
        self._known.discard(address)
        self.now -= size


def _factorisation(matrices: torch.Tensor, **_: Any) -> int:
    """Operations of an LU factorisation of each of ``matrices`` (shape (..., d, d))."""
    return prod(matrices.shape[:-2]) * 2 * matrices.shape[-1] ** 3 // 3


def _solution(factors: torch.Tensor, _: torch.Tensor, right: torch.Tensor, **__: Any) -> int:
    """Operations of two triangular systems for each column of ``right`` (shape (..., d, k))."""
    return 2 * right.numel() * factors.shape[-1]


def _system(matrices: torch.Tensor, right: torch.Tensor, **_: Any) -> int:
    """Operations of a factorisation of each of ``matrices`` and of the systems with ``right``."""
    return _factorisation(matrices) + _solution(matrices, matrices, right)


_FORMULAS: dict[Any, Callable[..., int]] = {
    **flop_registry,
    torch.ops.aten._linalg_slogdet: _factorisation,
    torch.ops.aten.linalg_lu_solve: _solution,
    torch.ops.aten._linalg_solve_ex: _system,
}
