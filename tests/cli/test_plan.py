"""`reticent plan` reads public rows, prints which method to take, and fits it on private ones."""

from __future__ import annotations

import shlex
from contextlib import closing

import numpy as np
import pytest

from reticent.ledger.ledger import Ledger
from reticent.planning import planner
from reticent.planning.methods import Constant, PublicModels, PublicStart
from reticent.systems.loading import load
from reticent.tables import NamedRows

WANTED = ("--private", 5000, "--epsilon", 1, "--delta", "1e-6", "--seed", 0)


@pytest.fixture
def few(monkeypatch):
    """The constant and the public models, so that a test takes seconds."""
    methods = [Constant(), PublicModels()]
    monkeypatch.setattr(planner, "all_methods", lambda: methods)
    return methods


def written(path, rows, *, seed):
    """A table of numbers, words, dates and missing values, with labels in words."""
    random = np.random.default_rng(seed)
    lines = ["age,place,seen,same,kind,note"]
    for _ in range(rows):
        sick = random.random() < 0.5
        place = ("island" if seed else "north") if random.random() < 0.2 else "south"
        age = "" if random.random() < 0.05 else f"{40 * sick + random.uniform(0, 50):.1f}"
        day, kind = random.integers(1, 29), "ill" if sick else "well"
        lines.append(f"{age},{place},2020-01-{day:02},x,{kind},n")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def spending(ledger):
    """What was spent, in millionths of epsilon."""
    with closing(Ledger.open(ledger)) as book:
        [account] = book.report().accounts
        return account.spent_epsilon


def test_a_raw_table_from_end_to_end(few, tmp_path, command):
    """Plan, fit, book and save in one command: the bundle answers raw rows, and the ledger has the
    whole total once.
    """
    few.append(PublicStart())
    public, private = (
        written(tmp_path / "p.csv", 130, seed=0),
        written(tmp_path / "s.csv", 600, seed=1),
    )
    bundle, ledger, page = tmp_path / "model", tmp_path / "book.db", tmp_path / "plan.html"
    Ledger.create(ledger, synchronous="NORMAL").close()
    words = (
        *("plan", public, *WANTED, "--target", "kind", "--ignore-column", "note"),
        *("--fit", private, "--bundle", bundle, "--ledger", ledger, "--subject", "patients"),
        *("--scoring", "balanced_accuracy", "--page", page),
    )
    refused = command(*words)
    assert refused.out == ""  # before the plan, with the grant that it needs
    grant = refused.err.split("reticent ")[1].split("\n")[0]
    assert command(*shlex.split(grant), "--ledger", ledger).status == 0
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "Take: public start" in answer.out
    assert "of the fitted model on public rows" in answer.out
    assert "Left out, for they tell nothing: 'same'" in answer.err
    model = load(bundle)
    assert model.schema_ is not None
    assert model.costs_ is not None
    asked = NamedRows(
        np.array([[85.0, "elsewhere", None, "x"], [5.0, "south", None, "y"]], dtype=object),
        ("age", "place", "seen", "same"),
    )
    assert model.predict(asked).tolist() == ["ill", "well"]
    spent = spending(ledger)
    assert spent == pytest.approx(1e6, rel=1e-3)
    assert command(*words).status == 2  # the page is there, and nothing is spent again
    assert spending(ledger) == spent


def test_nothing_is_spent_by_a_plan_that_takes_nothing(few, tmp_path, command):
    public = written(tmp_path / "p.csv", 130, seed=0)
    answer = command(
        *("plan", public, *WANTED, "--target", "kind", "--ignore-column", "note"),
        *("--seconds", "1e-9", "--fit", public, "--bundle", tmp_path / "model"),
    )
    assert answer.status == 2
    assert "not tried, no time" in answer.out
    assert not (tmp_path / "model").exists()


def test_privacy_has_no_default(tmp_path, command):
    public = written(tmp_path / "p.csv", 30, seed=0)
    for missing in ("--private", "--epsilon", "--delta"):
        words = [*map(str, WANTED), "--target", "kind", "--ignore-column", "note"]
        at = words.index(missing)
        answer = command("plan", public, *words[:at], *words[at + 2 :])
        assert answer.status == 2
        assert missing in answer.err
