"""What the command line cannot use is refused with a line that names it; nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.cli.main import run
from reticent.core import Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerUnavailable,
    ReticentError,
    WriteFailed,
)
from reticent.ledger import Ledger
from reticent.systems import PosthocEncoder
from reticent.systems.posthoc.query import PrivateQuery
from tests.machine import no_file_beyond

X = load_iris().data


@dataclass(frozen=True)
class Bench:
    """A fitted encoder's bundle, and an empty folder."""

    bundle: Path
    folder: Path


@pytest.fixture
def bench(vectors_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The bench; answering is a failure, since every case here must stop before it."""

    def answer(*_: object, **__: object) -> None:
        pytest.fail("computed an answer for input that has to be refused")

    monkeypatch.setattr(PrivateQuery, "answer", answer)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    return Bench(vectors_bundle, tmp_path)


def saved(bench: Bench, name: str, array: Any) -> Path:
    np.save(bench.folder / name, array)
    return bench.folder / name


def good(bench: Bench) -> Path:
    return saved(bench, "x.npy", X[:5])


def out(bench: Bench) -> Path:
    return bench.folder / "out.npz"


def _text(bench: Bench, name: str, content: bytes) -> Path:
    (bench.folder / name).write_bytes(content)
    return bench.folder / name


def _release(bundle: object, inputs: object, output: object, *words: object) -> list[object]:
    return ["release", bundle, "--input", inputs, "--output", output, *words]


def _with_input(inputs: Callable[[Bench], Path]) -> Callable[[Bench], list[object]]:
    return lambda bench: _release(bench.bundle, inputs(bench), out(bench))


def _array(rows: Any) -> Callable[[Bench], list[object]]:
    return _with_input(lambda bench: saved(bench, "x.npy", rows))


def _taken(bench: Bench) -> list[object]:
    (bench.folder / "file").write_text("")
    return _release(bench.bundle, good(bench), bench.folder / "file" / "out.npz")


def _ledger(bench: Bench, *words: object) -> list[object]:
    return _release(bench.bundle, good(bench), out(bench), *words)


def _poor(bench: Bench) -> list[object]:
    book = Ledger.create(bench.folder / "book.sqlite")
    near = PosthocEncoder.load(bench.bundle).guarantee.adjacency
    book.grant(Scope(subject="anna"), Guarantee(1.0, 0.0, near))
    book.close()
    return _ledger(bench, "--ledger", bench.folder / "book.sqlite", "--subject", "anna")


def _certifying(*words: object) -> Callable[[Bench], list[object]]:
    return lambda bench: ["certify", bench.bundle, "--input", good(bench), *words]


USAGE = 2
OBJECTS = np.array([{}, []], dtype=object)
SHORT = "x.npy"


CLI: list[tuple[str, Callable[[Bench], list[object]], type[ReticentError] | int, str]] = [
    ("no such option", lambda bench: ["card", bench.bundle, "--yaml"], USAGE, "--yaml"),
    ("release with a seed", lambda bench: _ledger(bench, "--seed", 1), USAGE, "--seed"),
    ("certify at radius zero", _certifying("--radius", 0), InvalidParameter, "radius=0.0"),
    (
        "demo over a folder of yours",
        lambda bench: ["demo", "posthoc", "--output", _text(bench, "thesis.txt", b"").parent],
        InvalidInput,
        "results.json",
    ),
    ("no bundle", lambda b: _release(b.folder / "none", good(b), out(b)), InvalidInput, "none"),
    ("no input", _with_input(lambda bench: bench.folder / "no.npy"), InvalidInput, "no.npy"),
    ("input that is a folder", _with_input(lambda bench: bench.folder), InvalidInput, "input="),
    ("other format", _with_input(lambda b: _text(b, SHORT, b"1,2")), InvalidInput, SHORT),
    (
        "input cut short",
        _with_input(lambda bench: _text(bench, SHORT, good(bench).read_bytes()[:-9])),
        InvalidInput,
        SHORT,
    ),
    ("input with objects", _array(OBJECTS), InvalidInput, SHORT),
    ("input with nan", _array(np.where(np.arange(4) == 1, np.nan, X[:5])), InvalidInput, "NaN"),
    ("input of another shape", _array(np.ones((2, 9))), InvalidInput, "9 features"),
    ("input of no shape", _array(np.float64(1)), InvalidInput, "shape"),
    ("input without rows", _array(X[:0]), InvalidInput, "1"),
    ("output in the place of a file", _taken, WriteFailed, "out.npz"),
    (
        "output that is a folder",
        lambda b: _release(b.bundle, good(b), b.folder),
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


def test_a_full_disk_is_found_out_before_anything_is_answered(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = good(bench)
    line = ["release", str(bench.bundle), "--input", str(inputs), "--output", str(out(bench))]
    with no_file_beyond(8192):
        status = run(line)
    assert status == WriteFailed.code
    assert "nothing was left behind" in capsys.readouterr().err
    assert os.listdir(bench.folder) == ["x.npy"]
