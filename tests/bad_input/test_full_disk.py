"""A full disk leaves nothing half-written."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

import pytest

from reticent.cli.main import run
from reticent.core.errors import (
    WriteFailed,
)
from tests.bad_input.conftest import Bench, good, out


@pytest.fixture
def full_disk() -> Any:
    """No file may grow beyond 8 KiB, which is how a full disk looks to a writer."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_found_out_before_anything_is_answered(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = good(bench)
    status = run(
        ["release", str(bench.bundle), "--input", str(inputs), "--output", str(out(bench))]
    )
    assert status == WriteFailed.code
    assert "nothing was left behind" in capsys.readouterr().err
    assert os.listdir(bench.folder) == ["x.npy"]
