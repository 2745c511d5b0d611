"""Means over seeds, their intervals, the page and the picture, on runs that are made up."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papers.posthoc import digits_figure
from reticent.demos.baselines import RESPONSE
from reticent.demos.posthoc import LABEL, OURS, PLAIN, suggested
from reticent.training.progress import silent

NAMES = ("Encoder", RESPONSE, PLAIN, OURS, LABEL)


def made_up(data: Any, config: Any, *, report: Any) -> dict[str, Any]:
    lines = {name: {"1": 0.1 * place, "2": 0.5} for place, name in enumerate(NAMES, 1)}
    lines[LABEL]["2"] = 0.7 + 0.1 * config.seed
    levels = {"no protection": 0.9, "one class always": 0.1}
    return {"lines": lines, "levels": levels, "pictures": 400}


def test_means_and_intervals_are_those_of_the_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digits_figure, "one_run", made_up)
    configs = [replace(suggested("digits", seed=seed)) for seed in range(2)]
    means, errors = digits_figure.run(digits_figure.load_digits(), configs, tmp_path, report=silent)
    assert means["lines"][LABEL]["2"] == pytest.approx(0.75)
    assert errors["lines"][LABEL]["2"] == pytest.approx(0.05)
    series = {one.name: one for one in digits_figure.series_of(means, errors)}
    assert list(series) == [LABEL, OURS, PLAIN, RESPONSE, "published obfuscator Encoder"]
    epsilon, mean, half = series[LABEL].points[1]
    assert (epsilon, mean) == (2.0, pytest.approx(0.75))
    assert half == pytest.approx(1.96 * math.sqrt(0.05**2 + 0.75 * 0.25 / 400))
    assert {one.style for one in series.values()} >= {"ours", "published"}
    text = digits_figure.markdown(means, errors, 2)
    assert f"| {LABEL} | 50.0 ± 0.0 | 75.0 ± 5.0 |" in text
    assert text.index(LABEL) < text.index("Encoder")  # the best at the second epsilon first
    assert digits_figure.figure(means, errors, configs[0]).startswith(b"\x89PNG")
