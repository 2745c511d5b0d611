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
SLOW = ("scipy.stats", "scipy.optimize", "pydantic", "jinja2", "narwhals", "pyarrow", "pandas")
NUMERIC = ("numpy", "scipy", "sqlalchemy", "alembic", "rich", "pydantic")
COMMAND = "from reticent.cli.main import run; run({!r})"

STARTS = {
    "import reticent": ("import reticent", OPTIONAL + LEARNING + NUMERIC),
    "reticent --help": (COMMAND.format(["--help"]), OPTIONAL + LEARNING + NUMERIC),
    "reticent ledger --help": (
        COMMAND.format(["ledger", "--help"]),
        OPTIONAL + LEARNING + ("numpy", "scipy", "sqlalchemy"),
    ),
    "reticent release --help": (
        COMMAND.format(["release", "--help"]),
        OPTIONAL + LEARNING + ("numpy", "scipy", "sqlalchemy"),
    ),
    "import reticent.ledger": (
        "import reticent.ledger.ledger, reticent.ledger.verification, reticent.ledger.reports",
        (*OPTIONAL, *LEARNING, *SLOW, "alembic"),
    ),
    "everything below the systems": (
        (
            "from reticent.audit import *; from reticent.release import *; "
            "from reticent.datasets import *; from reticent.grids import *; "
            "from reticent.lipschitz import *; from reticent.mechanisms import *; "
            "from reticent.neighbours import *; from reticent.noise import *; "
            "from reticent.plots import *; from reticent.retraining import *; "
            "from reticent.tables import *"
        ),
        OPTIONAL + LEARNING + SLOW,
    ),
    "posthoc encoders": (
        (
            "from reticent import NoiseAware, PosthocClassifier, PosthocEncoder; "
            "PosthocEncoder(epsilon=1.0, delta=0.0, radius=0.1, obfuscator=NoiseAware(outputs=2))"
        ),
        (*OPTIONAL, "torch", "sqlalchemy", "alembic"),
    ),
    "certified models and private neighbours": (
        (
            "from reticent import CertifiedClassifier, CertifiedEnsemble, PrivateKNNClassifier, "
            "PublicRanges, PowerEncoder"
        ),
        (*OPTIONAL, "torch", "sqlalchemy", "alembic"),
    ),
    "a training": (
        (
            "import numpy; from reticent.training.heads import HeadConfig, train_head; "
            "train_head(numpy.eye(4), [0, 1, 0, 1], HeadConfig(epochs=1), noise=None)"
        ),
        (*OPTIONAL, "torch._dynamo"),
    ),
    "every accountant": (
        (
            "from reticent.accounting import *; RdpAccountant, private_knn_total, "
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


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_no_more_than_it_needs(start: str) -> None:
    code, unwanted = STARTS[start]
    # An older typer loads rich by itself.
    typers = loaded("import typer", unwanted) if "cli" in code else []
    assert [name for name in loaded(code, unwanted) if name not in typers] == []
