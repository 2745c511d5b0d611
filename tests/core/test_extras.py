"""Optional dependencies: imported late, in one place, and named when they are missing."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reticent.core.errors import MissingExtra
from reticent.core.extras import WHOLE_MODULES, is_torch_module, missing_extra, require
from reticent.core.lazy import lazy_names

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
}
"""What each extra installs and is imported by name. PostgreSQL's driver is imported by
SQLAlchemy.
"""


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


TREES = {
    path.relative_to(SOURCES).as_posix(): ast.parse(path.read_text())
    for path in sorted(SOURCES.rglob("*.py"))
}
OPTIONAL = {package for packages in PACKAGES.values() for package in packages}


def test_optional_packages_are_imported_through_require_alone() -> None:
    direct = {
        name: sorted(imports_when_loaded_or_called(tree) & OPTIONAL - set(WHOLE_MODULES))
        for name, tree in TREES.items()
    }
    assert {name: packages for name, packages in direct.items() if packages} == {}


def test_the_scan_sees_an_import_wherever_it_stands() -> None:
    code = (
        "if TYPE_CHECKING:\n    import faiss\nelse:\n    import highspy\ndef f():\n"
        "    from opacus.optimizers import DPOptimizer"
    )
    assert imports_when_loaded_or_called(ast.parse(code)) == {"highspy", "opacus"}


def test_what_whole_modules_are_built_on_is_imported_at_their_top_or_through_require() -> None:
    inside = {
        name: sorted(
            package
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            for package in imports_when_loaded_or_called(node) & set(WHOLE_MODULES)
        )
        for name, tree in TREES.items()
    }
    assert {name: packages for name, packages in inside.items() if packages} == {}


def test_what_is_required_is_in_the_extra_that_the_message_names() -> None:
    asked = {pair for tree in TREES.values() for pair in required(tree)}
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
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(extras) - {"all", "dev"}
    assert "reticent[all]" in extras["dev"]


@pytest.mark.parametrize("extra", PACKAGES)
def test_a_missing_package_is_one_line_that_names_the_extra(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in PACKAGES[extra]:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra) as caught:
            require(f"{package}.anything", extra=extra)
        assert str(caught.value) == f'{package} is not installed: pip install "reticent[{extra}]"'


def test_a_name_whose_module_needs_a_missing_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reticent_test_built_on_torch.py").write_text("import torch\nvalue = 1")
    monkeypatch.syspath_prepend(tmp_path)
    find = lazy_names("example", {"reticent_test_built_on_torch": ("value",)})
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtra, match=r'^torch is not .* "reticent\[networks\]"$'):
            find("value")
    assert find("value") == 1


def test_a_missing_package_of_no_extra_is_not_called_an_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reticent_test_needs_more.py").write_text("import reticent_test_nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    find = lazy_names("example", {"reticent_test_needs_more": ("value",)})
    with pytest.raises(ModuleNotFoundError, match="reticent_test_nowhere") as caught:
        find("value")
    assert not isinstance(caught.value, MissingExtra)
    assert missing_extra(caught.value) is None


def test_a_torch_module_is_told_from_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch import nn

    assert is_torch_module(nn.ReLU())
    assert [is_torch_module(value) for value in (None, "relu", nn.ReLU, nn)] == [False] * 4
    monkeypatch.delitem(sys.modules, "torch")
    assert not is_torch_module("relu")


def test_what_could_be_done_instead_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r'pip install "reticent\[faiss\]", or stay$'):
        require("faiss", extra="faiss", instead="stay")


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


def test_what_needs_torch_at_most_works_without_any_other_extra() -> None:
    """Totals, a ledger, a certified linear model and exact neighbours, where none of these
    packages can be found.
    """
    hidden = tuple(sorted(OPTIONAL - {"torch"} | {"skimage", "attrs", "attr"}))
    code = WITHOUT.format(hidden=hidden) + (
        "import numpy as np\n"
        "from reticent import CertifiedClassifier, PosthocEncoder, PowerEncoder, "
        "PrivateKNNClassifier\n"
        "from reticent.accounting import *\n"
        "from reticent.attacks import *\n"
        "from reticent.lipschitz import milp_lipschitz\n"
        "from reticent.core import AddRemove, Guarantee\n"
        "from reticent.core.errors import MissingExtra\n"
        "from reticent.training.features import HogFeatures\n"
        "event = PrivacyEvent('gaussian', Guarantee(0.5, 1e-5, AddRemove()), "
        "PoissonSampled(0.1, GaussianCost(20.0)))\n"
        "print(RdpAccountant(AddRemove()).compose(event, 100).epsilon(delta=1e-5))\n"
        "print(optimal_epsilon_of([(0.1, 0.0)] * 10 + [(0.2, 0.0)] * 5, delta=1e-5))\n"
        "features = HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=False)\n"
        "print(features.features(np.eye(8).reshape(1, 64)).sum())\n"
        "try:\n    PldAccountant(AddRemove())\nexcept MissingExtra as error:\n    print(error)\n"
        "try:\n    picture_quality(np.zeros((1, 8, 8)), np.zeros((1, 8, 8)))\nexcept "
        "MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    from reticent.accounting import (
        GaussianCost,
        PoissonSampled,
        PrivacyEvent,
        RdpAccountant,
        optimal_epsilon_of,
    )
    from reticent.core import AddRemove, Guarantee

    event = PrivacyEvent(
        "gaussian", Guarantee(0.5, 1e-5, AddRemove()), PoissonSampled(0.1, GaussianCost(20.0))
    )
    assert done[0] == str(RdpAccountant(AddRemove()).compose(event, 100).epsilon(delta=1e-5))
    assert done[1] == str(optimal_epsilon_of([(0.1, 0.0)] * 10 + [(0.2, 0.0)] * 5, delta=1e-5))
    assert float(done[2]) > 0
    assert done[3] == 'dp_accounting is not installed: pip install "reticent[accounting]"'
    assert done[4] == 'torchmetrics is not installed: pip install "reticent[attacks]"'
