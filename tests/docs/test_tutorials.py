"""Every block of every tutorial runs, prints what its page shows, and draws the figure that stands
in it; and what the pages claim about their numbers holds in this run.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_tutorials", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


run = _runner()
PAGES = run.pages()


def table(names: dict[str, Any]) -> None:
    majority = (names["unseen"]["income"] == "<=50K").mean()
    assert names["shares"][1.0] == pytest.approx(majority, abs=0.02)
    assert names["shares"][5.0] > majority + 0.05


def embeddings(names: dict[str, Any]) -> None:
    shares, response = names["shares"], names["response"]
    assert shares[1.0] > response[1.0] + 0.15
    assert shares[2.0] > response[2.0] + 0.15
    assert shares[5.0] > 0.8


def queries(names: dict[str, Any]) -> None:
    [spending] = _spending(names)
    assert spending.epsilon[-1] == pytest.approx(
        2 * names["classifier"].guarantee.epsilon, abs=1e-5
    )
    assert names["near"][4.0] > 0.6
    assert names["model"][4.0] > 0.7


def _spending(names: dict[str, Any], url: str = "book.sqlite") -> Any:
    book = names["Ledger"].open(url)
    try:
        return book.spending(points=4)
    finally:
        book.close()


def model(names: dict[str, Any]) -> None:
    shares = names["lines"]["what the plan takes", "ours", "circle"]
    assert shares[4.0] > shares[0.5] + 0.1
    assert shares[2.0] > 0.8


def service(names: dict[str, Any]) -> None:
    spent = {one.budget.scope.principal: one.epsilon[-1] for one in _spending(names, "budgets.db")}
    assert spent == pytest.approx({"acme": 20.0, "": 70.0})  # 40 answers, and 100 more of labs
    assert names["first"].verified
    assert (names["first"].values == names["again"].values).all()
    httpx = pytest.importorskip("httpx")
    with pytest.raises(httpx.ConnectError):  # the server went with its page
        httpx.get("http://127.0.0.1:8917/healthz")


def audit(names: dict[str, Any]) -> None:
    assert not names["honest"].refuted
    assert names["honest"].excluded > 0.85
    assert names["broken"].refuted
    _, wrong, cap = ({e: share for e, share, _ in one.points} for one in names["chart"].series)
    assert all(wrong[e] > cap[e] for e in names["totals"])  # the wrong norm, at every epsilon


def strangers(names: dict[str, Any]) -> None:
    assert names["found"].refuted
    assert not names["sound"].refuted
    assert names["searched"].refuted
    assert names["bits"].refuted
    assert Path("audit.html").read_text().startswith("<!doctype html>")


def sentences(names: dict[str, Any]) -> None:
    """Fails by chance less than once in 10^6 runs: five standard errors of 480 remarks."""
    assert names["shares"]["topic"] > 0.65
    assert names["shares"]["pleased"] > 0.8
    assert names["encoder"].query_.crowd[0] < 0.2 + 1e-6


CLAIMS: dict[str, Callable[[dict[str, Any]], None]] = {
    "01-protect-a-table": table,
    "02-release-embeddings": embeddings,
    "03-label-queries": queries,
    "04-publish-a-model": model,
    "05-serve-over-http": service,
    "06-audit-a-claim": audit,
    "07-audit-what-you-run": strangers,
    "08-send-sentences": sentences,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_it_stands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = run.run_page(page, tmp_path)
    for figure in run.figures(page):
        assert (tmp_path / figure).read_bytes().startswith(b"<svg")
    monkeypatch.chdir(tmp_path)
    CLAIMS[page.stem](names)
