"""The registry of methods: ours, and those of packages that are found on the path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import reticent
from reticent.core.errors import UnknownName
from reticent.systems.methods import BUILT_IN, GROUP, OWN, find_methods

MODULE = """
from reticent.systems.methods import Method

METHODS = [
    Method(
        name="WardMean",
        target="{module}:WardMean",
        summary="the mean of a ward",
        protects="one patient",
        releases="a mean",
    ),
    Method(name="Halved", target="{module}:halved", summary="half of it", role="part"),
]


class WardMean:
    pass


def halved(value):
    return value / 2
"""

IMPORT = "from reticent.systems.methods import Method\n"
FIELDS = "target='a:b', summary='c', protects='d', releases='e'"


def install(folder: Path, name: str, entry_points: str, modules: dict[str, str]) -> None:
    """A distribution as an installer leaves it, in a folder that is on the path."""
    information = folder / f"{name.replace('-', '_')}-2.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n")
    (information / "entry_points.txt").write_text(f"[{GROUP}]\n{entry_points}\n")
    for module, content in modules.items():
        (folder / f"{module}.py").write_text(content)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_every_method_of_ours_is_there_under_its_own_name() -> None:
    for method in BUILT_IN:
        kind = method.load()
        assert kind.__name__ == method.name
        assert method.origin == OWN
    estimators = {method.name for method in BUILT_IN if method.role == "estimator"}
    offered = {name for name in reticent.__all__ if hasattr(getattr(reticent, name), "card")}
    assert estimators == offered


def test_a_list_of_methods_loads_none_of_them() -> None:
    code = (
        "import sys\n"
        "from reticent.systems.methods import find_methods\n"
        "assert len(find_methods().methods) > 10\n"
        "heavy = {'torch', 'sklearn', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_method_of_another_package_is_found_and_says_whose_it_is(site: Path) -> None:
    install(
        site,
        "ward-methods",
        "ward = ward_found:METHODS",
        {"ward_found": MODULE.format(module="ward_found")},
    )
    found = find_methods()
    assert found.problems == ()
    ward = found.named("WardMean", role="estimator")
    assert ward.origin == "ward-methods 2.5"
    assert ward.describe() == "WardMean: protects one patient; releases a mean (ward-methods 2.5)"
    assert ward.load().__module__ == "ward_found"
    assert found.named("Halved", role="part").load()(3) == 1.5
    assert found.methods[: len(BUILT_IN)] == BUILT_IN
    with pytest.raises(UnknownName, match="estimator 'Halved': expected one of PosthocEncoder"):
        found.named("Halved", role="estimator")


@pytest.mark.parametrize(
    ("value", "content", "told"),
    [
        ("ward_gone:METHODS", None, "ModuleNotFoundError"),
        ("ward_fails:METHODS", "raise RuntimeError('no\\nGPU')", "RuntimeError: no GPU"),
        ("ward_words:METHODS", "METHODS = ['WardMean']", "Method .* got str"),
        (
            "ward_thief:METHODS",
            f"{IMPORT}METHODS = Method(name='PosthocEncoder', {FIELDS})",
            r"the name 'PosthocEncoder' is taken by reticent 0\.1\.0",
        ),
        (
            "ward_bare:METHODS",
            f"{IMPORT}METHODS = Method(name='Bare', target='a:b', summary='c')",
            "protects: expected 1 to",
        ),
    ],
)
def test_a_broken_entry_point_is_told_in_a_line_and_stands_in_nobodys_way(
    site: Path, value: str, content: str | None, told: str
) -> None:
    module = value.partition(":")[0]
    install(site, "ward-broken", f"ward = {value}", {} if content is None else {module: content})
    good = MODULE.format(module=f"{module}_good")
    more = site / "more"
    more.mkdir()
    sys.path.insert(0, str(more))
    try:
        install(more, "ward-good", f"ward = {module}_good:METHODS", {f"{module}_good": good})
        found = find_methods()
    finally:
        sys.path.remove(str(more))
    (problem,) = found.problems
    assert problem.startswith(f"ward-broken 2.5, entry point 'ward' = '{value}': ")
    assert "\n" not in problem

    assert re.search(told, problem), problem
    assert found.named("WardMean", role="estimator").origin == "ward-good 2.5"
    assert found.methods[: len(BUILT_IN)] == BUILT_IN
    with pytest.raises(UnknownName, match=r"not loaded: ward-broken 2\.5"):
        found.named("Missing", role="part")
