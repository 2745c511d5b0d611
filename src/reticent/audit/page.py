"""The audit of a fitted system as a page and as a table of numbers."""

from __future__ import annotations

from html import escape

from reticent.audit.fitted import FittedAudit
from reticent.pages.parts import document, figure_table


def audit_page(audit: FittedAudit) -> str:
    """A whole HTML page: verdict, claim, and what the runs on each pair of neighbours establish."""
    claim = audit.claim
    facts = [
        (f"{claim.epsilon:g}", f"claimed ε at δ = {claim.delta:g}"),
        (f"{audit.epsilon_lower:.3g}", f"lower bound on ε, confidence {audit.confidence:g}"),
        (f"{audit.runs:,}", "runs on each neighbour of a pair"),
    ]
    shown = "".join(f"<li><strong>{value}</strong> {name}</li>" for value, name in facts)
    rows = [
        (pair.name, [f"{pair.result.epsilon_lower:.4g}", f"{pair.result.confidence:.6g}"], "")
        for pair in audit.pairs
    ]
    trusted = "".join(f"<li>{escape(words)}</li>" for words in audit.not_examined)
    return document(
        title=f"Audit of a {audit.system}",
        about="A lower confidence bound on the epsilon of a fitted system, against its claim",
        answered=(
            "Every number on this page was computed by the run that wrote it. Answers were drawn "
            f"by the code of the release on words of seed {audit.seed}, and thrown away; no budget "
            "was charged."
        ),
        body=[
            f"""<header><p class="name-of">reticent · {escape(audit.system)}</p>
<h1>What this system's answers give away, measured</h1>
<p class="lead">{escape(audit.verdict[0].upper() + audit.verdict[1:])}.</p></header>""",
            f'<main><ul class="facts" aria-label="Main results">{shown}</ul>',
            f"""<section aria-labelledby="pairs"><h2 id="pairs">Neighbours that were tried</h2>
<p>The claim: {escape(claim.describe())}. Each bound holds with the confidence beside it, and all of
them together with {audit.confidence:g}. The largest bound that this many runs could show is
{audit.largest_bound:.3g}.</p>
{figure_table("", "neighbours", ("lower bound on ε", "confidence"), rows)}</section>""",
            f"""<section aria-labelledby="trusted"><h2 id="trusted">What was not examined</h2>
<ul>{trusted}</ul>
<p>This page is as private as the bundle and the rows that it was made with.</p>
</section></main>""",
        ],
    )
