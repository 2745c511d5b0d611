"""The progress bar takes every report, also of a stage that starts again and of one without a
loss.
"""

from __future__ import annotations

import io

from rich.console import Console

from reticent.training.progress import bar, silent


def test_bar_shows_stages() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with bar(console=console) as report:
        report("embedder", 1, 2, 0.5)
        report("embedder", 2, 2, 0.4)
        report("head", 1, 1, 0.1)
        report("embedder", 1, 2, 0.3)
        report("table", 1, 1, float("nan"))
    written = console.file.getvalue()
    assert "loss 0.1" in written
    assert "nan" not in written
    assert "embedder" in written
    assert "head" in written


def test_silent_says_nothing() -> None:
    assert silent("head", 1, 1, 0.0) is None
