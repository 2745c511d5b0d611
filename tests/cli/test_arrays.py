"""Arrays from files: nothing that is no array is read to its end, and no header takes memory
that the file does not hold.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from reticent.cli.files import read_array
from reticent.core.errors import InvalidInput


def test_a_device_without_end_is_no_array() -> None:
    with pytest.raises(InvalidInput, match=r"not an \.npy file"):
        read_array(Path("/dev/zero"), name="input")


@pytest.mark.parametrize("shape", [(10**15,), (10**9, 10**9), (-1, 3)])
def test_a_header_may_state_any_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    content = (tmp_path / "x.npy").read_bytes()
    stated = f"'shape': {shape}, }}".encode()
    start = content.index(b"'shape'")
    changed = content[:start] + stated + content[start + len(stated) :]
    (tmp_path / "x.npy").write_bytes(changed)
    with pytest.raises(InvalidInput, match="damaged, cut short"):
        read_array(tmp_path / "x.npy", name="input")


def test_a_pipe_may_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "x.npy").read_bytes())
    )
    writer.start()
    np.testing.assert_array_equal(read_array(tmp_path / "pipe", name="input"), np.arange(3))
    writer.join()
