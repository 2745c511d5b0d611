"""Checked settings of a posthoc system, and the stages of fitting that its two estimators share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from reticent.core.checks import count, counts, one_of, positive, probability, shown, words
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.core.seeds import training_generator
from reticent.systems.class_labels import class_labels
from reticent.systems.embedding import (
    BetaVaeEmbedding,
    Embedding,
    IdentityEmbedding,
    ModuleEmbedding,
    check_pictures,
)
from reticent.systems.posthoc.calibration import CalibrationData
from reticent.systems.posthoc.certificates import CERTIFICATES
from reticent.systems.posthoc.plans import Path, Requirement
from reticent.training.embedder import Embedder, EmbedderConfig, train_embedder
from reticent.training.features import LARGEST_INPUT
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

EMBEDDERS = ("dense", "convolutional", "identity")
"""Embedders by name; any other has to be a torch module."""

# share of fitted embeddings that may lie outside the public domain on either side of a coordinate
_TAIL = 5e-4


@dataclass(frozen=True, kw_only=True)
class PosthocSettings:
    """The constructor's arguments that both estimators share, checked.

    Raises:
        InvalidParameter, UnknownName: an argument out of its range.
    """

    epsilon: float
    delta: float
    radius: float
    embedder: str | nn.Module
    embedder_name: str
    certificate: str
    input_norm: Norm
    paths: tuple[Path, ...]
    latent_dimension: int
    beta: float
    hidden: tuple[int, ...]
    epochs: int
    embedder_epochs: int
    head_epochs: int
    calibration_share: float

    @classmethod
    def of(cls, estimator: Any, *, head_epochs: int = 1) -> PosthocSettings:
        """The checked settings of an estimator."""
        if isinstance(estimator.embedder, str) and estimator.embedder not in EMBEDDERS:
            raise UnknownName(
                f"embedder={shown(estimator.embedder)}: expected a torch module or one of "
                f"{', '.join(EMBEDDERS)}"
            )
        if not isinstance(estimator.embedder, str | nn.Module):
            raise InvalidParameter(
                "embedder: expected a name or a torch module, got "
                f"{type(estimator.embedder).__name__}"
            )
        one_of(estimator.certificate, CERTIFICATES, name="certificate")
        paths: dict[str, tuple[Path, ...]] = {
            "auto": ("global", "local"),
            "global": ("global",),
            "local": ("local",),
        }
        one_of(estimator.path, paths, name="path")
        if estimator.certificate == "exact" and estimator.path != "global":
            raise InvalidParameter(
                f"certificate='exact', path={estimator.path!r}: expected path='global'; how "
                "long an exact search takes depends "
                "on the private point and has no bound. Use certificate='auto' for a test of "
                "every point"
            )
        share = probability(estimator.calibration_share, name="calibration_share", allow_zero=False)
        return cls(
            epsilon=positive(estimator.epsilon, name="epsilon"),
            delta=probability(estimator.delta, name="delta"),
            radius=positive(estimator.radius, name="radius"),
            embedder=estimator.embedder,
            embedder_name=""
            if estimator.embedder_name is None
            else words(estimator.embedder_name, name="embedder_name"),
            certificate=estimator.certificate,
            input_norm=Norm.parse(estimator.input_norm),
            paths=paths[estimator.path],
            latent_dimension=count(estimator.latent_dimension, name="latent_dimension"),
            beta=positive(estimator.beta, name="beta"),
            hidden=counts(estimator.hidden, name="hidden"),
            epochs=count(estimator.epochs, name="epochs"),
            embedder_epochs=count(estimator.embedder_epochs, name="embedder_epochs"),
            head_epochs=count(head_epochs, name="head_epochs"),
            calibration_share=share,
        )

    def requirement(self, embedding: Embedding, domain: Box) -> Requirement:
        """The total that one answer must cost, for neighbours as ``embedding`` measures them,
        clipped to ``domain``.
        """
        space = Neighborhood(
            self.input_norm, self.radius, embedding.space, embedding.identity(domain)
        )
        return Requirement(epsilon=self.epsilon, delta=self.delta, adjacency=space)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that is ready before the released function is trained.

    Attributes:
        settings: checked settings.
        embedding: from inputs to embeddings.
        domain: the public box that embeddings are clipped to.
        data: clipped embeddings and labels, split for calibration.
        classes: labels as the user wrote them, None without labels.
        input_shape: shape of one input.
        seed: seed of everything that is trained.
    """

    settings: PosthocSettings
    embedding: Embedding
    domain: Box
    data: CalibrationData
    classes: npt.NDArray[Any] | None
    input_shape: tuple[int, ...]
    seed: int

    @property
    def train_labels(self) -> Labels:
        """Labels of the training part; there are some whenever a network is trained."""
        assert self.data.train_labels is not None
        return self.data.train_labels

    @property
    def batch_size(self) -> int:
        """Embeddings per training step: 1000, or fewer so that one pass over few embeddings is
        still 24 steps.
        """
        return int(np.clip(len(self.data.train) // 24, 32, 1000))


def prepare(
    settings: PosthocSettings,
    X: npt.ArrayLike,
    y: npt.ArrayLike | None,
    *,
    labels_needed: bool,
    random_state: Any,
    report: Report,
) -> Prepared:
    """Checks the data, trains the embedder, fixes the public domain and splits off calibration
    rows.

    Raises:
        InvalidInput: data that cannot be used; nothing has been trained then.
    """
    inputs, shape = check_pictures(X, name="X")
    classes, labels = (
        (None, None) if y is None and not labels_needed else class_labels(y, len(inputs))
    )
    random = training_generator(random_state)
    held_rows = max(1, round(settings.calibration_share * len(inputs)))
    if len(inputs) - held_rows < 2:
        raise InvalidInput(
            f"X: n_samples={len(inputs)} is too few to train and calibrate on; expected at least 4"
        )
    order = random.permutation(len(inputs))
    train, held = order[held_rows:], order[:held_rows]
    if labels is not None and len(np.unique(labels[train])) < 2:
        raise InvalidInput(
            "y: expected at least two classes in the training part, got one class; use more rows"
        )
    seed = int(random.randint(2**31 - 1))
    embedding = _embedding(settings, inputs[train], shape, seed, report)
    points = embedding.compute(np.clip(inputs, embedding.lower, embedding.upper))
    if not np.isfinite(points).all():
        raise InvalidInput(
            "embedder: gives values that are not finite on X; check the module and the range of X"
        )
    # Of all rows, in the order that they came in: whatever is fitted on them next to one embedder
    # has the same box, and so the same space.
    domain = _domain(points, settings.radius)
    points = domain.clip(points)
    data = CalibrationData(
        points[train],
        points[held],
        None if labels is None else labels[train],
        None if labels is None else labels[held],
    )
    return Prepared(settings, embedding, domain, data, classes, shape, seed)


def _embedding(
    settings: PosthocSettings, inputs: Array, shape: tuple[int, ...], seed: int, report: Report
) -> Embedding:
    name = settings.embedder_name
    if isinstance(settings.embedder, Embedder) and BetaVaeEmbedding.describes(settings.embedder):
        return BetaVaeEmbedding(settings.embedder, name=name)
    if isinstance(settings.embedder, nn.Module):
        lower, upper = _input_range(inputs)
        return ModuleEmbedding(
            settings.embedder,
            shape if len(shape) > 1 else None,
            lower=lower,
            upper=upper,
            name=name,
        )
    if settings.embedder == "identity":
        return IdentityEmbedding(inputs.shape[1], name=name)
    if inputs.min() < 0 or inputs.max() > 1:
        raise InvalidInput(
            f"X: a {settings.embedder} embedder reads pictures with values in [0, 1]; scale "
            "yours, or use identity"
        )
    height, width = _picture_shape(shape)
    config = EmbedderConfig(
        image_shape=(height, width),
        latent_dimension=settings.latent_dimension,
        architecture=settings.embedder,
        beta=settings.beta,
        epochs=settings.embedder_epochs,
        seed=seed,
    )
    images = inputs.astype(np.float32).reshape(-1, height, width)
    return BetaVaeEmbedding(train_embedder(images, config, report=report), name=name)


def _input_range(inputs: Array) -> tuple[float, float]:
    """The range of the training inputs, which are public, and its width more on either side: few
    inputs are ever clipped.
    """
    lower, upper = float(inputs.min()), float(inputs.max())
    width = min(upper - lower, LARGEST_INPUT) or 1.0
    return lower - width, upper + width


def _picture_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    if len(shape) == 1:
        side = round(np.sqrt(shape[0]))
        return (side, side) if side * side == shape[0] else (1, shape[0])
    raise InvalidInput(
        f"X: expected grey pictures of shape (n, height, width), got pictures of shape {shape}"
    )


def _domain(points: Array, radius: float) -> Box:
    """A box around nearly all fitted embeddings, one radius wider, so that few inputs are
    clipped.
    """
    lower, upper = np.quantile(points, [_TAIL, 1.0 - _TAIL], axis=0)
    return Box(lower - radius, upper + radius)
