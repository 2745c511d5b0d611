"""Every way to end: a status, and one line on standard error at most."""

from __future__ import annotations

import pytest

from reticent.cli import bundles, main


def test_an_unforeseen_fault_shows_neither_message_nor_traceback(command, monkeypatch, tmp_path):
    def fault(*asked, **more):
        raise RuntimeError("row 7 is [0.25, 0.75]")

    monkeypatch.setattr(bundles, "open_bundle", fault)
    answer = command("card", tmp_path, "--json")
    assert answer.status == 70
    assert answer.err.startswith("error: internal error (RuntimeError)")
    assert "0.25" not in answer.err
    assert answer.err.count("\n") == 1
    monkeypatch.setenv(main.TRACEBACK_VARIABLE, "1")
    with pytest.raises(RuntimeError):
        command("card", tmp_path, "--json")
