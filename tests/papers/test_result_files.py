"""Results are written whole, in UTF-8, and replace older ones."""

from __future__ import annotations

from pathlib import Path

from papers.result_files import write_result


def test_text_and_bytes_are_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.md"
    write_result(path, "± Rényi\n")
    assert path.read_bytes() == b"\xc2\xb1 R\xc3\xa9nyi\n"
    write_result(path, b"\x89PNG")
    assert path.read_bytes() == b"\x89PNG"
    assert [entry.name for entry in path.parent.iterdir()] == ["table.md"]
