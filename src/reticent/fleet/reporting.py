"""A device's reports: checked against the signed round, charged, drawn once, sealed, and kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reticent.core.errors import (
    AnswerLost,
    BudgetExceeded,
    CorruptBundle,
    IncompatibleGuarantees,
    InvalidInput,
    UntrustedSignature,
)
from reticent.core.files import output_file, read_regular
from reticent.core.scopes import Scope
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.fleet.rounds import Round
from reticent.fleet.sealing import ENVELOPE, check_token, envelope
from reticent.ledger.ledger import Ledger

_SEEN, _FOLDER = "rounds.json", "rounds"
_MOST_SEEN = 2**22


def check_once(round_: Round, encoder: Any, home: Path) -> None:
    """Refuse a round that is another one than this home has seen under its name, or whose claims do
    not follow from the bundle. Note a new one.

    Raises:
        UntrustedSignature: the home has seen another round of this campaign and number.
        InvalidInput: as ``Round.check``.
        CorruptBundle: the file of seen rounds is damaged.
    """
    file, name = home / _SEEN, f"{round_.number}/{round_.campaign}"
    try:
        seen = strict_loads(read_regular(file, most=_MOST_SEEN)) if file.exists() else {}
        earlier = seen.get(name)
    except (AttributeError, InvalidInput) as error:
        raise CorruptBundle(f"{file}: expected the rounds that this device has seen") from error
    if earlier == round_.digest.hex():
        return
    if earlier is not None:
        raise UntrustedSignature(
            f"round {round_.number} of {round_.campaign!r}: differs from the one that this device "
            "has seen; an aggregator that sends several can tell devices apart"
        )
    round_.check(encoder)
    content = strict_dumps({**seen, name: round_.digest.hex()})
    with output_file(file, size=len(content), overwrite=True, private=True) as put:
        put(content)


def reports_of(
    encoder: Any,
    X: Any,
    *,
    round_: Round,
    tokens: Sequence[bytes],
    subjects: Sequence[str],
    ledger: Ledger,
    home: Path,
    now: float,
) -> list[bytes]:
    """Return one sealed report for each row, each charged and drawn once.

    A second call for the same round and subjects gives the envelopes of the first, without a
    charge.

    Args:
        encoder: the fitted bundle.
        X: private rows, one for each subject.
        round_: the signed round, as ``check_once`` has passed it.
        tokens: one enrolment for each subject.
        subjects: whose row each is. Each name stands for one device.
        ledger: books of the local cost.
        home: folder of the device, which nobody else changes meanwhile.
        now: time, in seconds since 1970.

    Raises:
        InvalidInput: the round is over, names or tokens that do not fit, or rows that cannot be
            used. Nothing is charged.
        UntrustedSignature: a token of another round.
        BudgetExceeded: too little is left of a subject's budget.
        AnswerLost: an earlier call was cut off after its charge.
    """
    if len(tokens) != len(subjects) or len(set(subjects)) < len(subjects) or not subjects:
        raise InvalidInput("token, subject: expected one of each for each row, all different")
    folder = home / _FOLDER / round_.digest.hex()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = [folder / hashlib.sha256(subject.encode()).hexdigest() for subject in subjects]
    there = [file.exists() for file in files]
    if all(there):
        return [_kept(file) for file in files]
    if any(there):
        raise InvalidInput("subject: expected devices that have all sent a report, or none")
    if now >= round_.closes:
        raise InvalidInput(f"round {round_.number}: is over, and its shuffler takes no report")
    for token in tokens:
        check_token(token, round_)
    try:
        for file in files:
            # before the draw: what is cut off in between must not be drawn again
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        scopes = [Scope(subject=subject, bundle=round_.bundle) for subject in subjects]
        released = encoder.release(X, ledger=ledger, scope=scopes)
    except (BudgetExceeded, IncompatibleGuarantees, InvalidInput):
        for file in files:  # nothing was drawn
            file.unlink(missing_ok=True)
        raise
    codes = released.values.argmax(axis=1).tolist()
    sealed = [
        envelope(code, token=token, round_=round_)
        for code, token in zip(codes, tokens, strict=True)
    ]
    for file, content in zip(files, sealed, strict=True):
        with output_file(file, size=len(content), overwrite=True, private=True) as put:
            put(content)
    return sealed


def _kept(file: Path) -> bytes:
    content = read_regular(file, most=ENVELOPE)
    if len(content) != ENVELOPE:
        raise AnswerLost("report: an earlier call was charged and cut off; this round has none")
    return content
