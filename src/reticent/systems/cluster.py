"""``release_on_cluster``: partitioned files, answered by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.core.scopes import Scope
from reticent.systems.loading import load
from reticent.tables.batches import LARGEST_BATCH


@dataclass(frozen=True)
class Partition:
    """The file that one task answers.

    Attributes:
        source: the file.
        output: folder for its parts.
    """

    source: Path
    output: Path


@dataclass(frozen=True)
class Task:
    """Settings by which every partition is answered.

    They are sent to the workers, which open everything themselves.

    Attributes:
        bundle: folder of the fitted system.
        ledger: URL or file of the ledger, or None.
        scope: scope that the parts are booked under, or None.
        rows: rows of a part at most.
        format: format of the parts.
        ignore: columns that are not read.
        subject_column: a column that says whose privacy each row spends, or None.
        trusted_key, key: key files, or None.
    """

    bundle: Path
    ledger: str | None
    scope: Scope | None
    rows: int = LARGEST_BATCH
    format: str = "parquet"
    ignore: tuple[str, ...] = ()
    subject_column: str | None = None
    trusted_key: Path | None = None
    key: Path | None = None


def partitions(sources: Sequence[Path], output: Path) -> list[Partition]:
    """Return a folder of its own below ``output`` for each file, called as the file is.

    Raises:
        InvalidInput: no files, one that is none, or two of one name.
    """
    found = [Partition(path.resolve(), output.resolve() / path.stem) for path in sources]
    if not found:
        raise InvalidInput("input: expected at least one file, got none")
    for one in found:
        if not one.source.is_file():
            raise InvalidInput(f"input={str(one.source)!r}: expected a plain file")
    names = [one.output.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"input: expected files of different names, since each gets a folder of its own; got "
            f"{twice[0]!r} more than once"
        )
    return found


def release_partition(task: Task, partition: Partition) -> tuple[int, int, int]:
    """Answer one file into its folder.

    Return the parts that this call wrote, their rows, and how many of them are withheld. Every part
    is charged to the ledger in one transaction before it is answered. So a worker holds no budget
    but that of the part it is at, and if it dies, that part is charged again. Parts that are there
    are neither charged nor answered again.

    Raises:
        ReticentError: the errors of ``release_stream``. Parts that are there stay.
    """
    ledger = None
    if task.ledger is not None:
        from reticent.ledger.ledger import Ledger  # it loads a library for databases

        ledger = Ledger.open(task.ledger)
    try:
        system: Any = load(task.bundle, trusted_key=task.trusted_key)
        parts = rows = withheld = 0
        for release in system.release_stream(
            partition.source,
            partition.output,
            rows=task.rows,
            format=task.format,
            ledger=ledger,
            scope=task.scope,
            ignore=task.ignore,
            subject_column=task.subject_column,
            key=task.key,
        ):
            parts, rows = parts + 1, rows + len(release)
            withheld += int(release.withheld.sum())
    finally:
        if ledger is not None:
            ledger.close()
    return parts, rows, withheld


def release_on_cluster(
    task: Task,
    sources: Sequence[Path],
    output: Path,
    *,
    cluster: str,
    report: Callable[[Path, int], None] = lambda source, rows: None,
) -> tuple[int, int, int]:
    """Answer every file on the workers of a Dask cluster.

    Return how many parts this run wrote, their rows, and how many of them are withheld. The workers
    have to reach the bundle, the files, the output folder and the ledger under the same names. That
    takes a shared file system, and a ledger on PostgreSQL unless all of them run on one machine.
    Rows and answers go nowhere but to the files. Tasks and results hold names and numbers of rows.
    Repeat an interrupted run to go on with it, as ``release_stream`` says.

    Args:
        task: settings by which each file is answered.
        sources: the files.
        output: folder whose subfolders, named as the files, hold their parts.
        cluster: address of the scheduler, as "tcp://10.0.0.1:8786" or "tls://...".
        report: function that is called with each file and its rows, once it is answered.

    Raises:
        MissingExtra: dask.distributed is not installed.
        InvalidInput: the scheduler cannot be reached, or files that cannot be.
        ReticentError: the first error of a task. Other files may be answered, and stay.
    """
    distributed = require("distributed", extra="dask")
    todo = partitions(sources, output)
    output.mkdir(parents=True, exist_ok=True)
    try:
        client = distributed.Client(cluster, timeout="30s")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"cluster={cluster!r}: no Dask scheduler answers there ({type(error).__name__}); "
            "expected an address such as tcp://host:8786"
        ) from error
    total = (0, 0, 0)
    with client:
        # Not pure: a file's answers are drawn anew whenever it is asked for.
        futures = client.map(lambda one: release_partition(task, one), todo, pure=False)
        sources_of = {future.key: one.source for future, one in zip(futures, todo, strict=True)}
        for future in distributed.as_completed(futures):
            done = future.result()
            total = (total[0] + done[0], total[1] + done[1], total[2] + done[2])
            report(sources_of[future.key], done[1])
    return total
