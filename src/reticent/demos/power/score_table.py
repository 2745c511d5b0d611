"""The section of a demonstration's page that sets our release beside simple methods, by four
scores.
"""

from __future__ import annotations

from html import escape
from typing import Any

from reticent.demos.power.rungs import SCORES
from reticent.pages.parts import figure_table


def score_section(results: dict[str, Any]) -> str:
    """A table for each kind of neighbours, as HTML.

    Args:
        results: of the demonstration.
    """
    tables = []
    for radius in results["settings"]["radii"]:
        rows = [row for row in results["rows"] if row["radius"] == radius]
        lines = [
            (f"ε = {row['epsilon']:g}: {name}", _cells(row["scores"], name), _style(name))
            for row in rows
            for name in row["scores"]
        ]
        tables.append(
            figure_table(
                f"Neighbours: {rows[0]['neighbours']}. The best of each score is bold.",
                "method",
                ("accuracy", "balanced", "AUC", "nats"),
                lines,
            )
        )
    return f"""<section aria-labelledby="methods">
<h2 id="methods">Simple methods at the same guarantee</h2>
<p>All are scored on the same held-out rows, one draw of the noise. Accuracy counts the likeliest
label; balanced accuracy names the label whose probability exceeds its share most, and counts each
label alike. Nats say how much a release tells about the label; below 0 the shares of labels alone
say more.</p>
{"".join(tables)}
</section>"""


def _cells(scores: dict[str, dict[str, float]], name: str) -> list[str]:
    cells = []
    for score in SCORES:
        value, best = scores[name][score], max(found[score] for found in scores.values())
        text = f"{value:.3f}" if score in ("auc", "information") else f"{100 * value:.1f} %"
        cells.append(f"<b>{escape(text)}</b>" if value == best else escape(text))
    return cells


def _style(name: str) -> str:
    return "strong" if name == "ours" else ""
