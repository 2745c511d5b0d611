"""Adversarial neighbours break no certificate, and break one that grants a record half."""

from __future__ import annotations

import pytest

from papers.certified import retrainings
from papers.certified.retrainings import KINDS, search
from reticent.retraining.reserves import ReserveSettings


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_break_a_certificate_only_where_it_grants_too_much(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = search(kind, retrainings=300, seconds=60.0)
    assert sound["retrainings"] >= 300
    assert sound["flips"] > 50
    assert sound["broken"] == 0
    assert 0.9 < sound["largest"] <= 1.0
    monkeypatch.setattr(ReserveSettings, "worth", 0.5)
    monkeypatch.setattr(retrainings, "VOTE", 0.5 * retrainings.VOTE)
    assert search(kind, retrainings=300, seconds=60.0)["broken"] > 10
