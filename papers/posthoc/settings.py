"""Fixed settings and published figures of the posthoc table, one entry per data set."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.errors import UnknownName

EPSILONS = (1.0, 2.0, 5.0, 10.0)
"""Total budgets of the table's columns."""

DELTAS = (1e-5, 0.05)
"""Total deltas: one that is usual in practice, and the paper's."""

Figures = tuple[float, float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Everything that decides one data set's table, apart from the data.

    Attributes:
        data: name of the data set.
        radius: R in the embedding, l-infinity.
        latent_dimension: latents of the beta-VAE.
        architecture: of the beta-VAE.
        embedder_epochs: passes of the beta-VAE over the training pictures.
        embedder_width: width of the beta-VAE.
        published_outputs: outputs of the published obfuscators.
        published_hidden: hidden widths of the published obfuscators.
        published_epochs: passes of the published obfuscators.
        outputs: outputs of our obfuscator at each total epsilon.
        first_noise: share of the full noise at which our obfuscator starts to learn, at each total
            epsilon.
        hidden: hidden widths of our networks.
        epochs: passes of our networks.
        batch_size: embeddings per step of our networks; large, because the noise is.
        paper: the paper's Table 1: informal (no noise), then stated epsilon 1, 2, 5, 10, by row.
    """

    data: str
    radius: float
    latent_dimension: int
    architecture: str
    embedder_epochs: int
    embedder_width: int
    published_outputs: int = 4
    published_hidden: tuple[int, ...] = (32,)
    published_epochs: int = 10
    outputs: tuple[int, int, int, int]
    first_noise: tuple[float, float, float, float] = (0.2, 0.2, 0.5, 0.7)
    hidden: tuple[int, ...] = (128,)
    epochs: int = 60
    batch_size: int = 2000
    paper: dict[str, Figures]


SETTINGS = {
    "mnist": TableSettings(
        data="mnist",
        radius=0.5,
        latent_dimension=8,
        architecture="dense",
        embedder_epochs=20,
        embedder_width=512,
        outputs=(4, 4, 6, 6),
        paper={
            "Encoder": (0.93, 0.428, 0.673, 0.883, 0.921),
            "ARL": (0.917, 0.329, 0.532, 0.792, 0.882),
            "C": (0.926, 0.443, 0.684, 0.881, 0.917),
            "N": (0.923, 0.279, 0.496, 0.816, 0.902),
            "ARL-C": (0.896, 0.424, 0.648, 0.839, 0.883),
            "ARL-N": (0.88, 0.118, 0.139, 0.21, 0.325),
            "C-N": (0.929, 0.353, 0.574, 0.844, 0.913),
            "ARL-C-N": (0.921, 0.514, 0.751, 0.891, 0.912),
        },
    ),
    "fashion": TableSettings(
        data="fashion",
        radius=0.2,
        latent_dimension=8,
        architecture="dense",
        embedder_epochs=20,
        embedder_width=512,
        outputs=(4, 4, 6, 6),
        paper={
            "Encoder": (0.779, 0.228, 0.355, 0.605, 0.722),
            "ARL": (0.747, 0.214, 0.319, 0.557, 0.685),
            "C": (0.781, 0.158, 0.225, 0.422, 0.608),
            "N": (0.559, 0.136, 0.177, 0.310, 0.462),
            "ARL-C": (0.761, 0.196, 0.314, 0.537, 0.682),
            "ARL-N": (0.717, 0.294, 0.467, 0.657, 0.705),
            "C-N": (0.774, 0.161, 0.224, 0.411, 0.599),
            "ARL-C-N": (0.706, 0.371, 0.554, 0.678, 0.695),
        },
    ),
    "utkface": TableSettings(
        data="utkface",
        radius=0.1,
        latent_dimension=10,
        architecture="convolutional",
        embedder_epochs=15,
        embedder_width=256,
        outputs=(2, 2, 2, 2),
        epochs=100,
        batch_size=1000,
        published_epochs=25,
        paper={
            "Encoder": (0.724, 0.617, 0.673, 0.717, 0.721),
            "ARL": (0.71, 0.605, 0.649, 0.691, 0.707),
            "C": (0.73, 0.623, 0.673, 0.718, 0.724),
            "N": (0.725, 0.614, 0.667, 0.708, 0.715),
            "ARL-C": (0.709, 0.632, 0.684, 0.70, 0.705),
            "ARL-N": (0.71, 0.628, 0.674, 0.701, 0.708),
            "C-N": (0.727, 0.616, 0.671, 0.712, 0.722),
            "ARL-C-N": (0.712, 0.650, 0.690, 0.700, 0.700),
        },
    ),
}
"""Settings by name of the data set; radii and latent dimensions are the paper's."""


def settings_of(data: str) -> TableSettings:
    """The fixed settings for the data set called ``data``.

    Raises:
        UnknownName: the paper has no table for it.
    """
    if data not in SETTINGS:
        raise UnknownName(f"data={data!r}: expected one of {', '.join(SETTINGS)}")
    return SETTINGS[data]
