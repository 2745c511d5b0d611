"""The table of faults fits the source, and, in the soak, nearly every fault is noticed."""

from __future__ import annotations

import ast

import pytest

from tests.planted.__main__ import ROOT, main, planted
from tests.planted.faults import FAULTS, Fault


def test_a_fault_has_one_place_in_the_source_and_can_be_run() -> None:
    for fault in FAULTS:
        text = (ROOT / "src" / "reticent" / fault.file).read_text()
        changed = planted(text, fault)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), fault.name
        assert fault.rooms, fault.name
        for room in fault.rooms:
            assert list((ROOT / "tests" / room).rglob("test_*.py")), (fault.name, room)


def test_a_text_that_occurs_twice_is_no_place() -> None:
    fault = Fault("twice", "core/names.py", "a", "b", ("core",))
    with pytest.raises(ValueError, match="2 places"):
        planted("a a", fault)
    assert planted("a c", fault) == "b c"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_at_most_one_fault_survives(capsys: pytest.CaptureFixture[str]) -> None:
    """An hour of CPU time."""
    status = main([])
    with capsys.disabled():
        print(capsys.readouterr().out)
    assert status == 0
