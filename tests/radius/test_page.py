"""The page of a survey: what its figure draws, and what is named where."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.distance import cdist

from reticent.radius import page, survey_radius
from tests.browser import WIDTHS, chromium

RADII = (0.2, 0.5, 1.0)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    points = random.normal(size=(120, 3))
    return points, (points[:, 0] > 0).astype(int)


def survey_of(rows: tuple[np.ndarray, np.ndarray], radii: tuple[float, ...] = RADII) -> Any:
    points, labels = rows
    return survey_radius(points, radii=radii, epsilons=[1.0], columns={"<label>": labels})


def test_the_figure_draws_shares_and_rules(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    draw = page.radius_plot

    def kept(axes: Any, series: Any, *, chosen: Any) -> Any:
        drawn.update({one.name: one.points for one in series}, chosen=chosen)
        return draw(axes, series, chosen=chosen)

    monkeypatch.setattr(page, "radius_plot", kept)
    survey = survey_of(rows)
    html = page.radius_page(survey)
    apart = cdist(rows[0], rows[0], "chebyshev")
    np.fill_diagonal(apart, np.inf)
    other = rows[1][:, None] != rows[1]
    for name, mask in (("another row", True), ("another <label>", other)):
        nearest = np.where(mask, apart, np.inf).min(axis=1)
        assert drawn[f"{name} within R"] == tuple(
            (radius, pytest.approx((nearest <= radius).mean()), 0.0) for radius in RADII
        )
    numbered = dict(enumerate(survey.rules, 1))
    assert drawn["chosen"] == {
        f"rule {number}": rule.radius for number, rule in numbered.items() if rule.radius > 0
    }
    assert drawn["chosen"]
    for number, rule in numbered.items():
        assert f"{number}. {rule.name}".replace("<", "&lt;").replace(">", "&gt;") in html
    [code] = re.findall(r'<img alt="[^"<>]*" src="data:image/png;base64,([^"]+)">', html)
    with Image.open(io.BytesIO(base64.b64decode(code))) as picture:
        assert picture.width > 500


def test_one_radius_has_no_figure(rows: Any) -> None:
    assert "<img" not in page.radius_page(survey_of(rows, (0.5,)))


@pytest.mark.browser
def test_it_fits_a_screen_and_a_telephone(rows: Any, tmp_path: Path) -> None:
    written = tmp_path / "radius.html"
    written.write_text(page.radius_page(survey_of(rows)), encoding="utf-8")
    with chromium(tmp_path / "profile") as browser:
        assert {width: browser.faults(written, width) for width in WIDTHS} == {1200: [], 390: []}
