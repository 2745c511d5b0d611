"""A decoder scales what it reads, guesses where nothing was released, and is left ready for use."""

from __future__ import annotations

import numpy as np
import torch

from reticent.attacks.decoder import Decoder, DecoderConfig, train_decoder


def test_training_finds_the_least_squares_line() -> None:
    """One affine layer and the squared error: the minimum is the solution of the normal
    equations, the oracle.
    """
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 2)).astype(np.float32)
    target = (values @ [[1.0], [-2.0]] + 3.0 + random.normal(size=(400, 1))).astype(np.float32)
    torch.manual_seed(0)
    decoder, points, wanted = Decoder(2, 1, ()), torch.from_numpy(values), torch.from_numpy(target)
    decoder.adapt(points, target.mean(axis=0))
    told: list[tuple[str, int, int]] = []
    train_decoder(
        decoder,
        lambda batch: (decoder(points[batch]) - wanted[batch]).square().mean(),
        DecoderConfig(epochs=60, batch_size=100, learning_rate=0.1),
        rows=400,
        stage="line",
        report=lambda *step: told.append(step[:3]),
    )
    design = np.concatenate([values, np.ones((400, 1))], axis=1)
    oracle = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    np.testing.assert_allclose(decoder.decoded(values), oracle, atol=0.02)
    assert not decoder.training
    assert told[-1] == ("line", 60, 60)
