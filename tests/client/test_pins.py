"""What is pinned is refused when it changes, and only then."""

from __future__ import annotations

import math

import pytest

from reticent.client.pins import Pin, fingerprint_of
from reticent.core import Guarantee, Neighborhood, Norm, Replace
from reticent.core.errors import UntrustedSignature

NEAR = Guarantee(1.0, 1e-6, Neighborhood(Norm.LINF, 0.5, "embedding", "ab"))
ANY = Guarantee(1.0, 0.0, Replace(1))
PRINT = fingerprint_of("ab" * 32, NEAR, "# card")


def refusal(pin: Pin, fingerprint: str, guarantee: Guarantee) -> str:
    """Why a pin refuses a bundle, or ""."""
    try:
        pin.check(fingerprint, guarantee)
    except UntrustedSignature as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "pin",
    [
        Pin(),
        Pin(fingerprint=PRINT),
        Pin(epsilon=1.0, delta=1e-6, radius=0.5),
        Pin(epsilon=2.0, delta=0.1, radius=0.1),
    ],
)
def test_what_is_as_pinned_passes(pin: Pin) -> None:
    assert refusal(pin, PRINT, NEAR) == ""


@pytest.mark.parametrize(
    ("pin", "reason"),
    [
        (Pin(fingerprint="0" * 32), "fingerprint"),
        (Pin(epsilon=math.nextafter(1.0, 0.0)), "epsilon=1, pinned is at most 1"),
        (Pin(delta=1e-7), "delta=1e-06"),
        (Pin(delta=0.0), "delta"),
        (Pin(radius=0.6), "radius of at least 0.6"),
        (Pin(radius=math.inf), "any two records"),
    ],
)
def test_what_protects_less_than_pinned_is_refused(pin: Pin, reason: str) -> None:
    assert reason in refusal(pin, PRINT, NEAR)


def test_any_two_records_are_the_widest_radius() -> None:
    for radius in (math.inf, 1e9):
        assert refusal(Pin(radius=radius), PRINT, ANY) == ""
        assert "protects" in refusal(Pin(radius=radius), PRINT, NEAR)


def test_a_fingerprint_changes_with_everything_that_is_said() -> None:
    others = {
        fingerprint_of("ac" * 32, NEAR, "# card"),
        fingerprint_of("ab" * 32, ANY, "# card"),
        fingerprint_of("ab" * 32, NEAR, "# card."),
    }
    assert len(others | {PRINT}) == 4
