"""Tables of *which method*, from the results in docs/results."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"

CROSSING = ("blobs", 10.0)
"""Data set and total of the chart of answers."""

_ANSWERS = {
    "certified intervals, by the number of answers": "`CertifiedClassifier`",
    "convex certificate, by the number of answers": "`ConvexCertifiedClassifier`",
    "clipped linear vote": "`LinearVoteClassifier`",
}


@cache
def rungs(data: str) -> dict[str, Any]:
    """What `python -m papers.certified.rungs` measured on one data set."""
    text = (RESULTS / "certified" / f"rungs-{data}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def answers_table() -> str:
    """Q*: the number of answers up to which private prediction is ahead of private training."""
    rows = [
        f"| data | ε (δ = 1e-5) | {' | '.join(_ANSWERS.values())} |",
        f"|---|---|{'---|' * len(_ANSWERS)}",
    ]
    for path in sorted(RESULTS.glob("certified/rungs-*.json")):
        data = path.stem.removeprefix("rungs-")
        for epsilon, found in rungs(data)["means"]["Q*"].items():
            counts = [f"{found[name]:,.0f}" if name in found else "" for name in _ANSWERS]
            rows.append(f"| {data} | {float(epsilon):g} | {' | '.join(counts)} |")
    return "\n".join(rows)
