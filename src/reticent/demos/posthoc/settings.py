"""Settings of the posthoc demonstration, and those that are suggested for each data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reticent.attacks import ReconstructionConfig
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter, UnknownName
from reticent.training.embedder import EmbedderConfig
from reticent.training.heads import HeadConfig
from reticent.training.obfuscators import PUBLISHED_ROWS


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """Everything that decides a demonstration, apart from the pictures.

    Attributes:
        epsilons: totals that are tried, each above 0, in rising order.
        delta: total delta of one answer, in [0, 1).
        radius: R, l-infinity distance of neighbours in the embedding.
        least_closed: share of the way from what an attacker draws without protection to what it
            draws from nothing, in (0, 1], that a release must close to be led with; the bundle and
            card that are kept are of the embedding that loses least accuracy among those.
        embedder: how pictures become embeddings.
        mechanism: release mechanism of embeddings; "auto" takes the best of all for each.
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
        seed: seed of training; noise is never seeded.
    """

    epsilons: tuple[float, ...]
    delta: float
    radius: float
    embedder: EmbedderConfig
    least_closed: float = 1 / 3
    mechanism: str = "auto"
    label_mechanism: str = "noisy-max"
    outputs: int = 4
    hidden: tuple[int, ...] = (32,)
    epochs: int = 50
    published: tuple[str, ...] = ("Encoder", "C-N", "ARL-C-N")
    published_epochs: int = 40
    head: HeadConfig = field(default_factory=lambda: HeadConfig(epochs=16, batch_size=250))
    attack: ReconstructionConfig = field(default_factory=lambda: ReconstructionConfig(epochs=15))
    copies: int = 3
    train_rows: int = 1_000_000
    test_rows: int = 1_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        for epsilon in self.epsilons:
            positive(epsilon, name="epsilon")
        if not self.epsilons or list(self.epsilons) != sorted(set(self.epsilons)):
            raise InvalidParameter(
                f"epsilons={self.epsilons!r}: expected different numbers in rising order"
            )
        probability(self.least_closed, name="least_closed", allow_zero=False)
        probability(self.delta, name="delta")
        positive(self.radius, name="radius")
        for name in self.published:
            if name not in PUBLISHED_ROWS:
                raise UnknownName(
                    f"published={name!r}: expected one of {', '.join(PUBLISHED_ROWS)}"
                )
        for name in ("outputs", "epochs", "published_epochs", "copies", "train_rows", "test_rows"):
            count(getattr(self, name), name=name)


def suggested(data: str, *, seed: int) -> DemoConfig:
    """Settings that end within minutes on two cores; radii are the published ones where there are
    any.

    The radius of *digits*, 0.3, is about the median distance of a picture to the nearest other one
    of its class, and its beta is the published 5 scaled by the number of pixels, as the beta-VAE
    paper normalises it.

    Raises:
        UnknownName: no settings for that data set.
    """
    totals: dict[str, Any] = {
        "epsilons": (1.0, 2.0, 5.0, 10.0),
        "delta": 1e-5,
        "seed": seed,
    }
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
        return DemoConfig(radius=0.3, embedder=small, **totals)
    if data in ("mnist", "fashion"):
        large = EmbedderConfig(
            image_shape=(28, 28), latent_dimension=8, epochs=10, batch_size=256, seed=seed
        )
        return DemoConfig(
            radius=0.5 if data == "mnist" else 0.2,
            embedder=large,
            hidden=(64,),
            epochs=50,
            published=("Encoder", "ARL-C-N"),
            published_epochs=5,
            head=HeadConfig(epochs=20),
            attack=ReconstructionConfig(epochs=6, batch_size=500),
            copies=1,
            train_rows=16_000,
            test_rows=2_000,
            **totals,
        )
    if data == "utkface":
        faces = EmbedderConfig(
            image_shape=(64, 64),
            latent_dimension=10,
            architecture="convolutional",
            epochs=16,
            width=256,
            seed=seed,
        )
        return DemoConfig(
            radius=0.1,
            embedder=faces,
            epochs=30,
            published=("Encoder", "ARL-C-N"),
            published_epochs=6,
            head=HeadConfig(epochs=10),
            attack=ReconstructionConfig(epochs=5, batch_size=500),
            copies=1,
            train_rows=5_000,
            test_rows=1_000,
            **totals,
        )
    raise UnknownName(f"data={data!r}: expected one of digits, mnist, fashion, utkface")
