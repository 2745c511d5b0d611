"""The table's cells on a made-up table: every figure is there, cached, and written down;
baselines cost what they say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.power import table as power_table
from papers.power.convergence import steps_to
from papers.power.figures import default_mode, published_mode
from papers.power.parts import Parts
from papers.power.report import markdown
from papers.power.settings import settings_of
from papers.seeds import combined
from reticent.datasets import Table
from reticent.published.power_network import PowerConfig
from reticent.tables import Categorical, Numeric, TabularSchema

SCHEMA = TabularSchema((Numeric("a", 0, 1), Categorical("b", ("x", "y", "z"))))


def table() -> Table:
    random = np.random.default_rng(0)
    labels = np.arange(900) % 2
    rows = np.empty((900, 2), dtype=object)
    rows[:, 0] = np.clip(0.3 + 0.4 * labels + 0.15 * random.normal(size=900), 0, 1)
    rows[:, 1] = np.where(random.random(900) < 0.7, np.array(["x", "y"])[labels], "z")
    return Table(
        "toy",
        ("a", "b"),
        rows[:700],
        labels[:700],
        rows[700:],
        labels[700:],
        ("no", "yes"),
        "made by hand",
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning")
def test_all_cells_are_made_once_and_written(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(
        settings_of("adult"),
        load=table,
        schema=lambda _: SCHEMA,
        public_share=0.5,
        private_rows=300,
        published_rows=350,
        test_rows=150,
        power_config=PowerConfig(steps=5, batch_size=64),
        published_epsilons=(1.0, 8.0),
        epsilons=(1.0, 8.0),
        radii=(None, 0.2),
        outputs=(1,),
        epochs=5,
        cost_epsilons=(8.0,),
        cost_targets=(0.6, 0.99),
        server_batch=64,
        server_steps=120,
    )
    part = Parts.of(settings, seed=0, tuning=False)
    found = power_table.run(part, tmp_path)
    means, errors = combined([found, found])
    means["seeds"], means["arguments"] = 2, "--data toy --seeds 2"
    text = markdown(means, errors)
    for phrase in (
        "any two records",
        "within 0.2",
        "Published mode",
    ):
        assert phrase in text, phrase
    assert means["inversion"]["encoder and public rows"]["found"] > 0.95
    assert means["default"]["any-8"]["xgboost"] > means["non-private"]["majority"] + 0.1
    for one in means["bounds"].values():
        assert one["bound"] <= min(one["attack"], one["record known"])
    curve = means["servers"]["NonPriv"]
    assert steps_to(curve, 0.0) == curve["steps"][0]
    assert steps_to(curve, 1.1) is None
    assert means["servers"]["DP-Adam, epsilon 8"]["bytes"] > curve["bytes"]  # gradients per sample
    for draw, panels in ((default_mode, 2), (published_mode, 9)):
        drawing = draw(means, errors)
        assert len(drawing.axes) == panels
        assert all(
            axes.get_title() and len(axes.lines) + len(axes.patches) for axes in drawing.axes
        )
        drawing.savefig(tmp_path / "figure.png")
    for name in (
        "default",
        "raw",
        "published",
        "hijacking",
        "dp_adam",
        "inversion",
        "servers",
        "clients",
    ):
        monkeypatch.setattr(power_table, name, lambda *_, **__: pytest.fail("computed again"))
    assert power_table.run(part, tmp_path) == found
