"""The accuracies of a demonstration as lines and levels, for its page and its figure alike."""

from __future__ import annotations

from typing import Any

from reticent.demos.label_response import RESPONSE
from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN, best_published
from reticent.pages.line_chart import Level, Series

_MARKERS = ("square", "diamond", "triangle")


def accuracy_series(results: dict[str, Any]) -> list[Series]:
    """Accuracy against the proved total, with 95 % intervals: the published obfuscators, the best
    of them last, then randomised response, noise on the embedding and ours.
    """
    best = best_published(results)
    others = [name for name in results["settings"]["published"] if name != best]
    markers = {name: _MARKERS[index % len(_MARKERS)] for index, name in enumerate([best, *others])}
    response = tuple(
        (row["epsilon"], row["accuracy"], 0.0) for row in results["randomised_response"]
    )
    return [
        *(_series(results, name, "published", markers[name]) for name in others),
        _series(results, best, "best", markers[best]),
        Series(RESPONSE, response, "", "square", "dashed"),
        _series(results, PLAIN, "plain", "triangle"),
        _series(results, LABEL, "label", "diamond"),
        _series(results, OURS, "ours", "circle"),
    ]


def accuracy_levels(results: dict[str, Any]) -> list[Level]:
    """What no epsilon changes."""
    return [
        Level("no protection", results["accuracy_without_protection"]),
        Level("one class always", results["accuracy_by_chance"]),
    ]


def _series(results: dict[str, Any], name: str, style: str, marker: str) -> Series:
    rows = [row for row in results["rows"] if row["name"] == name]
    return Series(
        name,
        tuple((row["epsilon"], row["accuracy"], 1.96 * row["standard_error"]) for row in rows),
        style,
        marker,
    )
