"""The table of score bins: what it says of cuts that are known."""

from __future__ import annotations

from papers.power.code_methods import AUTO, RUNG
from papers.power.codes import table, verdicts

NAMES = (
    AUTO,
    "score bins, by information",
    "network's class + randomised response",
    RUNG,
    "booster + randomised response",
    "raw columns",
)


def cut(gain: float, seconds: float) -> dict[str, dict[str, dict[str, float | str]]]:
    """Every method at .1 nats, but "auto", which is ``gain`` above."""
    scores = {"accuracy": 0.7, "balanced_accuracy": 0.6, "auc": 0.65, "seconds": seconds}
    return {
        "2": {
            name: {**scores, "information": 0.1 + gain * (name == AUTO), "chosen": "trees"}
            for name in NAMES
        }
    }


def test_differences_are_paired_by_cut() -> None:
    cuts = [cut(0.01, 1.0), cut(0.03, 3.0)]
    lines = table("toy", cuts)
    assert len(lines) == len(NAMES)
    assert '| toy | 2 | "auto", by information | 0.7000 ± 0.0000 |' in lines[0]
    assert "0.0200 ± 0.0100 | 2.0 | trees |" in lines[0]
    [line] = verdicts("toy", cuts)
    assert "| +0.0200 ± 0.0100 | +0.0000 ± 0.0000 | +0.0000 ± 0.0000 | 1.0 |" in line
    lost = cut(0.0, 4.0)
    lost["2"][RUNG].update(balanced_accuracy=0.64, seconds=8.0)
    [line] = verdicts("toy", [cut(0.0, 4.0), lost])
    assert line.endswith("| -0.0200 ± 0.0200 | +0.0000 ± 0.0000 | 0.8 |")
