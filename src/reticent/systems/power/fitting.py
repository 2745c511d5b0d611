"""The fit of a power encoder: the encoder and mechanism that serve a server best at the required
total, on public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from reticent.core.errors import CalibrationFailed
from reticent.core.norms import Norm
from reticent.mechanisms import analytic_sigma
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import PowerQuery, PowerSetting, rank
from reticent.systems.power.settings import RowFit
from reticent.systems.scores import Scores, prediction_scores
from reticent.training.heads import HeadConfig, train_head
from reticent.training.noise import training_noise
from reticent.training.power.lipschitz import train_lipschitz_encoder

_DRAWS = 4  # noise draws per calibration row


def fit_vectors(
    fit: RowFit, mechanisms: Sequence[str]
) -> tuple[PowerQuery, tuple[PowerSetting, ...]]:
    """Return the query of the highest utility among ``mechanisms``, and every plan that was scored.

    The best plan comes first.

    Args:
        fit: what the fit is told.
        mechanisms: names of mechanisms for vectors.

    Raises:
        CalibrationFailed: no mechanism meets the requirement.
    """
    queries = [
        _vectors(fit, mechanism, size)
        for mechanism in mechanisms
        if mechanism == "k-norm-l2" or fit.required.delta > 0
        for size in fit.training.sizes
    ]
    if not queries:
        raise CalibrationFailed(
            "mechanism='gaussian': needs delta above 0; raise delta or allow another mechanism"
        )
    ranked = sorted(queries, key=lambda query: rank(query.plan))
    return ranked[0], tuple(query.plan for query in ranked)


def _vectors(fit: RowFit, name: str, outputs: int) -> PowerQuery:
    required = fit.required
    assert not isinstance(required.radius, AttributeRadii)  # the plan refuses it
    distance = fit.schema.diameter if required.radius is None else required.radius
    delta = required.delta if name == "gaussian" else 0.0
    sigma = (
        analytic_sigma(sensitivity=distance, epsilon=required.epsilon, delta=delta)
        if delta
        else distance / required.epsilon
    )
    network = train_lipschitz_encoder(
        fit.train,
        fit.train_labels,
        fit.config(),
        sigma=sigma,
        gaussian=delta > 0,
        outputs=outputs,
        hidden=fit.training.hidden,
        report=fit.report,
    )
    query = PowerQuery(fit.schema, network, replace(required, mechanism=name, delta=delta))
    return replace(query, plan=query.plan.worth(_vector_scores(query, fit)))


def _vector_scores(query: PowerQuery, fit: RowFit) -> Scores:
    """Return scores on held-out rows of a head that was trained with the noise of the release."""
    gaussian, scale = query.plan.mechanism == "gaussian", query.mechanism.scale

    def noisy(values: torch.Tensor) -> torch.Tensor:
        shape = tuple(values.shape)
        noise = (
            torch.randn(shape)
            if gaussian
            else training_noise(shape[0], shape[1], output_norm=Norm.L2)
        )
        return values + scale * noise

    config = HeadConfig(hidden=(64, 64), epochs=fit.training.head_epochs, seed=fit.seed)
    head = train_head(query.network.forward(fit.train), fit.train_labels, config, noise=noisy)
    held = torch.from_numpy(
        np.repeat(query.network.forward(fit.held), _DRAWS, axis=0).astype(np.float32)
    )
    head.eval()
    with torch.no_grad():
        found = torch.softmax(head(noisy(held)).double(), dim=1).numpy()
    seen = np.unique(fit.held_labels)
    right = (np.repeat(fit.held_labels, _DRAWS)[:, None] == seen).astype(np.float64)
    found = np.maximum(found[:, seen], np.finfo(np.float64).tiny)
    return prediction_scores(found / found.sum(axis=1, keepdims=True), right)
