"""The posthoc demonstration: private pictures are released to an untrusted server.

It trains, certifies, calibrates, releases, learns and attacks. Every figure is computed on the
held-out part, from answers that were released with noise from the operating system.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.attacks import DecoderConfig, picture_quality, train_decoder
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm
from reticent.core.releases import Release
from reticent.datasets import Dataset
from reticent.demos.page import Demonstration, comparison, npy
from reticent.pages.page import Fact, Pictures, Section
from reticent.radius.distances import row_distances
from reticent.systems import (
    Calibration,
    LabelAware,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
)
from reticent.training.embedder import EmbedderConfig, train_embedder
from reticent.training.heads import HeadConfig, train_head
from reticent.training.parts import Ladder, LiveCoordinates
from reticent.training.progress import Report, silent

Images = npt.NDArray[np.float32]

OURS = "ours, embedding"
LABEL = "ours, label only"
PLAIN = "noise on the embedding"
RESPONSE = "randomised response on the label"
BARE = "no protection"
CONSTANT = "one class always"
_NEIGHBOURS, _SHOWN = 3, 10


_EMBEDDER = EmbedderConfig(
    image_shape=(8, 8), latent_dimension=6, beta=0.4, epochs=40, batch_size=64, width=256
)
_HEAD = HeadConfig(epochs=16, batch_size=250)
_ATTACK = DecoderConfig(epochs=15)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that decides a demonstration, apart from the pictures: for scikit-learn's digits.

    Their radius is about the median distance of a picture to the nearest other one of its class.
    Beta is the published 5 scaled by the number of pixels, as the beta-VAE paper normalises it.

    Attributes:
        radius: R, l-infinity distance of neighbours in the embedding.
        embedder: settings of the embedder.
        epsilon, delta: total of one answer.
        label_mechanism: mechanism of the label release.
        outputs: released values per picture.
        hidden: widths of the obfuscator.
        epochs: passes of our obfuscators over the embeddings.
        head: settings of the server that learns from released values.
        attack: settings of the attacker that learns from released values.
        copies: released copies of the training pictures that server and attacker learn from.
        train_rows, test_rows: most training and held-out pictures that are used.
        seed: seed of training. Noise is never seeded.
    """

    radius: float = 0.3
    embedder: EmbedderConfig = _EMBEDDER
    epsilon: float = 2.0
    delta: float = 1e-5
    label_mechanism: str = "noisy-max"
    outputs: int = 4
    hidden: tuple[int, ...] = (32,)
    epochs: int = 50
    head: HeadConfig = _HEAD
    attack: DecoderConfig = _ATTACK
    copies: int = 3
    train_rows: int = 16_000
    test_rows: int = 2_000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Served:
    """The values that a system released, and the accuracy of a server that learns from them.

    Attributes:
        accuracy: accuracy on held-out pictures. A withheld answer is an error.
        taught: released values of the training pictures, NaN where withheld.
        held_out: released values of the held-out pictures.
        sampler: source of the noise.
    """

    accuracy: float
    taught: npt.NDArray[Any]
    held_out: npt.NDArray[Any]
    sampler: str


class Job:
    """Pictures and their embedder, systems that are fitted on them, and servers that learn.

    Attributes:
        images, labels: public training part.
        test_images, test_labels: held-out part.
        embedder: fitted embedder.
        train, test: embeddings of both parts.

    Raises:
        InvalidInput: pictures of another shape than the embedder is set to.
    """

    def __init__(self, data: Dataset, settings: Settings, *, report: Report) -> None:
        if data.image_shape != settings.embedder.image_shape:
            raise InvalidInput(
                f"data: expected pictures of shape {settings.embedder.image_shape}, got "
                f"{data.image_shape}"
            )
        self.settings, self.classes, self.report = settings, data.classes, report
        order = np.random.default_rng(settings.seed).permutation(len(data.train_images))
        rows, held = order[: settings.train_rows], slice(0, settings.test_rows)
        self.images, self.labels = data.train_images[rows], data.train_labels[rows]
        self.test_images, self.test_labels = data.test_images[held], data.test_labels[held]
        self.embedder = train_embedder(
            self.images, replace(settings.embedder, seed=settings.seed), report=report
        )
        self.train = self.embedder.embed(self.images)
        self.test = self.embedder.embed(self.test_images)

    def _shared(self, epsilon: float) -> dict[str, Any]:
        return {
            "epsilon": epsilon,
            "delta": self.settings.delta,
            "radius": self.settings.radius,
            "embedder": self.embedder,
            "random_state": self.settings.seed,
        }

    def encoder(self, obfuscator: Any, *, epsilon: float) -> PosthocEncoder:
        """Return a fitted encoder with that obfuscator."""
        return PosthocEncoder(
            obfuscator=obfuscator,
            mechanism="auto",
            calibration=Calibration(head_epochs=self.settings.head.epochs),
            **self._shared(epsilon),
        ).fit(self.images, self.labels)

    def trained(self) -> Ladder:
        """Return our obfuscator: noise on live coordinates, or a network trained for the noise."""
        settings = self.settings
        network = NoiseAware(
            outputs=settings.outputs, hidden=settings.hidden, epochs=settings.epochs
        )
        return Ladder((LiveCoordinates(), network))

    def classifier(self, *, epsilon: float) -> PosthocClassifier:
        """Return a fitted classifier, which releases labels."""
        settings = self.settings
        return PosthocClassifier(
            classifier=LabelAware(hidden=settings.hidden, epochs=settings.epochs),
            mechanism=settings.label_mechanism,
            **self._shared(epsilon),
        ).fit(self.images, self.labels)

    def learnt(self, values: npt.ArrayLike, unseen: npt.ArrayLike) -> float:
        """Return the accuracy of a server that learns from ``values``.

        They are one copy or more of every training picture, in order.
        """
        copies = len(np.asarray(values)) // len(self.labels)
        head = train_head(values, np.tile(self.labels, copies), self.settings.head, noise=None)
        return float((head.predict(unseen) == self.test_labels).mean())

    def served(self, system: PosthocEncoder | PosthocClassifier) -> Served:
        """Release both parts, and let the server learn."""
        released = system.release(self.test_images)
        copies = [system.release(self.images) for _ in range(self.settings.copies)]
        held_out = self._vectors(released)
        taught = np.concatenate([self._vectors(copy) for copy in copies])
        if isinstance(system, PosthocClassifier):
            accuracy = float((released.values == self.test_labels).mean())
        else:
            accuracy = self.learnt(taught, held_out)
        return Served(accuracy, taught, held_out, released.receipt.sampler)

    def _vectors(self, release: Release) -> npt.NDArray[Any]:
        """Return released values as vectors: a label as a unit vector, NaN if withheld."""
        values = np.asarray(release.values)
        if values.ndim == 2:
            return values
        rows = np.eye(self.classes)[np.where(release.withheld, 0, values).astype(np.int64)]
        rows[release.withheld] = np.nan
        return rows

    def drawn(self, taught: npt.NDArray[Any], seen: npt.NDArray[Any]) -> Images:
        """Return the held-out pictures as drawn by an attacker who learnt from ``taught``."""
        pictures = np.tile(self.images, (len(taught) // len(self.images), 1, 1))
        decoder = train_decoder(
            taught, pictures, self.settings.attack, noise=None, report=self.report
        )
        return decoder.reconstruct(seen)

    def other_classes(self) -> npt.NDArray[np.float64]:
        """Return each training picture's distance to the nearest one of another class."""
        found = row_distances(
            self.train.astype(np.float64),
            Norm.LINF,
            radii=[self.settings.radius],
            neighbour=1,
            columns={"class": self.labels},
        )
        return found.other["class"]

    def constant(self) -> float:
        """Return the accuracy of the most frequent label."""
        return float(np.bincount(self.test_labels).max() / len(self.test_labels))


def response_accuracy(accuracy: float, *, epsilon: float, classes: int) -> float:
    """Return the expected accuracy of randomised response on the labels of a model.

    Any two inputs are neighbours.

    Args:
        accuracy: accuracy of the model's labels, in [0, 1].
        epsilon: epsilon of one answer, above 0.
        classes: number of labels.

    Example:
        >>> round(response_accuracy(1.0, epsilon=math.log(9), classes=10), 3)
        0.5
    """
    kept = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    return accuracy * kept + (1.0 - accuracy) * (1.0 - kept) / (classes - 1)


def run_demo(data: Dataset, settings: Settings, *, report: Report = silent) -> Demonstration:
    """Train, certify, calibrate, release, learn and attack.

    Args:
        data: pictures with labels. The training part counts as public.
        settings: settings of the run.
        report: receiver of the progress of training.

    Raises:
        InvalidInput: pictures of another shape than the embedder is set to.
    """
    job, epsilon = Job(data, settings, report=report), settings.epsilon
    encoder = job.encoder(job.trained(), epsilon=epsilon)
    ours = job.served(encoder)
    bare = job.learnt(job.train, job.test)
    ways = {
        OURS: ours.accuracy,
        LABEL: job.served(job.classifier(epsilon=epsilon)).accuracy,
        PLAIN: job.served(job.encoder(LiveCoordinates(), epsilon=epsilon)).accuracy,
        RESPONSE: response_accuracy(bare, epsilon=epsilon, classes=data.classes),
        CONSTANT: job.constant(),
        BARE: bare,
    }
    # As many rows as there are released values: an attacker with more rows would train longer.
    unprotected = np.tile(job.train, (settings.copies, 1))
    drawings = {
        BARE: job.drawn(unprotected, job.test),
        OURS: job.drawn(ours.taught, ours.held_out),
        "sees nothing": np.broadcast_to(job.images.mean(axis=0), job.test_images.shape),
    }
    similar = {
        name: picture_quality(job.test_images, guesses).to_dict()["ssim"]
        for name, guesses in drawings.items()
    }
    others = job.other_classes()
    within = float((others <= settings.radius).mean())
    results = {
        "data": data.name,
        "train": len(job.images),
        "held_out": len(job.test_images),
        "settings": asdict(settings),
        "accuracy": ways,
        "structural_similarity": similar,
        "another_class": {"within_radius": within, "median_distance": float(np.median(others))},
        "guarantee": encoder.guarantee.to_dict(),
        "sampler": ours.sampler,
    }
    return Demonstration(
        data=data.name,
        title="A private picture, released with a guarantee",
        lead="""A guarantee limits how well a server that receives a picture's embedding, or anybody
        else who sees it, can tell the picture from similar ones. A network turns each picture into
        a handful of numbers. Without noise, those numbers give the picture away. Here a proof says
        how much noise they need, and the noise is added before they leave the device. The server
        can still learn its task.""",
        facts=[
            Fact(ways[OURS], "of pictures are classified right from released values", "ours"),
            Fact(ways[LABEL], "are right if the device releases only a label", "label"),
            Fact(ways[CONSTANT], "are right if the answer is always the same class"),
            Fact(bare, "are right without any protection"),
            Fact(within, f"have a picture of another class within R = {settings.radius:g}"),
        ],
        notes=_notes(job, data),
        sections=[
            _neighbours_section(job, data, encoder, float(np.median(others))),
            _attack_section(job, data, drawings, similar),
            comparison("Other ways, at the same total", _best(ways, epsilon), ways, ours=OURS),
        ],
        system=encoder,
        results=results,
        summary=f"held-out pictures right at epsilon {epsilon:g}: {ways[OURS]:.1%} by released "
        f"embeddings, {ways[LABEL]:.1%} by released labels, {ways[CONSTANT]:.1%} by a constant, "
        f"{bare:.1%} without protection",
        files={"held-out.npy": npy(job.test_images)},
    )


_WAYS = """Our embeddings, our labels and noise on the embedding itself all have the same proved
total for the same neighbours. Randomised response promises more: any two pictures are neighbours.
Where it is as accurate as ours, it is the better choice. A device that releases a label has its own
classifier, so it can be right more often than a server without protection."""


def _best(ways: dict[str, float], epsilon: float) -> str:
    best = max(ways.keys() - {BARE}, key=lambda way: ways[way])
    return f"At ε = {epsilon:g} this is right most often: {best}.\n\n{_WAYS}"


def _notes(job: Job, data: Dataset) -> str:
    settings, (height, width) = job.settings, data.image_shape
    return f"""Every answer costs ε = {settings.epsilon:g} at δ ≤ {settings.delta:g}, for pictures
    whose embeddings lie within {settings.radius:g} of each other. {len(job.images):,} training
    pictures of {height} × {width} pixels in {data.classes} classes ({data.origin}) count as public.
    A beta-VAE with {settings.embedder.latent_dimension} latents makes the embedding. The server
    learnt from released training pictures and was scored on {len(job.test_images):,} held-out ones.
    A withheld answer counts as wrong."""


def _shown(job: Job) -> list[int]:
    """Return the place of one held-out picture of each class."""
    labels = np.unique(job.test_labels)[:_SHOWN]
    return [int(np.flatnonzero(job.test_labels == label)[0]) for label in labels]


def _pictures(
    job: Job, data: Dataset, caption: str, rows: list[tuple[str, str, Images]]
) -> Pictures:
    """Return rows of pictures below their class. Ink on an empty ground is shown dark on light."""
    names = [data.class_names[job.test_labels[at]] for at in _shown(job)]
    edges = [job.test_images[:, [0, -1]], job.test_images[:, :, [0, -1]].swapaxes(1, 2)]
    inked = all(np.median(edge) < 0.1 for edge in edges)
    return Pictures(caption, names, rows, inked)


def _attack_section(
    job: Job, data: Dataset, drawings: dict[str, Images], similar: dict[str, float]
) -> Section:
    shown = _shown(job)
    rows = [("the picture", "stays on the device", job.test_images[shown])]
    rows += [
        (f"attacker: {name}", f"structural similarity {similar[name]:.2f}", guesses[shown])
        for name, guesses in drawings.items()
    ]
    words = """The attacker knows the networks, the law of the noise and the guarantee. It owns
    pictures of the same kind with their released values, and trains a decoder on them. It can still
    draw the rough kind of picture. The server is meant to learn that much, and the card below says
    that it is not hidden."""
    caption = "Held-out pictures, and a trained attacker's drawings from the released values."
    return Section("What an attacker gets back", words, [_pictures(job, data, caption, rows)])


def _neighbours_section(job: Job, data: Dataset, encoder: PosthocEncoder, median: float) -> Section:
    """Return decoded points at distance R from the pictures shown, in random directions."""
    radius, originals = job.settings.radius, job.test_images[_shown(job)]
    points = encoder.embed(originals)
    random = np.random.default_rng(job.settings.seed)
    rows = [
        ("the picture", "", originals),
        ("its embedding, decoded", "", job.embedder.pictures(points)),
    ]
    for at in range(1, _NEIGHBOURS + 1):
        around = points + radius * random.choice([-1.0, 1.0], size=points.shape)
        rows.append((f"neighbour {at}", f"distance {radius:g}", job.embedder.pictures(around)))
    words = f"""Pictures whose embeddings lie within l-infinity distance R = {radius:g} of each
    other are neighbours. Between two neighbours the probability of any answer changes by at most a
    factor exp(ε), plus δ. Beyond R the protection fades with distance. This is not differential
    privacy of the whole picture. Half of the training pictures have one of another class within
    {median:.2g}. At a smaller R,
    at least half of them have no neighbour of another class among them."""
    caption = "Decoded points at distance R from each embedding, in random directions."
    return Section("What the guarantee covers", words, [_pictures(job, data, caption, rows)])
