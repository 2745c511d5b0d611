"""``Device``: embed and add noise where the row is, so that no server has to be trusted with it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from reticent.client.client import Client
from reticent.client.downloads import download
from reticent.client.pins import Pin, fingerprint_of, protects_input
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter, UntrustedSignature
from reticent.core.files import output_file, read_regular
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.ledger.charges import Budget
from reticent.ledger.ledger import Ledger
from reticent.release.bundle import Bundle, Edition, read_edition

_LEDGER = "ledger.sqlite"
_BUNDLES = "bundles"
_LOCK = ".lock"
_EDITIONS = "editions.json"
_MOST_EDITIONS = 2**20


class Device:
    """Release private inputs on their own device, by a bundle that a server offers.

    A bundle that protects its *input* is public. The device downloads it, and believes nothing of
    it. The signature must be one by the trusted key. Every certificate is computed anew from the
    weights. The guarantee and the card that follow from them must be those that are stated, and
    must be what the user has pinned. Then the device answers here, charges a ledger of its own, and
    sends what was released.

    Guarantee:
        What leaves the device about one input is what ``release`` gave. Each answer costs
        ``guarantee``, for neighbours as ``card()`` says. All answers about one subject together
        cost at most what was granted to that subject on this device. A server sees nothing else of
        the input, and may break its own promises without changing that. The guarantee does not
        cover a second device with a ledger of its own: grants add up over devices.

    Args:
        source: address of a service, or a folder with a bundle.
        key: API key, for a service only.
        bundle: identity or name, or None where the key may ask one bundle only. For a service only.
        trusted_key: file with the public key of the bundle's owner, which came by another way than
            from the server.
        pin: the properties that the bundle must have.
        home: folder of this device, with what was downloaded and the ledger. The default is
            "reticent/device" in the user's state (``XDG_STATE_HOME``, or ``~/.local/state``).
            Bundles whose neighbours differ need a folder each: their costs do not add up, and a
            ledger refuses to book both for one subject.
        embedder: the user's own module, where the bundle was fitted with one.
        insecure: whether to allow plain http to other machines, in a network of your own.

    Raises:
        InvalidParameter: a service without ``trusted_key`` and without a pinned fingerprint.
            Nothing would tell its bundle from another.
        UntrustedSignature: not signed by ``trusted_key``, signed under another name than the
            service has for it, of an older edition than this home has seen, or not what was pinned.
        CorruptBundle: the bundle is damaged, or its certificate or guarantee is not what it states.
        InvalidInput: the bundle protects records, so that its owner has to answer.
        MissingExtra: the bundle's networks need torch, which is not installed.

    Example:
        >>> Device("https://answers.example.org", "key-of-a-test")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidParameter: trusted_key, pin: expected one of them for a ...

    See Also:
        reticent.client.Client: where the records, and not the input, are protected.
        reticent.client.Pin: the properties that a device can insist on.
    """

    def __init__(
        self,
        source: str | Path,
        key: str | None = None,
        *,
        bundle: str | None = None,
        trusted_key: str | Path | None = None,
        pin: Pin | None = None,
        home: str | Path | None = None,
        embedder: Any = None,
        insecure: bool = False,
    ) -> None:
        self.home = _home(home)
        self.pin = Pin() if pin is None else pin
        self._client: Client | None = None
        offered: Guarantee | None = None
        called: str | None = None
        if _is_address(source):
            if trusted_key is None and not self.pin.fingerprint:
                raise InvalidParameter(
                    "trusted_key, pin: expected one of them for a service: the file with the "
                    "public key of the bundle's owner, or Pin(fingerprint=...) from somebody who "
                    "has looked at the bundle"
                )
            if key is None:
                raise InvalidParameter("key: expected an API key for a service")
            self._client = Client(str(source), key, insecure=insecure)
            try:
                offer = self._client.offer(bundle)
                called = offer.name if bundle != offer.id else None
                if offer.route != "device":
                    raise _protects_records(offer.name)
                with _alone(self.home):
                    folder = download(
                        self._client, offer, self.home / _BUNDLES, trusted_key=trusted_key
                    )
            except BaseException:
                self._client.close()
                raise
            offered = offer.guarantee
        else:
            if key is not None or bundle is not None:
                raise InvalidParameter("key, bundle: expected for the address of a service only")
            folder = Path(source)
        try:
            if trusted_key is not None:
                edition = read_edition(folder, trusted_key=trusted_key)
                if called is not None and edition.name != called:
                    raise UntrustedSignature(
                        f"bundle={called!r:.80}: its owner signed it as {edition.name!r:.80}; the "
                        "service lists it under another name"
                    )
                with _alone(self.home):
                    _check_edition(self.home / _EDITIONS, edition)
            self._trusted_key = trusted_key
            self._system = _answering(folder, trusted_key, embedder)
            self._check(Bundle.read(folder, trusted_key=trusted_key), offered, trusted_key)
            with _alone(self.home):
                self.ledger = Ledger.create(self.home / _LEDGER, required=("subject",))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its ledger and its connections."""
        if hasattr(self, "ledger"):
            self.ledger.close()
        if self._client is not None:
            self._client.close()

    @property
    def bundle(self) -> str:
        """The identity of the bundle."""
        return str(self._system.bundle_identity_)

    @property
    def guarantee(self) -> Guarantee:
        """The cost of one answer, as computed here."""
        found: Guarantee = self._system.guarantee
        return found

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words, as it follows from what was computed here."""
        found: GuaranteeCard = self._system.card()
        return found

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the bundle, its guarantee and its card, for
        ``Pin(fingerprint=...)``.
        """
        return fingerprint_of(self.bundle, self.guarantee, self.card().to_markdown())

    def grant(self, subject: str, *, epsilon: float, delta: float) -> Budget:
        """Allow more to be spent of one subject's privacy, on this device.

        Args:
            subject: name of whoever the input is about.
            epsilon, delta: amounts that are added to the grant, for neighbours as the bundle has
                them.

        Raises:
            InvalidInput, InvalidParameter: a name or numbers that cannot be used.
            IncompatibleGuarantees: the subject has a budget for other neighbours.
        """
        total = Guarantee(epsilon, delta, self.guarantee.adjacency, self.guarantee.kind)
        return self.ledger.grant(Scope(subject=subject), total)

    def budget(self, subject: str) -> tuple[Budget, ...]:
        """Return what was granted to a subject and is left, on this device."""
        return self.ledger.report(Scope(subject=subject)).budgets

    def release(self, X: Any, *, subject: str | Sequence[str]) -> Release:
        """Return one protected answer for each row, charged here before it is computed.

        Args:
            X: private rows, as the bundle's estimator takes them: shape (n, features), or a data
                frame where it was fitted on one.
            subject: name of whoever the input is about, one for all rows or one for each.

        Raises:
            InvalidInput: the rows or names cannot be used. Nothing is charged.
            BudgetExceeded: nothing was granted to the subject, or too little is left.
            LedgerUnavailable: the device's ledger cannot be written.
        """
        scope: Any = (
            Scope(subject=subject, bundle=self.bundle)
            if isinstance(subject, str)
            else [Scope(subject=name, bundle=self.bundle) for name in subject]
        )
        found: Release = self._system.release(X, ledger=self.ledger, scope=scope)
        return found

    def report(
        self,
        round_file: str | Path,
        X: Any,
        *,
        subject: str | Sequence[str],
        token: bytes | Sequence[bytes],
        trusted_key: str | Path | None = None,
    ) -> list[bytes]:
        """Sealed reports for one round of a fleet, each drawn and charged here, once.

        The shuffler alone can open the outer seal, and the aggregator alone the inner one. A second
        call for the same round gives the same bytes, and charges nothing.

        Args:
            round_file: the round, signed by the aggregator.
            X: private rows, one for each subject.
            subject: whose row it is, or one name for each row.
            token: enrolment from the shuffler, or one for each subject.
            trusted_key: public key of the aggregator; None for that of the bundle.

        Returns:
            One envelope for each row, all of the same length.

        Raises:
            InvalidInput: the round is over, is of another bundle, or claims more than its number of
                devices gives; or rows, names or tokens that cannot be used. Nothing is charged.
            UntrustedSignature: a round that is not the aggregator's, or another one than this home
                has seen under its name; or a token of another round.
            BudgetExceeded: nothing was granted to a subject, or too little is left.
            AnswerLost: an earlier call was cut off after its charge.

        See Also:
            reticent.fleet.Round: what is promised, to whom, on which conditions.
        """
        from reticent.fleet.reporting import check_once, reports_of
        from reticent.fleet.rounds import Round

        trusted = self._trusted_key if trusted_key is None else trusted_key
        if trusted is None:
            raise InvalidParameter("trusted_key: expected the public key of the aggregator")
        round_ = Round.read(round_file, trusted_key=trusted)
        with _alone(self.home):
            check_once(round_, self._system, self.home)
            return reports_of(
                self._system,
                X,
                round_=round_,
                tokens=[token] if isinstance(token, bytes) else token,
                subjects=[subject] if isinstance(subject, str) else subject,
                ledger=self.ledger,
                home=self.home,
                now=time.time(),
            )

    def predict(
        self, X: Any, *, subject: str | Sequence[str], model: str | None = None
    ) -> npt.NDArray[Any]:
        """Return a server's predictions for private rows.

        The rows are released here, and only the release is sent.

        Args:
            X, subject: rows and names, which ``release`` takes and charges.
            model: identity or name, or None where the server has one model for this bundle.

        Returns:
            One prediction for each row, None where its answer was withheld.

        Raises:
            InvalidInput: the bundle was read from a folder, so that there is no server, or there is
                no such model.
            ServiceUnreachable: nothing answers. The rows are charged, and ``send`` sends a release
                again.
        """
        chosen = self._model(model)
        return self.send(self.release(X, subject=subject), model=chosen)

    def send(self, release: Release, *, model: str | None = None) -> npt.NDArray[Any]:
        """Return a server's predictions for what this device has released. It is free, and
        repeatable.

        Args:
            release: a release of this device.
            model: identity or name, as ``predict`` takes it.

        Raises:
            InvalidInput: a release of another bundle, one that was booked nowhere, or no server.
        """
        receipt = release.receipt
        if receipt.bundle != self.bundle or receipt.seeded or not receipt.booked:
            raise InvalidInput(
                f"release: expected one of this device, got bundle={receipt.bundle[:16]!r}, "
                f"booked={receipt.booked!r}, seeded={receipt.seeded}"
            )
        client, chosen = self._connected(), self._model(model)
        values = [
            None if left else value
            for value, left in zip(release.values.tolist(), release.withheld.tolist(), strict=True)
        ]
        bundle, predicted = client.predictions(chosen, values, receipts=(receipt.identifier,))
        if bundle != self.bundle or len(predicted) != len(release):
            raise InvalidInput(
                f"model={chosen!r:.80}: learnt from values of another bundle, or gave "
                f"{len(predicted)} predictions for {len(release)} rows"
            )
        found = np.empty(len(predicted), dtype=object)
        found[:] = predicted
        return found if any(one is None for one in predicted) else np.array(predicted)

    def _connected(self) -> Client:
        if self._client is None:
            raise InvalidInput(
                "predict: expected a Device with the address of a service; this one read a folder"
            )
        return self._client

    def _model(self, model: str | None) -> str:
        if model is not None:
            return model
        fitting = [
            entry["id"] for entry in self._connected().models() if entry["bundle"] == self.bundle
        ]
        if len(fitting) != 1:
            raise InvalidInput(
                f"model: expected a name, since the service has {len(fitting)} models that this "
                "key may ask for values of this bundle"
            )
        return str(fitting[0])

    def _check(
        self, stored: Bundle, offered: Guarantee | None, trusted_key: str | Path | None
    ) -> None:
        """Refuse what is not as stated, offered or pinned, as the class says."""
        guarantee = self.guarantee
        if not protects_input(guarantee.adjacency):
            raise _protects_records(stored.system)
        if offered is not None and offered != guarantee:
            raise UntrustedSignature(
                f"bundle: the service states {offered.describe()}; computed from its weights is "
                f"{guarantee.describe()}"
            )
        if stored.card != self.card().to_markdown() and trusted_key is None:
            # A card of another version may say the same in other words: then its owner's signature
            # has to vouch for it.
            raise CorruptBundle(
                "bundle: its card does not say what follows from its weights; expected the card "
                "that this version writes, or a signature by trusted_key"
            )
        self.pin.check(self.fingerprint, guarantee)


def _check_edition(file: Path, edition: Edition) -> None:
    """Refuse an edition that is older than one that was seen, and note a newer one.

    Args:
        file: file with the highest edition of each key and name.
        edition: edition of a bundle whose signature was checked.

    Raises:
        UntrustedSignature: the edition is older.
        CorruptBundle: the file holds something else.
    """
    try:
        seen = strict_loads(read_regular(file, most=_MOST_EDITIONS)) if file.exists() else {}
        latest = seen.get(f"{edition.key}/{edition.name}", 0)
        older = edition.number < latest
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptBundle(f"{file}: expected the editions that this device has seen") from error
    if older:
        raise UntrustedSignature(
            f"bundle={edition.name!r:.80}: is edition {edition.number}, and this device has seen "
            f"edition {latest}; an old one was put back"
        )
    if edition.number > latest:
        content = strict_dumps({**seen, f"{edition.key}/{edition.name}": edition.number})
        with output_file(file, size=len(content), overwrite=True, private=True) as put:
            put(content)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keep other threads and processes from making what stands in a home while the block runs."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _answering(folder: Path, trusted_key: str | Path | None, embedder: Any) -> Any:
    from reticent.systems.loading import load

    found = load(folder, trusted_key=trusted_key, embedder=embedder)
    if hasattr(found, "released_by_"):
        raise InvalidInput(
            f"folder={str(folder)!r}: holds a model of released values, which answers nothing "
            "about rows; load it with reticent.load"
        )
    return found


def _protects_records(name: str) -> InvalidInput:
    return InvalidInput(
        f"bundle={name!r}: protects the records that it was fitted on, and these are with its "
        "owner; ask the service: Client(url, key).answers(rows)"
    )


def _is_address(source: str | Path) -> bool:
    return isinstance(source, str) and source.startswith(("http://", "https://"))


def _home(home: str | Path | None) -> Path:
    if home is not None:
        return Path(home)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "reticent" / "device"
