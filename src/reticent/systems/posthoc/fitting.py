"""The stages of fitting that both posthoc estimators share: embed, train, certify, calibrate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator

from reticent.core.errors import InvalidInput
from reticent.core.regions import Box
from reticent.core.seeds import training_generator
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.mechanisms.finite_channel import whole_shares
from reticent.networks import Network, from_torch
from reticent.networks.serial import same_network
from reticent.systems.class_labels import class_labels
from reticent.systems.embedding import Embedding, domain_of
from reticent.systems.embedding.fitted import embedding_of
from reticent.systems.input_rows import input_rows
from reticent.systems.posthoc.calibration import CalibrationData, Candidate, Choice, calibrate
from reticent.systems.posthoc.certificates import bound_of
from reticent.systems.posthoc.cross_fitting import cross_fitted, few
from reticent.systems.posthoc.label_lattice import LatticeRows, fitted_rules
from reticent.systems.posthoc.plans import (
    CODE,
    LABEL_RULES,
    Path,
    PosthocSetting,
    Requirement,
    output_of,
    releases_labels,
    serves,
)
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.posthoc.settings import PosthocSettings
from reticent.training.heads import Head
from reticent.training.parts.contract import (
    fitted,
    needs_labels,
    network_of,
    trains_for_release,
    variants,
)
from reticent.training.parts.ladder import Ladder
from reticent.training.parts.linear_maps import PublicDiscriminants
from reticent.training.parts.public_nodes import PublicNodes
from reticent.training.progress import Report, progress

Mechanisms = Callable[[BaseEstimator, int], tuple[str, ...]]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FittedRelease:
    """The result of ``fit_release``.

    Attributes:
        query: the fitted release.
        embedder: the fitted part that makes embeddings.
        released: the fitted part that calibration chose.
        head: classifier of released vectors, None for labels or without labels.
        considered: every plan that was scored, in the order of ``calibrate``.
        classes: labels as the user wrote them, None without labels.
        input_shape: shape of one input.
    """

    query: PrivateQuery
    embedder: BaseEstimator
    released: BaseEstimator
    head: Head | None
    considered: tuple[PosthocSetting, ...]
    classes: npt.NDArray[Any] | None
    input_shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that is ready before the released function is trained.

    Attributes:
        embedder: the fitted part that makes embeddings.
        embedding: map from inputs to embeddings.
        domain: the public box that embeddings are clipped to.
        data: clipped embeddings and labels, split for calibration.
        classes: labels as the user wrote them, None without labels.
        input_shape: shape of one input.
        seed: seed of everything that is trained.
    """

    embedder: BaseEstimator
    embedding: Embedding
    domain: Box
    data: CalibrationData
    classes: npt.NDArray[Any] | None
    input_shape: tuple[int, ...]
    seed: int


def fit_release(
    settings: PosthocSettings,
    X: npt.ArrayLike,
    y: npt.ArrayLike | None,
    *,
    mechanisms: Mechanisms,
    random_state: Any,
) -> FittedRelease:
    """Train, certify and calibrate.

    Args:
        settings: checked settings.
        X: shape (n, features) or (n, height, width).
        y: shape (n,), labels, or None.
        mechanisms: those that are tried with a part, given how many values an embedding has.
        random_state: seed of training.

    Raises:
        InvalidInput, InvalidParameter: refused before anything is trained.
        UnsupportedNetwork, UnsupportedNorm: a network or norm that cannot be certified.
        CalibrationFailed: no plan meets the total.
    """
    with torch.random.fork_rng(devices=[]), progress(settings.calibration.verbose) as report:
        prepared = prepare(
            settings,
            X,
            y,
            labels_needed=settings.parameter == "classifier",
            random_state=random_state,
            report=report,
        )
        requirement = settings.requirement(prepared.embedding, prepared.domain)
        trained = _trained(settings, prepared, mechanisms, report)
        pairs = [
            (candidate, part)
            for part, mechanism, network in _different(settings, prepared, trained)
            for candidate in _candidates(
                settings, prepared, part, mechanism, network, requirement, report
            )
        ]

        def scored(
            candidates: Sequence[Candidate], data: CalibrationData, paths: Sequence[Path]
        ) -> Choice:
            return calibrate(
                candidates,
                requirement,
                data,
                paths=paths,
                head_config=settings.calibration.head(prepared.seed, rows=len(data.train)),
                first_look=settings.calibration.head_epochs is None,
                report=report,
            )

        def refitted(
            candidate: Candidate, data: CalibrationData
        ) -> tuple[Candidate, BaseEstimator] | None:
            on = replace(prepared, data=data)
            part, mechanism = part_of(candidate), candidate.mechanism
            again = _fitted(settings, on, part, mechanism, report)
            network = _network(settings, on, again, mechanism)
            if not serves(mechanism, network.output_dimension, delta=settings.delta):
                return None
            made = _candidates(settings, on, again, mechanism, network, requirement, report)
            return made[0], again

        def part_of(candidate: Candidate) -> BaseEstimator:
            return next(part for other, part in pairs if other is candidate)

        choice = scored([candidate for candidate, _ in pairs], prepared.data, settings.paths)
        part = part_of(choice.candidate)
        if isinstance(settings.released, Ladder) and few(choice, prepared.data):
            choice, part = cross_fitted(
                choice,
                prepared.data,
                refitted,
                lambda candidate, data, path: scored([candidate], data, [path]),
            ) or (choice, part)
        head = choice.head  # trained here, where torch's generator is forked
    chosen = choice.candidate
    return FittedRelease(
        PrivateQuery(
            prepared.embedding,
            chosen.network,
            chosen.bound,
            requirement,
            choice.plan,
            chosen.rule,
            chosen.means,
        ),
        prepared.embedder,
        part,
        head,
        choice.considered,
        prepared.classes,
        prepared.input_shape,
    )


def prepare(
    settings: PosthocSettings,
    X: npt.ArrayLike,
    y: npt.ArrayLike | None,
    *,
    labels_needed: bool,
    random_state: Any,
    report: Report,
) -> Prepared:
    """Check the data, train the embedder, fix the public domain and split off calibration rows.

    Args:
        settings: checked settings.
        X, y, random_state: arguments of ``fit_release``.
        labels_needed: whether labels are released, whatever the parts need.
        report: receiver of the progress, called after every epoch.

    Raises:
        InvalidInput: data that cannot be used. Nothing has been trained then.
    """
    inputs, shape = input_rows(X)
    parts = (settings.released, settings.embedder)
    wanted = labels_needed or any(needs_labels(part) for part in parts)
    classes, labels = (None, None) if y is None and not wanted else class_labels(y, len(inputs))
    random = training_generator(random_state)
    held_rows = settings.calibration.held_rows(len(inputs))
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
    torch.manual_seed(seed)
    embedder = fitted(
        settings.embedder,
        inputs[train].reshape(-1, *shape),
        None if labels is None else labels[train],
        seed=seed,
        report=report,
    )
    embedding = embedding_of(embedder, inputs[train], shape, name=settings.embedder_name)
    points = embedding.compute(np.clip(inputs, embedding.lower, embedding.upper))
    if not np.isfinite(points).all():
        raise InvalidInput(
            "embedder: gives values that are not finite on X; check the module and the range of X"
        )
    # Of all rows, in the order that they came in: whatever is fitted on them next to one embedder
    # has the same box, and so the same space.
    domain = domain_of(points, margin=settings.radius or 0.0)
    points = domain.clip(points)
    data = CalibrationData(
        points[train],
        points[held],
        None if labels is None else labels[train],
        None if labels is None else labels[held],
    )
    return Prepared(embedder, embedding, domain, data, classes, shape, seed)


def _trained(
    settings: PosthocSettings, prepared: Prepared, mechanisms: Mechanisms, report: Report
) -> list[tuple[BaseEstimator, str]]:
    """Yield fitted parts, each with a mechanism to try it with."""
    trained: list[tuple[BaseEstimator, str]] = []
    for part in variants(settings.released):
        if prepared.data.train_labels is None and needs_labels(part):
            continue
        tried = mechanisms(part, prepared.domain.dimension)
        if trains_for_release(part):
            own = [mechanism for mechanism in tried if mechanism not in LABEL_RULES]
            trained += [
                (_fitted(settings, prepared, part, mechanism, report), mechanism)
                for mechanism in own
            ]
            rules = [mechanism for mechanism in tried if mechanism in LABEL_RULES]
            if rules:  # their privacy takes nothing from the network, so one serves all of them
                plain = _fitted(settings, prepared, part, rules[0], report)
                trained += [(plain, mechanism) for mechanism in rules]
        else:
            once = _fitted(settings, prepared, part, tried[0], report) if tried else part
            trained += [(once, mechanism) for mechanism in tried]
    if not trained:
        raise InvalidInput(
            f"{settings.parameter}: all of its parts need labels, or none makes what mechanism="
            f"{settings.mechanism!r} takes; expected y, or another part"
        )
    return trained


def _fitted(
    settings: PosthocSettings,
    prepared: Prepared,
    part: BaseEstimator,
    mechanism: str,
    report: Report,
) -> BaseEstimator:
    """Return a clone of a part, fitted for a mechanism where that makes a difference."""
    return fitted(
        part,
        prepared.data.train,
        prepared.data.train_labels,
        seed=prepared.seed,
        release=settings.release(mechanism, prepared.domain) if trains_for_release(part) else None,
        report=report,
    )


def _different(
    settings: PosthocSettings, prepared: Prepared, trained: list[tuple[BaseEstimator, str]]
) -> list[tuple[BaseEstimator, str, Network]]:
    """Return the fitted parts whose functions differ, and these.

    A mechanism that nobody has asked for is left out where it does not take as many values.
    """
    kept: list[tuple[BaseEstimator, str, Network]] = []
    for part, mechanism in trained:
        network = _network(settings, prepared, part, mechanism)
        again = any(known == mechanism and same_network(other, network) for _, known, other in kept)
        asked = settings.mechanism != "auto" or releases_labels(mechanism)
        if not again and (
            asked or serves(mechanism, network.output_dimension, delta=settings.delta)
        ):
            kept.append((part, mechanism, network))
    return kept


def _candidates(
    settings: PosthocSettings,
    prepared: Prepared,
    part: BaseEstimator,
    mechanism: str,
    network: Network,
    requirement: Requirement,
    report: Report,
) -> list[Candidate]:
    """Return what calibration scores: one candidate, or every rule that is worth scoring."""
    bound = bound_of(
        settings.calibration.certificate,
        network,
        domain=prepared.domain,
        input_norm=settings.input_norm,
        output=output_of(mechanism),
    )
    begun = getattr(part, "start", None)
    further = "" if begun is None else f", start={type(begun).__name__}"
    if isinstance(part, PublicDiscriminants):  # the ladder has two of one size
        further = f", shrinkage={part.shrinkage:g}"
    rung = f"{type(part).__name__}(outputs={network.output_dimension}{further})"
    candidate = Candidate(network, mechanism, bound, rung=rung)
    if mechanism == CODE:
        assert isinstance(part, PublicNodes)
        channel = FiniteChannel(
            nodes=AnyTwo(network.output_dimension),
            shares=whole_shares(part.table(requirement.epsilon), epsilon=requirement.epsilon),
            epsilon=requirement.epsilon,
            adjacency=requirement.adjacency,
        )
        return [replace(candidate, rule=channel, means=part.means(channel.matrix))]
    if mechanism not in LABEL_RULES:
        return [candidate]
    assert prepared.data.train_labels is not None
    rows = LatticeRows(prepared.data.train, prepared.data.train_labels, network)
    rules = fitted_rules(
        mechanism,
        rows,
        epsilon=requirement.epsilon,
        adjacency=requirement.adjacency,
        seed=prepared.seed,
        report=report,
    )
    return [replace(candidate, rule=rule) for rule in rules]


def _network(
    settings: PosthocSettings, prepared: Prepared, part: BaseEstimator, mechanism: str
) -> Network:
    found, dimension = network_of(part, parameter=settings.parameter), prepared.domain.dimension
    network = found if isinstance(found, Network) else from_torch(found, (dimension,))
    if network.input_dimension != dimension:
        raise InvalidInput(
            f"{settings.parameter}: expected a network of {dimension} inputs, as the embedding "
            f"has, got {network.input_dimension}"
        )
    if releases_labels(mechanism):
        classes = 0 if prepared.classes is None else len(prepared.classes)
        if network.output_dimension != classes:
            raise InvalidInput(
                f"{settings.parameter}: expected one logit for each of {classes} labels of y, got "
                f"{network.output_dimension} outputs"
            )
    return network
