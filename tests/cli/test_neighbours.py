"""``--neighbours``: what the grammar says, what it refuses, and budgets for what exists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reticent.cli.neighbours import GRAMMAR, guarantee_for, statement
from reticent.core import AddRemove, Guarantee, GuaranteeKind, Neighborhood, Norm, Replace, Unit
from reticent.core.errors import InvalidInput
from reticent.ledger import Ledger
from reticent.systems import CertifiedClassifier, PosthocClassifier

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


def grant(book: Path, neighbours: object) -> tuple[object, ...]:
    amount = ("--epsilon", 13, "--delta", 0)
    line = ("ledger", "grant", "--ledger", book, "--subject", "s", *amount)
    return (*line, "--neighbours", neighbours)


@pytest.mark.parametrize(
    ("text", "adjacency"),
    [
        ("add-remove", AddRemove()),
        ("replace", Replace()),
        ("replace:person", Replace(unit=Unit.PERSON)),
        ("add-remove:record:3", AddRemove(3)),
        ("add-remove:::ward 7", AddRemove(data_set="ward 7")),
        ("replace:person:2:ward 7, 2024: east", Replace(2, Unit.PERSON, "ward 7, 2024: east")),
        ("within:l2:0.5", Neighborhood(Norm.L2, 0.5, "embedding")),
        ("within:linf:1e-1:6f1c", Neighborhood(Norm.LINF, 0.1, "embedding", "6f1c")),
        ("within:l1:2::a:b", Neighborhood(Norm.L1, 2.0, "a:b")),
    ],
)
def test_what_the_grammar_says(text, adjacency) -> None:
    found = guarantee_for(text, 1.0, 0.0)
    assert found == Guarantee(1.0, 0.0, adjacency)
    metric = Guarantee(1.0, 0.0, adjacency, GuaranteeKind.LIPSCHITZ_PRIVACY)
    assert guarantee_for(f"lipschitz:{text}", 1.0, 0.0) == metric
    for one in (found, metric):
        assert guarantee_for(statement(one), 1.0, 0.0) == one


WRONG = """add add-remove:family add-remove:record:0 add-remove:record:two replace:record:1.0
within within:l3:1 within:l2 within:l2:0 within:l2:nan within:l2:inf bundle bundle: receipt:
lipschitz lipschitz:bundle:folder Add-Remove"""


@pytest.mark.parametrize("text", ["", "add-remove:ward 7", *WRONG.split()])
def test_what_is_not_in_the_grammar_grants_nothing(command, book, text) -> None:
    answer = command(*grant(book, text))
    assert answer.status == InvalidInput.code
    assert GRAMMAR in answer.err
    ledger = Ledger.open(book)
    assert ledger.report().entries == 0
    ledger.close()


def test_a_grant_takes_what_a_bundle_or_its_receipt_says(command, book, tmp_path, labels_bundle):
    bundle, said = labels_bundle, PosthocClassifier.load(labels_bundle).guarantee
    assert command(*grant(book, f"bundle:{bundle}")).status == 0
    assert granted(book).adjacency == said.adjacency
    np.save(tmp_path / "x.npy", np.full((2, 4), 2.0))
    out = tmp_path / "y.npz"
    words = ("release", bundle, "--input", tmp_path / "x.npy", "--output", out)
    assert command(*words, "--ledger", book, "--subject", "s").status == 0
    cost = ("--epsilon", 4, "--delta", 0)
    preview = ("ledger", "preview", "--ledger", book, "--subject", "s", *cost, "--neighbours")
    printed = command("ledger", "report", "--ledger", book).out.partition("--neighbours '")[2]
    printed = printed.partition("')")[0]
    for neighbours in (f"bundle:{bundle}", f"receipt:{out}", printed, statement(said)):
        assert "at most 1 answer(s) fit now" in command(*preview, neighbours).out
    without_identity = f"within:linf:0.2::{said.adjacency.space}"
    assert command(*preview, without_identity).status == 7


def test_a_bundle_of_records_without_a_name_gets_no_budget(command, book, tmp_path):
    model = CertifiedClassifier(epsilon=2.0, classes=[0, 1], k_max=1).fit(X, Y)
    answer = command(*grant(book, f"bundle:{model.save(tmp_path / 'bundle')}"))
    assert answer.status == InvalidInput.code
    assert "data_set" in answer.err
