"""Tables of *which method*, from the results in docs/results."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"

CROSSING = ("blobs", 10.0)
"""Data set and total of the chart of answers."""

_SIZES = {"enough": "2,000, at least a fifth of the private records", "few": "a twentieth of them"}
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


def best_table() -> str:
    """Which kind of method was best in hindsight, by public rows and epsilon."""
    cases = json.loads((RESULTS / "choose" / "plan_regret.json").read_text(encoding="utf-8"))
    best = Counter(
        (case["size"], case["epsilon"], case["best"].split(" (")[0]) for case in cases["cases"]
    )
    kinds = sorted(
        {kind for _, _, kind in best}, key=lambda kind: (kind != "public rows alone", kind)
    )
    rows = [f"| public rows | ε | {' | '.join(kinds)} |", f"|---|---|{'---|' * len(kinds)}"]
    for size, epsilon in sorted({(size, epsilon) for size, epsilon, _ in best}):
        counts = [str(best[size, epsilon, kind]) for kind in kinds]
        rows.append(f"| {_SIZES[size]} | {epsilon:g} | {' | '.join(counts)} |")
    return "\n".join(rows)


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
