"""What the command line cannot use is refused with a line that names it; nothing is written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.cli.main import run
from reticent.core import Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptBundle,
    DataUnavailable,
    InvalidInput,
    InvalidParameter,
    LedgerUnavailable,
    ReticentError,
    WriteFailed,
)
from reticent.ledger import Ledger
from reticent.release.bundle import Bundle
from tests.bad_input.conftest import Bench, X, good, out, saved, spoiled


def _text(bench: Bench, name: str, content: bytes) -> Path:
    (bench.folder / name).write_bytes(content)
    return bench.folder / name


def _damaged(bench: Bench, name: str, change: Callable[[bytes], bytes]) -> Path:
    copy = bench.folder / "bundle"
    shutil.copytree(bench.bundle, copy)
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    return copy


def _incomplete(bench: Bench) -> Path:
    copy = _damaged(bench, "card.md", lambda content: content)
    (copy / "weights.safetensors").unlink()
    return copy


def _resettled(
    bench: Bench, change: Callable[[dict[str, Any]], object], *, system: str = ""
) -> Path:
    """A copy with other settings, or of another system, and a manifest that covers them:
    somebody took care.
    """
    stored = Bundle.read(bench.bundle)
    settings = json.loads(json.dumps(stored.settings))
    change(settings)
    made = Bundle(system or stored.system, settings, stored.arrays, stored.card, stored.serial)
    return made.write(bench.folder / "bundle")


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def _releasing(
    bundle: Callable[[Bench], Path], inputs: Callable[[Bench], Path]
) -> Callable[[Bench], list[object]]:
    return lambda bench: [
        "release",
        bundle(bench),
        "--input",
        inputs(bench),
        "--output",
        out(bench),
    ]


def _taken(bench: Bench) -> list[object]:
    (bench.folder / "file").write_text("")
    return [
        "release",
        bench.bundle,
        "--input",
        good(bench),
        "--output",
        bench.folder / "file" / "out.npz",
    ]


def _ledger(bench: Bench, *words: object) -> list[object]:
    return ["release", bench.bundle, "--input", good(bench), "--output", out(bench), *words]


def _poor(bench: Bench) -> list[object]:
    book = Ledger.create(bench.folder / "book.sqlite")
    book.grant(Scope(subject="anna"), Guarantee(1.0, 0.0, bench.encoder.guarantee.adjacency))
    book.close()
    return _ledger(bench, "--ledger", bench.folder / "book.sqlite", "--subject", "anna")


def _mine(bench: Bench) -> Path:
    return bench.bundle


def _certifying(*words: object) -> Callable[[Bench], list[object]]:
    return lambda bench: ["certify", bench.bundle, "--input", good(bench), *words]


USAGE = 2


CLI: list[tuple[str, Callable[[Bench], list[object]], type[ReticentError] | int, str]] = [
    ("no such command", lambda _: ["publish"], USAGE, "publish"),
    ("no such option", lambda bench: ["card", bench.bundle, "--yaml"], USAGE, "--yaml"),
    (
        "release without input",
        lambda bench: ["release", bench.bundle],
        USAGE,
        "--input",
    ),
    ("release with a seed", lambda bench: _ledger(bench, "--seed", 1), USAGE, "--seed"),
    ("certify without a radius", _certifying(), USAGE, "--radius"),
    (
        "certify with a word",
        _certifying("--radius", "wide"),
        USAGE,
        "--radius",
    ),
    (
        "certify at radius zero",
        _certifying("--radius", 0),
        InvalidParameter,
        "radius=0.0",
    ),
    ("certify at radius nan", _certifying("--radius", "nan"), InvalidParameter, "radius=nan"),
    (
        "demo of an unknown data set",
        lambda _: ["demo", "posthoc", "--dataset", "cats"],
        USAGE,
        "cats",
    ),
    (
        "demo with a negative seed",
        lambda _: ["demo", "posthoc", "--seed", -1],
        USAGE,
        "--seed",
    ),
    (
        "demo without its data",
        lambda _: ["demo", "posthoc", "--dataset", "utkface"],
        DataUnavailable,
        "RETICENT_DATA",
    ),
    (
        "demo over a folder of yours",
        lambda bench: ["demo", "posthoc", "--output", _text(bench, "thesis.txt", b"").parent],
        InvalidInput,
        "results.json",
    ),
    (
        "no bundle",
        _releasing(lambda bench: bench.folder / "none", good),
        InvalidInput,
        "none",
    ),
    (
        "no input",
        _releasing(_mine, lambda bench: bench.folder / "none.npy"),
        InvalidInput,
        "none.npy",
    ),
    (
        "input that is a folder",
        _releasing(_mine, lambda bench: bench.folder),
        InvalidInput,
        "input=",
    ),
    (
        "input of another format",
        _releasing(_mine, lambda bench: _text(bench, "x.npy", b"1,2")),
        InvalidInput,
        "x.npy",
    ),
    (
        "input cut short",
        _releasing(_mine, lambda bench: _text(bench, "x.npy", good(bench).read_bytes()[:-9])),
        InvalidInput,
        "x.npy",
    ),
    (
        "input with objects",
        _releasing(_mine, lambda bench: saved(bench, "x.npy", np.array([{}, []], dtype=object))),
        InvalidInput,
        "x.npy",
    ),
    (
        "input with nan",
        _releasing(_mine, lambda bench: saved(bench, "x.npy", spoiled(np.nan))),
        InvalidInput,
        "NaN",
    ),
    (
        "input of another shape",
        _releasing(_mine, lambda bench: saved(bench, "x.npy", np.ones((2, 9)))),
        InvalidInput,
        "9 features",
    ),
    (
        "input of no shape",
        _releasing(_mine, lambda bench: saved(bench, "x.npy", np.float64(1))),
        InvalidInput,
        "shape",
    ),
    (
        "input without rows",
        _releasing(_mine, lambda bench: saved(bench, "x.npy", X[:0])),
        InvalidInput,
        "1",
    ),
    (
        "weights cut short",
        _releasing(lambda b: _damaged(b, "weights.safetensors", lambda c: c[:-8]), good),
        CorruptBundle,
        "checksum",
    ),
    (
        "one bit of the weights",
        _releasing(lambda b: _damaged(b, "weights.safetensors", _flip), good),
        CorruptBundle,
        "checksum",
    ),
    (
        "card changed",
        _releasing(lambda b: _damaged(b, "card.md", lambda c: c + b"!"), good),
        CorruptBundle,
        "card.md",
    ),
    (
        "settings cut short",
        _releasing(lambda b: _damaged(b, "bundle.json", lambda c: c[:90]), good),
        CorruptBundle,
        "bundle.json",
    ),
    ("weights missing", _releasing(_incomplete, good), CorruptBundle, "bundle"),
    (
        "another version",
        _releasing(
            lambda b: _damaged(
                b, "manifest.json", lambda c: c.replace(b'"version": 2', b'"version": 99')
            ),
            good,
        ),
        CorruptBundle,
        "version 2",
    ),
    (
        "another system",
        _releasing(lambda b: _resettled(b, lambda _: None, system="Oracle"), good),
        InvalidInput,
        "Oracle",
    ),
    (
        "settings without a plan",
        _releasing(lambda b: _resettled(b, lambda h: h.pop("plan")), good),
        CorruptBundle,
        "fit",
    ),
    (
        "a cheaper claim than the plan",
        _releasing(lambda b: _resettled(b, lambda h: h["requirement"].update(epsilon=0.1)), good),
        CorruptBundle,
        "settings",
    ),
    (
        "a smaller constant than the network has",
        _releasing(lambda b: _resettled(b, lambda h: h["plan"].update(proposal=1e-6)), good),
        CorruptBundle,
        "settings",
    ),
    ("output in the place of a file", _taken, WriteFailed, "out.npz"),
    (
        "output that is a folder",
        lambda b: ["release", b.bundle, "--input", good(b), "--output", b.folder],
        InvalidInput,
        "output=",
    ),
    (
        "client without a ledger",
        lambda b: _ledger(b, "--principal", "acme"),
        InvalidInput,
        "--ledger",
    ),
    (
        "ledger that is not there",
        lambda b: _ledger(b, "--ledger", b.folder / "no.sqlite", "--subject", "anna"),
        LedgerUnavailable,
        "no.sqlite",
    ),
    ("budget too small", _poor, BudgetExceeded, "anna"),
]


@pytest.mark.parametrize(
    ("words", "error", "field"), [case[1:] for case in CLI], ids=[case[0] for case in CLI]
)
def test_the_command_line_refuses(
    bench: Bench,
    words: Callable[[Bench], list[object]],
    error: type[ReticentError] | int,
    field: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = [str(word) for word in words(bench)]
    monkeypatch.chdir(bench.folder)
    before = sorted(os.listdir(bench.folder))
    status = run(line)
    shown = capsys.readouterr()
    assert status == (error if isinstance(error, int) else error.code)
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert field in shown.err
    assert [
        name for name in sorted(os.listdir(bench.folder)) if not name.startswith("book.sqlite")
    ] == [name for name in before if not name.startswith("book.sqlite")]


def test_a_refused_budget_spends_nothing(bench: Bench) -> None:
    words = [str(word) for word in _poor(bench)]
    assert run(words) == BudgetExceeded.code
    book = Ledger.open(bench.folder / "book.sqlite")
    assert [budget.spent_epsilon for budget in book.report().budgets] == [0]
    book.close()
