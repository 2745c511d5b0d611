"""Sentences appear where their numbers ask for them, and say those numbers."""

from __future__ import annotations

from typing import Any

import pytest

from reticent.demos.posthoc.demo import LABEL, OURS, PLAIN
from reticent.demos.posthoc.explanations import on_attack, on_facts, on_headline


def results(
    *, ours: float, plain: float, label: float, without: float, response: float = 0.5
) -> dict[str, Any]:
    rows = [
        {"name": name, "epsilon": 5.0, "accuracy": share}
        for name, share in ((OURS, ours), (PLAIN, plain), (LABEL, label))
    ]
    return {
        "headline": {
            OURS: {"epsilon": 5.0, "closed": 0.25, "lost": 0.125, "least": 1 / 3, "met": False},
            LABEL: {"epsilon": 2.0, "closed": 0.5, "lost": -0.01, "least": 1 / 3, "met": True},
        },
        "rows": rows,
        "accuracy_without_protection": without,
        "randomised_response": [{"epsilon": 5.0, "accuracy": response}],
        "attacks": [
            {"sees": "our release", "epsilon": 5.0, "ssim": 0.7},
            {"sees": "the embedding as it is sent today", "epsilon": None, "ssim": 0.8},
            {"sees": "nothing", "epsilon": 0.0, "ssim": 0.4},
        ],
    }


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (
            {"ours": 0.8, "plain": 0.9, "label": 0.7, "without": 0.95},
            "itself got 90 % here, and ours 80 %",
        ),
        ({"ours": 0.8, "plain": 0.7, "label": 0.94, "without": 0.92}, "94 % with only the label"),
        (
            {"ours": 0.8, "plain": 0.7, "label": 0.8, "without": 0.9, "response": 0.82},
            "82 % at this ε. It is the better choice here",
        ),
    ],
)
def test_a_number_that_looks_wrong_is_explained(shares: dict[str, float], words: str) -> None:
    assert any(words in sentence for sentence in on_facts(results(**shares)))


def test_what_needs_no_explanation_gets_none() -> None:
    [sentence] = on_facts(results(ours=0.9, plain=0.7, label=0.8, without=0.95))
    assert "right on 50 % at this ε; what is gained" in sentence


def test_the_share_of_the_gap_that_is_closed_is_said() -> None:
    [sentence] = on_attack(results(ours=0.9, plain=0.7, label=0.8, without=0.95))
    assert "the attacker is 25 % of the way" in sentence  # from .8 to .7, of .8 to .4


def test_the_headline_says_what_is_gained_at_what_loss() -> None:
    found = results(ours=0.8, plain=0.7, label=0.8, without=0.95)
    embedding, label, rule = on_headline(found)
    assert embedding.startswith("At ε = 5 the released embedding takes an attacker 25 %")
    assert embedding.endswith("and costs 12.5 points of accuracy against no protection.")
    assert label.endswith("ε = 2 goes 50 % of the way and costs no accuracy against no protection.")
    assert "No ε that was tried closes 33 % of that gap" in rule
    found["headline"][OURS]["met"] = True
    assert "picked on these same pictures" in on_headline(found)[-1]
