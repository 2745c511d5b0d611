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
from reticent.pages.parts import document, figure_table
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
        (audit.claim_words, "the claim"),
        (f"{audit.excluded:.3g}" if audit.excluded else "none", "largest epsilon excluded"),
        (f"{audit.draws:,}", "draws"),
    ]
    shown = "".join(f"<li><strong>{escape(v)}</strong> {escape(n)}</li>" for v, n in facts)
    rows = [
        (
            pair.name,
            [
                f"{pair.draws:,}",
                "refuted" if pair.refuted else "not refuted",
                f"{pair.excluded:.3g}" if pair.excluded else "none",
                escape(pair.event),
            ],
            "",
        )
        for pair in audit.pairs
    ]
    columns = ("draws", "verdict", "excluded ε", "told apart by")
    found = "".join(
        f"<li><strong>{escape(one.kind)}</strong>: {escape(one.event)}. Witness: "
        f"{escape(one.witness)}. See it again: <code>{escape(one.replay)}</code></li>"
        for one in audit.findings
    )
    source = f"<p>Source of the claim: {escape(audit.source)}</p>" if audit.source else ""
    noise = f"<p>{escape(audit.noise)}.</p>" if audit.noise else ""
    return document(
        title=f"Audit of {audit.subject}",
        about="A test of a stated privacy guarantee by draws on neighbouring data sets",
        answered=f"Repeat it: <code>{escape(audit.replay)}</code>. {audit.seconds:.0f} seconds.",
        body=[
            f"""<header><p class="name-of">reticent · audit of a claim</p>
<h1>{escape(audit.subject)}</h1>
<p class="lead">{escape(audit.summary)}</p></header>""",
            f'<main><ul class="facts" aria-label="Main results">{shown}</ul>',
            _section("protected", "What is protected", f"<p>{escape(protected)}</p>"),
            _section("unit", "Unit of privacy", f"<p>{escape(unit)}</p>"),
            _section(
                "parameters",
                "Privacy parameters",
                f"<p>The claim: {escape(audit.claim_words)}. The chance of refuting a claim that "
                f"holds is at most {audit.alpha:g}.</p>{source}{noise}",
            ),
            _section("trust", "Trust model", f"<p>{escape(trust)}</p>"),
            _section(
                "neighbours",
                "Neighbours that were tried",
                figure_table("", "neighbours", columns, rows),
            ),
            _section(
                "implementation",
                "Implementation",
                f"<ul>{found}</ul>" if found else "<p>Nothing was found beside the value.</p>",
            ),
            _section(
                "trusted",
                "What was not examined",
                f"<p>{escape(audit.not_examined[0].upper() + audit.not_examined[1:])}.</p>",
            )
            + "</main>",
        ],
    )


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{body}</section>'
