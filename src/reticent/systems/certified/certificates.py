"""The certificates that a certified system can rest on: what they answer, how they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import CorruptBundle
from reticent.retraining.convex import ConvexModel, ConvexSettings
from reticent.retraining.stability import stable_distances
from reticent.retraining.training import ParameterIntervals
from reticent.retraining.training_settings import PROTECTING, TrainingGrids, TrainingSettings
from reticent.systems.embedding import Arrays

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Certificate = ParameterIntervals | ConvexModel


def certified_labels(certificate: Certificate, points: Array) -> tuple[Integers, Integers]:
    """The model's label of each of the points, shape (n, features), and its stable distance.
    Private.
    """
    if isinstance(certificate, ConvexModel):
        return certificate.stable_distances(points)
    return stable_distances(certificate, points)


def describe(members: tuple[Certificate, ...]) -> tuple[dict[str, Any], Arrays]:
    """Plain JSON values and named arrays that ``restored`` reads."""
    training = members[0].settings
    fields: dict[str, Any] = {
        name: getattr(training, name)
        for name in type(training).__dataclass_fields__
        if name != "classes" or isinstance(training, TrainingSettings)
    }
    arrays: Arrays = {}
    for index, member in enumerate(members):
        if isinstance(member, ConvexModel):
            arrays[f"member{index}.weights"] = member.weights
            arrays[f"member{index}.eigenvalue"] = np.array([member.eigenvalue])
            continue
        for layer, start in enumerate(member.grids.start):
            name = f"member{index}.layer{layer}"
            # Whole numbers below 2**27: int32 holds them, float64 the starting weights they are
            # multiples around.
            arrays[f"{name}.start"] = start * member.grids.weight_units[layer]
            arrays[f"{name}.lower"] = member.lower[layer].astype(np.int32)
            arrays[f"{name}.upper"] = member.upper[layer].astype(np.int32)
    return {"certificate": members[0].kind, "training": fields, "members": len(members)}, arrays


def restored(settings: dict[str, Any], arrays: Arrays) -> tuple[Certificate, ...]:
    """The members that ``describe`` took apart.

    Raises:
        CorruptBundle: fields or arrays that are missing or do not fit together; other errors of
            missing fields are for the caller to translate.
    """
    fields = dict(settings["training"])
    for name in ("hidden", "class_weights"):
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    names = [f"member{index}" for index in range(int(settings["members"]))]
    if settings["certificate"] == ConvexModel.kind:
        convex = ConvexSettings(**fields)
        return tuple(_convex(convex, arrays, name) for name in names)
    if settings["certificate"] != ParameterIntervals.kind or fields["counting"] not in PROTECTING:
        raise CorruptBundle("bundle: no certificate that protects records")
    training = TrainingSettings(**fields)
    return tuple(_intervals(training, arrays, name) for name in names)


def _convex(settings: ConvexSettings, arrays: Arrays, name: str) -> ConvexModel:
    weights, eigenvalue = arrays[f"{name}.weights"], arrays[f"{name}.eigenvalue"]
    if (
        weights.shape != (settings.features + 1,)
        or eigenvalue.shape != (1,)
        or not bool(np.isfinite(weights).all() and np.isfinite(eigenvalue).all())
        or eigenvalue[0] < 0
    ):
        raise CorruptBundle("bundle: weights or a curvature that do not fit the model")
    return ConvexModel(settings, weights.astype(np.float64), float(eigenvalue[0]))


def _intervals(training: TrainingSettings, arrays: Arrays, name: str) -> ParameterIntervals:
    layers = range(len(training.widths) - 1)
    grids = TrainingGrids.build(
        training, [arrays[f"{name}.layer{layer}.start"] for layer in layers]
    )
    lower = tuple(arrays[f"{name}.layer{layer}.lower"].astype(np.float64) for layer in layers)
    upper = tuple(arrays[f"{name}.layer{layer}.upper"].astype(np.float64) for layer in layers)
    for start, low, high in zip(grids.start, lower, upper, strict=True):
        if (
            low.shape != high.shape
            or low.shape[1:] != start.shape
            or len(low) != len(lower[0])
            or bool((low > high).any())
        ):
            raise CorruptBundle("bundle: parameter intervals that do not fit the network")
    return ParameterIntervals(grids, lower, upper)
