"""The certificates' table end to end on digits: one network, rows that differ in the certificate
alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.datasets import load
from papers.posthoc import certificate_table
from papers.posthoc.settings import SETTINGS
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=3,
    embedder_epochs=2,
    embedder_width=32,
    published_epochs=2,
)


@pytest.mark.slow
def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_table, "HIDDEN", (6,))
    monkeypatch.setattr(certificate_table, "OUTPUTS", 2)
    table = certificate_table.run(
        load("digits"),
        SMALL,
        tmp_path,
        obfuscator_row="N",
        epsilons=(5.0,),
        delta=0.05,
        rows=20,
        seed=0,
        report=silent,
    )
    interval, enumeration = table
    assert [row.certificate for row in table] == list(certificate_table.CERTIFICATES)
    assert (
        interval.exact_constant
        <= enumeration.local_constant * (1 + 1e-5)
        <= interval.local_constant * (1 + 2e-5)
    )
    assert enumeration.exact_constant == interval.exact_constant
    for row in table:
        assert row.epsilon == pytest.approx(5.0)
        # Laplace noise for P times the radius, at what the test leaves of epsilon: never less than
        # at the whole of it.
        assert row.scale >= row.proposal * SMALL.radius / row.epsilon
        assert 0 <= row.accuracy <= 1 - row.withheld + 1e-12
        assert row.release_seconds > 0
    text = certificate_table.markdown(table, title="Small")
    assert text.count("\n| 5 |") == 2
    assert "| exact |" not in text
