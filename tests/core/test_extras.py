"""Optional dependencies: imported late, in one place, and named when they are missing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reticent.core.errors import MissingExtra
from reticent.core.extras import WHOLE_MODULES, require

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "reticent"

PACKAGES = {
    "networks": ("torch",),
    "plots": ("matplotlib",),
    "attacks": ("torchmetrics",),
    "milp": ("highspy",),
    "accounting": ("dp_accounting",),
    "baselines": ("opacus",),
    "xgboost": ("xgboost",),
    "faiss": ("faiss",),
    "opendp": ("opendp",),
    "signing": ("cryptography",),
    "audit": ("cryptography",),
    "fleet": ("cryptography",),
    "postgres": ("psycopg",),
    "arrow": ("pyarrow",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "dask": ("distributed",),
    "client": ("httpx",),
    "service": ("fastapi", "prometheus_client", "uvicorn"),
}
"""What each extra installs and is imported by name."""


def imports_when_loaded_or_called(tree: ast.AST) -> set[str]:
    """Names of packages that import statements mention, those for the type checker alone left
    out.
    """
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            for other in node.orelse:
                found |= imports_when_loaded_or_called(ast.Module([other], []))
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
        else:
            found |= imports_when_loaded_or_called(node)
    return found


def required(tree: ast.AST) -> set[tuple[str, str]]:
    """(package, extra) of every call of ``require``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        (str(ast.literal_eval(call.args[0])).partition(".")[0], ast.literal_eval(word.value))
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "require"
        for word in call.keywords
        if word.arg == "extra"
    }


OPTIONAL = {package for packages in PACKAGES.values() for package in packages}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Every source file, parsed."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted((*SOURCES.rglob("*.py"), *ROOT.glob("papers/**/*.py")))
    }


def test_optional_packages_are_imported_through_require_alone(trees: dict[str, ast.Module]) -> None:
    direct = {
        name: sorted(imports_when_loaded_or_called(tree) & OPTIONAL - set(WHOLE_MODULES))
        for name, tree in trees.items()
        if name.startswith("src/")
    }
    assert {name: packages for name, packages in direct.items() if packages} == {}


def test_what_is_required_is_in_the_extra_that_the_message_names(
    trees: dict[str, ast.Module],
) -> None:
    asked = {pair for tree in trees.values() for pair in required(tree)}
    assert {package for package, _ in asked} == OPTIONAL
    assert [
        (package, extra) for package, extra in sorted(asked) if package not in PACKAGES[extra]
    ] == []


def test_the_extras_are_declared_and_not_needed_otherwise() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, packages in PACKAGES.items():
        names = " ".join(extras[extra]).replace("-", "_")
        assert [package for package in packages if package not in names] == []
    core = " ".join(project["dependencies"]).replace("-", "_")
    assert [package for package in OPTIONAL if package in core] == []
    (everything,) = extras["all"]
    tools = {"all", "dev", "docs", "test"}
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(extras) - tools
    assert "reticent[all,docs,test]" in extras["dev"]


def test_a_package_that_is_there_and_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reticent_test_broken.py").write_text("import reticent_test_nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="reticent_test_nowhere") as caught:
        require("reticent_test_broken", extra="none")
    assert not isinstance(caught.value, MissingExtra)


WITHOUT = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Nowhere())
"""


CALLS = {
    "accounting": "from reticent.accounting import PldAccountant; PldAccountant(AddRemove())",
    "attacks": (
        "from reticent.attacks import picture_quality; "
        "picture_quality(np.zeros((1, 8, 8)), np.zeros((1, 8, 8)))"
    ),
    "baselines": (
        "from papers.dpsgd import PrivateTraining, train_private; "
        "train_private(np.zeros((4, 2)), [0, 1, 0, 1], "
        "PrivateTraining(epsilon=1.0, delta=1e-5, epochs=1))"
    ),
    "faiss": (
        "from reticent.neighbours import NeighbourSearch, Records; "
        "NeighbourSearch(Records.of([[0]], [0], None), engine='faiss')"
    ),
    "milp": (
        "from papers.posthoc.milp import milp_lipschitz; from reticent.core import Box; "
        "from reticent.networks import affine_chain; random = np.random.default_rng(0); "
        "weights = [random.normal(size=(6, 2)), random.normal(size=(2, 6))]; "
        "network = affine_chain(weights, [np.zeros(6), np.zeros(2)]); "
        "milp_lipschitz(network, [0.0, 0.0], 1.5, domain=Box.cube(2, 4.0))"
    ),
    "client": "from reticent.client import Client; Client('http://127.0.0.1:1', 'reticent_key')",
    "dask": (
        "from pathlib import Path; from reticent.systems.cluster import release_on_cluster; "
        "release_on_cluster(None, [], Path('out'), cluster='tcp://127.0.0.1:1')"
    ),
    "service": "from reticent.service.server import serve; serve(None)",
    "opendp": "from reticent.noise import OpenDPSampler; OpenDPSampler()",
    "plots": "from reticent.pages.drawings import one_panel; one_panel()",
    "postgres": (
        "from reticent.ledger import Ledger; Ledger.create('postgresql://nowhere.invalid/book')"
    ),
    "signing": (
        "from reticent.core.signatures import sign; "
        "sign(b'', purpose='receipt', key='no such file')"
    ),
    "arrow": "ANSWERS.to_frame('pyarrow')",
    "pandas": "ANSWERS.to_frame()",
    "polars": "ANSWERS.to_frame('polars')",
    "xgboost": (
        "from reticent.systems import train_server; "
        "train_server('xgboost', np.eye(4), [0, 1, 0, 1], seed=0)"
    ),
}
"""A call that needs each extra; torch's are in ``tests/test_without_torch.py``."""


@pytest.fixture(scope="module")
def answers_without_extras() -> dict[str, list[str]]:
    """What each call says where no optional package but torch can be found."""
    pytest.importorskip("torch")
    hidden = (*sorted(OPTIONAL - {"torch"}), "skimage", "attrs", "attr")
    code = (
        WITHOUT.format(hidden=hidden) + "import json\nimport numpy as np\n"
        "from reticent.core import AddRemove, Guarantee, Receipt, Release\n"
        "from reticent.core.errors import MissingExtra\n"
        "receipt = Receipt('m', Guarantee(1, 0, AddRemove()), 1, '', 'none', 'exact', False)\n"
        "ANSWERS = Release(np.zeros(1), np.zeros(1, dtype=bool), receipt)\n"
        f"found = {{}}\nfor extra, call in {CALLS!r}.items():\n"
        "    try:\n        exec(call)\n"
        "    except MissingExtra as error:\n        found[extra] = str(error)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = {
        extra: said.splitlines() for extra, said in json.loads(done.stdout).items()
    }
    return found


@pytest.mark.parametrize("extra", CALLS)
def test_a_call_that_needs_an_extra_says_so_in_one_line(
    extra: str, answers_without_extras: dict[str, list[str]]
) -> None:
    (line,) = answers_without_extras[extra]
    assert f'(extra "{extra}")' in line
