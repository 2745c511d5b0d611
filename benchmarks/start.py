"""Processor time of a start: `reticent --help` and `--version` beside `import typer`, and two
imports.

    python benchmarks/start.py [--runs 5]

Prints the median of several runs in a process of its own each, and its ratio to that of ``import
typer``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

from figures import Figure

STARTS = {
    "python -c pass": "pass",
    "import typer": "import typer",
    "import reticent": "import reticent",
    "reticent --version": "from reticent.cli.main import run; run(['--version'])",
    "reticent --help": "from reticent.cli.main import run; run(['--help'])",
    "import reticent.ledger.ledger": "import reticent.ledger.ledger",
}


def seconds(code: str, runs: int) -> list[float]:
    """Processor time of ``code`` in fresh interpreters."""
    found = []
    for _ in range(runs):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        found.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return found


def main() -> None:
    """Runs all starts and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    found = {name: seconds(code, runs) for name, code in STARTS.items()}
    spent = {name: statistics.median(times) for name, times in found.items()}
    for name, time in spent.items():
        print(
            f"{name:36} {1000 * time:6.0f} ms   {time / spent['import typer']:5.2f} x import typer"
        )
    Figure.of(
        "reticent --version",
        found["reticent --version"],
        peer="import typer",
        theirs=found["import typer"],
    ).keep()


if __name__ == "__main__":
    main()
