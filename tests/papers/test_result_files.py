"""Results are written whole, in UTF-8, and replace older ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.result_files import cached_result, write_result
from reticent.core.errors import InvalidInput


def test_text_and_bytes_are_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.md"
    write_result(path, "± Rényi\n")
    assert path.read_bytes() == b"\xc2\xb1 R\xc3\xa9nyi\n"
    write_result(path, b"\x89PNG")
    assert path.read_bytes() == b"\x89PNG"
    assert [entry.name for entry in path.parent.iterdir()] == ["table.md"]


def test_a_folder_is_never_replaced(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        write_result(tmp_path, "text")
    assert tmp_path.is_dir()


def test_what_stands_there_is_not_computed_again(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"accuracy": 0.1 + 0.2}

    path = tmp_path / "cells" / "one.json"
    assert cached_result(path, compute) == {"accuracy": 0.1 + 0.2}
    assert cached_result(path, compute) == {"accuracy": 0.1 + 0.2}
    assert len(calls) == 1
