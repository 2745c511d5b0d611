"""Partitioned files on a Dask cluster: every row answered and charged once, whoever dies."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

from reticent.cli.main import run
from reticent.core.errors import BudgetExceeded, InvalidInput
from reticent.core.guarantees import Guarantee
from reticent.core.scopes import Scope
from reticent.ledger import Ledger
from reticent.release import system as parallel
from reticent.systems import CertifiedEnsemble, PosthocEncoder, PowerEncoder
from reticent.systems.cluster import Task, partitions, release_on_cluster, release_partition
from reticent.tables import Categorical, Numeric, TabularSchema
from tests.ledger.conftest import postgres_server, postgres_url  # noqa: F401
from tests.test_start import loaded

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

SCHEMA = TabularSchema((Numeric("hours", 0, 100), Categorical("work", ("office", "field"))))
SUBJECT = Scope(subject="survey")
FILES, ROWS, PART = 3, 50, 20
PARTS = FILES * -(-ROWS // PART)


def table(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "hours": random.integers(1, 100, ROWS),
            "work": random.choice(["office", "field"], ROWS),
            "label": random.integers(0, 2, ROWS),
        }
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = table(0)
    encoder = PowerEncoder(
        epsilon=0.5, delta=0.0, radius=None, mechanism="code", schema=SCHEMA, random_state=0
    ).fit(rows[["hours", "work"]], rows["label"])
    return encoder.save(tmp_path_factory.mktemp("fitted") / "bundle")


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(pa.Table.from_pandas(table(number)), folder / f"day-{number}.parquet")
    return sorted(folder.glob("*.parquet"))


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    processes = getattr(request, "param", False)
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
    ) as made:
        yield made


def written(output: Path) -> dict[str, list[int]]:
    """Rows of every part, by file."""
    return {
        folder.name: [pq.read_table(part).num_rows for part in sorted(folder.glob("*.parquet"))]
        for folder in sorted(output.iterdir())
    }


WHOLE = {f"day-{number}": [PART, PART, ROWS - 2 * PART] for number in range(FILES)}


def granted(url: str, encoder: PowerEncoder, answers: int) -> Ledger:
    ledger = Ledger.create(url, synchronous="NORMAL")
    one = encoder.guarantee
    ledger.grant(SUBJECT, Guarantee(one.epsilon * answers, 0.0, one.adjacency))
    return ledger


def receipts(output: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in output.glob("*/*.receipt.json")]


@pytest.mark.postgres
def test_the_command_answers_every_file_once_with_a_ledger_on_a_server(
    bundle: Path,
    sources: list[Path],
    tmp_path: Path,
    cluster: Any,
    postgres_url: str,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoder = PowerEncoder.load(bundle)
    ledger = granted(postgres_url, encoder, FILES * ROWS)
    output = tmp_path / "out"
    arguments = [
        *("release", str(bundle), "--input", *map(str, sources), "--output", str(output)),
        *("--cluster", cluster.scheduler_address, "--rows-per-part", str(PART)),
        *("--ignore-column", "label", "--ledger", postgres_url, "--subject", "survey"),
    ]
    assert run(arguments) == 0, capsys.readouterr().err
    assert f"{FILES * ROWS} answer(s) in {PARTS} part(s) of {FILES} file(s)" in (
        capsys.readouterr().out
    )
    assert written(output) == WHOLE
    (budget,) = ledger.report().budgets
    assert budget.left_epsilon == 0
    (account,) = ledger.report().accounts
    assert (account.answers, account.reservations, account.commits) == (FILES * ROWS, PARTS, PARTS)
    assert ledger.verify(receipts=receipts(output)).problems == ()
    # Again: nothing is left to answer, and nothing is charged.
    assert run(arguments) == 0
    assert "0 answer(s) in 0 part(s)" in capsys.readouterr().out
    # Another folder: nothing is left to pay with, and no part stands there.
    arguments[arguments.index(str(output))] = str(tmp_path / "more")
    assert run(arguments) == BudgetExceeded.code
    assert list((tmp_path / "more").glob("*/*.parquet")) == []
    ledger.close()


def test_what_cannot_be_is_refused_before_anything_is_charged(
    bundle: Path, sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInput, match="at least one file"):
        partitions([], tmp_path)
    with pytest.raises(InvalidInput, match="expected a plain file"):
        partitions([tmp_path], tmp_path)
    (tmp_path / "day-0.csv").write_text("a")
    with pytest.raises(InvalidInput, match="'day-0' more than once"):
        partitions([*sources, tmp_path / "day-0.csv"], tmp_path)
    base = ["release", str(bundle), "--input", *map(str, sources), "--output", str(tmp_path / "o")]
    assert run(base) == InvalidInput.code
    assert "--cluster for several; got 3" in capsys.readouterr().err
    assert run([*base[:4], "--output", "o", "--cluster", "nowhere"]) == InvalidInput.code
    assert "cluster='nowhere': no Dask scheduler answers there" in capsys.readouterr().err
    more = ["--cluster", "tcp://127.0.0.1:1", "--jobs", "2"]
    assert run([*base, *more]) == InvalidInput.code
    assert "jobs: expected without" in capsys.readouterr().err


def _drive(address: str, task: Task, sources: list[Path], output: Path) -> None:
    """Again and again while workers are at files that a driver which was killed had given them."""
    deadline = time.monotonic() + 300
    while True:
        try:
            release_on_cluster(task, sources, output, cluster=address)
        except InvalidInput as error:
            if "another run is filling" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cluster", [True], indirect=True)
@pytest.mark.parametrize("most", [2, 20])
def test_kills_of_workers_and_driver_lose_no_row_and_overspend_nothing(
    bundle: Path, sources: list[Path], tmp_path: Path, cluster: Any, most: int
) -> None:
    encoder = PowerEncoder.load(bundle)
    url = str(tmp_path / "ledger.db")
    output = tmp_path / "out"
    ledger = granted(url, encoder, 100 * FILES * ROWS)
    scope = Scope(subject="survey", bundle=encoder.bundle_identity_)
    task = Task(bundle, url, scope, rows=1, ignore=("label",))
    spawn = multiprocessing.get_context("spawn")
    rng, kills = np.random.default_rng(0), 0
    while kills < most:
        driver = spawn.Process(
            target=_drive, args=(cluster.scheduler_address, task, sources, output)
        )
        driver.start()
        seen = len(receipts(output))
        deadline = time.monotonic() + 60
        while len(receipts(output)) == seen and driver.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 0.3))
        while not (workers := [nanny.pid for nanny in cluster.workers.values() if nanny.pid]):
            time.sleep(0.05)  # those that were killed are being started again
        for victim in [rng.choice(workers), driver.pid]:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(int(victim), signal.SIGKILL)
                kills += 1
        driver.join()
        if not driver.exitcode:
            break
    _drive(cluster.scheduler_address, task, sources, output)
    assert kills >= min(most, 4)
    assert {name: sum(parts) for name, parts in written(output).items()} == dict.fromkeys(
        WHOLE, ROWS
    )
    (account,) = ledger.report().accounts
    assert account.reservations >= account.commits >= FILES * ROWS
    assert account.reservations <= FILES * ROWS + 2 * kills
    assert ledger.verify(receipts=receipts(output)).problems == ()
    print(f"{kills} kills, {account.answers - FILES * ROWS} answers wasted")
    ledger.close()


def test_a_worker_without_a_ledger_loads_no_database(
    bundle: Path, sources: list[Path], tmp_path: Path
) -> None:
    code = (
        "from pathlib import Path; from reticent.systems.cluster import *; release_partition("
        f"Task(Path({str(bundle)!r}), None, None, ignore=('label',)), "
        f"Partition(Path({str(sources[0])!r}), Path({str(tmp_path / 'parts')!r})))"
    )
    assert loaded(code, ("torch", "sqlalchemy")) == []


def test_a_partition_needs_no_cluster(bundle: Path, sources: list[Path], tmp_path: Path) -> None:
    (one, *_) = partitions(sources, tmp_path / "out")
    done = release_partition(Task(bundle, None, None, rows=PART, ignore=("label",)), one)
    assert done == (3, ROWS, 0)
    assert written(tmp_path / "out") == {"day-0": WHOLE["day-0"]}


@pytest.mark.parametrize("cluster", [True], indirect=True)
def test_joblib_on_a_cluster_answers_and_trains_as_one_process(
    bundle: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_LEAST_ROWS", 10)
    encoder, rows = PowerEncoder.load(bundle), table(1)[["hours", "work"]]
    posthoc = PosthocEncoder(
        epsilon=0.5, delta=0.0, radius=0.1, embedder="identity", obfuscator="identity"
    ).fit(np.random.default_rng(0).normal(size=(50, 3)))
    random = np.random.default_rng(1)
    X, y = random.normal(size=(200, 2)), random.integers(0, 2, 200)
    settings = {"classes": [0, 1], "epsilon": 1.0, "members": 3, "k_max": 2}
    alone = CertifiedEnsemble(**settings).fit(X, y)
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        released = encoder.transform(rows)
        found = posthoc.transform(np.zeros((ROWS, 3)))
        shared = CertifiedEnsemble(**settings).fit(X, y)
    assert len(released) == ROWS
    # One and the same row, answered by several workers: no noise twice, of 53 bits each.
    assert len(np.unique(found)) == found.size
    for one, other in zip(alone.members_, shared.members_, strict=True):
        for mine, theirs in zip(one.lower + one.upper, other.lower + other.upper, strict=True):
            assert mine.tobytes() == theirs.tobytes()
