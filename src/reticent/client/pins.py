"""What a device insists on, whatever a server says.

That is one exact bundle, or numbers that it must not exceed.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidParameter, UntrustedSignature
from reticent.core.guarantees import Adjacency, Guarantee, Neighborhood
from reticent.core.strict_json import strict_dumps

_DIGITS = 32


@dataclass(frozen=True, kw_only=True)
class Pin:
    """The properties that a bundle must have, as its user learnt them from elsewhere than the
    server.

    Attributes:
        fingerprint: fingerprint of the bundle, its guarantee and its card, by ``fingerprint_of``,
            or "" for any.
        epsilon: epsilon of one answer at most, or None for any.
        delta: delta of one answer at most, or None for any.
        radius: radius of neighbours at least, since a smaller one protects less. ``math.inf``
            demands that any two records are neighbours. None for any.

    Raises:
        InvalidParameter: a number out of its range, or no fingerprint.

    Example:
        >>> Pin(epsilon=1.0, radius=math.inf).describe()
        'epsilon at most 1, any two records neighbours'
    """

    fingerprint: str = ""
    epsilon: float | None = None
    delta: float | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.fingerprint, str) or (
            self.fingerprint and not re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", self.fingerprint)
        ):
            raise InvalidParameter(
                f"fingerprint: expected {_DIGITS} hexadecimal digits, as Device.fingerprint shows"
            )
        if self.epsilon is not None:
            positive(self.epsilon, name="epsilon")
        if self.delta is not None:
            probability(self.delta, name="delta")
        if self.radius is not None and self.radius != math.inf:
            positive(self.radius, name="radius")

    def check(self, fingerprint: str, guarantee: Guarantee) -> None:
        """Refuse a bundle that is not what was pinned.

        Args:
            fingerprint: fingerprint of the bundle that is there.
            guarantee: guarantee of one answer, as the device has computed it.

        Raises:
            UntrustedSignature: the bundle is another one, or protects less.
        """
        if self.fingerprint and fingerprint != self.fingerprint:
            raise UntrustedSignature(
                f"bundle: its fingerprint is {fingerprint}, pinned is {self.fingerprint}; its "
                "guarantee, its card or its weights are not those that were agreed on"
            )
        for name, most, found in (
            ("epsilon", self.epsilon, guarantee.epsilon),
            ("delta", self.delta, guarantee.delta),
        ):
            if most is not None and found > most:
                raise UntrustedSignature(
                    f"bundle: one answer costs {name}={found:g}, pinned is at most {most:g}"
                )
        if self.radius is not None and _radius(guarantee.adjacency) < self.radius:
            raise UntrustedSignature(
                f"bundle: protects {guarantee.adjacency.describe()}, pinned is "
                f"{_radius_words(self.radius)}"
            )

    def describe(self) -> str:
        """Describe the pin in one phrase."""
        parts = [f"fingerprint {self.fingerprint}"] if self.fingerprint else []
        for name, most in (("epsilon", self.epsilon), ("delta", self.delta)):
            parts += [] if most is None else [f"{name} at most {most:g}"]
        parts += [] if self.radius is None else [_radius_words(self.radius)]
        return ", ".join(parts) or "nothing"


def fingerprint_of(identity: str, guarantee: Guarantee, card: str) -> str:
    """Return 32 hexadecimal digits for a bundle, its guarantee and its card.

    Args:
        identity: identity of the bundle, its settings and weights.
        guarantee: guarantee of one answer.
        card: the card as Markdown.
    """
    content = strict_dumps([identity, guarantee.to_dict(), card])
    return hashlib.sha256(b"reticent device\0" + content).hexdigest()[:_DIGITS]


def protects_input(adjacency: Adjacency) -> bool:
    """Return whether neighbours differ in the input of a release, not in a fitted data set.

    Example:
        >>> from reticent.core import Replace
        >>> protects_input(Replace(1)), protects_input(Replace(1, data_set="ward 7"))
        (True, False)
    """
    return isinstance(adjacency, Neighborhood) or not adjacency.data_set


def _radius(adjacency: Adjacency) -> float:
    return adjacency.radius if isinstance(adjacency, Neighborhood) else math.inf


def _radius_words(radius: float) -> str:
    return (
        "any two records neighbours" if radius == math.inf else f"a radius of at least {radius:g}"
    )
