"""The contract of a part, an estimator with ``fit(X, y)`` and ``network()``.

Parts of this package and of others are cloned, seeded and trained here alike.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from reticent.core.arrays import Array, Integers
from reticent.core.checks import shown
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.extras import is_torch_module
from reticent.core.norms import Norm
from reticent.core.seeds import training_generator, training_seed
from reticent.networks import Network
from reticent.training.progress import Report

if TYPE_CHECKING:
    from torch import nn

    from reticent.training.networks import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """The release that a part's outputs will have, for parts that train for it.

    A part whose ``fit`` has a parameter ``release`` is given one, and is trained once for each
    mechanism that is tried. The numbers come from the estimator that the part belongs to, which is
    where privacy parameters are set.

    Attributes:
        epsilon: total epsilon of one answer, above 0.
        delta: total delta of one answer, in [0, 1).
        radius: neighbourhood radius, in ``input_norm`` of the embedding.
        input_norm: norm in which neighbours are near.
        mechanism: name of the mechanism.
        output: the measure of the Lipschitz constant that it needs: a norm, or "spread" for labels.
        unit_sigma: the standard deviation of Gaussian noise for a sensitivity of 1, or None for
            other mechanisms.
    """

    epsilon: float
    delta: float
    radius: float
    input_norm: Norm
    mechanism: str
    output: Norm | Literal["spread"]
    unit_sigma: float | None = None


class Part(BaseEstimator):
    """A part of this package. A part of another needs no base class but ``BaseEstimator``.

    Attributes:
        needs_labels: True if ``fit`` cannot do without labels.
    """

    needs_labels: ClassVar[bool] = False

    def check(self) -> None:
        """Raise if the parameters cannot be used. Called before any part is trained.

        Raises:
            InvalidParameter, UnknownName: the parameters cannot be used.
        """

    def variants(self) -> list[Part]:
        """Return the parts that are tried in place of this one: itself."""
        return [self]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_labels
        return tags


class Trained(Part):
    """A torch module that was trained already, as a part.

    Args:
        module: the torch module, used as it is.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Trained:
        """Return itself."""
        return self

    def network(self) -> nn.Module:
        """Return the module."""
        return self.module


def resolved(
    part: Any, *, parameter: str, names: Mapping[str, Callable[[], Part]]
) -> BaseEstimator:
    """Return the part that an argument means, checked and not fitted, never the caller's own
    instance.

    Args:
        part: a name, a torch module that was trained already, or an estimator.
        parameter: the caller's name of the argument, used in messages.
        names: the part that each name stands for.

    Raises:
        UnknownName: a name is not among ``names``.
        InvalidParameter: the argument is none of the three, or its parameters cannot be used.
    """
    if isinstance(part, str):
        if part not in names:
            raise UnknownName(
                f"{parameter}={shown(part)}: expected a torch module, a part, or one of "
                f"{', '.join(names)}"
            )
        return names[part]()
    if is_torch_module(part):
        return Trained(part)
    if isinstance(part, type) or not all(
        callable(getattr(part, method, None)) for method in ("fit", "network", "get_params")
    ):
        got = f"the class {part.__name__}" if isinstance(part, type) else type(part).__name__
        raise InvalidParameter(
            f"{parameter}: expected one of {', '.join(names)}, a torch module, or an estimator "
            f"with fit and network, got {got}"
        )
    try:
        copy: BaseEstimator = clone(part)
    except (TypeError, RuntimeError) as error:
        raise InvalidParameter(
            f"{parameter}: a {type(part).__name__} cannot be cloned; expected a constructor that "
            "stores its arguments under their own names and does nothing else"
        ) from error
    if isinstance(copy, Part):
        copy.check()
    return copy


def variants(part: BaseEstimator) -> list[BaseEstimator]:
    """Return the parts that are tried in place of ``part``, one for each network size."""
    return [*part.variants()] if isinstance(part, Part) else [part]


def trains_for_release(part: BaseEstimator) -> bool:
    """Return True if ``part`` trains another network for every mechanism."""
    return bool(has_fit_parameter(part, "release"))


def needs_labels(part: Any) -> bool:
    """Return True if the part that an argument means cannot be fitted without labels."""
    if is_torch_module(part):
        return False
    if isinstance(part, Part):
        return part.needs_labels
    if not isinstance(part, BaseEstimator):
        return True
    if hasattr(part, "__sklearn_tags__"):
        return bool(part.__sklearn_tags__().target_tags.required)
    return bool(part._get_tags()["requires_y"])  # scikit-learn below 1.6


def fitted(
    part: BaseEstimator,
    X: Array,
    y: Integers | None,
    *,
    seed: int,
    release: PlannedRelease | None = None,
    report: Report,
) -> BaseEstimator:
    """Return a fitted clone of ``part``.

    A ``random_state`` that is None becomes ``seed``, in the part and in parts of it. Torch's
    generator, which the caller forks, starts from ``seed``.

    Args:
        part: the result of ``resolved``.
        X: the rows that it learns from, shape (n, ...).
        y: classes 0, 1, ..., shape (n,), or None.
        seed: the seed of training.
        release: the release, for parts that train for it.
        report: the callback, for parts that tell how far they are.
    """
    import torch

    if isinstance(part, Trained):
        return part
    copy = clone(part)
    unseeded = [
        name
        for name, value in copy.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    copy.set_params(**dict.fromkeys(unseeded, seed))
    torch.manual_seed(seed)
    offered = {"release": release, "report": report}
    taken = {name: value for name, value in offered.items() if has_fit_parameter(copy, name)}
    copy.fit(X, y, **taken)
    return copy


def network_of(part: Any, *, parameter: str) -> nn.Module | Network:
    """Return the network of a fitted part.

    Raises:
        InvalidInput: ``network`` gives neither a torch module nor a ``Network``.
    """
    network: nn.Module | Network = part.network()
    # A subclass of Network may compute something else than its layers say, which are certified.
    if not (type(network) is Network or is_torch_module(network)):
        raise InvalidInput(
            f"{parameter}: network() of {type(part).__name__} gives a {type(network).__name__}; "
            "expected a torch module or a reticent.networks.Network"
        )
    return network


def module_of(part: Any, *, parameter: str) -> nn.Module:
    """Return the torch module of a fitted part, or a torch module itself.

    Raises:
        InvalidInput: there is no torch module.
    """
    if is_torch_module(part):
        return cast("nn.Module", part)
    if isinstance(part, type) or not callable(getattr(part, "network", None)):
        raise InvalidInput(
            f"{parameter}: expected a torch module, or a fitted part with network(), got "
            f"{part.__name__ if isinstance(part, type) else type(part).__name__}"
        )
    network = network_of(part, parameter=parameter)
    if not is_torch_module(network):
        raise InvalidInput(
            f"{parameter}: network() of {type(part).__name__} gives a Network; expected a torch "
            "module (reticent.networks.to_torch makes one)"
        )
    return cast("nn.Module", network)


def seed_of(random_state: Any) -> int:
    """Return the seed that training starts from: an integer itself, one drawn from anything else.

    Raises:
        InvalidParameter: ``training_generator`` takes no such state.
    """
    training_generator(random_state)
    return (
        int(random_state)
        if isinstance(random_state, numbers.Integral)
        else training_seed(random_state)
    )


def training_config(part: Any, rows: int) -> TrainingConfig:
    """Return the settings of a part that trains through noise.

    Args:
        part: a part with ``epochs``, ``batch_size``, ``learning_rate`` and ``random_state``.
            Without a batch size it is 1000, or fewer so that one pass over few rows is 24 steps.
        rows: number of rows that it learns from.

    Raises:
        InvalidParameter: a setting is out of its range.
    """
    from reticent.training.networks import TrainingConfig

    usual = int(np.clip(rows // 24, 32, 1000))
    return TrainingConfig(
        epochs=part.epochs,
        batch_size=usual if part.batch_size is None else part.batch_size,
        learning_rate=part.learning_rate,
        seed=seed_of(part.random_state),
    )
