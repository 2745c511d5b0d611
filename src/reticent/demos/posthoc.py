"""The posthoc demonstration: private pictures to an untrusted server. Train, certify, calibrate,
release, learn, attack.

Every figure is computed on the held-out part, from answers that really were released with noise
from the operating system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from torch import nn

from reticent.attacks import ReconstructionConfig, picture_quality, train_reconstructor
from reticent.core.errors import InvalidInput, UnknownName
from reticent.core.releases import Release
from reticent.datasets import Dataset
from reticent.demos.baselines import RESPONSE, response_accuracy
from reticent.demos.page import Chart, Demonstration, Fact, Pictures, Section, Table, line, npy
from reticent.pages.line_chart import Level, Series
from reticent.pages.parts import percent
from reticent.published.obfuscators import PUBLISHED_ROWS, ObfuscatorConfig, train_obfuscator
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
Row = dict[str, Any]

OURS = "ours, embedding"
LABEL = "ours, label only"
PLAIN = "noise on the embedding"
UNPROTECTED = "the embedding as it is sent today"
NOTHING = "nothing"
_LOOKS = {PLAIN: ("plain", "triangle"), LABEL: ("label", "diamond"), OURS: ("ours", "circle")}
_MARKERS = ("square", "diamond", "triangle")

_LEAST = 1 / 3
"""Share of the way from what an attacker draws without protection to what it draws from nothing
that a release must close to be led with.
"""
_NEIGHBOURS, _SHOWN = 4, 10
_CLOSE = 0.005


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that decides a demonstration, apart from the pictures.

    Attributes:
        radius: R, l-infinity distance of neighbours in the embedding.
        embedder: how pictures become embeddings.
        epsilons: totals that are tried, in rising order.
        delta: total delta of one answer.
        label_mechanism: mechanism of the label release.
        outputs: released values per picture.
        hidden: widths of the obfuscator.
        epochs: passes of our obfuscators over the embeddings.
        published: rows of the published table that are compared.
        published_epochs: passes of the published obfuscators.
        head: how the server learns from released values.
        attack: how the attacker learns from released values.
        copies: released copies of the training pictures that server and attacker learn from.
        train_rows, test_rows: most training and held-out pictures that are used.
        seed: of training; noise is never seeded.
    """

    radius: float
    embedder: EmbedderConfig
    epsilons: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0)
    delta: float = 1e-5
    label_mechanism: str = "noisy-max"
    outputs: int = 4
    hidden: tuple[int, ...] = (32,)
    epochs: int = 50
    published: tuple[str, ...] = ("Encoder", "ARL-C-N")
    published_epochs: int = 5
    head: HeadConfig = field(default_factory=lambda: HeadConfig(epochs=20))
    attack: ReconstructionConfig = field(
        default_factory=lambda: ReconstructionConfig(epochs=6, batch_size=500)
    )
    copies: int = 1
    train_rows: int = 16_000
    test_rows: int = 2_000
    seed: int = 0


def suggested(data: str, *, seed: int) -> Settings:
    """Return settings that end within minutes on two cores; radii are the published ones where
    there are any.

    The radius of *digits*, 0.3, is about the median distance of a picture to the nearest other one
    of its class, and its beta is the published 5 scaled by the number of pixels, as the beta-VAE
    paper normalises it.

    Raises:
        UnknownName: no settings for that data set.
    """
    if data == "digits":
        small = EmbedderConfig(
            image_shape=(8, 8),
            latent_dimension=6,
            beta=0.4,
            epochs=40,
            batch_size=64,
            width=256,
            seed=seed,
        )
        return Settings(
            radius=0.3,
            embedder=small,
            published=("Encoder", "C-N", "ARL-C-N"),
            published_epochs=40,
            head=HeadConfig(epochs=16, batch_size=250),
            attack=ReconstructionConfig(epochs=15),
            copies=3,
            seed=seed,
        )
    if data in ("mnist", "fashion"):
        large = EmbedderConfig(
            image_shape=(28, 28), latent_dimension=8, epochs=10, batch_size=256, seed=seed
        )
        radius = 0.5 if data == "mnist" else 0.2
        return Settings(radius=radius, embedder=large, hidden=(64,), seed=seed)
    if data == "utkface":
        faces = EmbedderConfig(
            image_shape=(64, 64),
            latent_dimension=10,
            architecture="convolutional",
            epochs=16,
            width=256,
            seed=seed,
        )
        return Settings(
            radius=0.1,
            embedder=faces,
            epochs=30,
            published_epochs=6,
            head=HeadConfig(epochs=10),
            attack=ReconstructionConfig(epochs=5, batch_size=500),
            train_rows=5_000,
            test_rows=1_000,
            seed=seed,
        )
    raise UnknownName(f"data={data!r}: expected one of digits, mnist, fashion, utkface")


class _Run:
    """One run: the pictures, the embedder, and the figures as they are found.

    Attributes:
        encoders: ours, by epsilon.
        rows: accuracy of each release, with its guarantee.
        attacks: quality of what each attacker draws.
        drawn: what the attacker draws of the pictures that are shown, by what it sees and epsilon.
    """

    def __init__(self, data: Dataset, settings: Settings, report: Report) -> None:
        self.data, self.settings, self.report = data, settings, report
        self.random = np.random.default_rng(settings.seed)
        rows = self.random.permutation(len(data.train_images))[: settings.train_rows]
        self.images, self.labels = data.train_images[rows], data.train_labels[rows]
        held = slice(0, settings.test_rows)
        self.test_images, self.test_labels = data.test_images[held], data.test_labels[held]
        self.shown = [
            int(np.flatnonzero(self.test_labels == label)[0])
            for label in np.unique(self.test_labels)
        ][:_SHOWN]
        self.embedder = train_embedder(self.images, settings.embedder, report=report)
        self.train = self.embedder.embed(self.images)
        self.test = self.embedder.embed(self.test_images)
        self.without = self._learnt(self.train, self.labels, self.test)
        self.encoders: dict[float, PosthocEncoder] = {}
        self.rows: list[Row] = []
        self.attacks: list[Row] = []
        self.drawn: dict[tuple[str, float | None], Images] = {}

    def release_all(self) -> None:
        """Release by ours, by plain noise, by the published obfuscators and by the label alone, at
        every epsilon; attack what ours released, the embedding itself, and nothing.
        """
        settings = self.settings
        published = {name: self._published(name) for name in settings.published}
        shared: dict[str, Any] = {
            "delta": settings.delta,
            "radius": settings.radius,
            "embedder": self.embedder,
            "random_state": settings.seed,
        }
        trained = NoiseAware(
            outputs=settings.outputs, hidden=settings.hidden, epochs=settings.epochs
        )
        ours = {OURS: Ladder((LiveCoordinates(), trained)), PLAIN: LiveCoordinates()}
        for epsilon in settings.epsilons:
            for name, obfuscator in {**ours, **published}.items():
                encoder = PosthocEncoder(
                    epsilon=epsilon,
                    obfuscator=obfuscator,
                    mechanism="auto",
                    calibration=Calibration(head_epochs=settings.head.epochs),
                    **shared,
                ).fit(self.images, self.labels)
                if name == OURS:
                    self.encoders[epsilon] = encoder
                self._try_out(name, epsilon, encoder)
            classifier = PosthocClassifier(
                epsilon=epsilon,
                classifier=LabelAware(hidden=settings.hidden, epochs=settings.epochs),
                mechanism=settings.label_mechanism,
                **shared,
            ).fit(self.images, self.labels)
            self._try_out(LABEL, epsilon, classifier)
        # As many rows as of released values: an attacker that sees more of them learns longer.
        self._attack(UNPROTECTED, None, np.tile(self.train, (settings.copies, 1)), self.test)
        guess = np.broadcast_to(self.images.mean(axis=0), self.test_images.shape)
        self._attacked(NOTHING, None, guess)

    def _published(self, name: str) -> nn.Module:
        settings = self.settings
        config = ObfuscatorConfig(
            regularisers=PUBLISHED_ROWS[name],
            hidden=settings.hidden,
            outputs=settings.outputs,
            epochs=settings.published_epochs,
            seed=settings.seed,
        )
        return train_obfuscator(self.train, self.labels, config, report=self.report)

    def _learnt(
        self, values: npt.ArrayLike, labels: npt.NDArray[np.int64], unseen: npt.ArrayLike
    ) -> float:
        """Accuracy of a server that learns from ``values`` alone; a withheld answer is an error."""
        head = train_head(values, labels, self.settings.head, noise=None)
        return float((head.predict(unseen) == self.test_labels).mean())

    def _try_out(
        self, name: str, epsilon: float, system: PosthocEncoder | PosthocClassifier
    ) -> None:
        """Release both parts, let the server learn, and attack what is ours."""
        copies = self.settings.copies
        released, plan = system.release(self.test_images), system.query_.plan
        held_out = self._vectors(released)
        taught = np.concatenate([self._vectors(system.release(self.images)) for _ in range(copies)])
        if name == LABEL:
            accuracy = float((released.values == self.test_labels).mean())
        else:
            accuracy = self._learnt(taught, np.tile(self.labels, copies), held_out)
        error = float(np.sqrt(accuracy * (1 - accuracy) / len(self.test_labels)))
        self.rows.append(
            {
                "name": name,
                "epsilon": epsilon,
                "accuracy": accuracy,
                "standard_error": error,
                "withheld": float(released.withheld.mean()),
                "guarantee": system.guarantee.to_dict(),
                "path": plan.path,
                "mechanism": plan.mechanism,
                "lipschitz": plan.proposal,
                "certificate": released.receipt.certificate,
                "sampler": released.receipt.sampler,
            }
        )
        if name in (OURS, LABEL):
            self._attack(name, epsilon, taught, held_out)

    def _vectors(self, release: Release) -> npt.NDArray[Any]:
        """Released values as vectors: a label as a unit vector, NaN where it was withheld."""
        values = np.asarray(release.values)
        if values.ndim == 2:
            return values
        rows = np.eye(self.data.classes)[np.where(release.withheld, 0, values).astype(np.int64)]
        rows[release.withheld] = np.nan
        return rows

    def _attack(
        self, sees: str, epsilon: float | None, taught: npt.ArrayLike, seen: npt.ArrayLike
    ) -> None:
        pictures = np.tile(self.images, (self.settings.copies, 1, 1))
        decoder = train_reconstructor(
            taught, pictures, self.settings.attack, noise=None, report=self.report
        )
        self._attacked(sees, epsilon, decoder.reconstruct(seen))

    def _attacked(self, sees: str, epsilon: float | None, guesses: Images) -> None:
        quality = picture_quality(self.test_images, guesses).to_dict()
        self.attacks.append({"sees": sees, "epsilon": epsilon, **quality})
        self.drawn[sees, epsilon] = guesses[self.shown]

    def results(self) -> dict[str, Any]:
        """Every figure, as plain values for JSON."""
        data, settings = self.data, self.settings
        some = slice(0, 2000)
        distance = cdist(self.test[some], self.train, "chebyshev")
        same = self.test_labels[some, None] == self.labels[None, :]
        nearest = {
            name: float(np.median(np.where(mask, distance, np.inf).min(axis=1)))
            for name, mask in (("same", same), ("other", ~same))
        }
        gaps = gaps_closed(self.rows, self.attacks, without=self.without)
        return {
            "data": {
                "name": data.name,
                "origin": data.origin,
                "train": len(self.images),
                "held_out": len(self.test_images),
                "classes": data.classes,
                "picture": list(data.image_shape),
            },
            "settings": asdict(settings),
            "accuracy_without_protection": self.without,
            "accuracy_by_chance": float(
                np.bincount(self.test_labels).max() / len(self.test_labels)
            ),
            "randomised_response": {
                epsilon: response_accuracy(self.without, epsilon=epsilon, classes=data.classes)
                for epsilon in settings.epsilons
            },
            "median_distance_to_nearest": nearest,
            "rows": self.rows,
            "attacks": self.attacks,
            "gap": gaps,
            "headline": {
                name: headline([gap for gap in gaps if gap["name"] == name], least=_LEAST)
                for name in (OURS, LABEL)
            },
        }

    def neighbours(self, encoder: PosthocEncoder) -> Pictures:
        """Decoded points at distance R from the pictures that are shown, in random directions."""
        originals, radius = self.test_images[self.shown], self.settings.radius
        points = encoder.embed(originals)
        corners = self.random.choice([-1.0, 1.0], size=(len(points), _NEIGHBOURS, points.shape[1]))
        around = points[:, None, :] + radius * corners
        decoded = [self.embedder.pictures(around[:, at]) for at in range(_NEIGHBOURS)]
        return self._pictures(
            "Decoded points at distance R from each embedding, in random directions.",
            [
                ("the picture", "", originals),
                ("its embedding, decoded", "", self.embedder.pictures(points)),
                *(
                    (f"neighbour {at}", f"distance {radius:g}", pictures)
                    for at, pictures in enumerate(decoded, start=1)
                ),
            ],
        )

    def drawings(self) -> Pictures:
        """What attackers draw of the pictures that are shown, most protected last."""
        order: dict[str, tuple[str, float | None]] = {
            "attacker, no protection": (UNPROTECTED, None),
            **{f"attacker, ε = {at:g}": (OURS, at) for at in reversed(self.encoders)},
            "attacker, sees nothing": (NOTHING, None),
        }
        similar = {(row["sees"], row["epsilon"]): row["ssim"] for row in self.attacks}
        rows = [("the picture", "stays on the device", self.test_images[self.shown])]
        for name, seen in order.items():
            rows.append((name, f"structural similarity {similar[seen]:.2f}", self.drawn[seen]))
        return self._pictures(
            "Held-out pictures, and what a trained attacker draws from what was released about "
            "each.",
            rows,
        )

    def _pictures(self, caption: str, rows: Sequence[tuple[str, str, Images]]) -> Pictures:
        names = [self.data.class_names[label] for label in self.test_labels[self.shown]]
        return Pictures(caption, names, rows, inked(self.test_images[self.shown]))


def gaps_closed(
    rows: Sequence[Row], attacks: Sequence[Row], *, without: float
) -> list[dict[str, Any]]:
    """Return for each attacked release how much of the way from what an attacker gets without
    protection to what it gets from nothing it goes, in structural similarity, and what that costs
    in accuracy.

    Args:
        rows, attacks: results; an attack sees a release by its name.
        without: accuracy without protection.

    Returns:
        One entry for each release; where an attacker draws no better with the embedding than
        without, there is no gap, and none of it is closed.
    """
    ssim = {(attack["sees"], attack["epsilon"]): attack["ssim"] for attack in attacks}
    bare, blind = ssim[UNPROTECTED, None], ssim[NOTHING, None]
    gaps = []
    for row in rows:
        name, epsilon = row["name"], row["epsilon"]
        if (name, epsilon) in ssim:
            closed = (bare - ssim[name, epsilon]) / (bare - blind) if bare > blind else 0.0
            lost = without - row["accuracy"]
            gaps.append({"name": name, "epsilon": epsilon, "closed": closed, "lost": lost})
    return gaps


def headline(gaps: Sequence[dict[str, Any]], *, least: float) -> dict[str, Any]:
    """Return of several releases that which loses least accuracy among those that close at least a
    share of the gap, or that which closes most where none closes as much. Losses count in whole
    points, since some hundred pictures tell no less; of equal ones that of the smallest epsilon is
    taken.

    Args:
        gaps: of ``gaps_closed``.
        least: share of the gap, in (0, 1].

    Returns:
        Its entry, with ``least``, and ``met``: whether it closes as much.

    Example:
        >>> few = {"epsilon": 1.0, "closed": 0.6, "lost": 0.4}
        >>> some = {"epsilon": 2.0, "closed": 0.4, "lost": 0.2}
        >>> headline([few, some], least=0.3)["epsilon"], headline([few, some], least=0.7)["met"]
        (2.0, False)
        >>> more = {"epsilon": 5.0, "closed": 0.4, "lost": 0.198}  # as much as some
        >>> headline([more, some], least=0.3)["epsilon"]
        2.0
    """
    enough = [gap for gap in gaps if gap["closed"] >= least]
    found = (
        min(enough, key=lambda gap: (round(100 * max(gap["lost"], 0.0)), gap["epsilon"]))
        if enough
        else max(gaps, key=lambda gap: gap["closed"])
    )
    return {**found, "least": least, "met": bool(enough)}


def inked(pictures: Images) -> bool:
    """Return whether the pictures are ink on an empty ground, which reads best dark on light."""
    edge = np.concatenate(
        [pictures[:, 0], pictures[:, -1], pictures[:, :, 0], pictures[:, :, -1]], axis=1
    )
    return bool(np.median(edge) < 0.1)


def run_demo(data: Dataset, settings: Settings, *, report: Report = silent) -> Demonstration:
    """Train, certify, calibrate, release, learn and attack.

    Args:
        data: pictures with labels. The training part counts as public.
        settings: of the run.
        report: told about the progress of training.

    Raises:
        InvalidInput: pictures of another shape than the embedder is set to.
    """
    if data.image_shape != settings.embedder.image_shape:
        raise InvalidInput(
            f"data: expected pictures of shape {settings.embedder.image_shape}, got "
            f"{data.image_shape}"
        )
    run = _Run(data, settings, report)
    run.release_all()
    results = run.results()
    lead = results["headline"][OURS]
    encoder = run.encoders[lead["epsilon"]]
    return Demonstration(
        data=data.name,
        title="A private picture, released with a guarantee",
        lead="""Every single picture is protected from the server that receives its embedding, and
        from anybody else who sees it. A network turns a picture into a handful of numbers. Sent as
        they are, those numbers give the picture away. Here they leave only after a proof has said
        how much noise they need, and the server still learns what it was asked to learn.""",
        facts=_facts(results),
        notes=_notes(results),
        sections=[
            Section("What an attacker gets back", _ATTACK, [run.drawings(), _gap_table(results)]),
            Section("What the guarantee covers", _covers(results), [run.neighbours(encoder)]),
            Section("What protection costs in accuracy", _ACCURACY, [_chart(results)]),
        ],
        system=encoder,
        results=results,
        summary=f"held-out pictures right at epsilon {lead['epsilon']:g}: "
        f"{at(results, OURS, lead['epsilon'])['accuracy']:.1%} by released embeddings, "
        f"{at(results, LABEL, lead['epsilon'])['accuracy']:.1%} by released labels, "
        f"{results['accuracy_without_protection']:.1%} without protection",
        files={"held-out.npy": npy(run.test_images)},
    )


def at(results: dict[str, Any], name: str, epsilon: float) -> Row:
    """Return the result row called ``name`` at a total."""
    return next(row for row in results["rows"] if row["name"] == name and row["epsilon"] == epsilon)


def best_published(results: dict[str, Any]) -> str:
    """Return the published obfuscator that does best at the headline's total."""
    epsilon = results["headline"][OURS]["epsilon"]
    names: tuple[str, ...] = results["settings"]["published"]
    return max(names, key=lambda name: at(results, name, epsilon)["accuracy"])


_ATTACK = """The attacker knows the networks, the noise and the guarantee, owns pictures of the same
kind with their released values, and trains a decoder on them. A smaller ε tells it less. What it
can still draw is the rough kind of picture: the server is meant to learn that much, and the card
below says that it is not hidden.

The table says how much of the way from no protection to nothing each release goes, in structural
similarity, and how many points of accuracy that costs. A share near 0 says that the rough picture
is still visible; below 0, that the attacker learned a little better from noisy values."""

_ACCURACY = """Every line of a release carries the same proved total: the same neighbours, the same
kind of certificate, the same choice of mechanism and path by calibration. What differs is how the
released network was trained. Ours is the better, on calibration pictures, of noise on the embedding
and a network that is trained through the very noise that its release will add. The dashed line
promises more: randomised response on the label of the unprotected model hides any two pictures from
each other. The device that releases a label has a classifier of its own, trained for that, so it
can be right more often than the server is without protection."""


def _facts(results: dict[str, Any]) -> list[Fact]:
    epsilon, best = results["headline"][OURS]["epsilon"], best_published(results)
    said = {
        OURS: ("correct, by a server that has seen nothing but released values", "ours"),
        LABEL: ("correct, when the device releases only the label", "label"),
        PLAIN: ("correct with noise on the embedding itself, under the same proof", "plain"),
        best: (f"correct with {best}, the best published obfuscator here, same proof", "best"),
    }
    chance = percent(results["accuracy_by_chance"])
    bare = f"correct with no protection at all; {chance} by always naming one class"
    return [
        *(Fact(at(results, name, epsilon)["accuracy"], *words) for name, words in said.items()),
        Fact(results["accuracy_without_protection"], bare),
    ]


def _notes(results: dict[str, Any]) -> str:
    lead, label = (results["headline"][name] for name in (OURS, LABEL))
    epsilon, least = lead["epsilon"], percent(lead["least"])
    delta = max(row["guarantee"]["delta"] for row in results["rows"] if row["epsilon"] == epsilon)
    data, settings = results["data"], results["settings"]
    height, width = data["picture"]
    response = results["randomised_response"][epsilon]
    picked = (
        f"Shown is the ε that loses least among those that close at least {least} of that gap, "
        "picked on these same pictures."
        if lead["met"]
        else f"No ε that was tried closes {least} of that gap; shown is the one that closes most. "
        "There is no case for releasing this embedding at these settings: release the label, or "
        "take a smaller ε."
    )
    better = (
        "It is the better choice here: as accurate, and the stronger promise."
        if response >= at(results, LABEL, epsilon)["accuracy"] - _CLOSE
        else "What is gained above it comes from protecting similar pictures only."
    )
    return f"""At ε = {epsilon:g} the released embedding takes an attacker {_gained(lead)}. Where
    the label alone will do, ε = {label["epsilon"]:g} takes it {_gained(label)}. {picked}

    {data["train"]:,} training pictures of {height} × {width} pixels in {data["classes"]} classes
    ({data["origin"]}) count as public. A beta-VAE with {settings["embedder"]["latent_dimension"]}
    latents makes the embedding; obfuscators release {settings["outputs"]} numbers per picture.
    Server and attacker learn from the same released training pictures.

    The first four carry the same proved total, ε = {epsilon:g}, δ ≤ {delta:g} per picture, for
    embeddings within distance {settings["radius"]:g} of each other. Measured on
    {data["held_out"]:,} held-out pictures; a withheld answer counts as wrong.

    Randomised response on the label, which hides any two pictures from each other, would be right
    on {percent(response)} at this ε. {better}"""


def _gained(gap: dict[str, Any]) -> str:
    return (
        f"{percent(max(0.0, gap['closed']))} of the way from what it draws without protection to "
        f"what it draws from nothing, and costs {100 * max(0.0, gap['lost']):.1f} points of "
        "accuracy"
    )


def _gap_table(results: dict[str, Any]) -> Table:
    ssim = {(row["sees"], row["epsilon"]): f"{row['ssim']:.3f}" for row in results["attacks"]}
    rows = [(UNPROTECTED, [ssim[UNPROTECTED, None], "0 %", "0.0 points"])]
    for gap in sorted(results["gap"], key=lambda gap: (gap["name"], -gap["epsilon"])):
        name, epsilon = gap["name"], gap["epsilon"]
        cells = [ssim[name, epsilon], percent(gap["closed"]), f"{100 * gap['lost']:.1f} points"]
        rows.append((f"{name}, ε = {epsilon:g}", cells))
    rows.append((NOTHING, [ssim[NOTHING, None], "100 %", ""]))
    heads = ("structural similarity", "of the way to nothing", "accuracy lost")
    return Table("the attacker sees", heads, rows, "Measured on all held-out pictures.")


def _covers(results: dict[str, Any]) -> str:
    near, radius = results["median_distance_to_nearest"], results["settings"]["radius"]
    return f"""Pictures whose embeddings lie within l-infinity distance R = {radius:g} of each other
    are neighbours: the probability of any answer changes between two of them by at most a factor
    exp(ε), plus δ. Beyond R the protection fades with distance; this is not differential privacy of
    the whole picture. For comparison, half of the held-out pictures have a training picture of
    their own class within {near["same"]:.2f}, and half have one of another class within
    {near["other"]:.2f}."""


def _chart(results: dict[str, Any]) -> Chart:
    best = best_published(results)
    others = [name for name in results["settings"]["published"] if name != best]
    looks = {name: ("published", mark) for name, mark in zip(others, _MARKERS, strict=False)}
    looks |= {best: ("best", "square"), **_LOOKS}
    lines: dict[str, list[tuple[float, float, float]]] = {name: [] for name in looks}
    for row in results["rows"]:
        point = row["epsilon"], row["accuracy"], 1.96 * row["standard_error"]
        lines[row["name"]].append(point)
    response = line(RESPONSE, results["randomised_response"], "", "square")
    return Chart(
        "Accuracy against the proved total ε",
        "proved total ε per picture (smaller protects more)",
        [
            replace(response, line="dashed"),
            *(Series(name, tuple(lines[name]), *look) for name, look in looks.items()),
        ],
        [
            Level("no protection", results["accuracy_without_protection"]),
            Level("one class always", results["accuracy_by_chance"]),
        ],
    )
