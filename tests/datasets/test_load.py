"""One door to all data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from reticent.core.errors import DataUnavailable, UnknownName
from reticent.datasets import DATASETS, load


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="digits, mnist, fashion, utkface"):
        load("cifar")


@pytest.mark.parametrize("name", DATASETS[1:])
def test_every_file_loader_is_reached(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=name):
        load(name, folder=tmp_path)
