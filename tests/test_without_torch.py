"""What works where torch is not installed, and what says in one line that it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent import CertifiedClassifier, NoiseAware, PosthocEncoder, PowerEncoder
from reticent.core.extras import WHOLE_MODULES, missing_extra
from reticent.systems import VectorTraining

LINE = str(missing_extra(ModuleNotFoundError(name="torch")))

SOURCES = Path(__file__).resolve().parents[1] / "src" / "reticent"

WITHOUT = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nowhere())
"""

NEED_TORCH = (
    "reticent.attacks.critic",
    "reticent.attacks.decoder",
    "reticent.demos.posthoc",
    "reticent.networks.torch_modules",
    "reticent.published.obfuscators",
    "reticent.published.posthoc_encoder",
    "reticent.published.power",
    "reticent.published.power_network",
    "reticent.systems.embedding.fitted",
    "reticent.systems.embedding.modules",
    "reticent.systems.module_structure",
    "reticent.systems.posthoc",
    "reticent.systems.power.fitting",
    "reticent.systems.power.clear_fitting",
    "reticent.training",
)
"""Modules, or packages with modules, that are built on torch. No other module may need it, at any
remove.
"""

TORCH_FREE_TRAINING = (
    "reticent.training.features",
    "reticent.training.hog",
    "reticent.published.density",
    "reticent.training.progress",
    "reticent.training.query_choice",
)

FITS = """
import numpy as np
from reticent import CertifiedClassifier, CertifiedEnsemble, PrivateKNNClassifier
from reticent.systems import Features, Neighbours

X, y = np.random.default_rng(0).random((200, 8, 8)), np.arange(200) % 2
PrivateKNNClassifier(
    epsilon=4.0, delta=1e-5, queries=40, classes=[0, 1], features=Features(map="upright hog"),
    neighbours=Neighbours(number=30, sampling_probability=0.5),
).fit(X, y).release(X[:5])
for kind, more in ((CertifiedClassifier, {}), (CertifiedEnsemble, {"members": 3})):
    fitted = kind(epsilon=4.0, classes=[0, 1], k_max=5, **more).fit(X, y)
    loaded = kind.load(fitted.save(kind.__name__))
    print(np.array_equal(loaded.exact_predict(X), fitted.exact_predict(X)))
    loaded.release(X[:5])
"""

TABLES = """
import numpy as np
from reticent import PowerEncoder

encoder = PowerEncoder.load("table bundle")
print(encoder.release(np.full((3, 4), 2.0)).values.shape)
try:
    encoder.set_params(mechanism="k-norm-l2").fit(np.full((3, 4), 2.0), [0, 1, 1])
except ImportError as error:
    print(error)
"""


def run_without_torch(code: str, folder: Path, *arguments: str) -> list[str]:
    """The lines that ``code`` prints in a process where torch cannot be found."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


ALL = """
import contextlib, io, json
from reticent.cli.main import run
asked, found, answers, failed = json.loads(sys.argv[1]), {}, [], {}
for name, code in asked["parts"].items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    found[name] = out.getvalue().splitlines()
for words in asked["commands"]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words)
    answers.append([status, out.getvalue(), err.getvalue()])
import importlib
for name in asked["modules"]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps([found, answers, failed]))
"""
MISSING = (
    "reticent.systems.embedding.ModuleEmbedding",
    "reticent.networks.from_torch",
    "reticent.attacks.train_decoder",
)
IMPORTS = (
    "".join(
        f"try:\n    from {package} import {wanted}\n"
        "except ImportError as error:\n    print(type(error).__name__, error.code, error)\n"
        for package, _, wanted in (name.rpartition(".") for name in MISSING)
    )
    + """
from reticent import PosthocClassifier, PosthocEncoder
for front in (PosthocClassifier, PosthocEncoder):
    try:
        front(epsilon=1.0, delta=0.0, radius=0.1).fit([[0.0], [1.0]], [0, 1])
    except ImportError as error:
        print(type(error).__name__, error.code, error)
"""
)
COMMANDS = [
    ["--version"],
    ["ledger", "init", "--ledger", "commands.sqlite"],
    ["ledger", "verify", "--ledger", "commands.sqlite"],
    ["card", "certified"],
    ["release", "certified", "--input", "rows.npy", "--output", "out.npz"],
    ["certify", "certified", "--input", "rows.npy", "--radius", "0.1"],
    ["card", "posthoc"],
    ["demo", "posthoc", "--output", "demo"],
    ["demo", "power", "--output", "demo"],
]


@dataclass(frozen=True)
class Found:
    """What one process without torch did.

    Attributes:
        folder: where it ran.
        printed: lines of each part.
        answers: exit status, output and errors of each command.
        failed: modules that could not be imported, and why.
    """

    folder: Path
    printed: dict[str, list[str]]
    answers: list[tuple[int, str, str]]
    failed: dict[str, str]


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Everything that is asked of one process, which starts in seconds."""
    folder, iris = tmp_path_factory.mktemp("without"), load_iris()
    np.save(folder / "rows.npy", iris.data[:5])
    PowerEncoder(
        epsilon=4.0, delta=0.0, radius=None, schema=(0.0, 8.0), mechanism="code",
        random_state=0, training=VectorTraining(epochs=1),
    ).fit(iris.data, iris.target).save(folder / "table bundle")  # fmt: skip
    CertifiedClassifier(epsilon=2.0, classes=range(3), k_max=2, data_set="iris").fit(
        iris.data, iris.target
    ).save(folder / "certified")
    PosthocEncoder(
        epsilon=8.0, delta=0.0, radius=0.2, embedder="identity",
        obfuscator=NoiseAware(outputs=2, hidden=(4,), epochs=1),
    ).fit(iris.data, iris.target).save(folder / "posthoc")  # fmt: skip
    modules = sorted(
        ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES.rglob("*.py")
        if "migrations" not in path.parts
    )
    parts = {"fits": FITS, "a stored encoder": TABLES, "imports": IMPORTS}
    asked = json.dumps({"parts": parts, "commands": COMMANDS, "modules": modules})
    (line,) = run_without_torch(ALL, folder, asked)
    return Found(folder, *json.loads(line))


def test_only_these_modules_need_torch(without: Found) -> None:
    missing = dict(without.failed)
    # modules of the service are built on packages of an extra of their own
    other = [package for package in WHOLE_MODULES if package != "torch"]
    for name, said in [*missing.items()]:
        if "torch" not in said:
            assert name.startswith("reticent.service."), said
            assert any(package in said for package in other), said
            del missing[name]
    others = [
        name for name in missing if not any(f"{name}.".startswith(f"{at}.") for at in NEED_TORCH)
    ]
    assert others == []
    assert [name for name in TORCH_FREE_TRAINING if name in missing] == []
    # an entry that nothing needs any more is to be taken out
    assert [
        at for at in NEED_TORCH if not any(f"{name}.".startswith(f"{at}.") for name in missing)
    ] == []


def test_records_are_fitted_and_stored_without_torch(without: Found) -> None:
    assert without.printed["fits"] == ["True", "True"]


def test_a_stored_encoder_of_tables_releases_without_torch(without: Found) -> None:
    shape, line = without.printed["a stored encoder"]
    assert shape.startswith("(3, ")
    assert line == f"{LINE}, or use mechanism='code'"


def test_what_needs_torch_says_in_one_line_what_to_install(without: Found) -> None:
    assert without.printed["imports"] == [f"MissingExtra 15 {LINE}"] * (len(MISSING) + 2)


def test_commands_without_torch(without: Found) -> None:
    answers = without.answers
    assert [status for status, _, _ in answers] == [0, 0, 0, 0, 0, 2, 0, 15, 15], answers
    with np.load(without.folder / "out.npz", allow_pickle=False) as written:
        assert len(written["values"]) == 5
    assert "PosthocEncoder" in answers[5][2]
    assert "epsilon" in answers[6][1]  # a card as it is stored
    for _, out, err in answers[7:]:
        assert (out, err.strip()) == ("", f"error: {LINE}")
    assert not (without.folder / "demo").exists()
