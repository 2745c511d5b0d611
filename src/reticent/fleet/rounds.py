"""A round of reports: what its devices, its shuffler and its aggregator have agreed on."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reticent.accounting import ShuffledChannel
from reticent.core.checks import count, positive, probability, words
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.extras import require
from reticent.core.files import output_file, read_regular
from reticent.core.guarantees import Guarantee, GuaranteeCard, Replace, Unit
from reticent.core.signatures import sign, verify
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.mechanisms import AnyTwo
from reticent.systems import clauses as say
from reticent.systems.power.code_query import CodeQuery

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from reticent.systems.power.code_encoder import CodeEncoder

_LARGEST = 2**16
_PURPOSE = "round"
_UNITS = 10**6
"""Units of a ledger in an epsilon of 1."""

MOST_PAIRS = 1100
"""Ordered pairs of inputs that are priced one by one. Larger tables are priced by clones."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of a campaign, in which each device sends one report at most.

    The aggregator signs it. Every token, report and batch is bound to its digest.

    Attributes:
        campaign: name of the campaign, under which the central cost of its rounds adds up.
        number: position of the round in its campaign, from 1.
        bundle: identity of the bundle that every device draws from.
        outputs: number of codes.
        epsilon: local guarantee of one report.
        least: reports below which nothing is forwarded.
        most: reports at which the round closes early.
        hostile: devices among ``least`` that an attacker may own or impersonate.
        closes: time at which the round closes, in seconds since 1970.
        central: epsilon against whoever sees only the forwarded reports.
        delta: delta of the same guarantee.
        aggregator: public X25519 key of the aggregator, 64 hexadecimal digits.
        shuffler: public X25519 key of the shuffler.
        signer: public Ed25519 key of the shuffler.

    Guarantee:
        (``central``, ``delta``)-differential privacy of the forwarded multiset, for two campaigns
        that differ in the inputs of one device. It holds if shuffler and aggregator do not collude,
        and if ``least - hostile`` honest devices sent. ``card`` lists all conditions. Each report
        by itself is (``epsilon``, 0)-private for any two inputs, whatever the others do.

    References:
        - Balle, Bell, Gascón and Nissim (2019), "The privacy blanket of the shuffle model",
          arXiv:1903.02837.

    See Also:
        reticent.accounting.ShuffledChannel: the central cost, and its proof.
    """

    campaign: str
    number: int
    bundle: str
    outputs: int
    epsilon: float
    least: int
    most: int
    hostile: int
    closes: int
    central: float
    delta: float
    aggregator: str
    shuffler: str
    signer: str

    def __post_init__(self) -> None:
        words(self.campaign, name="campaign", most=100)
        for name in ("number", "outputs", "least", "most", "closes"):
            count(getattr(self, name), name=name)
        count(self.hostile, name="hostile", minimum=0)
        positive(self.epsilon, name="epsilon")
        positive(self.central, name="central")
        probability(self.delta, name="delta", allow_zero=False)
        if not self.hostile < self.least <= self.most:
            raise InvalidParameter(
                f"hostile={self.hostile}, least={self.least}, most={self.most}: expected them to "
                "rise, with one honest device at least"
            )
        if not 2 <= self.outputs <= 2**16:
            raise InvalidParameter(f"outputs={self.outputs}: expected 2 to {2**16}")
        for name in ("bundle", "aggregator", "shuffler", "signer"):
            value = getattr(self, name)
            if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
                raise InvalidParameter(f"{name}: expected 64 hexadecimal digits")

    @classmethod
    def planned(
        cls, encoder: CodeEncoder, *, least: int, hostile: int, delta: float, **named: Any
    ) -> Self:
        """Return a round of ``encoder``'s codes, with its central epsilon.

        Args:
            encoder: the fitted bundle, which hides any two inputs.
            least: reports below which nothing is forwarded.
            hostile: devices that may be the attacker's, less than ``least``.
            delta: delta of the central guarantee, above 0.
            named: the other attributes, without those that follow from these.

        Raises:
            InvalidInput, InvalidParameter: a number or name that cannot be used, or codes that
                hide near inputs only.
        """
        found = channel_of(encoder).epsilon(devices=honest(least, hostile), delta=delta)
        return cls(
            bundle=encoder.bundle_identity_,
            outputs=encoder.channel_.shape[1],
            epsilon=encoder.guarantee.epsilon,
            least=least,
            hostile=hostile,
            # whole units of a ledger, at least one; a larger epsilon holds as well
            central=max(math.ceil(found * _UNITS), 1) / _UNITS,
            delta=delta,
            **named,
        )

    @classmethod
    def read(cls, file: str | Path, *, trusted_key: str | Path) -> Self:
        """Return the round in a file, if its signature is by ``trusted_key``.

        Raises:
            UntrustedSignature: it is not.
            InvalidInput: no round.
        """
        try:
            values = strict_loads(read_regular(file, most=_LARGEST))
            stated, signature = values["round"], strict_dumps(values["signature"])
            verify(strict_dumps(stated), signature, purpose=_PURPOSE, trusted_key=trusted_key)
            return cls(**stated)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"round={str(file)!r}: expected a signed round") from error

    def write(self, file: str | Path, *, key: str | Path) -> None:
        """Write the round, signed by the aggregator's ``key``. A round is never replaced."""
        signature = strict_loads(sign(self.content, purpose=_PURPOSE, key=key))
        content = strict_dumps({"round": asdict(self), "signature": signature})
        with output_file(Path(file), size=len(content), overwrite=False) as put:
            put(content)

    @cached_property
    def content(self) -> bytes:
        """The signed bytes."""
        return strict_dumps(asdict(self))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the signed bytes."""
        return hashlib.sha256(self.content).digest()

    @cached_property
    def signer_key(self) -> Ed25519PublicKey:
        """The shuffler's public key, which signs tokens and batches."""
        keys = require("cryptography.hazmat.primitives.asymmetric.ed25519", extra="fleet")
        key: Ed25519PublicKey = keys.Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signer))
        return key

    @property
    def guarantee(self) -> Guarantee:
        """The central guarantee. It does not add to a device's local one."""
        return Guarantee(self.central, self.delta, central_adjacency(self.campaign))

    def check(self, encoder: CodeEncoder) -> None:
        """Refuse a round whose claims do not follow from the table that devices draw from.

        Raises:
            InvalidInput: another bundle, another local epsilon, or a central one that is too small.
        """
        channel = channel_of(encoder)
        found = (encoder.bundle_identity_, encoder.channel_.shape[1], encoder.guarantee.epsilon)
        if found != (self.bundle, self.outputs, self.epsilon):
            raise InvalidInput(
                f"round: expected one of bundle={encoder.bundle_identity_[:16]} with epsilon="
                f"{encoder.guarantee.epsilon:g}, got bundle={self.bundle[:16]}, "
                f"epsilon={self.epsilon:g}"
            )
        devices = honest(self.least, self.hostile)
        if channel.delta(devices=devices, epsilon=self.central) > self.delta:
            raise InvalidInput(
                f"round: central={self.central:g} at delta={self.delta:g} is less than {devices} "
                "honest devices with this bundle can have"
            )

    def card(self) -> GuaranteeCard:
        """Return both guarantees in plain words, with the conditions of the central one."""
        local = Guarantee(self.epsilon, 0.0, Replace())
        devices = honest(self.least, self.hostile)
        return GuaranteeCard(
            title=f"Shuffled reports of round {self.number} of {self.campaign}",
            protected=(
                f"Against everybody, one report by itself: {say.odds(local, per=' per report')}. "
                "Against whoever sees only what the shuffler forwards, the inputs of one device: "
                f"{say.odds(self.guarantee, per=' per round')}."
            ),
            from_whom=(
                "The first guarantee holds against the aggregator, the shuffler, other devices "
                "and all of them together. The second holds against the aggregator and whoever "
                "gets its results."
            ),
            guarantee=self.guarantee,
            assumptions=say.phrases(
                "shuffler and aggregator do not collude; if they do, the first guarantee is left",
                f"at least {devices} honest devices sent a report, the protected one among them; "
                f"nothing is forwarded before {self.least} reports are there, of which up to "
                f"{self.hostile} may be an attacker's",
                "the shuffler gives tokens to real devices only; whoever can hold back honest "
                "devices and send reports in their place leaves the first guarantee",
                "every honest device draws from the very table of the bundle, freshly each round",
                "the shuffler forwards all reports at once in a random order, with nothing else",
                "the device and its source of random numbers are not the attacker's",
            ),
            not_protected=(
                "whether a device sends a report; it must not depend on its input",
                "statements about all devices together, which are what the round is for",
                "other rounds of the campaign, whose costs add up",
            ),
            details=(
                ("local epsilon, booked on the device", f"{self.epsilon:g}"),
                ("central epsilon, booked by the aggregator", f"{self.central:.4g}"),
                ("delta", f"{self.delta:g}"),
                ("codes", str(self.outputs)),
            ),
        )


def honest(least: int, hostile: int) -> int:
    """Return how many honest devices have sent where ``least`` reports are there.

    Raises:
        InvalidParameter: none.
    """
    count(hostile, name="hostile", minimum=0)
    if count(least, name="least") <= hostile:
        raise InvalidParameter(f"least={least}: expected more than hostile={hostile}")
    return least - hostile


def central_adjacency(campaign: str) -> Replace:
    """Return the neighbours of a campaign: two fleets that differ in one device's inputs."""
    return Replace(unit=Unit.PERSON, data_set=f"reports of {campaign}")


def channel_of(encoder: CodeEncoder) -> ShuffledChannel:
    """Return what shuffling gives for the table that ``encoder`` draws from.

    Raises:
        InvalidInput: the codes do not hide any two inputs.
    """
    query = getattr(encoder, "query_", None)
    if not isinstance(query, CodeQuery) or not isinstance(query.mechanism.nodes, AnyTwo):
        raise InvalidInput(
            "bundle: expected codes that hide any two inputs, CodeEncoder(neighbours=None)"
        )
    mechanism = query.mechanism
    table = np.unique(mechanism.shares.T.astype(np.int64), axis=0)
    if len(table) * (len(table) - 1) > MOST_PAIRS:
        return ShuffledChannel.any_channel(epsilon=mechanism.epsilon)
    return ShuffledChannel.of_table(table)
