"""A full disk leaves nothing half-written."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from reticent.cli.main import run
from reticent.core.errors import (
    WriteFailed,
)
from reticent.systems import (
    PosthocEncoder,
)
from tests.bad_input.conftest import SETTINGS, Bench, X, Y, good, out


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


@pytest.mark.usefixtures("full_disk")
def test_a_bundle_on_a_full_disk_leaves_nothing(
    fitted: tuple[PosthocEncoder, Path], tmp_path: Path
) -> None:
    wide = PosthocEncoder(
        obfuscator=nn.Sequential(nn.Linear(4, 600), nn.ReLU(), nn.Linear(600, 2)),
        mechanism="laplace",
        **SETTINGS,
    )
    torch.manual_seed(0)
    with pytest.raises(WriteFailed, match="nothing was left"):
        wide.fit(X, Y).save(tmp_path / "wide")
    assert os.listdir(tmp_path) == []
