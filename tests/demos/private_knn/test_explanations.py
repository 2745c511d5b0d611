"""Sentences appear where their numbers ask for them, and say those numbers."""

from __future__ import annotations

from reticent.demos.private_knn.explanations import on_facts, on_rungs

BARE = "no protection"


def test_a_student_that_beats_its_labels_is_explained() -> None:
    [sentence] = on_facts({"student": 0.88, "released right": 0.82})
    assert "(88 %) than the labels it learnt from (82 %)" in sentence
    assert on_facts({"student": 0.8, "released right": 0.82}) == []


def test_a_better_way_is_named_and_no_protection_is_none() -> None:
    rungs = {"noisy gradient descent": 0.94, "cells": 0.86, BARE: 0.99}
    first, last = on_rungs({"student": 0.88}, rungs, BARE)
    assert "noisy gradient descent is right on 94 %, the student on 88 %" in first
    assert "labelled already" in last
    assert len(on_rungs({"student": 0.95}, rungs, BARE)) == 1
