"""What counted codes say: unbiased shares with intervals, and the posterior of each code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput
from reticent.systems.power.code_query import LABEL

if TYPE_CHECKING:
    from reticent.systems.power.code_encoder import CodeEncoder

_COVERED = 0.95
_EXACT = 1e-6
_RANK = 1e-6
"""Relative size below which a direction of the channel is taken to tell nothing."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of the devices.

    Attributes:
        names: what each share is of.
        values: shape (names,). They sum to 1, and some may be below 0.
        errors: shape (names,), standard errors by the chance in reports.
        unbiased: whether the codes determine the shares. Where they do not, the part that no code
            tells is that of the public rows, and the errors leave out how far it is off.
    """

    names: tuple[Any, ...]
    values: Array
    errors: Array
    unbiased: bool

    def intervals(self) -> Array:
        """Return the ends of 95 % intervals by the normal law, shape (names, 2).

        They cover the chance in reports. How far public rows are from the devices is not in them.
        """
        half = float(ndtri(0.5 + _COVERED / 2)) * self.errors
        return np.stack([self.values - half, self.values + half], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "shares": self.values.tolist(),
            "errors": self.errors.tolist(),
            "unbiased": self.unbiased,
        }


def node_shares(counts: Integers, channel: Array, *, masses: Array) -> Shares:
    """Return the share of devices in each public node.

    Args:
        counts: shape (outputs,), how often each code was reported.
        channel: shape (nodes, outputs), probability of each code given the node.
        masses: shape (nodes,), shares of public rows, for what no code tells.

    Example:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> found = node_shares(np.array([600, 400]), response, masses=np.full(2, 0.5))
        >>> found.values.round(3).tolist(), found.unbiased
        ([0.7, 0.3], True)
    """
    nodes = tuple(range(len(channel)))
    return _linear(counts, channel, np.eye(len(channel)), nodes, masses)


def label_shares(counts: Integers, encoder: CodeEncoder, target: str) -> Shares:
    """Return the share of devices with each label of a target.

    A node's labels are taken from the public rows of ``fit``. The shares are unbiased if labels
    within a node are as frequent on the devices as there. Where each node has one label of a column
    that the row itself holds, nothing is assumed.

    Args:
        counts: shape (outputs,), how often each code was reported.
        encoder: the fitted bundle.
        target: name of a target that is a label.

    Raises:
        InvalidInput: no such target, or one that is no label.
    """
    query = encoder.query_
    found = {one.name: one for one in query.targets if one.kind == LABEL}
    if target not in found:
        raise InvalidInput(f"target={target!r}: expected one of {', '.join(found)}")
    joint = found[target].joint
    given = joint / joint.sum(axis=1, keepdims=True)
    names = tuple(found[target].values.tolist())
    return _linear(counts, encoder.channel_, given, names, query.masses)


def _linear(
    counts: Integers, channel: Array, given: Array, names: tuple[Any, ...], masses: Array
) -> Shares:
    """Return linear functions of the nodes' shares, ``shares @ given``."""
    total = int(counts.sum())
    if counts.shape != channel.shape[1:] or total < 2:
        raise InvalidInput(f"counts: expected at least 2 reports of {channel.shape[1]} codes")
    observed = counts / total
    # a weight for each code, whose mean over a node's codes is what is wanted of the node
    weights = np.linalg.lstsq(channel, given, rcond=_RANK)[0]
    untold = given - channel @ weights
    values = observed @ weights + masses @ untold
    mean = observed @ weights
    spread = np.maximum(observed @ weights**2 - mean**2, 0.0)
    unbiased = bool(np.abs(untold).max() <= _EXACT)
    return Shares(names, values, np.sqrt(spread / (total - 1)), unbiased)
