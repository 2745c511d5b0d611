"""The main job from end to end on one data set: train, certify, calibrate, release, learn, attack.

Everything that is reported is computed here, on the held-out part, from answers that really were
released with noise from the operating system.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from torch import nn

from reticent.attacks import PictureQuality, picture_quality, train_reconstructor
from reticent.core.errors import InvalidInput
from reticent.core.releases import Release
from reticent.datasets import Dataset
from reticent.demos.label_response import response_accuracy
from reticent.demos.posthoc.gaps import NOTHING, UNPROTECTED, gaps_closed, headline
from reticent.demos.posthoc.settings import DemoConfig
from reticent.systems import (
    Calibration,
    LabelAware,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
)
from reticent.training.embedder import train_embedder
from reticent.training.heads import train_head
from reticent.training.obfuscators import PUBLISHED_ROWS, ObfuscatorConfig, train_obfuscator
from reticent.training.parts import Ladder, LiveCoordinates
from reticent.training.progress import Report, silent

Images = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

OURS = "ours, embedding"
LABEL = "ours, label only"
PLAIN = "noise on the embedding"

NEIGHBOURS = 4
"""Decoded neighbours that are shown per picture."""

_SHOWN = 10

_SEES = {OURS: "our release", LABEL: "our label"}
"""What an attacker sees of each of our releases."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures that are shown.

    Attributes:
        originals: shape (k, height, width), the first held-out picture of each class.
        decoded: same shape: what their embeddings decode to.
        neighbours: shape (k, NEIGHBOURS, height, width): decoded points at distance exactly R.
        attacked: the attacker's reconstructions, by epsilon.
        attacked_embedding: its reconstructions from the embedding as it is sent today.
        guess: the mean training picture: the guess of one who sees no answer.
        names: the class of each.
    """

    originals: Images
    decoded: Images
    neighbours: Images
    attacked: dict[float, Images]
    attacked_embedding: Images
    guess: Images
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DemoOutcome:
    """What a demonstration found.

    Attributes:
        results: plain values for JSON.
        pictures: what is shown.
        encoder: the fitted system at the headline's total.
        held_out: held-out pictures, for trying the bundle.
    """

    results: dict[str, Any]
    pictures: Pictures
    encoder: PosthocEncoder
    held_out: Images


def run_demo(data: Dataset, config: DemoConfig, *, report: Report = silent) -> DemoOutcome:
    """Trains, certifies, calibrates, releases, learns and attacks; see the module's docstring.

    Args:
        data: pictures with labels. The training part counts as public.
        config: settings.
        report: told about the progress of every stage.

    Raises:
        InvalidInput: pictures of another shape than the embedder is set to.
    """
    if data.image_shape != config.embedder.image_shape:
        raise InvalidInput(
            f"data: expected pictures of shape {config.embedder.image_shape}, got "
            f"{data.image_shape}"
        )
    return _Demo(data, config, report).run()


def at(results: dict[str, Any], name: str, epsilon: float) -> dict[str, Any]:
    """The result row called ``name`` at a total."""
    return next(row for row in results["rows"] if row["name"] == name and row["epsilon"] == epsilon)


def best_published(results: dict[str, Any]) -> str:
    """The published obfuscator that does best at the headline's total."""
    epsilon = results["headline"][OURS]["epsilon"]
    names: tuple[str, ...] = results["settings"]["published"]
    return max(names, key=lambda name: at(results, name, epsilon)["accuracy"])


def inked(pictures: npt.NDArray[np.float32]) -> bool:
    """Whether the pictures are ink on an empty ground, which reads best dark on light."""
    edge = np.concatenate(
        [pictures[:, 0], pictures[:, -1], pictures[:, :, 0], pictures[:, :, -1]], axis=1
    )
    return bool(np.median(edge) < 0.1)


def _one_hot(release: Release, classes: int) -> Floats:
    """Labels as unit vectors, NaN where withheld."""
    rows = np.eye(classes)[np.where(release.withheld, 0, release.values).astype(np.int64)]
    rows[release.withheld] = np.nan
    return np.asarray(rows)


class _Demo:
    """One run; holds the data, the embedder and the clock."""

    def __init__(self, data: Dataset, config: DemoConfig, report: Report) -> None:
        random = np.random.default_rng(config.seed)
        rows = random.permutation(len(data.train_images))[: config.train_rows]
        self.images, self.labels = data.train_images[rows], data.train_labels[rows]
        self.test_images, self.test_labels = (
            data.test_images[: config.test_rows],
            data.test_labels[: config.test_rows],
        )
        self.data, self.config, self.report, self.random = data, config, report, random
        self.seconds: dict[str, float] = {}

    def run(self) -> DemoOutcome:
        """All stages in order."""
        config = self.config
        with self._timed("embedder"):
            embedder = train_embedder(self.images, config.embedder, report=self.report)
            self.embedder = embedder
            train, test = embedder.embed(self.images), embedder.embed(self.test_images)
        without = self._server_accuracy(train, self.labels, test)
        with self._timed("published obfuscators"):
            published = {name: self._published(name, train) for name in config.published}

        shown = [
            int(np.flatnonzero(self.test_labels == label)[0])
            for label in np.unique(self.test_labels)
        ][:_SHOWN]
        rows: list[dict[str, Any]] = []
        attacks: list[dict[str, Any]] = []
        attacked: dict[float, Images] = {}
        encoders: dict[float, PosthocEncoder] = {}
        for epsilon in config.epsilons:
            with self._timed("our obfuscator: train, certify, calibrate"):
                encoder = self._encoder(epsilon, self._ladder())
            released, copies = self._released(encoder)
            rows.append(self._row(OURS, epsilon, encoder, released, self._learn(copies, released)))
            quality, attacked[epsilon] = self._attack(copies, released.values, shown)
            attacks.append({"sees": "our release", "epsilon": epsilon, **quality.to_dict()})
            encoders[epsilon] = encoder
            with self._timed("noise on the embedding: certify, calibrate"):
                plain = self._encoder(epsilon, LiveCoordinates())
            seen, taught = self._released(plain)
            rows.append(self._row(PLAIN, epsilon, plain, seen, self._learn(taught, seen)))
            for name, module in published.items():
                with self._timed("published obfuscators: certify, calibrate"):
                    other = self._encoder(epsilon, module)
                seen, taught = self._released(other)
                rows.append(self._row(name, epsilon, other, seen, self._learn(taught, seen)))
            with self._timed("label release: train, certify, calibrate"):
                classifier = self._classifier(epsilon)
            with self._timed("release"):
                answers = classifier.release(self.test_images)
            rows.append(
                self._row(
                    LABEL,
                    epsilon,
                    classifier,
                    answers,
                    float((answers.values == self.test_labels).mean()),
                )
            )
            quality, _ = self._attack(*self._label_copies(classifier, answers), shown)
            attacks.append({"sees": "our label", "epsilon": epsilon, **quality.to_dict()})

        # as many rows as of released values: an attacker that sees more of them learns longer
        every = (np.tile(train, (config.copies, 1)), np.tile(self.images, (config.copies, 1, 1)))
        bare, bare_pictures = self._attack(every, test, shown)
        guess = np.broadcast_to(self.images.mean(axis=0), self.test_images.shape)
        attacks.append({"sees": UNPROTECTED, "epsilon": None, **bare.to_dict()})
        attacks.append(
            {
                "sees": NOTHING,
                "epsilon": 0.0,
                **picture_quality(self.test_images, guess).to_dict(),
            }
        )
        results = self._results(rows, attacks, without, test, train)
        kept = encoders[results["headline"][OURS]["epsilon"]]
        pictures = self._pictures(kept, shown, attacked, bare_pictures)
        return DemoOutcome(results, pictures, kept, self.test_images)

    def _published(self, name: str, embeddings: npt.NDArray[np.float32]) -> nn.Module:
        config = self.config
        settings = ObfuscatorConfig(
            regularisers=PUBLISHED_ROWS[name],
            hidden=config.hidden,
            outputs=config.outputs,
            epochs=config.published_epochs,
            seed=config.seed,
        )
        return train_obfuscator(embeddings, self.labels, settings, report=self.report)

    def _ladder(self) -> Ladder:
        """The embedding's live coordinates, and a network that is trained through the noise."""
        config = self.config
        trained = NoiseAware(outputs=config.outputs, hidden=config.hidden, epochs=config.epochs)
        return Ladder((LiveCoordinates(), trained))

    def _encoder(
        self, epsilon: float, obfuscator: Ladder | LiveCoordinates | nn.Module
    ) -> PosthocEncoder:
        config = self.config
        return PosthocEncoder(
            epsilon=epsilon,
            delta=config.delta,
            radius=config.radius,
            embedder=self.embedder,
            obfuscator=obfuscator,
            mechanism=config.mechanism,
            calibration=Calibration(head_epochs=config.head.epochs),
            random_state=config.seed,
        ).fit(self.images, self.labels)

    def _classifier(self, epsilon: float) -> PosthocClassifier:
        config = self.config
        return PosthocClassifier(
            epsilon=epsilon,
            delta=config.delta,
            radius=config.radius,
            embedder=self.embedder,
            classifier=LabelAware(hidden=config.hidden, epochs=config.epochs),
            mechanism=config.label_mechanism,
            random_state=config.seed,
        ).fit(self.images, self.labels)

    def _released(self, encoder: PosthocEncoder) -> tuple[Release, tuple[Floats, Images]]:
        """The held-out part as it was released, and what server and attacker learn from:
        released training pictures.
        """
        with self._timed("release"):
            released = encoder.release(self.test_images)
            copies = [encoder.release(self.images).values for _ in range(self.config.copies)]
        return released, (np.concatenate(copies), np.tile(self.images, (self.config.copies, 1, 1)))

    def _label_copies(
        self, classifier: PosthocClassifier, answers: Release
    ) -> tuple[tuple[Floats, Images], Floats]:
        """Released labels of training and held-out pictures, as vectors that a decoder reads."""
        with self._timed("release"):
            seen = [classifier.release(self.images) for _ in range(self.config.copies)]
        taught = np.concatenate([_one_hot(release, self.data.classes) for release in seen])
        images = np.tile(self.images, (self.config.copies, 1, 1))
        return (taught, images), _one_hot(answers, self.data.classes)

    def _learn(self, copies: tuple[Floats, Images], released: Release) -> float:
        return self._server_accuracy(
            copies[0], np.tile(self.labels, self.config.copies), released.values
        )

    def _server_accuracy(
        self, values: npt.ArrayLike, labels: npt.NDArray[np.int64], unseen: npt.ArrayLike
    ) -> float:
        """Accuracy of a model that learns from ``values`` alone; a withheld answer counts as an
        error.
        """
        with self._timed("server model"):
            head = train_head(values, labels, self.config.head, noise=None)
        return float((head.predict(unseen) == self.test_labels).mean())

    def _attack(
        self, copies: tuple[npt.ArrayLike, Images], released: npt.ArrayLike, shown: list[int]
    ) -> tuple[PictureQuality, Images]:
        with self._timed("reconstruction attack"):
            decoder = train_reconstructor(
                *copies, self.config.attack, noise=None, report=self.report
            )
            guesses = decoder.reconstruct(released)
            return picture_quality(self.test_images, guesses), guesses[shown]

    def _row(
        self,
        name: str,
        epsilon: float,
        system: PosthocEncoder | PosthocClassifier,
        released: Release,
        accuracy: float,
    ) -> dict[str, Any]:
        plan = system.query_.plan
        return {
            "name": name,
            "epsilon": epsilon,
            "accuracy": accuracy,
            "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / len(self.test_labels))),
            "withheld": float(released.withheld.mean()),
            "guarantee": system.guarantee.to_dict(),
            "path": plan.path,
            "mechanism": plan.mechanism,
            "lipschitz": plan.proposal,
            "certificate": released.receipt.certificate,
            "sampler": released.receipt.sampler,
        }

    def _pictures(
        self, encoder: PosthocEncoder, shown: list[int], attacked: dict[float, Images], bare: Images
    ) -> Pictures:
        originals = self.test_images[shown]
        points = encoder.embed(originals)
        corners = self.random.choice([-1.0, 1.0], size=(len(points), NEIGHBOURS, points.shape[1]))
        around = points[:, None, :] + self.config.radius * corners
        neighbours = self.embedder.pictures(around.reshape(-1, points.shape[1]))
        return Pictures(
            originals=originals,
            decoded=self.embedder.pictures(points),
            neighbours=neighbours.reshape(len(points), NEIGHBOURS, *originals.shape[1:]),
            attacked=attacked,
            attacked_embedding=bare,
            guess=np.asarray(self.images.mean(axis=0)),
            names=tuple(self.data.class_names[label] for label in self.test_labels[shown]),
        )

    def _results(
        self,
        rows: list[dict[str, Any]],
        attacks: list[dict[str, Any]],
        without: float,
        test: npt.NDArray[np.float32],
        train: npt.NDArray[np.float32],
    ) -> dict[str, Any]:
        some = slice(0, 2000)
        distance = cdist(test[some], train, "chebyshev")
        same = self.test_labels[some, None] == self.labels[None, :]
        nearest = {
            name: float(np.median(np.where(mask, distance, np.inf).min(axis=1)))
            for name, mask in (("same", same), ("other", ~same))
        }
        config = asdict(self.config)
        gaps = gaps_closed(rows, attacks, without=without, sees=_SEES)
        return {
            "data": {
                "name": self.data.name,
                "origin": self.data.origin,
                "train": len(self.images),
                "held_out": len(self.test_images),
                "classes": self.data.classes,
                "picture": list(self.data.image_shape),
            },
            "settings": config,
            "accuracy_without_protection": without,
            "accuracy_by_chance": float(
                np.bincount(self.test_labels).max() / len(self.test_labels)
            ),
            "randomised_response": [
                {
                    "epsilon": epsilon,
                    "accuracy": response_accuracy(
                        without, epsilon=epsilon, classes=self.data.classes
                    ),
                }
                for epsilon in self.config.epsilons
            ],
            "median_distance_to_nearest": nearest,
            "rows": rows,
            "attacks": attacks,
            "gap": gaps,
            "headline": {
                name: headline(
                    [gap for gap in gaps if gap["name"] == name], least=self.config.least_closed
                )
                for name in _SEES
            },
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
        }

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - started
