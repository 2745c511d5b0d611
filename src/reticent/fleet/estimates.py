"""What counted codes say: unbiased shares with intervals, and the posterior of each code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput
from reticent.systems.power.channel_server import bin_shares
from reticent.systems.power.code_query import LABEL

if TYPE_CHECKING:
    from reticent.systems.power.code_encoder import CodeEncoder

_COVERED = 0.95
_EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of the devices.

    Attributes:
        names: what each share is of.
        values: shape (names,). Unbiased, and so they may be below 0, or likeliest.
        errors: shape (names,), standard errors; NaN where the shares are not unbiased.
        unbiased: whether the codes determine the shares. Where they do not, the shares are the
            likeliest ones.
    """

    names: tuple[Any, ...]
    values: Array
    errors: Array
    unbiased: bool

    def intervals(self) -> Array:
        """Return the ends of 95 % intervals by the normal law, shape (names, 2)."""
        half = float(ndtri(0.5 + _COVERED / 2)) * self.errors
        return np.stack([self.values - half, self.values + half], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "shares": self.values.tolist(),
            "errors": [None if math.isnan(error) else error for error in self.errors.tolist()],
            "unbiased": self.unbiased,
        }


def node_shares(counts: Integers, channel: Array) -> Shares:
    """Return the share of devices in each public node.

    Args:
        counts: shape (outputs,), how often each code was reported.
        channel: shape (nodes, outputs), probability of each code given the node.

    Example:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> node_shares(np.array([600, 400]), response).values.round(3).tolist()
        [0.7, 0.3]
    """
    return _linear(counts, channel, np.eye(len(channel)), tuple(range(len(channel))))


def label_shares(counts: Integers, encoder: CodeEncoder, target: str) -> Shares:
    """Return the share of devices with each label of a target.

    A node's label is taken from the public rows of ``fit``. The shares are unbiased if labels
    within a node are as frequent on the devices as there. Labels that the row itself holds are
    nodes, and then nothing is assumed.

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
    return _linear(counts, encoder.channel_, given, tuple(found[target].values.tolist()))


def _linear(counts: Integers, channel: Array, given: Array, names: tuple[Any, ...]) -> Shares:
    """Return linear functions of the nodes' shares, ``shares @ given``."""
    total = int(counts.sum())
    if counts.shape != channel.shape[1:] or total < 2:
        raise InvalidInput(f"counts: expected at least 2 reports of {channel.shape[1]} codes")
    observed = counts / total
    # a weight for each code, whose mean over a node's codes is what is wanted of the node
    weights = np.linalg.lstsq(channel, given, rcond=None)[0]
    if np.abs(channel @ weights - given).max() > _EXACT * np.abs(weights).max():
        likeliest = bin_shares(counts.astype(np.float64), channel) @ given
        return Shares(names, likeliest, np.full(len(names), np.nan), False)
    values = observed @ weights
    spread = np.maximum(observed @ weights**2 - values**2, 0.0)
    return Shares(names, values, np.sqrt(spread / (total - 1)), True)
