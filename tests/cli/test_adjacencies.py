"""Budgets for the adjacency of a bundle, or for one that is said option by option."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Unit
from reticent.ledger import Ledger
from reticent.systems import CertifiedClassifier, LabelAware, PosthocClassifier

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.arange(60) % 2


@pytest.fixture
def book(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "book.db").close()
    return tmp_path / "book.db"


def granted(book: Path) -> Guarantee:
    ledger = Ledger.open(book)
    (budget,) = ledger.report().budgets
    ledger.close()
    return Guarantee.from_dict({"epsilon": 1.0, "delta": 0.0, **json.loads(budget.statement)})


def grant(book: Path) -> tuple[object, ...]:
    return ("ledger", "grant", "--ledger", book, "--subject", "s", "--epsilon", 9, "--delta", 0)


def test_a_grant_takes_the_adjacency_of_a_bundle(command, book, inputs, tmp_path):
    made = PosthocClassifier(
        epsilon=2.0,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        classifier=LabelAware(hidden=(4,), epochs=1),
    ).fit(X, Y)
    bundle = made.save(tmp_path / "bundle")
    answer = command(*grant(book), "--adjacency-of", bundle)
    assert answer.status == 0, answer.err
    assert granted(book).adjacency == made.guarantee.adjacency
    np.save(tmp_path / "x.npy", X[:3])
    words = (
        "release",
        bundle,
        "--input",
        tmp_path / "x.npy",
        "--output",
        tmp_path / "y.npz",
        "--ledger",
        book,
        "--subject",
        "s",
    )
    assert command(*words).status == 0
    preview = (
        "ledger",
        "preview",
        "--ledger",
        book,
        "--subject",
        "s",
        "--epsilon",
        2,
        "--delta",
        0,
    )
    assert "at most 1 answer(s) fit now" in command(*preview, "--adjacency-of", bundle).out
    # The same, said by hand: the identity is in the card.
    adjacency = made.guarantee.adjacency
    said = (
        "--adjacency",
        "neighborhood",
        "--metric",
        "linf",
        "--radius",
        0.2,
        "--space",
        adjacency.space,
    )
    assert command(*preview, *said, "--identity", adjacency.identity).status == 0
    assert command(*preview, *said).status == 7


def test_a_grant_says_data_set_and_unit(command, book):
    assert (
        command(
            *grant(book), "--adjacency", "add-remove", "--unit", "person", "--data-set", "ward 7"
        ).status
        == 0
    )
    assert granted(book).adjacency == AddRemove(1, Unit.PERSON, "ward 7")


def test_a_bundle_of_records_without_a_name_gets_no_budget(command, book, tmp_path):
    bundle = (
        CertifiedClassifier(epsilon=2.0, classes=[0, 1], k_max=1)
        .fit(X, Y)
        .save(tmp_path / "bundle")
    )
    answer = command(*grant(book), "--adjacency-of", bundle)
    assert answer.status == 2
    assert "data_set: expected a name of the protected records" in answer.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "expected --adjacency-of with a bundle, or --adjacency"),
        (("--adjacency-of", "bundle", "--adjacency", "replace"), "and not both"),
        (("--adjacency-of", "bundle", "--data-set", "x"), "no other option about it"),
        (("--adjacency-of", "bundle", "--kind", "lipschitz"), "no other option about it"),
        (("--adjacency-of", "nowhere"), "expected a bundle folder"),
        (
            ("--adjacency", "replace", "--identity", "6f1c"),
            "neither --metric, --radius nor --identity",
        ),
        (
            ("--adjacency", "neighborhood", "--metric", "l2", "--radius", 1, "--data-set", "x"),
            "neither --records, --unit nor",
        ),
        (("--adjacency", "neighborhood"), "expected --metric and --radius"),
        (("--adjacency", "replace", "--unit", "family"), "family"),
    ],
)
def test_what_contradicts_itself_grants_nothing(command, book, options, message):
    answer = command(*grant(book), *options)
    assert answer.status == 2
    assert message in answer.err
    ledger = Ledger.open(book)
    assert ledger.report().entries == 0
    ledger.close()
