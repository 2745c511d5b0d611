"""Processor time of a start: `reticent --help` and `--version` beside `import typer`, and two
imports.

    python benchmarks/start.py

Prints the least of several runs in a process of its own each, and its ratio to that of ``import
typer``.
"""

from __future__ import annotations

import os
import subprocess
import sys

RUNS = 9
STARTS = {
    "python -c pass": "pass",
    "import typer": "import typer",
    "import reticent": "import reticent",
    "reticent --version": "from reticent.cli.main import run; run(['--version'])",
    "reticent --help": "from reticent.cli.main import run; run(['--help'])",
    "import reticent.ledger.ledger": "import reticent.ledger.ledger",
}


def seconds(code: str) -> float:
    """Least processor time of ``code`` in a fresh interpreter."""
    found = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        found.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(found)


def main() -> None:
    """Runs all starts and prints a table."""
    spent = {name: seconds(code) for name, code in STARTS.items()}
    for name, time in spent.items():
        print(
            f"{name:36} {1000 * time:6.0f} ms   {time / spent['import typer']:5.2f} x import typer"
        )


if __name__ == "__main__":
    main()
