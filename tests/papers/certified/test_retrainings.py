"""Adversarial neighbours break no certificate, and break one that grants a record half."""

from __future__ import annotations

import pytest

from papers.certified import retrainings as search_module
from papers.certified.retrainings import KINDS, search
from reticent.retraining.reserves import ReserveSettings


@pytest.mark.parametrize("retrainings", [300, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_break_a_certificate_only_where_it_grants_too_much(
    kind: str, retrainings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = search(kind, retrainings=retrainings, seconds=0.2 * retrainings)
    assert sound["retrainings"] >= retrainings
    assert sound["flips"] > 50
    assert sound["broken"] == 0
    assert 0.9 < sound["largest"] <= 1.0
    monkeypatch.setattr(ReserveSettings, "worth", 0.5)
    monkeypatch.setattr(search_module, "VOTE", 0.5 * search_module.VOTE)
    assert search(kind, retrainings=300, seconds=60.0)["broken"] > 10
