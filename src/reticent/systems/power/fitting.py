"""How a power encoder is fitted: which encoder and mechanism serve a server best at the required
total, on public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from reticent.core.errors import CalibrationFailed, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.mechanisms import analytic_sigma
from reticent.systems.power.query import PowerPlan, PowerQuery
from reticent.tables.schema import TabularSchema
from reticent.training.heads import HeadConfig, train_head
from reticent.training.noise import training_noise
from reticent.training.power.codes import THRESHOLDS, CodeConfig, best_codes, train_classifier
from reticent.training.power.lipschitz import LipschitzEncoderConfig, train_lipschitz_encoder
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_DRAWS = 4  # noise draws per calibration row
_CODE_EPOCHS = 10  # without noise, longer training learns the rows by heart


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Encoded rows that are public, cut in two.

    Attributes:
        train, held: shapes (n, d) and (k, d); encoders are trained on the first and scored on the
            second.
        train_labels, held_labels: shapes (n,) and (k,).
    """

    train: Array
    held: Array
    train_labels: Labels
    held_labels: Labels


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """What the user may set about training.

    Attributes:
        outputs: numbers of released values that are tried for vectors.
        hidden: widths of the hidden layers of encoder and classifier.
        epochs: passes over the rows.
        head_epochs: passes of the models that utility is measured with.
        seed: of training.
    """

    outputs: tuple[int, ...]
    hidden: tuple[int, ...]
    epochs: int
    head_epochs: int
    seed: int


def fit_query(
    schema: TabularSchema,
    required: PowerPlan,
    rows: PublicRows,
    *,
    mechanisms: Sequence[str],
    settings: FitSettings,
    report: Report,
) -> tuple[PowerQuery, tuple[PowerPlan, ...]]:
    """The query of the highest expected accuracy among ``mechanisms``, and every plan that was
    scored, best first.

    Args:
        schema: the public description of rows.
        required: budget and radius; mechanism and codes are replaced.
        rows: public rows.
        mechanisms: names of mechanisms that may be chosen.
        settings: of training.
        report: told after every epoch.

    Raises:
        CalibrationFailed: no mechanism meets the requirement.
    """
    queries: list[PowerQuery] = []
    for mechanism in mechanisms:
        if mechanism == "code":
            queries += [
                _codes(schema, required, rows, settings, thresholds, report)
                for thresholds in THRESHOLDS
            ]
        elif mechanism == "k-norm-l2" or required.delta > 0:
            queries += [
                _vectors(schema, required, rows, mechanism, size, settings, report)
                for size in settings.outputs
            ]
    if not queries:
        raise CalibrationFailed(
            "mechanism='gaussian': needs delta above 0; raise delta or allow another mechanism"
        )
    best = max(queries, key=lambda query: query.plan.utility)
    return best, tuple(sorted((query.plan for query in queries), key=lambda plan: -plan.utility))


def _codes(
    schema: TabularSchema,
    required: PowerPlan,
    rows: PublicRows,
    settings: FitSettings,
    thresholds: str,
    report: Report,
) -> PowerQuery:
    config = CodeConfig(
        numeric=tuple(part.start for _, part, one_hot in schema.groups if not one_hot),
        thresholds=thresholds,
        hidden=settings.hidden[:1],
        epochs=min(settings.epochs, _CODE_EPOCHS),
        batch_size=int(np.clip(len(rows.train) // 60, 20, 500)),
        seed=settings.seed,
    )
    network = train_classifier(rows.train, rows.train_labels, config, report=report)
    codes, accuracy = best_codes(
        network.forward(rows.held), rows.held_labels, epsilon=required.epsilon
    )
    plan = replace(required, mechanism="code", delta=0.0, codes=codes, utility=accuracy)
    return PowerQuery(schema, network, plan)


def _vectors(
    schema: TabularSchema,
    required: PowerPlan,
    rows: PublicRows,
    name: str,
    outputs: int,
    settings: FitSettings,
    report: Report,
) -> PowerQuery:
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
    query = PowerQuery(
        schema, trained.network, replace(required, mechanism=name, delta=delta, codes=())
    )
    mechanism = query.mechanism
    if not hasattr(mechanism, "scale"):
        raise UnsupportedNorm(f"mechanism={name!r}: expected an additive mechanism")
    return replace(
        query, plan=replace(query.plan, utility=_utility(query, mechanism.scale, rows, settings))
    )


def _utility(query: PowerQuery, scale: float, rows: PublicRows, settings: FitSettings) -> float:
    """Accuracy on held-out rows of a head that was trained with the noise of the release."""
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
    return float((head.predict(noisy(held).numpy()) == np.repeat(rows.held_labels, _DRAWS)).mean())
