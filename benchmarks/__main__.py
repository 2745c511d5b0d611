"""Every benchmark, one after the other, in one table: ``python -m benchmarks [NAME ...]``.

Each runs in a process of its own, in the size that stands below, one thread of arithmetic each.
The table says how long it took by the clock and of processor time, and its peers in the same run;
what each printed stands in ``--folder``, one file each, with the versions of all packages. All of
them together take under 20 minutes on two idle cores; ``--limit`` stops one that takes longer. A
benchmark whose peer or extra is not installed ends with its message, and the others go on; the exit
status is that of the first that failed.

Figures that documents quote come from these files. The larger sizes, for instance 10^7 records, are
options of the single benchmarks, and not in the table.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Benchmark:
    """One script and how it is called here.

    Attributes:
        name: of the script.
        peers: what it is compared with in the same run; "" where its claim is a time.
        arguments: the size of this table.
    """

    name: str
    peers: str
    arguments: tuple[str, ...] = ()


ALL = (
    Benchmark("start", "import typer"),
    Benchmark("noise", "OpenDP"),
    Benchmark("additive_release", "OpenDP"),
    Benchmark("release", "NumPy, OpenDP"),
    Benchmark("table_release", "XGBoost"),
    Benchmark("tabular_files", "csv, NumPy"),
    Benchmark("streams", "", ("--rows", "300000")),
    Benchmark("neighbours", "scikit-learn", ("--queries", "2048")),
    Benchmark("shards", "scikit-learn", ("--records", "100000", "300000")),
    Benchmark("private_knn_accounting", "published settings"),
    Benchmark(
        "ledger",
        "SQLite, charges one by one",
        ("--pairs", "800", "--people", "2000", "--entries", "100000"),
    ),
    Benchmark("service", "one process", ("--seconds", "2")),
    Benchmark("certify", "intervals"),
    Benchmark("layered", "intervals, search"),
    Benchmark("jacobians", "linear relaxation, chosen", ("--points", "5")),
    Benchmark("exact_search", "", ("--quick",)),
    Benchmark("cells", "the same without cells", ("--networks", "3-16-16-4")),
    Benchmark("lipschitz", "HiGHS", ("--quick",)),
    Benchmark("hog", "scikit-image"),
    Benchmark("certified", "plain training"),
    Benchmark("power", ""),
    Benchmark("runtimes", ""),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one benchmark.

    Attributes:
        status: of its process; None where it was stopped.
        wall, busy: seconds by the clock and of processor time.
        last: the last line that it wrote.
    """

    status: int | None
    wall: float
    busy: float
    last: str


def run(one: Benchmark, output: Path, limit: float) -> Outcome:
    """Runs a benchmark, what it prints into ``output``; stops it after ``limit`` seconds."""
    command = [sys.executable, str(HERE / f"{one.name}.py"), *one.arguments]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    start, before = time.perf_counter(), _busy()
    with output.open("wb") as file:
        try:
            done = subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **threads},
                cwd=HERE.parent,
                timeout=limit,
                check=False,
            )
            status: int | None = done.returncode
        except subprocess.TimeoutExpired:
            status = None
    lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return Outcome(
        status, time.perf_counter() - start, _busy() - before, lines[-1] if lines else ""
    )


def _busy() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Prints the table; the status of the first benchmark that failed, or 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [one.name for one in ALL]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--folder", type=Path, default=Path("runs/benchmarks"))
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one of them")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"{unknown[0]!r} is no benchmark; expected one of {', '.join(names)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    versions = sorted({f"{one.metadata['Name']}=={one.version}" for one in distributions()})
    (options.folder / "versions.txt").write_text("\n".join(versions) + "\n", encoding="utf-8")
    print(f"| {'benchmark':<24} | {'seconds':>8} | {'CPU':>8} | {'peers':<28} | result |")
    print("|---|---|---|---|---|")
    first_failure, total = 0, 0.0
    for one in ALL:
        if options.names and one.name not in options.names:
            continue
        found = run(one, options.folder / f"{one.name}.txt", options.limit)
        total += found.wall
        result = "finished"
        if found.status is None:
            result = f"stopped after {options.limit:g} s"
        elif found.status:
            result = f"failed: {found.last[:80]}"
        if found.status != 0:
            first_failure = first_failure or found.status or 1
        print(
            f"| {one.name:<24} | {found.wall:8.1f} | {found.busy:8.1f} | {one.peers:<28} | "
            f"{result} |",
            flush=True,
        )
    print(
        f"\n{total / 60:.1f} minutes, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} "
        f"cores; what each printed: {options.folder}/"
    )
    return first_failure


if __name__ == "__main__":
    sys.exit(main())
