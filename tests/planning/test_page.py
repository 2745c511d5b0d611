"""The page holds what the plan found, needs nothing else, and fits a small screen."""

from __future__ import annotations

import pytest

from reticent.core.errors import InvalidInput
from reticent.planning.methods import PublicUse
from reticent.planning.planner import plan
from tests.demos.conftest import read_page  # noqa: F401
from tests.planning.fakes import Known, floor, rows_and_labels


@pytest.fixture(scope="module")
def found():
    def falling(task):
        return 0.97 - 0.03 * len(str(task.answers))

    methods = [
        floor(),
        Known("public start", 0.85),
        Known("prediction <b>", falling, limited=True),
        Known("public models alone", 0.8, uses=PublicUse.LABELS_ALONE),
    ]
    X, y = rows_and_labels(2000)
    return plan(
        X,
        y,
        n_private=10_000,
        epsilon=1.0,
        delta=1e-5,
        answers=10,
        scoring="accuracy",
        methods=methods,
        random_state=0,
    )


def test_the_page_is_whole_and_loads_nothing(found, tmp_path, read_page):  # noqa: F811
    path = found.page(tmp_path / "plan.html")
    html = path.read_text(encoding="utf-8")
    elements = read_page(html)
    tags = {tag for tag, _ in elements}
    assert "script" not in tags
    assert "prediction &lt;b&gt;" in html
    assert "prediction <b>" not in html
    assert "prediction &lt;b&gt;" in found._repr_html_()  # what a notebook shows
    assert "prediction <b>" not in found._repr_html_()
    assert str(found) == found.table()
    with pytest.raises(InvalidInput):
        found.page(path)
    found.page(path, overwrite=True)
