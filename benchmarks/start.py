"""Processor time of a start: commands beside `import typer`, encoders beside `import sklearn.base`,
whose classes they extend.

    python benchmarks/start.py [--runs 5]

Prints the median of several runs in a process of its own each, and its ratio to that of ``import
typer``. A worker's start is an import of all that it needs, a bundle's load and one row. Modules
are compiled beforehand, as an installation leaves them, whatever the environment says.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import Figure
from streams import fitted, write

from reticent import Guarantee, Ledger, Scope

WORKER = (
    "import tempfile; from pathlib import Path; from reticent.systems.cluster import *; "
    "release_partition("
    "Task(Path('{bundle}'), BOOKS), "
    "Partition(Path('{folder}/row.parquet'), Path(tempfile.mkdtemp(dir='{folder}'))))"
)

STARTS = {
    "python -c pass": "pass",
    "import typer": "import typer",
    "import reticent": "import reticent",
    "reticent --version": "from reticent.cli.main import run; run(['--version'])",
    "reticent --help": "from reticent.cli.main import run; run(['--help'])",
    "reticent card": "from reticent.cli.main import run; run(['card', '{bundle}'])",
    "import reticent.ledger.ledger": "import reticent.ledger.ledger",
    "import sklearn.base": "import sklearn.base",
    "import torch": "import torch",
    "import PowerEncoder": "from reticent import PowerEncoder",
    "import PosthocEncoder": "from reticent import PosthocEncoder",
    "a worker's first row": WORKER.replace("BOOKS", "None, None"),
    "a worker's first row, in a ledger": WORKER.replace(
        "BOOKS", "'{folder}/ledger.db', Scope(subject='s')"
    ),
}
"""What runs, in a folder that has a bundle and a row."""

FIGURES = (
    ("reticent --version", "import typer"),
    ("reticent card", "import typer"),
    ("import PowerEncoder", "import sklearn.base"),
    ("import PosthocEncoder", "import sklearn.base"),
    ("a worker's first row", "import sklearn.base"),
    ("a worker's first row, in a ledger", "import sklearn.base"),
)


def seconds(code: str, runs: int, compiled: Path) -> list[float]:
    """Processor time of ``code`` in fresh interpreters, with modules that are in ``compiled``."""
    given = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for _ in range(runs + 1):
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=given
        )
        after = os.times()
        found.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return found[1:]  # the first one compiles


def main() -> None:
    """Runs all starts and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        encoder = fitted("power")
        bundle = encoder.save(Path(folder) / "bundle")
        everything = Guarantee(1e6, 0.1, encoder.query_.mechanism.adjacency)
        Ledger.create(Path(folder) / "ledger.db").grant(Scope(subject="s"), everything)
        write(Path(folder) / "row.parquet", 1)
        found = {
            name: seconds(
                code.format(folder=folder, bundle=bundle), runs, Path(folder) / "compiled"
            )
            for name, code in STARTS.items()
        }
    spent = {name: statistics.median(times) for name, times in found.items()}
    for name, time in spent.items():
        print(
            f"{name:36} {1000 * time:6.0f} ms   {time / spent['import typer']:5.2f} x import typer"
        )
    for name, peer in FIGURES:
        Figure.of(name, found[name], peer=peer, theirs=found[peer]).keep()


if __name__ == "__main__":
    main()
