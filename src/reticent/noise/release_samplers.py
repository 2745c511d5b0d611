"""The samplers that a release may draw from, by the name that a caller gives."""

from __future__ import annotations

from reticent.core.checks import one_of
from reticent.noise.exact_sampler import SecureSampler
from reticent.noise.opendp_sampler import OpenDPSampler
from reticent.noise.samplers import Sampler

RELEASE_SAMPLERS: dict[str, type[SecureSampler] | type[OpenDPSampler]] = {
    "exact": SecureSampler,
    "opendp": OpenDPSampler,
}
"""Both draw from the operating system; neither takes a seed."""


def release_sampler(name: str) -> Sampler:
    """The sampler called ``name``: "exact" (ours, for whole arrays) or "opendp" (an independent
    implementation, slower).

    Raises:
        UnknownName: another name.
        MissingExtra: "opendp" where OpenDP is not installed.

    Example:
        >>> release_sampler("exact").seeded
        False

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264, why releases take no other sampler.

    See Also:
        reticent.noise.SecureSampler: "exact".
        reticent.noise.OpenDPSampler: "opendp".
    """
    return RELEASE_SAMPLERS[one_of(name, RELEASE_SAMPLERS, name="sampler")]()
