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
        errors: shape (names,), standard errors by the chance in reports, and in the labels of
            devices within a node.
        public: shape (names,), standard errors by the chance in public rows, as if they had been
            drawn like the devices' rows.
        unbiased: whether the codes determine the shares. Where they do not, the part that no code
            tells is that of the public rows.
    """

    names: tuple[Any, ...]
    values: Array
    errors: Array
    public: Array
    unbiased: bool

    def intervals(self) -> Array:
        """Return the ends of 95 % intervals by the normal law, shape (names, 2).

        They cover the chance in reports and in public rows. They do not cover public rows that were
        drawn otherwise than the devices' rows.
        """
        half = float(ndtri(0.5 + _COVERED / 2)) * np.hypot(self.errors, self.public)
        return np.stack([self.values - half, self.values + half], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "shares": self.values.tolist(),
            "errors": self.errors.tolist(),
            "public_errors": self.public.tolist(),
            "intervals": self.intervals().tolist(),
            "unbiased": self.unbiased,
        }


def node_shares(counts: Integers, channel: Array, *, masses: Array, rows: int) -> Shares:
    """Return the share of devices in each public node.

    Args:
        counts: shape (outputs,), how often each code was reported.
        channel: shape (nodes, outputs), probability of each code given the node.
        masses: shape (nodes,), shares of public rows, for what no code tells.
        rows: number of these rows.

    Example:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> found = node_shares(np.array([600, 400]), response, masses=np.full(2, 0.5), rows=9)
        >>> found.values.round(3).tolist(), found.unbiased
        ([0.7, 0.3], True)
    """
    nodes = tuple(range(len(channel)))
    return _linear(counts, channel, np.eye(len(channel)), nodes, masses, rows)


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
    return _linear(counts, encoder.channel_, given, names, query.masses, query.rows)


def _linear(
    counts: Integers,
    channel: Array,
    given: Array,
    names: tuple[Any, ...],
    masses: Array,
    rows: int,
) -> Shares:
    """Return linear functions of the nodes' shares, ``shares @ given``."""
    total = int(counts.sum())
    if counts.shape != channel.shape[1:] or total < 2:
        raise InvalidInput(f"counts: expected at least 2 reports of {channel.shape[1]} codes")
    observed = counts / total
    inverse = np.linalg.pinv(channel, rcond=_RANK)
    # a weight for each code, whose mean over a node's codes is what is wanted of the node
    weights = inverse @ given
    untold = given - channel @ weights
    mean, rest = observed @ weights, masses @ untold
    spread = np.maximum(observed @ weights**2 - mean**2, 0.0)
    # the values are nodes @ given: a public row moves ``given`` at its node, and the masses
    nodes = observed @ inverse + masses - masses @ channel @ inverse
    mixed = np.maximum(given * (1 - given), 0.0)
    within = (nodes**2 / masses) @ mixed
    between = np.maximum(masses @ untold**2 - rest**2, 0.0)
    unbiased = bool(np.abs(untold).max() <= _EXACT)
    return Shares(
        names,
        mean + rest,
        # the devices of a node differ in their labels too
        np.sqrt(spread / (total - 1) + np.maximum(nodes, 0.0) @ mixed / total),
        np.sqrt((within + between) / rows),
        unbiased,
    )
