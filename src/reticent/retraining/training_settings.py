"""The settings of a certified training run, fixed before any record is seen, and the public grids
that it computes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reticent.core.arrays import Array
from reticent.core.checks import count, one_of, positive, probability, real
from reticent.core.errors import CertificationFailed, InvalidParameter
from reticent.core.guarantees import AddRemove, Replace
from reticent.grids.arithmetic import power_of_two_at_least
from reticent.retraining.class_weights import checked_weights

Counting = Literal["add-remove", "replace", "remove", "insert"]
COUNTINGS = ("add-remove", "replace", "remove", "insert")
PROTECTING = ("add-remove", "replace")
"""Countings whose distances change by at most 1 between neighbours; the others only prove that
predictions stay.
"""

INPUT_BITS = 16
"""Inputs are rounded to this many bits of their public bound."""

RECORDS_AT_ONCE = 1024
"""Records per block, which fits into the cache. Sums over one are exact in float64 (not over
more); blocks are added in int64.
"""

MOST_RECORDS = 2**24
_EXACT_BITS = 53
_WEIGHT_BITS = 26
_ACTIVATION_BITS = 20
_SIGNAL_BITS = 22
_FIRST_SIGNAL_BITS = 25  # nothing is propagated below the first layer
_CLIP_BITS = 28
_LEAST_CLIP_BITS = 8
_MOST_STEPS = 1024


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of stochastic gradient descent on a ReLU network with elementwise clipped gradients.

    Nothing here may depend on records. A step with the records B of one batch is ``m = momentum m +
    mean over B of clip(gradient)``, then ``weights = (1 - rate weight_decay) weights - rate m``.
    In step n = 0, 1, ... the rate is learning_rate / (1 + rate_decay n). The mean of an empty
    batch is 0.
    Hidden activations are cut at a public bound that ordinary data never reach.

    Attributes:
        features: number of inputs, at least 1.
        classes: number of labels, at least 2. Two labels share one logit (logistic loss), more have
            one each (softmax).
        hidden: widths of the hidden ReLU layers. () is logistic or softmax regression.
        epochs: passes over all batches.
        batches: number of batches. A record's batch is drawn from its key. 1 is full batch.
        learning_rate: rate of the first step, above 0.
        rate_decay: decay of the rate, at least 0.
        clip: gamma, largest absolute value of each entry of a record's gradient, above 0.
        momentum: momentum in [0, 1).
        weight_decay: decay of weights, at least 0, decoupled from momentum, with learning_rate *
            weight_decay at most 1.
        input_bound: public bound above 0. Inputs are cut to [-input_bound, input_bound].
        counting: meaning of a distance of k. "add-remove": k records come or go in total.
            "replace": k records are replaced, or up to k removed and up to k added (Theorem 4.6 of
            the paper). "remove", "insert": up to k are removed only, or added only. That proves
            what predictions survive and protects nothing.
        class_weights: one public weight in (0, 1] for each label, the largest 1, by which a
            record's clipped gradient is multiplied, or None for none.

    Raises:
        InvalidParameter, UnknownName: a value out of its range.

    Example:
        >>> TrainingSettings(features=2, classes=2, hidden=(8,)).widths
        (2, 8, 1)

    Utility:
        Stable distances grow with the records in a batch and fall with clip, rate and epochs.
        Accuracy wants the opposite. Full batch certifies most (docs/certified.md, section 6).

    Runtime:
        O(1) to make. Training takes ``steps`` steps.

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, section 4, the training that is certified.
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670.

    See Also:
        reticent.retraining.parameter_intervals: what it is for.
        reticent.CertifiedClassifier: takes the same names.
    """

    features: int
    classes: int
    hidden: tuple[int, ...] = ()
    epochs: int = 4
    batches: int = 1
    learning_rate: float = 1.0
    rate_decay: float = 0.6
    clip: float = 0.06
    momentum: float = 0.0
    weight_decay: float = 0.0
    input_bound: float = 16.0
    counting: Counting = "add-remove"
    class_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        count(self.features, name="features")
        count(self.classes, name="classes", minimum=2)
        object.__setattr__(
            self, "hidden", tuple(count(width, name="hidden") for width in self.hidden)
        )
        count(self.epochs, name="epochs")
        count(self.batches, name="batches")
        for name in ("learning_rate", "clip", "input_bound"):
            object.__setattr__(self, name, positive(getattr(self, name), name=name))
        probability(self.momentum, name="momentum")
        for name in ("rate_decay", "weight_decay"):
            value = real(getattr(self, name), name=name)
            if not (math.isfinite(value) and value >= 0):
                raise InvalidParameter(f"{name}={value!r}: expected a finite number of at least 0")
            object.__setattr__(self, name, value)
        if self.learning_rate * self.weight_decay > 1:
            raise InvalidParameter(
                f"weight_decay={self.weight_decay!r}: expected at most 1 / learning_rate"
            )
        one_of(self.counting, COUNTINGS, name="counting")
        if self.class_weights is not None:
            weights = checked_weights(self.class_weights, classes=self.classes)
            object.__setattr__(self, "class_weights", weights)

    @property
    def outputs(self) -> int:
        """The number of logits: 1 for two classes."""
        return 1 if self.classes == 2 else self.classes

    @property
    def widths(self) -> tuple[int, ...]:
        """The units of every layer, inputs first."""
        return (self.features, *self.hidden, self.outputs)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.epochs * self.batches

    @property
    def adjacency(self) -> AddRemove | Replace:
        """The neighbours between which certified distances change by at most 1.

        Raises:
            InvalidParameter: distances of removals alone, or of additions alone, are for
                predictions only.
        """
        if self.counting not in PROTECTING:
            raise InvalidParameter(
                f"counting={self.counting!r}: proves what a prediction survives and protects no "
                "record; expected add-remove or replace"
            )
        return AddRemove(1) if self.counting == "add-remove" else Replace(1)

    def rate(self, step: int) -> float:
        """Return the learning rate of step 0, 1, ..."""
        return self.learning_rate / (1.0 + self.rate_decay * step)

    def initial(self, seed: int | None) -> list[Array]:
        """Return starting weights of every layer, uniform within 1 / sqrt(inputs).

        They have shape (units, inputs + 1) with the bias last.

        Args:
            seed: seed of the draw, or None for all zeros (only without hidden layers).

        Raises:
            InvalidParameter: zeros asked for a network with hidden layers, which would never
                learn.
        """
        if seed is None and self.hidden:
            raise InvalidParameter(
                "seed=None: a network with hidden layers cannot start from zeros; expected an "
                "integer"
            )
        random = np.random.default_rng(seed)
        shapes = [
            (units, inputs + 1)
            for inputs, units in zip(self.widths[:-1], self.widths[1:], strict=True)
        ]
        if seed is None:
            return [np.zeros(shape) for shape in shapes]
        return [random.uniform(-1, 1, shape) / math.sqrt(shape[1] - 1) for shape in shapes]


@dataclass(frozen=True, eq=False)
class TrainingGrids:
    """Units of everything that is computed, all powers of two, chosen from settings and starting
    weights alone.

    Every number of a certificate is a whole multiple of its unit held in float64. Units are coarse
    enough that every sum below is exact, so that no order of summation can matter
    (docs/certified.md, section 3).

    Attributes:
        settings: settings of the run.
        start: starting weights rounded to their grid, in units.
        input_unit: grid of inputs.
        weight_units: grid of each layer's weights.
        activation_units: grid of what enters each layer, ``input_unit`` for the first.
        signal_units: grid of the loss gradient at each layer's output.
        caps: upper ends of the hidden activations, in units.
    """

    settings: TrainingSettings
    start: tuple[Array, ...]
    input_unit: float
    weight_units: tuple[float, ...]
    activation_units: tuple[float, ...]
    signal_units: tuple[float, ...]
    caps: tuple[float, ...]

    @classmethod
    def build(cls, settings: TrainingSettings, initial: list[Array]) -> TrainingGrids:
        """Return the grids of a run.

        Raises:
            CertificationFailed: layers so wide, or magnitudes so far apart, that too few exact
                bits are left.
        """
        if settings.steps >= _MOST_STEPS:
            raise CertificationFailed(
                f"epochs * batches = {settings.steps}: expected fewer than {_MOST_STEPS} steps"
            )
        widths = settings.widths
        input_range = power_of_two_at_least(max(settings.input_bound, 1.0))
        input_unit = input_range * 2.0**-INPUT_BITS
        drift = (
            sum(settings.rate(step) for step in range(settings.steps))
            * settings.clip
            / (1.0 - settings.momentum)
        )
        largest: list[float] = []
        weight_units, activation_units, caps = [], [input_unit], []
        reach = settings.input_bound
        for layer, weights in enumerate(initial):
            used = (
                (INPUT_BITS if layer == 0 else _ACTIVATION_BITS)
                + 2
                + math.ceil(math.log2(widths[layer] + 1))
            )
            bits = _enough(min(_WEIGHT_BITS, _EXACT_BITS - used))
            range_ = float(np.abs(weights).max()) + 1.01 * drift
            # Every step widens by a unit and rounds by less than another.
            unit = power_of_two_at_least(range_ / (2.0**bits - 2 * settings.steps - 1))
            weight_units.append(unit)
            range_ += (2 * settings.steps + 1) * unit
            largest.append(range_)
            if layer < len(initial) - 1:
                reach = min(
                    16.0 * max(settings.input_bound, 1.0), range_ * (widths[layer] * reach + 1.0)
                )
                cap = power_of_two_at_least(max(reach, 1.0))
                activation_units.append(cap * 2.0**-_ACTIVATION_BITS)
                caps.append(2.0**_ACTIVATION_BITS)
        signal_units: list[float] = []
        range_, terms = 1.0, 4 * settings.outputs
        for layer in reversed(range(len(largest))):
            # Over wide boxes every class may have a signal of 1, and a signal of either sign counts
            # twice in the layer below.
            spare = (
                _EXACT_BITS
                - 1
                - math.ceil(math.log2(largest[layer] / weight_units[layer]))
                - math.ceil(math.log2(terms))
            )
            bits = _FIRST_SIGNAL_BITS if layer == 0 else min(_SIGNAL_BITS, spare)
            signal_units.insert(0, power_of_two_at_least(range_) * 2.0 ** -_enough(bits))
            range_ *= (
                1.01
                * largest[layer]
                * (settings.outputs if layer == len(largest) - 1 else 2 * widths[layer + 1])
            )
            terms = 4 * widths[layer]
        start = tuple(
            np.rint(weights / unit) for weights, unit in zip(initial, weight_units, strict=True)
        )
        units = tuple(weight_units), tuple(activation_units), tuple(signal_units)
        grids = cls(settings, start, input_unit, *units, tuple(caps))
        finest = min(np.multiply(signal_units, activation_units))
        if settings.clip * 2.0**-63 >= finest:
            raise CertificationFailed(
                f"clip={settings.clip!r}: too large for exact whole numbers; expected a smaller one"
            )
        if min(grids.clips(layer)[0] for layer in range(len(largest))) < 2**_LEAST_CLIP_BITS:
            # Rounded to whole units gamma would grow, and the weights with it beyond the range that
            # their unit was chosen for.
            raise CertificationFailed(
                f"clip={settings.clip!r}: fewer than {_LEAST_CLIP_BITS} exact bits are left "
                "for the gradients of a layer; "
                "expected a larger clip, or a network with fewer layers or units"
            )
        return grids

    def inputs(self, X: Array) -> Array:
        """Return inputs cut to the public bound, on their grid in units, with one row more for the
        bias.

        The shape is (features + 1, n).

        Args:
            X: shape (n, features), finite.
        """
        bound = self.settings.input_bound
        scaled = np.empty((X.shape[1] + 1, len(X)))
        units = scaled[:-1]
        np.clip(X.T, -bound, bound, out=units)
        units *= 1.0 / self.input_unit  # a power of two
        np.rint(units, out=units)
        scaled[-1] = 1.0 / self.input_unit
        return scaled

    def clips(self, layer: int) -> tuple[float, float]:
        """Return gamma in units of a layer's gradient (signal times activation), rounded down
        and up.
        """
        gamma = self.settings.clip / (self.signal_units[layer] * self.activation_units[layer])
        return math.floor(gamma), math.ceil(gamma)

    @property
    def most_records(self) -> int:
        """Return the most records and changes together, such that gradients add up below 2**63."""
        unclipped: int = 2 ** (_SIGNAL_BITS + _ACTIVATION_BITS)
        largest = max(min(int(self.clips(layer)[1]), unclipped) for layer in range(len(self.start)))
        return min(MOST_RECORDS, (2**63 - 1) // largest)

    def shift(self, layer: int) -> int:
        """Return the bits by which a sum of a layer's gradients is coarsened.

        Sums over all records then stay below 2**52.
        """
        return max(0, math.ceil(math.log2(max(self.clips(layer)[1], 1))) - _CLIP_BITS)


def _enough(bits: int) -> int:
    if bits < 12:
        raise CertificationFailed(
            "a layer is so wide that fewer than 12 exact bits are left; expected a narrower network"
        )
    return bits
