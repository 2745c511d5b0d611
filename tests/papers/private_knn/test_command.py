"""Command line and axis of the Private-kNN pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.private_knn.command import Chosen, read_command, total_axis
from reticent.pages.drawings import one_panel


def test_the_command_line_names_data_folder_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = {"about": "About.\n\nMore.", "data": ("b", "a"), "folder": "page"}
    assert read_command(["--data", "a"], **ask) == Chosen("a", Path("runs/page"), 0)
    assert (tmp_path / "runs" / "page").is_dir()
    assert read_command(["--data", "b", "--out", "here", "--seed", "4"], **ask) == Chosen(
        "b", Path("here"), 4
    )
    assert (tmp_path / "here").is_dir()


@pytest.mark.parametrize("words", [[], ["--data", "c"], ["--data", "a", "--seed", "x"]])
def test_a_wrong_command_line_makes_no_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        read_command(words, about=None, data=("a", "b"), folder="page")
    assert stopped.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_axis_has_a_tick_at_every_total() -> None:
    drawing, axes = one_panel()
    total_axis(axes, (0.5, 1.0, 20.0), delta=1e-5)
    assert axes.get_xticks().tolist() == [0.5, 1.0, 20.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "1", "20"]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "proved total epsilon at delta 1e-05")
    assert drawing.get_size_inches().tolist() == [7.0, 4.5]
