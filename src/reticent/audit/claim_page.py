"""The audit of a claim as a page, as JSON, and signed.

The headings are those under which NIST SP 800-226 evaluates a guarantee.
"""

from __future__ import annotations

import contextlib
from html import escape
from pathlib import Path
from typing import Any

from reticent.audit.claims import ClaimAudit
from reticent.core.signatures import sign, signature_values, signing_key, verify
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.pages.page import Fact, Items, Section, Table, page
from reticent.version import __version__

PURPOSE = "audit of a claim"
"""What a signature of the report is for."""


def claim_report(audit: ClaimAudit, *, protected: str, unit: str, trust: str) -> dict[str, Any]:
    """Return the audit as plain values for JSON.

    Args:
        audit: the result.
        protected: what the claim protects, in words.
        unit: the unit of privacy, in words: a record, a person, a day of one person.
        trust: the trust model, in words: who sees the data, who sees the answers.

    References:
        Near, Darais, Lefkovitz and Howarth (2025), "Guidelines for evaluating differential privacy
        guarantees", doi:10.6028/NIST.SP.800-226.
    """
    return {
        "format": "reticent claim audit 1",
        "reticent": __version__,
        "subject": audit.subject,
        "verdict": "refuted" if audit.refuted else "not refuted",
        "summary": audit.summary,
        "what is protected": protected,
        "unit of privacy": unit,
        "trust model": trust,
        "privacy parameters": {
            "epsilon": audit.epsilon,
            "delta": audit.delta,
            "mu": audit.mu,
            "source": audit.source,
        },
        "level": audit.alpha,
        "draws": audit.draws,
        "excluded epsilon": audit.excluded,
        "pairs": [
            {
                "neighbours": pair.name,
                "draws": pair.draws,
                "refuted": pair.refuted,
                "excluded epsilon": pair.excluded,
                "event": pair.event,
            }
            for pair in audit.pairs
        ],
        "stated noise": audit.noise,
        "implementation": [
            {"kind": one.kind, "witness": one.witness, "event": one.event, "replay": one.replay}
            for one in audit.findings
        ],
        "replay": audit.replay,
    }


def signed_report(report: dict[str, Any], key: str | Path) -> bytes:
    """Return the report as JSON with a signature.

    Args:
        report: result of ``claim_report``.
        key: file with a private Ed25519 key in PEM.
    """
    values = signature_values(strict_dumps(report), purpose=PURPOSE, key=signing_key(key))
    return strict_dumps({"report": report, "signature": values})


def signed_page(page: str, key: str | Path) -> bytes:
    """Return the page with a signature of all that stands before, as a comment at its end."""
    content = page.encode()
    return content + _BEFORE + sign(content, purpose=PURPOSE, key=key) + _AFTER


def verify_audit(content: bytes, *, trusted_key: str | Path) -> None:
    """Check the signature of ``signed_report`` or of ``signed_page``.

    Args:
        content: the whole file.
        trusted_key: as for ``reticent.core.signatures.verify``.

    Raises:
        UntrustedSignature: no signature, one by another key, or one of something else.
        InvalidInput: no such key.
    """
    signature: bytes | None = None
    if content.endswith(_AFTER):
        content, _, signature = content.removesuffix(_AFTER).rpartition(_BEFORE)
    else:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            signed = strict_loads(content)
            content, signature = (strict_dumps(signed[key]) for key in ("report", "signature"))
    verify(content, signature, purpose=PURPOSE, trusted_key=trusted_key)


_BEFORE, _AFTER = b"<!-- signature ", b" -->\n"


def claim_page(audit: ClaimAudit, *, protected: str, unit: str, trust: str) -> str:
    """Return a whole HTML page: verdict, claim, pairs, findings, and what was not examined."""
    facts = [
        Fact(audit.claim_words, "the claim"),
        Fact(f"{audit.excluded:.3g}" if audit.excluded else "none", "largest epsilon excluded"),
        Fact(f"{audit.draws:,}", "draws"),
    ]
    rows = [
        (
            pair.name,
            [
                f"{pair.draws:,}",
                "refuted" if pair.refuted else "not refuted",
                f"{pair.excluded:.3g}" if pair.excluded else "none",
                pair.event,
            ],
        )
        for pair in audit.pairs
    ]
    found = [
        (one.kind, f"{one.event}. Witness: {one.witness}. See it again: {one.replay}")
        for one in audit.findings
    ]
    parameters = [
        (
            f"The claim: {audit.claim_words}. The chance of refuting a claim that holds is at most "
            f"{audit.alpha:g}."
        ),
        f"Source of the claim: {audit.source}" if audit.source else "",
        f"{audit.noise}." if audit.noise else "",
    ]
    unseen = f"{audit.not_examined[0].upper()}{audit.not_examined[1:]}."
    columns = ("draws", "verdict", "excluded ε", "told apart by")
    return page(
        audit.subject,
        audit.summary,
        facts,
        [
            Section("What is protected", protected),
            Section("Unit of privacy", unit),
            Section("Privacy parameters", "\n\n".join(parameters)),
            Section("Trust model", trust),
            Section("Neighbours that were tried", "", [Table("neighbours", columns, rows)]),
            Section("Implementation", "", [Items(found)])
            if found
            else Section("Implementation", "Nothing was found beside the value."),
            Section("What was not examined", unseen),
        ],
        name="audit of a claim",
        about="A test of a stated privacy guarantee by draws on neighbouring data sets",
        window=f"Audit of {audit.subject}",
        answered=f"Repeat it: <code>{escape(audit.replay)}</code>. {audit.seconds:.0f} seconds.",
    )
