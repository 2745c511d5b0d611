"""Every benchmark, one after the other, in one table: ``python -m benchmarks [NAME ...]``.

Each runs in a process of its own, in the size that stands below, one thread of arithmetic each.
The table says how long it took by the clock and of processor time, and its peers in the same run;
what each printed stands in ``--folder``, one file each, with the versions of all packages. All of
them together take under 20 minutes on two idle cores; ``--limit`` stops one that takes longer. A
benchmark whose peer or extra is not installed ends with its message, and the others go on; the exit
status is that of the first that failed. ``--smallest`` runs each in the size that tests take.

Figures (``figures.py``) and costs go into a page with ``--page``: docs/benchmarks.md is written by
``RETICENT_DATA=... python -m benchmarks --times 3 --page docs/benchmarks.md``. A ratio whose runs
differ by more than 30 % has its spread beside it. The larger sizes, for instance
10^7 records, are options of the single benchmarks, and not in the table.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

HERE = Path(__file__).parent

sys.path.insert(0, str(HERE))  # as each script has it
from figures import FILE, Figure, read  # noqa: E402

PEERS = (
    *("numpy", "scipy", "opendp", "faiss-cpu", "scikit-learn", "scikit-image", "opacus", "torch"),
    *("xgboost-cpu", "xgboost", "highspy", "sqlalchemy", "psycopg", "typer"),
)
"""Packages whose versions the page names."""

PAGE = HERE / "page.md"
"""The page's text, with places for what is measured."""


@dataclass(frozen=True)
class Benchmark:
    """One script and how it is called here.

    Attributes:
        name: of the script.
        peers: what it is compared with in the same run; "" where its claim is a time.
        arguments: the size of this table.
        smallest: the size that a test takes, in seconds.
        needs: "data" where nothing but files below ``RETICENT_DATA`` will do, "processes" where
            most of its time is starting others.
    """

    name: str
    peers: str
    arguments: tuple[str, ...]
    smallest: tuple[str, ...]
    needs: str = ""


def _benchmark(name: str, peers: str, size: str, smallest: str, needs: str = "") -> Benchmark:
    return Benchmark(name, peers, tuple(size.split()), tuple(smallest.split()), needs)


ALL = (
    _benchmark("start", "import typer", "", "--runs 1", "processes"),
    _benchmark("noise", "OpenDP", "", "--draws 4096"),
    _benchmark("additive_release", "OpenDP", "", "--rows 10"),
    _benchmark("release", "NumPy, OpenDP", "", "--points 1000 --mechanisms laplace"),
    _benchmark("table_release", "XGBoost", "--rows 50000", "--rows 500", "data"),
    _benchmark("tabular_files", "csv, NumPy", "", "--rows 50"),
    _benchmark("hog", "scikit-image", "", "--planes 4"),
    _benchmark("streams", "", "--rows 100000", "--rows 20000 --encoders posthoc", "processes"),
    _benchmark(
        "neighbours",
        "scikit-learn, FAISS",
        "--queries 2048",
        "--queries 32 --peer-queries 1 --records 10000 --fitted 10000",
    ),
    _benchmark(
        "shards",
        "scikit-learn",
        "--records 100000 --queries 32",
        "--records 4000 --queries 2 --features 4",
        "processes",
    ),
    _benchmark("private_knn_accounting", "published settings", "", ""),
    _benchmark(
        "ledger",
        "SQLite, charges one by one",
        "--pairs 800 --people 2000 --entries 100000",
        "--pairs 20 --people 50 --entries 3000 --workers 2 --block 5 --runs 1",
    ),
    _benchmark(
        "service",
        "one process",
        "--seconds 2 --workers 1 --only start in-process service overload cost",
        "--seconds .2 --workers 1",
        "processes",
    ),
    _benchmark("certify", "intervals", "--points 60", "--points 4"),
    _benchmark(
        "layered",
        "intervals, search",
        "--points 10 --restarts 64",
        "--points 1 --restarts 2 --networks 8-32-16-8 --wide",
    ),
    _benchmark(
        "jacobians",
        "linear relaxation, chosen",
        "--points 5",
        "--points 1 --networks 64-32-32-32-10",
    ),
    _benchmark("exact_search", "", "--networks 8-16-8", "--quick --networks 8-16-8"),
    _benchmark(
        "lipschitz",
        "HiGHS",
        "--networks 8-16-8 8-32-16-8 --radii .1 --points 5 --limit 10",
        "--networks 8-16-8 --radii .1 --points 1 --limit 20",
    ),
    _benchmark("certified", "plain training", "", "--records 100 --distances 3"),
    _benchmark("gradients", "Opacus", "", "--records 900 --seeds 1 --settings 1"),
    _benchmark(
        "essentials", "the bare arithmetic", "", "--rows 10000 --pairs 20 --runs 1", "processes"
    ),
    _benchmark("jobs", "one worker", "", "--records 60 --rows 600 --runs 1", "processes"),
    _benchmark("power", "", "50000", "2000", "data"),
    _benchmark("runtimes", "", "", "samplers"),
    _benchmark("walks", "", "", ""),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one benchmark.

    Attributes:
        status: of its process; None where it was stopped.
        wall, busy: seconds by the clock and of processor time.
        last: the last line that it wrote.
        figures: those that it kept.
    """

    status: int | None
    wall: float
    busy: float
    last: str
    figures: tuple[Figure, ...]

    @property
    def result(self) -> str:
        """In words."""
        if self.status is None:
            return f"stopped after {self.wall:.0f} s"
        return f"failed: {self.last[:80]}" if self.status else "finished"


def run(one: Benchmark, output: Path, limit: float, *, smallest: bool) -> Outcome:
    """Runs a benchmark, what it prints into ``output``; stops it after ``limit`` seconds."""
    size = one.smallest if smallest else one.arguments
    command = [sys.executable, str(HERE / f"{one.name}.py"), *size]
    kept = output.with_suffix(".figures").absolute()
    kept.unlink(missing_ok=True)
    more = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    more |= {FILE: str(kept), "PYTHONUNBUFFERED": "1"}
    start, before = time.perf_counter(), _busy()
    with output.open("wb") as file:
        try:
            done = subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **more},
                cwd=HERE.parent,
                timeout=limit,
                check=False,
            )
            status: int | None = done.returncode
        except subprocess.TimeoutExpired:
            status = None
    lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = lines[-1] if lines else ""
    figures = tuple(read(kept))
    return Outcome(status, time.perf_counter() - start, _busy() - before, last, figures)


def merged(runs: Sequence[Outcome]) -> Outcome:
    """What became of several runs: the first that failed, or the mean time and all figures."""
    worst = next((one for one in runs if one.status != 0), None)
    if worst is not None or len(runs) == 1:
        return worst or runs[0]
    figures: dict[tuple[str, str], list[Figure]] = {}
    for figure in (figure for one in runs for figure in one.figures):
        figures.setdefault((figure.what, figure.peer), []).append(figure)
    return replace(
        runs[0],
        wall=sum(one.wall for one in runs) / len(runs),
        busy=sum(one.busy for one in runs) / len(runs),
        figures=tuple(map(Figure.merged, figures.values())),
    )


def _busy() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


HEAD = (
    f"| {'benchmark':<24} | {'seconds':>8} | {'CPU':>8} | {'peers':<28} | result |\n"
    "|---|---|---|---|---|"
)


def _line(one: Benchmark, found: Outcome) -> str:
    return (
        f"| {one.name:<24} | {found.wall:8.1f} | {found.busy:8.1f} | {one.peers:<28} | "
        f"{found.result} |"
    )


def _total(outcomes: dict[Benchmark, Outcome]) -> str:
    wall = sum(one.wall for one in outcomes.values()) / 60
    busy = sum(one.busy for one in outcomes.values()) / 60
    return (
        f"{wall:.1f} minutes, {busy:.1f} of processor time, load average {os.getloadavg()[0]:.1f} "
        f"on {os.cpu_count()} cores"
    )


def page(outcomes: dict[Benchmark, Outcome], times: int) -> str:
    """The page of figures, in Markdown."""
    lines = [
        "| benchmark | measured | ours | peer | the peer's | ratio |",
        "|---|---|---|---|---|---|",
        *(
            f"| `{one.name}` | {' | '.join(figure.cells())} |"
            for one, found in outcomes.items()
            for figure in found.figures
        ),
    ]
    costs = [HEAD, *(_line(one, found) for one, found in outcomes.items())]
    sizes = [
        f"python benchmarks/{' '.join((f'{one.name}.py', *one.arguments))}" for one in outcomes
    ]
    installed = [f"{name} {version(name)}" for name in PEERS if _installed(name)]
    return PAGE.read_text(encoding="utf-8").format(
        figures="\n".join(lines),
        costs="\n".join(costs),
        total=_total(outcomes),
        times=times,
        sizes="\n".join(sizes),
        versions=", ".join([f"Python {platform.python_version()}", *installed]),
    )


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


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
    parser.add_argument("--smallest", action="store_true", help="the size that tests take")
    parser.add_argument("--times", type=int, default=1, help="runs of each, one after the other")
    parser.add_argument("--page", type=Path, help="where the page of figures is written")
    options = parser.parse_args()
    if options.page and (options.names or options.smallest):
        parser.error("--page: expected neither names nor --smallest; a page has all of them")
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"{unknown[0]!r} is no benchmark; expected one of {', '.join(names)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    versions = sorted({f"{one.metadata['Name']}=={one.version}" for one in distributions()})
    (options.folder / "versions.txt").write_text("\n".join(versions) + "\n", encoding="utf-8")
    print(HEAD)
    first_failure, outcomes = 0, {}
    for one in ALL:
        if options.names and one.name not in options.names:
            continue
        output = options.folder / f"{one.name}.txt"
        runs = [
            run(one, output, options.limit, smallest=options.smallest) for _ in range(options.times)
        ]
        found = outcomes[one] = merged(runs)
        if found.status != 0:
            first_failure = first_failure or found.status or 1
        print(_line(one, found), flush=True)
        if options.page:
            options.page.write_text(page(outcomes, options.times), encoding="utf-8")
    print(f"\n{_total(outcomes)}; what each printed: {options.folder}/")
    return first_failure


if __name__ == "__main__":
    sys.exit(main())
