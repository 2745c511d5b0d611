"""Which code a fleet of a given size may use for a central target, and what it is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from reticent.accounting import local_epsilon_for
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter
from reticent.fleet.estimates import label_shares
from reticent.fleet.rounds import channel_of
from reticent.systems.power.code_encoder import CodeEncoder
from reticent.systems.power.code_query import LABEL

_TRIES = 6
_NEARLY = 0.98
"""Share of the central epsilon that a plan should use."""


@dataclass(frozen=True, eq=False)
class CodePlan:
    """A code whose shuffled reports have a central epsilon.

    Attributes:
        encoder: fitted bundle, at the largest local epsilon that was found.
        devices: number of honest devices that send.
        central: central epsilon of their reports.
        delta: delta of the same guarantee.
    """

    encoder: CodeEncoder
    devices: int
    central: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        A target's worth is in nats a report on public rows that the code was not fitted on, with
        its standard error. Its error of shares is the mean half width of the 95 % intervals that
        reports like the public rows would give.
        """
        query, worth = self.encoder.query_, {}
        expected = np.rint(self.devices * query.masses @ self.encoder.channel_).astype(np.int64)
        for target in query.served:
            if target.kind == LABEL and target.worth is not None:
                ends = label_shares(expected, self.encoder, target.name).intervals()
                worth[target.name] = {
                    "nats": target.worth.held["released"]["nats"],
                    "error": target.worth.error,
                    "interval": float(np.diff(ends, axis=1).mean()) / 2,
                }
        return {
            "devices": self.devices,
            "central": self.central,
            "delta": self.delta,
            "local_epsilon": self.encoder.guarantee.epsilon,
            "nodes": len(self.encoder.channel_),
            "codes": self.encoder.channel_.shape[1],
            "targets": worth,
        }


def planned_code(
    encoder: CodeEncoder,
    X: npt.ArrayLike,
    y: Any = None,
    *,
    devices: int,
    epsilon: float,
    delta: float,
) -> CodePlan:
    """Return the code at the largest local epsilon whose shuffled reports have central ``epsilon``.

    Each try fits the code anew, and its price is that of its own table. The largest local epsilon
    is found to about a hundredth of the central one.

    Args:
        encoder: settings of the code, any two of whose inputs are neighbours. Its epsilon is
            ignored.
        X, y: public rows, the arguments of ``CodeEncoder.fit``.
        devices: number of honest devices that send.
        epsilon: epsilon of the central guarantee, above 0.
        delta: delta of the central guarantee, in (0, 1).

    Raises:
        InvalidInput, InvalidParameter: rows or numbers that cannot be used, or codes of near
            inputs.

    See Also:
        reticent.accounting.local_epsilon_for: the same for randomised response.
    """
    count(devices, name="devices")
    positive(epsilon, name="epsilon")
    probability(delta, name="delta", allow_zero=False)
    if encoder.neighbours is not None:
        raise InvalidParameter("encoder: expected neighbours=None, codes that hide any two inputs")
    local = local_epsilon_for(devices=devices, labels=8, epsilon=epsilon, delta=delta)
    best: CodePlan | None = None
    for _ in range(_TRIES):
        made = clone(encoder).set_params(epsilon=local).fit(X, y)
        central = channel_of(made).epsilon(devices=devices, delta=delta)
        if central <= epsilon and (best is None or local > best.encoder.guarantee.epsilon):
            best = CodePlan(made, devices, central, delta)
            if central >= _NEARLY * epsilon or local >= 30:
                break
        # the central epsilon grows about as the root of the local odds
        step = 2 * math.log((1 + _NEARLY) / 2 * epsilon / max(central, 0.01 * epsilon))
        local = min(max(local + step, epsilon), 30.0)
    if best is not None:
        return best
    made = clone(encoder).set_params(epsilon=epsilon).fit(X, y)
    return CodePlan(made, devices, channel_of(made).epsilon(devices=devices, delta=delta), delta)
