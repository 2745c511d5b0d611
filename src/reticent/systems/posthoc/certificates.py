"""Which certificate a released function gets, by name."""

from __future__ import annotations

from reticent.core.errors import UnknownName, UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.lipschitz import (
    EnumerationBound,
    ExactBound,
    IntervalBound,
    LayeredBound,
    LipschitzBound,
    Output,
)
from reticent.networks import Network

CERTIFICATES = ("auto", "exact", "layered", "enumeration", "interval")
"""``auto`` is enumeration for ReLU networks with one hidden layer and layered for deeper ones
(few inputs, l1 and l-infinity balls), and intervals elsewhere. ``exact`` is the constant itself,
by complete search: milliseconds a point for small networks and far more for others, with no
bound, so that a release takes it on the global path alone."""

_KINDS: dict[str, type[LipschitzBound]] = {
    "exact": ExactBound,
    "layered": LayeredBound,
    "enumeration": EnumerationBound,
    "interval": IntervalBound,
}


def certificate(
    name: str, network: Network, *, domain: Box, input_norm: Norm, output: Output
) -> LipschitzBound:
    """The bound called ``name``; the choice is made before any point is seen and stays with the
    bundle.

    Raises:
        UnknownName: not in ``CERTIFICATES``.
        UnsupportedNetwork, UnsupportedNorm: a bound was asked for where it does not apply.
    """
    if name not in CERTIFICATES:
        raise UnknownName(f"certificate={name!r}: expected one of {', '.join(CERTIFICATES)}")
    if name != "auto":
        return _KINDS[name](network, domain=domain, input_norm=input_norm, output=output)
    deep = network.is_relu_chain() and len(network.linear_layers()) > 2
    try:
        return _KINDS["layered" if deep else "enumeration"](
            network, domain=domain, input_norm=input_norm, output=output
        )
    except (UnsupportedNetwork, UnsupportedNorm):
        return IntervalBound(network, domain=domain, input_norm=input_norm, output=output)
