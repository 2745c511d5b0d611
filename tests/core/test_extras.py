"""Optional dependencies: imported late, in one place, and named when they are missing."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from reticent.core.errors import MissingExtra
from reticent.core.extras import WHOLE_MODULES, require
from tests.source import ROOT, trees


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


@pytest.fixture(scope="module")
def asked() -> set[tuple[str, str]]:
    """(package, extra) of everything that the source may go without."""
    return {pair for tree in trees().values() for pair in required(tree)} | set(
        WHOLE_MODULES.items()
    )


def test_optional_packages_are_imported_through_require_alone(asked: set[tuple[str, str]]) -> None:
    optional = {package for package, _ in asked} - set(WHOLE_MODULES)
    direct = {
        name: sorted(imports_when_loaded_or_called(tree) & optional)
        for name, tree in trees().items()
        if name.startswith("src/")
    }
    assert {name: packages for name, packages in direct.items() if packages} == {}


def test_what_is_required_is_in_the_extra_that_the_message_names_and_not_needed_otherwise(
    asked: set[tuple[str, str]],
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    held = {extra: " ".join(packages).replace("-", "_") for extra, packages in extras.items()}
    brought = {"h11", "starlette"}  # by uvicorn and fastapi
    assert [one for one in asked if one[0] not in held[one[1]] and one[0] not in brought] == []
    core = " ".join(project["dependencies"]).replace("-", "_")
    assert [package for package, _ in asked if package in core] == []
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
