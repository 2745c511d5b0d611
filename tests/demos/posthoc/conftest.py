"""One tiny demonstration, shared by the tests of its figure and its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.attacks import ReconstructionConfig
from reticent.datasets import load_digits
from reticent.demos.posthoc.demo import DemoOutcome, run_demo
from reticent.demos.posthoc.settings import suggested
from reticent.training.heads import HeadConfig


@pytest.fixture(scope="session")
def tiny_outcome() -> DemoOutcome:
    settings = suggested("digits", seed=0)
    tiny = replace(
        settings,
        epsilons=(2.0, 8.0),
        embedder=replace(settings.embedder, epochs=40),
        epochs=15,
        published=("Encoder", "C-N"),
        published_epochs=20,
        head=HeadConfig(epochs=40, batch_size=100, hidden=(32,)),
        attack=ReconstructionConfig(epochs=60, batch_size=100),
        copies=1,
        train_rows=600,
        test_rows=200,
    )
    return run_demo(load_digits(), tiny)
