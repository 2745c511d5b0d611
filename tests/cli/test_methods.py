"""`reticent methods`."""

from __future__ import annotations

import json

from reticent.systems.methods import BUILT_IN, GROUP


def test_a_line_for_each_method(command):
    answer = command("methods")
    assert answer.status == 0
    lines = answer.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [method.name for method in BUILT_IN]
    assert lines[0].endswith("releases a vector for every input (reticent 0.1.0)")
    assert answer.err == ""


def test_as_json(command):
    rows = json.loads(command("methods", "--json").out)
    assert [row["name"] for row in rows] == [method.name for method in BUILT_IN]
    assert all(row["protects"] for row in rows if row["role"] == "estimator")


def test_a_broken_package_is_told_beside_the_list(command, tmp_path, monkeypatch):
    information = tmp_path / "ward_methods-2.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: ward-methods\nVersion: 2.5\n")
    (information / "entry_points.txt").write_text(f"[{GROUP}]\nward = ward_missing:METHODS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    answer = command("methods")
    assert answer.status == 0
    assert len(answer.out.splitlines()) == len(BUILT_IN)
    assert answer.err.startswith("warning: ward-methods 2.5, entry point 'ward'")
    assert answer.err.count("\n") == 1
