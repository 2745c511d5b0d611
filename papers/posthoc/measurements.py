"""Accuracies behind the posthoc table: every number is a release of the held-out part at a
proved total.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from papers.posthoc.settings import TableSettings
from reticent.core.arrays import Integers
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.datasets import Dataset
from reticent.lipschitz import LayeredBound, Output
from reticent.mechanisms import AdditiveMechanism, ProposeTestRelease
from reticent.networks import Network, from_torch
from reticent.noise import SeededSampler
from reticent.published.obfuscators import (
    PublishedObfuscator,
    Sign,
)
from reticent.systems.embedding import IdentityEmbedding
from reticent.systems.posthoc.calibration import CalibrationData, Candidate, calibrate, noise_adder
from reticent.systems.posthoc.plans import (
    LABEL_MECHANISMS,
    VECTOR_MECHANISMS,
    Path,
    PosthocSetting,
    Requirement,
    output_of,
)
from reticent.systems.posthoc.query import PrivateQuery
from reticent.training.embedder import Embedder
from reticent.training.heads import Head, HeadConfig, train_head
from reticent.training.label_aware import train_label_release
from reticent.training.networks import TrainingConfig
from reticent.training.noise_aware import train_noise_aware
from reticent.training.parts import PlannedRelease
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]

_CALIBRATION_TRAIN = 10_000
_CALIBRATION_HELD = 1_000
_DRAWS = 3
_TAIL = 5e-4


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One cell of the table.

    Attributes:
        accuracy: on the held-out part, withheld answers counted as errors, mean of three releases.
        withheld: share of withheld answers.
        plan: the plan that calibration chose (path, mechanism, proposal, split).
        epsilon, delta: proved total of one answer.
    """

    accuracy: float
    withheld: float
    plan: dict[str, object]
    epsilon: float
    delta: float

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embeddings of one data set, clipped to the public box, with its settings.

    Attributes:
        settings: fixed settings.
        domain: the public box, from training embeddings.
        train, test: shapes (n, d) and (k, d).
        train_labels, test_labels: shapes (n,) and (k,).
        seed: seed of everything trained or drawn from here on.
    """

    settings: TableSettings
    domain: Box
    train: Array
    test: Array
    train_labels: Integers
    test_labels: Integers
    seed: int

    @classmethod
    def of(
        cls, data: Dataset, embedder: Embedder, settings: TableSettings, *, seed: int
    ) -> Embedded:
        """Both parts of ``data``, embedded; the box holds nearly all training embeddings,
        widened by the radius.
        """
        train = embedder.embed(data.train_images).astype(np.float64)
        lower, upper = np.quantile(train, [_TAIL, 1.0 - _TAIL], axis=0)
        domain = Box(lower - settings.radius, upper + settings.radius)
        test = embedder.embed(data.test_images).astype(np.float64)
        order = np.random.default_rng(seed).permutation(len(train))
        return cls(
            settings,
            domain,
            domain.clip(train[order]),
            domain.clip(test),
            data.train_labels[order],
            data.test_labels,
            seed,
        )

    @cached_property
    def calibration(self) -> CalibrationData:
        """Part of the training rows for calibration heads, another part to score them on."""
        held = slice(len(self.train) - _CALIBRATION_HELD, None)
        fit = slice(0, min(_CALIBRATION_TRAIN, len(self.train) - _CALIBRATION_HELD))
        return CalibrationData(
            self.train[fit], self.train[held], self.train_labels[fit], self.train_labels[held]
        )

    def requirement(self, epsilon: float, delta: float) -> Requirement:
        """A total for neighbours within the published radius, l-infinity."""
        space = f"{self.domain.dimension}-dimensional beta-VAE embedding of the picture"
        return Requirement(
            epsilon=epsilon,
            delta=delta,
            adjacency=Neighborhood(Norm.LINF, self.settings.radius, space),
        )

    def network(self, module: nn.Module) -> Network:
        """``module`` as a certifiable network on embeddings."""
        return from_torch(module, (self.domain.dimension,))

    def bound(self, network: Network, output: Output) -> LayeredBound:
        """The layered certificate of ``network`` over the public box."""
        return LayeredBound(network, domain=self.domain, input_norm=Norm.LINF, output=output)


def published_network(
    points: Embedded, row: str, report: Report, *, sign: Sign = "minus"
) -> nn.Sequential:
    """The obfuscator of one row of the published table; ``sign`` is that of its adversary."""
    part = PublishedObfuscator(
        row=row,
        hidden=points.settings.published_hidden,
        outputs=points.settings.published_outputs,
        epochs=points.settings.published_epochs,
        batch_size=256,
        sign=sign,
        random_state=points.seed,
    )
    return part.fit(points.train, points.train_labels, report=report).network_


def informal_accuracy(points: Embedded, module: nn.Module) -> Informal:
    """Accuracy of a head on what would be released without any noise."""
    network = points.network(module)
    head = train_head(
        network.forward(points.train), points.train_labels, HeadConfig(seed=points.seed), noise=None
    )
    right = head.predict(network.forward(points.test)) == points.test_labels
    return Informal(informal=float(right.mean()))


def vector_release(
    points: Embedded,
    module: nn.Module,
    *,
    mechanisms: tuple[str, ...],
    paths: tuple[Path, ...],
    epsilon: float,
    delta: float,
) -> Measured:
    """Accuracy of released vectors at a proved total: calibrated, head trained at the noise that
    is released.
    """
    network = points.network(module)
    candidates = [
        Candidate(network, mechanism, points.bound(network, VECTOR_MECHANISMS[mechanism]))
        for mechanism in mechanisms
    ]
    requirement = points.requirement(epsilon, delta)
    torch.manual_seed(points.seed)
    choice = calibrate(
        candidates,
        requirement,
        points.calibration,
        paths=paths,
        head_config=HeadConfig(epochs=4, hidden=(64, 64), seed=points.seed),
    )
    query = _query(points, choice.candidate, requirement, choice.plan)
    inner = (
        query.mechanism.inner
        if isinstance(query.mechanism, ProposeTestRelease)
        else query.mechanism
    )
    assert isinstance(inner, AdditiveMechanism)
    head = train_head(
        network.forward(points.train),
        points.train_labels,
        HeadConfig(epochs=8, batch_size=1000, seed=points.seed),
        noise=noise_adder(choice.plan.mechanism, inner.scale),
    )
    return _released(points, query, head)


def planned(points: Embedded, mechanism: str, *, epsilon: float) -> PlannedRelease:
    """The release that a network is trained for."""
    return PlannedRelease(
        epsilon=epsilon,
        delta=0.0,
        radius=points.settings.radius,
        input_norm=Norm.LINF,
        mechanism=mechanism,
        output=output_of(mechanism),
    )


def training(points: Embedded) -> TrainingConfig:
    """Settings of a network's training through the noise of its release."""
    return TrainingConfig(
        epochs=points.settings.epochs,
        batch_size=points.settings.batch_size,
        learning_rate=1e-2,
        seed=points.seed,
    )


def our_vectors(
    points: Embedded, *, epsilon: float, outputs: int, first_noise: float, report: Report
) -> Measured:
    """Our obfuscator at one total epsilon: delta 0, nothing withheld."""
    module = train_noise_aware(
        points.train,
        points.train_labels,
        planned(points, "k-norm-linf", epsilon=epsilon),
        training(points),
        outputs=outputs,
        hidden=points.settings.hidden,
        first_noise=first_noise,
        report=report,
    )
    return vector_release(
        points, module, mechanisms=("k-norm-linf",), paths=("global",), epsilon=epsilon, delta=0.0
    )


def our_labels(points: Embedded, *, epsilon: float, report: Report) -> Measured:
    """Our label release at one total epsilon, with the mechanism that does best on training
    rows: delta 0, nothing withheld.
    """
    network = points.network(
        train_label_release(
            points.train,
            points.train_labels,
            planned(points, "noisy-max", epsilon=epsilon),
            training(points),
            hidden=points.settings.hidden,
            report=report,
        )
    )
    bound = points.bound(network, "spread")
    requirement = points.requirement(epsilon, 0.0)
    choice = calibrate(
        [Candidate(network, mechanism, bound) for mechanism in LABEL_MECHANISMS],
        requirement,
        points.calibration,
        paths=("global",),
        head_config=HeadConfig(seed=points.seed),
    )
    return _released(points, _query(points, choice.candidate, requirement, choice.plan), None)


@dataclass(frozen=True, kw_only=True)
class Informal:
    """A row without noise.

    Attributes:
        informal: accuracy of a head on the noise-free outputs.
    """

    informal: float

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return asdict(self)


def _query(
    points: Embedded, candidate: Candidate, requirement: Requirement, plan: PosthocSetting
) -> PrivateQuery:
    assert output_of(plan.mechanism) == output_of(candidate.mechanism)
    return PrivateQuery(
        IdentityEmbedding(points.domain.dimension),
        candidate.network,
        candidate.bound,
        requirement,
        plan,
    )


def _released(points: Embedded, query: PrivateQuery, head: Head | None) -> Measured:
    right, missing = 0.0, 0.0
    for draw in range(_DRAWS):
        answers, withheld = query.answer(points.test, sampler=SeededSampler(points.seed + draw))
        labels = answers if head is None else head.predict(answers)
        right += float(((labels == points.test_labels) & ~withheld).mean()) / _DRAWS
        missing += float(withheld.mean()) / _DRAWS
    cost = query.mechanism.guarantee
    plan: dict[str, object] = query.plan.to_dict()
    return Measured(
        accuracy=right, withheld=missing, plan=plan, epsilon=cost.epsilon, delta=cost.delta
    )
