"""Phrases of guarantee cards that several systems share: factors, probabilities, and what is
promised beyond neighbours.
"""

from __future__ import annotations

import math

from reticent.accounting.telling_apart import beyond, which_of_two_cap
from reticent.core.guarantees import Guarantee


def factor_words(epsilon: float) -> str:
    """e^epsilon as a formula and as a number."""
    return f"e^{epsilon:g} = {_number(math.exp(min(epsilon, 700.0)))}"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100.0 else f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def share_words(cap: float) -> str:
    """A probability, rounded up, so that what is written holds as well."""
    return f"{min(math.ceil(cap * 1e4) / 1e4, 1.0):.4g}"


def farther_words(guarantee: Guarantee, inputs: str) -> str:
    """What is promised between inputs that are no neighbours.

    Args:
        guarantee: of one answer.
        inputs: which they are, in terms of a whole number h.
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    hops = (2, 4, 8)
    caps = which_of_two_cap(*beyond(epsilon=epsilon, delta=delta, hops=hops))
    shown = ", ".join(f"{share_words(cap)} at h = {h}" for h, cap in zip(hops, caps, strict=True))
    more = f", plus {delta:g} (e^({epsilon:g} h) - 1)/(e^{epsilon:g} - 1)" if delta else ""
    return (
        f"{inputs}: no more than a factor e^({epsilon:g} h){more} is promised between them, and "
        f"the cap on naming the right one of two rises to {shown}"
    )
