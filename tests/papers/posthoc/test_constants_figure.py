"""Constants against alpha and R on digits: larger neighbourhoods have larger constants, cells are
cached.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import load
from papers.posthoc import constants_figure
from papers.posthoc.settings import SETTINGS
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=2,
    embedder_epochs=2,
    embedder_width=32,
    published_hidden=(8,),
    published_outputs=2,
    published_epochs=2,
)


@pytest.mark.slow
def test_small_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run():
        return constants_figure.run(
            load("digits"),
            SMALL,
            tmp_path,
            alphas=(0.1, 0.9),
            radii=(0.1, 1.0),
            seed=0,
            report=silent,
        )

    found = run()
    assert set(found) == {"0.1", "0.9"}
    for cell in found.values():
        near, far = cell["constants"]["0.1"], cell["constants"]["1"]
        assert 0.0 < near <= far
        assert cell["shares"]["1"] == far / cell["spread"]
    assert found["0.1"]["constants"] != found["0.9"]["constants"]
    monkeypatch.setattr(constants_figure, "cached_embedder", None)
    assert run() == found
    text = constants_figure.markdown("digits", [found], command="python -m some")
    assert "Printed by `python -m some`." in text
    assert f"| 0.1 | {found['0.1']['constants']['0.1']:.2f} |" in text
    bars = constants_figure.figure([found]).axes[0].patches
    heights = [bar.get_height() for bar in bars]
    expected = [found[alpha]["constants"][radius] for radius in ("0.1", "1") for alpha in found]
    np.testing.assert_allclose(heights, expected)
