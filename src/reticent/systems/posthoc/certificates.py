"""The certificate of a released function, by name or by class."""

from __future__ import annotations

from typing import Any

from reticent.core.checks import one_of
from reticent.core.errors import (
    InvalidInput,
    InvalidParameter,
    UnknownName,
    UnsupportedNetwork,
    UnsupportedNorm,
)
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
    LinearBound,
    LipschitzBound,
    OperatorNormBound,
    Output,
)
from reticent.lipschitz.layered import MAX_INPUTS
from reticent.lipschitz.operator_norms import is_sorting_network
from reticent.networks import Network

CERTIFICATES = (
    "auto",
    "layered",
    "linear",
    "interval",
    "operator-norm",
)
"""``auto`` is layered for ReLU networks of few inputs and l1 or l-infinity balls, linear relaxation
for other ReLU networks, operator norms for affine maps of many inputs or in l2 and for sorted
pairs, and intervals elsewhere."""

Certificate = str | type[LipschitzBound]

_KINDS: dict[str, type[LipschitzBound]] = {
    "layered": LayeredBound,
    "linear": LinearBound,
    "interval": IntervalBound,
    "operator-norm": OperatorNormBound,
}


def check_certificate(given: Any) -> Certificate:
    """Return the name of one of our bounds, or the class of somebody else's.

    Raises:
        UnknownName: a name that is not in ``CERTIFICATES``.
        InvalidParameter: no name and no class of bounds, or a class that goes by a name of ours.
    """
    if isinstance(given, str):
        return one_of(given, CERTIFICATES, name="certificate")
    if not (isinstance(given, type) and issubclass(given, LipschitzBound)):
        got = given.__name__ if isinstance(given, type) else type(given).__name__
        raise InvalidParameter(
            f"certificate: expected one of {', '.join(CERTIFICATES)}, or a subclass of "
            f"LipschitzBound, got {got}"
        )
    kind = getattr(given, "kind", None)
    if not isinstance(kind, str) or (kind in CERTIFICATES and _KINDS.get(kind) is not given):
        raise InvalidParameter(
            f"certificate: {given.__name__} has kind={kind!r}; expected a word of its own, which "
            "no other bound has"
        )
    return kind if kind in CERTIFICATES else given


def stored_certificate(kind: Any, own: type[LipschitzBound] | None) -> Certificate:
    """Return the certificate that a bundle names.

    Args:
        kind: kind in the bundle.
        own: the class that whoever loads it has passed, or None.

    Raises:
        InvalidInput: the bundle's own class is missing, or is another one.
    """
    if isinstance(kind, str) and kind not in CERTIFICATES:
        if own is None:
            raise InvalidInput(
                "certificate: this bundle was certified by a bound of somebody's own; pass "
                "certificate=<its class>"
            )
        if check_certificate(own) is not own or own.kind != kind:
            raise InvalidInput(
                "certificate: this bundle was certified by another bound than the "
                f"{own.__name__} that was passed"
            )
        return own
    if not isinstance(kind, str):
        raise UnknownName(f"certificate: expected one of {', '.join(CERTIFICATES)}")
    return kind


def bound_of(
    name: Certificate, network: Network, *, domain: Box, input_norm: Norm, output: Output
) -> LipschitzBound:
    """Return the bound called ``name``.

    The choice is made before any point is seen and stays with the bundle.

    Raises:
        UnknownName: not in ``CERTIFICATES``.
        UnsupportedNetwork, UnsupportedNorm: a bound was asked for where it does not apply.
    """
    if not isinstance(name, str):
        return name(network, domain=domain, input_norm=input_norm, output=output)
    if one_of(name, CERTIFICATES, name="certificate") != "auto":
        return _KINDS[name](network, domain=domain, input_norm=input_norm, output=output)
    wide = input_norm is Norm.L2 or network.input_dimension > MAX_INPUTS
    if is_sorting_network(network) and (wide or not network.is_relu_chain()):
        return OperatorNormBound(network, domain=domain, input_norm=input_norm, output=output)
    # One that takes networks of this kind at all is never above the next.
    for candidate in ("layered", "linear"):
        try:
            return _KINDS[candidate](network, domain=domain, input_norm=input_norm, output=output)
        except (UnsupportedNetwork, UnsupportedNorm):
            continue
    return IntervalBound(network, domain=domain, input_norm=input_norm, output=output)
