"""Which certificate a released function gets, by name."""

from __future__ import annotations

from reticent.certify import EnumerationBound, IntervalBound, LipschitzBound, Output
from reticent.core.errors import UnknownName, UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.networks import Network

CERTIFICATES = ("auto", "enumeration", "interval")
"""``auto`` is enumeration where it applies (small ReLU networks, l1 and l-infinity balls), intervals elsewhere."""


def certificate(name: str, network: Network, *, domain: Box, input_norm: Norm, output: Output) -> LipschitzBound:
    """The isotone bound called ``name``; the choice is made before any point is seen and stays with the bundle.

    Raises:
        UnknownName: not in ``CERTIFICATES``.
        UnsupportedNetwork, UnsupportedNorm: enumeration was asked for where it does not apply.
    """
    if name not in CERTIFICATES:
        raise UnknownName(f"certificate={name!r}: expected one of {', '.join(CERTIFICATES)}")
    if name != "interval":
        try:
            return EnumerationBound(network, domain=domain, input_norm=input_norm, output=output)
        except (UnsupportedNetwork, UnsupportedNorm):
            if name == "enumeration":
                raise
    return IntervalBound(network, domain=domain, input_norm=input_norm, output=output)
