"""The stages of fitting that both posthoc estimators share: embed, train, certify, calibrate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

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
    Requirement,
    output_of,
    releases_labels,
    serves,
)
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.posthoc.settings import PosthocSettings
from reticent.systems.record_labels import OBSERVED, record_labels
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


def fit_release(
    settings: PosthocSettings,
    X: npt.ArrayLike,
    y: npt.ArrayLike | None,
    *,
    mechanisms: Mechanisms,
    random_state: Any,
) -> tuple[PrivateQuery, Fit, Choice]:
    """Train, certify and calibrate. Return the release, what it was fitted on, and its choice.

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
        fit = Fit.prepared(settings, X, y, random_state=random_state, report=report)
        candidates = [
            candidate
            for part, mechanism, network in fit.different(fit.trained(mechanisms))
            for candidate in fit.candidates(part, mechanism, network)
        ]
        choice = fit.choice(candidates, settings.paths)
        if isinstance(settings.released, Ladder) and few(choice, fit.data):
            choice = (
                cross_fitted(
                    choice,
                    fit.data,
                    lambda candidate, data: replace(fit, data=data).again(candidate),
                    lambda candidate, data, path: replace(fit, data=data).choice(
                        [candidate], [path]
                    ),
                )
                or choice
            )
        _ = choice.head  # trained here, where torch's generator is forked
    chosen = choice.candidate
    query = PrivateQuery(
        fit.embedding,
        chosen.network,
        chosen.bound,
        fit.requirement,
        choice.plan,
        chosen.rule,
        chosen.means,
    )
    return query, fit, choice


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit whose embedder and public box are settled.

    Attributes:
        settings: checked settings.
        embedder: the fitted part that makes embeddings.
        embedding: map from inputs to embeddings.
        domain: the public box that embeddings are clipped to.
        data: clipped embeddings and labels, split for calibration.
        classes: labels as the user wrote them, None without labels.
        input_shape: shape of one input.
        seed: seed of everything that is trained.
        report: receiver of the progress, called after every epoch.
    """

    settings: PosthocSettings
    embedder: BaseEstimator
    embedding: Embedding
    domain: Box
    data: CalibrationData
    classes: npt.NDArray[Any] | None
    input_shape: tuple[int, ...]
    seed: int
    report: Report

    @classmethod
    def prepared(
        cls,
        settings: PosthocSettings,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None,
        *,
        random_state: Any,
        report: Report,
    ) -> Self:
        """Check the data, train the embedder, fix the public domain and split off calibration rows.

        Raises:
            InvalidInput: data that cannot be used. Nothing has been trained then.
        """
        inputs, shape = input_rows(X)
        parts = (settings.released, settings.embedder)
        wanted = settings.parameter == "classifier" or any(needs_labels(part) for part in parts)
        classes, labels = (
            (None, None) if y is None and not wanted else record_labels(y, len(inputs), OBSERVED)
        )
        random = training_generator(random_state)
        held_rows = settings.calibration.held_rows(len(inputs))
        if len(inputs) - held_rows < 2:
            raise InvalidInput(
                f"X: n_samples={len(inputs)} is too few to train and calibrate on; expected at "
                "least 4"
            )
        order = random.permutation(len(inputs))
        train, held = order[held_rows:], order[:held_rows]
        if labels is not None and len(np.unique(labels[train])) < 2:
            raise InvalidInput(
                "y: expected at least two classes in the training part, got one class; use more "
                "rows"
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
                "embedder: gives values that are not finite on X; check the module and the range "
                "of X"
            )
        # Of all rows, in the order that they came in: whatever is fitted on them next to one
        # embedder has the same box, and so the same space.
        domain = domain_of(points, margin=settings.radius or 0.0)
        points = domain.clip(points)
        data = CalibrationData(
            points[train],
            points[held],
            None if labels is None else labels[train],
            None if labels is None else labels[held],
        )
        return cls(settings, embedder, embedding, domain, data, classes, shape, seed, report)

    @cached_property
    def requirement(self) -> Requirement:
        """The total that one answer must cost."""
        return self.settings.requirement(self.embedding, self.domain)

    def trained(self, mechanisms: Mechanisms) -> list[tuple[BaseEstimator, str]]:
        """Return fitted parts, each with a mechanism to try it with."""
        trained: list[tuple[BaseEstimator, str]] = []
        for part in variants(self.settings.released):
            if self.data.train_labels is None and needs_labels(part):
                continue
            tried = mechanisms(part, self.domain.dimension)
            if trains_for_release(part):
                own = [mechanism for mechanism in tried if mechanism not in LABEL_RULES]
                trained += [(self.part(part, mechanism), mechanism) for mechanism in own]
                rules = [mechanism for mechanism in tried if mechanism in LABEL_RULES]
                if rules:  # their privacy takes nothing from the network, so one serves all of them
                    plain = self.part(part, rules[0])
                    trained += [(plain, mechanism) for mechanism in rules]
            else:
                once = self.part(part, tried[0]) if tried else part
                trained += [(once, mechanism) for mechanism in tried]
        if not trained:
            raise InvalidInput(
                f"{self.settings.parameter}: all of its parts need labels, or none makes what "
                f"mechanism={self.settings.mechanism!r} takes; expected y, or another part"
            )
        return trained

    def part(self, part: BaseEstimator, mechanism: str) -> BaseEstimator:
        """Return a clone of a part, fitted for a mechanism where that makes a difference."""
        released = trains_for_release(part)
        return fitted(
            part,
            self.data.train,
            self.data.train_labels,
            seed=self.seed,
            release=self.settings.release(mechanism, self.domain) if released else None,
            report=self.report,
        )

    def different(
        self, trained: list[tuple[BaseEstimator, str]]
    ) -> list[tuple[BaseEstimator, str, Network]]:
        """Return the fitted parts whose functions differ, and these.

        A mechanism that nobody has asked for is left out where it does not take as many values.
        """
        kept: list[tuple[BaseEstimator, str, Network]] = []
        for part, mechanism in trained:
            network = self.network(part, mechanism)
            again = any(
                known == mechanism and same_network(other, network) for _, known, other in kept
            )
            asked = self.settings.mechanism != "auto" or releases_labels(mechanism)
            if not again and (asked or self._serves(mechanism, network)):
                kept.append((part, mechanism, network))
        return kept

    def candidates(self, part: BaseEstimator, mechanism: str, network: Network) -> list[Candidate]:
        """Return what calibration scores: one candidate, or every rule that is worth scoring."""
        bound = bound_of(
            self.settings.calibration.certificate,
            network,
            domain=self.domain,
            input_norm=self.settings.input_norm,
            output=output_of(mechanism),
        )
        begun = getattr(part, "start", None)
        further = "" if begun is None else f", start={type(begun).__name__}"
        if isinstance(part, PublicDiscriminants):  # the ladder has two of one size
            further = f", shrinkage={part.shrinkage:g}"
        rung = f"{type(part).__name__}(outputs={network.output_dimension}{further})"
        candidate = Candidate(network, mechanism, bound, rung=rung, part=part)
        epsilon, adjacency = self.requirement.epsilon, self.requirement.adjacency
        if mechanism == CODE:
            assert isinstance(part, PublicNodes)
            channel = FiniteChannel(
                nodes=AnyTwo(network.output_dimension),
                shares=whole_shares(part.table(epsilon), epsilon=epsilon),
                epsilon=epsilon,
                adjacency=adjacency,
            )
            return [replace(candidate, rule=channel, means=part.means(channel.matrix))]
        if mechanism not in LABEL_RULES:
            return [candidate]
        assert self.data.train_labels is not None
        rules = fitted_rules(
            mechanism,
            LatticeRows(self.data.train, self.data.train_labels, network),
            epsilon=epsilon,
            adjacency=adjacency,
            seed=self.seed,
            report=self.report,
        )
        return [replace(candidate, rule=rule) for rule in rules]

    def network(self, part: BaseEstimator, mechanism: str) -> Network:
        """Return the network of a fitted part, which a mechanism can release."""
        parameter, dimension = self.settings.parameter, self.domain.dimension
        found = network_of(part, parameter=parameter)
        network = found if isinstance(found, Network) else from_torch(found, (dimension,))
        if network.input_dimension != dimension:
            raise InvalidInput(
                f"{parameter}: expected a network of {dimension} inputs, as the embedding has, got "
                f"{network.input_dimension}"
            )
        classes = 0 if self.classes is None else len(self.classes)
        if releases_labels(mechanism) and network.output_dimension != classes:
            raise InvalidInput(
                f"{parameter}: expected one logit for each of {classes} labels of y, got "
                f"{network.output_dimension} outputs"
            )
        return network

    def choice(self, candidates: Sequence[Candidate], paths: Sequence[Path]) -> Choice:
        """Return the candidate and plan of the highest expected utility."""
        calibration = self.settings.calibration
        return calibrate(
            candidates,
            self.requirement,
            self.data,
            paths=paths,
            head_config=calibration.head(self.seed, rows=len(self.data.train)),
            first_look=calibration.head_epochs is None,
            report=self.report,
        )

    def again(self, candidate: Candidate) -> Candidate | None:
        """Return a candidate whose function is fitted on these rows, or None where its mechanism
        does not take as many values as it has then.
        """
        part = self.part(candidate.part, candidate.mechanism)
        network = self.network(part, candidate.mechanism)
        if not self._serves(candidate.mechanism, network):
            return None
        return self.candidates(part, candidate.mechanism, network)[0]

    def _serves(self, mechanism: str, network: Network) -> bool:
        return serves(mechanism, network.output_dimension, delta=self.settings.delta)
