"""The fit of a power encoder: the encoder and mechanism that serve a server best at the required
total, on public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from reticent.core.errors import CalibrationFailed, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.mechanisms import analytic_sigma
from reticent.systems.power.mechanism_choice import FitSettings, PublicRows
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import PowerQuery, PowerSetting, rank
from reticent.systems.scores import Scores, prediction_scores
from reticent.tables.schema import TabularSchema
from reticent.training.heads import HeadConfig, train_head
from reticent.training.noise import training_noise
from reticent.training.power.lipschitz import LipschitzEncoderConfig, train_lipschitz_encoder
from reticent.training.progress import Report

Labels = npt.NDArray[np.int64]

_DRAWS = 4  # noise draws per calibration row


def fit_query(
    schema: TabularSchema,
    required: PowerSetting,
    rows: PublicRows,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    report: Report,
) -> tuple[PowerQuery, tuple[PowerSetting, ...]]:
    """Return the query of the highest utility among ``mechanisms``, and every plan that was scored.

    The best plan comes first.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring. Mechanism and utility are replaced.
        rows: public rows.
        mechanisms: names of mechanisms for vectors.
        settings: settings of training.
        report: receiver of the progress, called after every epoch.

    Raises:
        CalibrationFailed: no mechanism meets the requirement.
    """
    queries = [
        _vectors(schema, required, rows, mechanism, size, settings, report)
        for mechanism in mechanisms
        if mechanism == "k-norm-l2" or required.delta > 0
        for size in settings.outputs
    ]
    if not queries:
        raise CalibrationFailed(
            "mechanism='gaussian': needs delta above 0; raise delta or allow another mechanism"
        )
    ranked = sorted(queries, key=lambda query: rank(query.plan))
    return ranked[0], tuple(query.plan for query in ranked)


def _vectors(
    schema: TabularSchema,
    required: PowerSetting,
    rows: PublicRows,
    name: str,
    outputs: int,
    settings: FitSettings,
    report: Report,
) -> PowerQuery:
    assert not isinstance(required.radius, AttributeRadii)  # the plan refuses it
    distance = schema.diameter if required.radius is None else required.radius
    delta = required.delta if name == "gaussian" else 0.0
    sigma = (
        analytic_sigma(sensitivity=distance, epsilon=required.epsilon, delta=delta)
        if delta
        else distance / required.epsilon
    )
    config = LipschitzEncoderConfig(
        epsilon=required.epsilon,
        delta=delta,
        radius=distance,
        outputs=outputs,
        hidden=settings.hidden,
        epochs=settings.epochs,
        batch_size=int(np.clip(len(rows.train) // 40, 20, 500)),
        seed=settings.seed,
    )
    trained = train_lipschitz_encoder(
        rows.train, rows.train_labels, config, sigma=sigma, report=report
    )
    query = PowerQuery(schema, trained.network, replace(required, mechanism=name, delta=delta))
    mechanism = query.mechanism
    if not hasattr(mechanism, "scale"):
        raise UnsupportedNorm(f"mechanism={name!r}: expected an additive mechanism")
    scores = _vector_scores(query, mechanism.scale, rows, settings)
    return replace(query, plan=query.plan.worth(scores))


def _vector_scores(
    query: PowerQuery, scale: float, rows: PublicRows, settings: FitSettings
) -> Scores:
    """Return scores on held-out rows of a head that was trained with the noise of the release."""
    gaussian = query.plan.mechanism == "gaussian"

    def noisy(values: torch.Tensor) -> torch.Tensor:
        shape = tuple(values.shape)
        noise = (
            torch.randn(shape)
            if gaussian
            else training_noise(shape[0], shape[1], output_norm=Norm.L2)
        )
        return values + scale * noise

    config = HeadConfig(hidden=(64, 64), epochs=settings.head_epochs, seed=settings.seed)
    head = train_head(query.network.forward(rows.train), rows.train_labels, config, noise=noisy)
    held = torch.from_numpy(
        np.repeat(query.network.forward(rows.held), _DRAWS, axis=0).astype(np.float32)
    )
    head.eval()
    with torch.no_grad():
        found = torch.softmax(head(noisy(held)).double(), dim=1).numpy()
    seen = np.unique(rows.held_labels)
    right = (np.repeat(rows.held_labels, _DRAWS)[:, None] == seen).astype(np.float64)
    found = np.maximum(found[:, seen], np.finfo(np.float64).tiny)
    return prediction_scores(found / found.sum(axis=1, keepdims=True), right)
