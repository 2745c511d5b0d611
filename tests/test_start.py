"""What an import, a help text and a ledger load: nothing that they do not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = (
    "dp_accounting",
    "opendp",
    "matplotlib",
    "torchmetrics",
    "skimage",
    "highspy",
    "opacus",
    "xgboost",
    "faiss",
    "psycopg",
)
LEARNING = ("torch", "sklearn")
NUMERIC = ("numpy", "scipy", "sqlalchemy", "alembic", "rich", "pydantic")
COMMAND = "from reticent.cli.main import run; run({!r})"

STARTS = {
    "import reticent": ("import reticent", OPTIONAL + LEARNING + NUMERIC),
    "import reticent.core.guarantees": (
        "import reticent.core.guarantees",
        OPTIONAL + LEARNING + NUMERIC,
    ),
    "reticent --help": (COMMAND.format(["--help"]), OPTIONAL + LEARNING + NUMERIC),
    "reticent --version": (COMMAND.format(["--version"]), OPTIONAL + LEARNING + NUMERIC),
    "reticent ledger --help": (
        COMMAND.format(["ledger", "--help"]),
        OPTIONAL + LEARNING + ("numpy", "scipy", "sqlalchemy"),
    ),
    "reticent release --help": (
        COMMAND.format(["release", "--help"]),
        OPTIONAL + LEARNING + ("numpy", "scipy", "sqlalchemy"),
    ),
    "import reticent.ledger.ledger": ("import reticent.ledger.ledger", OPTIONAL + LEARNING),
    "every accountant and filter": (
        (
            "from reticent.accounting import *; RdpAccountant, BasicFilter, private_knn_total, "
            "calibrate_private_knn"
        ),
        OPTIONAL + LEARNING,
    ),
}


def loaded(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of ``names`` are imported once ``code`` has run in a process of its own."""
    report = (
        f"{code}\nimport sys\nprint('loaded:', *[name for name in {names!r} if name in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", report], check=True, capture_output=True, text=True
    )
    return done.stdout.rsplit("loaded:", 1)[1].split()


@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_no_more_than_it_needs(start: str) -> None:
    code, unwanted = STARTS[start]
    # An older typer loads rich by itself.
    typers = loaded("import typer", unwanted) if "cli" in code else []
    assert [name for name in loaded(code, unwanted) if name not in typers] == []


def test_what_is_loaded_is_seen() -> None:
    assert loaded("import numpy", ("numpy", "scipy")) == ["numpy"]
