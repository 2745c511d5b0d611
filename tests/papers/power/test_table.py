"""The table's cells on a made-up table: every figure is there, cached, and written down;
baselines cost what they say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.power import table as power_table
from papers.power.figures import published_mode
from papers.power.parts import Parts
from papers.power.report import markdown
from papers.power.settings import Schedule, settings_of
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
        private_rows=350,
        test_rows=150,
        power_config=PowerConfig(steps=5, batch_size=64),
        published_epsilons=(1.0, 8.0),
        cost_epsilons=(8.0,),
        cost_targets=(0.6, 1.1),
        server=Schedule(64, 120, 1e-3),
        dp_adam=Schedule(64, 120, 1e-3),
    )
    part = Parts.of(settings, seed=0, tuning=False)
    found = power_table.run(part, tmp_path)
    means, errors = combined([found, found])
    text = markdown(means, errors, seeds=2, command="a command")
    assert "`a command`" in text
    assert "Published mode" in text
    assert means["inversion"]["encoder and public rows"]["found"] > 0.95
    hijacked = means["hijacking"]
    assert hijacked["non-private"]["correlation"] > hijacked["majority guess"]["correlation"] + 0.1
    for one in means["bounds"].values():
        assert one["bound"] <= min(one["attack"], one["record known"])
    curve = means["servers"]["NonPriv"]
    assert curve["reached"]["0.6"] in curve["steps"]
    assert np.isnan(curve["reached"]["1.1"])
    assert means["servers"]["DP-Adam, epsilon 8"]["bytes"] > curve["bytes"]  # gradients per sample
    drawing = published_mode(means, errors)
    assert len(drawing.axes) == 9
    assert all(axes.get_title() and len(axes.lines) + len(axes.patches) for axes in drawing.axes)
    drawing.savefig(tmp_path / "figure.png")
    for name in (
        "not_private",
        "published",
        "hijacking",
        "dp_adam",
        "inversion",
        "servers",
        "clients",
    ):
        monkeypatch.setattr(power_table, name, lambda *_, **__: pytest.fail("computed again"))
    np.testing.assert_equal(power_table.run(part, tmp_path), found)
