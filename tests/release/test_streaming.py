"""Streams: the same answers as in one piece, one charge a part, and nothing lost by a kill."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.core.errors import BudgetExceeded, InvalidInput, MissingExtra
from reticent.core.guarantees import Guarantee
from reticent.core.scopes import Scope
from reticent.ledger import Ledger
from reticent.release.parts import STATE
from reticent.systems import PowerEncoder, VectorTraining
from reticent.tables import Categorical, Numeric, TabularSchema

SCHEMA = TabularSchema(
    (Numeric("hours", 0, 100), Categorical("work", ("office", "field")), Numeric("age", 17, 90))
)
ROWS = 95


def table(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": random.integers(17, 91, rows),
            "person": [f"person {n % 7}" for n in range(rows)],
            "work": random.choice(["office", "field"], rows),
            "hours": random.integers(1, 100, rows),
            "label": random.integers(0, 2, rows),
        }
    )


TABLE = table(ROWS)
IGNORED = ["label", "person"]


@pytest.fixture(scope="module")
def encoder() -> PowerEncoder:
    columns = TABLE.drop(columns=IGNORED)
    return PowerEncoder(
        epsilon=0.5,
        delta=0.0,
        radius=None,
        mechanism="code",
        schema=SCHEMA,
        random_state=0,
        training=VectorTraining(epochs=1),
    ).fit(columns, TABLE["label"])


def written(kind: str, folder: Path) -> Path:
    path = folder / f"rows.{kind}"
    if kind == "csv":
        TABLE.to_csv(path, index=False)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(TABLE), path, row_group_size=13)
    else:
        with pa.ipc.new_file(path, pa.Schema.from_pandas(TABLE)) as writer:
            writer.write_table(pa.Table.from_pandas(TABLE), max_chunksize=17)
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written("csv", tmp_path)


class Watched:
    """A system whose ``release`` remembers the rows that it saw."""

    def __init__(self, encoder: PowerEncoder) -> None:
        self.encoder, self.seen = encoder, []
        self.release_stream = PowerEncoder.release_stream.__get__(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def release(self, X: Any, **rest: Any) -> Any:
        self.seen.append(SCHEMA.encode(X))
        return self.encoder.release(X, **rest)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_every_row_is_seen_once_in_order_whatever_the_file(
    encoder: PowerEncoder, kind: str, tmp_path: Path
) -> None:
    source = written(kind, tmp_path)
    watched = Watched(encoder)
    sizes = []
    found = list(
        watched.release_stream(
            source, tmp_path / "out", rows=20, ignore=IGNORED, report=sizes.append
        )
    )
    assert sizes == [20, 20, 20, 20, 15] == [len(release) for release in found]
    expected = SCHEMA.encode(TABLE.drop(columns=IGNORED))
    np.testing.assert_array_equal(np.concatenate(watched.seen), expected)
    frames = [pd.read_parquet(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert [len(frame) for frame in frames] == sizes
    for frame, release in zip(frames, found, strict=True):
        assert list(frame.columns) == [*encoder.get_feature_names_out(), "withheld", "receipt"]
        assert set(frame["receipt"]) == {release.receipt.identifier}
        np.testing.assert_array_equal(frame.iloc[:, : release.values.shape[1]], release.values)
    receipts = sorted((tmp_path / "out").glob("*.receipt.json"))
    assert [json.loads(path.read_text())["answers"] for path in receipts] == sizes


PARTNER = Scope(principal="partner", subject="ward")


def total(encoder: PowerEncoder, answers: int) -> Guarantee:
    return replace(encoder.guarantee, epsilon=0.5 * answers)


def ledger_at(path: Path, encoder: PowerEncoder, answers: int) -> Ledger:
    ledger = Ledger.create(path)
    ledger.grant(PARTNER, total(encoder, answers))
    return ledger


def test_an_interrupted_run_goes_on_and_charges_no_part_twice(
    encoder: PowerEncoder, source: Path, tmp_path: Path
) -> None:
    ledger = ledger_at(tmp_path / "ledger.db", encoder, 60)
    call: dict[str, Any] = {
        "rows": 20,
        "ignore": IGNORED,
        "ledger": ledger,
        "scope": PARTNER,
    }
    with pytest.raises(BudgetExceeded):
        list(encoder.release_stream(source, tmp_path / "out", **call))
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) == 3
    ledger.grant(PARTNER, total(encoder, ROWS - 60))
    watched = Watched(encoder)
    rest = list(watched.release_stream(source, tmp_path / "out", **call))
    assert [len(release) for release in rest] == [20, 15]
    np.testing.assert_array_equal(
        np.concatenate(watched.seen), SCHEMA.encode(TABLE.drop(columns=IGNORED))[60:]
    )
    assert list(watched.release_stream(source, tmp_path / "out", **call)) == []


def test_every_row_is_charged_to_its_own_subject(
    encoder: PowerEncoder, source: Path, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    people = sorted(set(TABLE["person"]))
    for person in people:
        ledger.grant(Scope(subject=person), total(encoder, 200))
    out = tmp_path / "out"
    list(
        encoder.release_stream(
            source,
            out,
            rows=30,
            ignore=["label"],
            subject_column="person",
            ledger=ledger,
            scope=PARTNER,
        )
    )
    cost = encoder.query_.mechanism.event
    for person in people:
        mine = int((TABLE["person"] == person).sum())
        left = ledger.preview(Scope(subject=person, principal="partner"), cost, answers=1)
        assert left.largest == 200 - mine


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 30},
        {"format": "csv"},
        {"rows": 200_000},
        {"ignore": ["label"]},
        {"ignore": [*IGNORED, "age2"]},
        {"subject_column": "person"},
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    encoder: PowerEncoder, source: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    call: dict[str, Any] = {"rows": 20, "ignore": IGNORED}
    next(encoder.release_stream(source, out, **call))
    before = sorted(path.name for path in out.iterdir())
    if "ignore" in change or change.get("rows") == 200_000:
        out = tmp_path / "new"
    with pytest.raises(InvalidInput):
        list(encoder.release_stream(source, out, **{**call, **change}))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before


@pytest.mark.parametrize("what", ["pyarrow", "key"])
def test_what_is_missing_is_said_before_anything_is_charged(
    encoder: PowerEncoder, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_at(tmp_path / "ledger.db", encoder, 100)
    more: dict[str, Any] = {"ledger": ledger, "scope": PARTNER}
    expected: type[Exception] = InvalidInput
    if what == "pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        expected = MissingExtra
    else:
        more["key"] = tmp_path / "none.pem"
    rows = TABLE.drop(columns=IGNORED)
    with pytest.raises(expected):
        encoder.release_stream([rows], tmp_path / "out", **more)  # at the call, not when iterated
    assert not (tmp_path / "out").exists()
    assert ledger.report().budgets[0].spent_epsilon == 0


def test_a_folder_of_something_else_and_a_second_run_are_refused(
    encoder: PowerEncoder, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds something else"):
        list(encoder.release_stream(source, tmp_path / "full", ignore=IGNORED))
    first = encoder.release_stream(source, tmp_path / "out", rows=20, ignore=IGNORED)
    next(first)
    with pytest.raises(InvalidInput, match="another run is filling"):
        list(encoder.release_stream(source, tmp_path / "out", rows=20, ignore=IGNORED))
    first.close()
    assert (tmp_path / "out" / STATE).stat().st_mode & 0o777 == 0o600


def test_the_folder_of_answers_does_not_tell_how_long_the_rows_are(
    encoder: PowerEncoder, tmp_path: Path
) -> None:
    """The folder may be sent as it is, and a file's length tells a cell to who knows the others."""
    states = []
    for number, place in enumerate(("9", "1000000")):
        rows, folder = tmp_path / f"{number}.csv", tmp_path / place
        TABLE.head(5).assign(other=place).to_csv(rows, index=False)
        os.utime(rows, ns=(0, 0))
        list(encoder.release_stream(rows, folder, format="csv", ignore=[*IGNORED, "other"]))
        states.append((folder / STATE).read_text())
    assert states[0] == states[1]


def test_damaged_files_are_refused_without_their_cells(
    encoder: PowerEncoder, tmp_path: Path
) -> None:
    whole = tmp_path / "rows.parquet"
    TABLE.to_parquet(whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-200])
    words = tmp_path / "words.parquet"
    TABLE.assign(age="secret").to_parquet(words)
    empty = tmp_path / "empty.parquet"
    TABLE.iloc[:0].to_parquet(empty)
    for path, message in (
        (cut, "cannot be read whole"),
        (words, "column 'age': expected real numbers"),
        (empty, "has no rows"),
        (tmp_path / "none.parquet", "cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=message) as refused:
            list(encoder.release_stream(path, tmp_path / path.stem, ignore=IGNORED))
        assert "secret" not in str(refused.value)


def test_memory_does_not_grow_with_the_file(encoder: PowerEncoder, tmp_path: Path) -> None:
    """Neither Python's memory nor Arrow's, which holds what is read ahead of row groups.

    ``benchmarks/streams.py`` measures 10^7 rows in processes of their own.
    """
    peaks, held = [], []
    for rows in (4_000, 40_000):
        path = tmp_path / f"{rows}.parquet"
        table(rows).to_parquet(path, row_group_size=4_000, compression=None)
        answers = encoder.release_stream(path, tmp_path / str(rows), rows=2000, ignore=IGNORED)
        before = pa.total_allocated_bytes()
        next(answers)  # what is loaded and made once
        tracemalloc.start()
        done, most = 2000, 0
        for release in answers:
            done += len(release)
            most = max(most, pa.total_allocated_bytes() - before)
        assert done == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        held.append(most)
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
    assert held[1] < 1.5 * held[0], held


RUN = """
import sys
from pathlib import Path
from reticent.core.guarantees import Guarantee
from reticent.core.scopes import Scope
from reticent.ledger import Ledger
from reticent.systems import PowerEncoder
folder = Path(sys.argv[1])
encoder = PowerEncoder.load(folder / "bundle")
ledger = Ledger.open(folder / "ledger.db")
print("ready", flush=True)
for _ in encoder.release_stream(
    folder / "rows.csv", folder / "out", rows=5, format="csv", ignore=["label", "person"],
    ledger=ledger, scope=Scope(principal="partner", subject="ward"),
):
    pass
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.soak)])
def test_killed_at_any_moment_every_row_is_answered_once(
    encoder: PowerEncoder, tmp_path: Path, kills: int
) -> None:
    random = np.random.default_rng(kills)
    rows = 5 * (40 if kills < 100 else 1500)
    table(rows).to_csv(tmp_path / "rows.csv", index=False)
    encoder.save(tmp_path / "bundle")
    ledger = ledger_at(tmp_path / "ledger.db", encoder, 10**6)
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    for _ in range(kills):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
            time.sleep(float(random.exponential(0.2)))
            os.kill(run.pid, signal.SIGKILL)
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    assert finished.stdout == "ready\ndone\n"
    parts = sorted((tmp_path / "out").glob("part-*.csv"))
    assert len(parts) == rows // 5
    receipts, answered = set(), 0
    for path in parts:
        with path.open() as file:
            lines = list(csv.DictReader(file))
        answered += len(lines)
        receipt = json.loads(path.with_suffix(".receipt.json").read_text())
        assert {line["receipt"] for line in lines} == {receipt["identifier"]}
        assert receipt["booked"]
        receipts.add(receipt["booked"])
    assert answered == rows
    assert len(receipts) == len(parts)  # no part shares a charge with another
    spent = ledger.report().budgets[0].spent_epsilon / 1e6
    assert 0.5 * rows <= spent <= 0.5 * (rows + 5 * kills)  # a kill wastes one part at most
