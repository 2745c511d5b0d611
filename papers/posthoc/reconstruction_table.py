"""What a decoder draws from released embeddings, the paper's tables of reconstruction: ``python -m
papers.posthoc.reconstruction_table --data mnist``.

Structural similarity, l1, l2 and peak signal-to-noise ratio on held-out pictures, for every radius
and epsilon of the paper. Released are the live coordinates of the embedding with K-norm noise, at a
proved epsilon and delta 0. The attacker knows the noise, owns pictures, and trains a decoder on
fresh answers about them. The noise depends on the radius over epsilon alone: cells of one ratio are
one measurement. Every cell is cached in the folder, so an interrupted run continues.

Reference: Posthoc privacy guarantees for collaborative inference, supplement, Tables 2 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.seeded_command import Cells, every_seed, leave, seeded_parser
from papers.posthoc.settings import EPSILONS, TableSettings, settings_of
from papers.seeds import combined
from reticent.attacks import ReconstructionConfig, picture_quality, train_reconstructor
from reticent.datasets import Dataset, load
from reticent.mechanisms import AdditiveMechanism
from reticent.systems import PosthocEncoder
from reticent.systems.posthoc.calibration import noise_adder
from reticent.training.embedder import Embedder
from reticent.training.progress import Report

Results = dict[str, Any]

RADII = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The paper's."""

MEASURES = {
    "ssim": "Structural similarity",
    "l1": "Mean absolute error",
    "l2": "Mean squared error",
    "psnr_peak_1": "Peak signal-to-noise ratio in dB, peak 1",
    "psnr_peak_255": "Peak signal-to-noise ratio in dB, peak 255 on pixels in [0, 1]",
}

PAPER_SSIM: dict[str, dict[float, tuple[float, ...]]] = {
    "mnist": {
        1.0: (0.558, 0.427, 0.287, 0.231, 0.201, 0.179),
        2.0: (0.648, 0.553, 0.414, 0.328, 0.275, 0.229),
        5.0: (0.702, 0.655, 0.580, 0.499, 0.434, 0.380),
        10.0: (0.710, 0.700, 0.656, 0.610, 0.560, 0.517),
    },
    "utkface": {
        1.0: (0.481, 0.443, 0.426, 0.425, 0.422, 0.421),
        2.0: (0.507, 0.475, 0.442, 0.439, 0.428, 0.426),
        5.0: (0.519, 0.5037, 0.481, 0.465, 0.451, 0.447),
        10.0: (0.519, 0.5169, 0.507, 0.494, 0.485, 0.476),
    },
}
"""Structural similarity in the paper, by stated epsilon, at ``RADII``."""

BARE, NOTHING = "no protection", "nothing seen"
"""What stands beside the grid."""

_MECHANISM = "k-norm-linf"
_ATTACKER_ROWS = 16_000
_HELD_OUT = 2_000


@dataclass(frozen=True, eq=False)
class Attacker:
    """One seed's attacker.

    Attributes:
        embedder: known to everybody.
        data: its training part is the attacker's own, as far as he owns it.
        own, own_labels: the attacker's pictures, shapes (n, height, width) and (n,).
        held: pictures under attack, shape (k, height, width).
        config: of the decoder.
        seed: of training and of the experiment's noise (so: not private).
        report: told about training.
    """

    embedder: Embedder
    data: Dataset
    own: npt.NDArray[np.float32]
    own_labels: npt.NDArray[np.int64]
    held: npt.NDArray[np.float32]
    config: ReconstructionConfig
    seed: int
    report: Report

    def draws(self, *, epsilon: float, radius: float) -> Results:
        """How close he comes to pictures that were released."""
        own = self.embedder.embed(self.own).astype(np.float64)
        encoder = PosthocEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=radius,
            embedder="identity",
            obfuscator="live",
            mechanism=_MECHANISM,
            path="global",
            random_state=self.seed,
        ).fit(own, self.own_labels)
        query = encoder.query_
        assert isinstance(query.mechanism, AdditiveMechanism)
        decoder = train_reconstructor(
            query.network.forward(query.points(own)),
            self.own,
            self.config,
            noise=noise_adder(_MECHANISM, query.mechanism.scale),
            report=self.report,
        )
        held = self.embedder.embed(self.held).astype(np.float64)
        released = encoder.simulate(held, seed=self.seed).values
        return picture_quality(self.held, decoder.reconstruct(released)).to_dict()

    def draws_without_protection(self) -> Results:
        """How close he comes from the embedding itself."""
        decoder = train_reconstructor(
            self.embedder.embed(self.own), self.own, self.config, noise=None, report=self.report
        )
        guesses = decoder.reconstruct(self.embedder.embed(self.held))
        return picture_quality(self.held, guesses).to_dict()

    def draws_blindly(self) -> Results:
        """How close the mean of his own pictures comes."""
        guess = np.broadcast_to(self.own.mean(axis=0), self.held.shape)
        return picture_quality(self.held, guess).to_dict()


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    radii: Sequence[float],
    epsilons: Sequence[float],
    config: ReconstructionConfig,
    seed: int,
    report: Report,
) -> Results:
    """All measures of one seed; cells that stand in ``folder`` are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: of the embedder.
        folder: of this seed; made if missing.
        radii: of neighbours, l-infinity in the embedding.
        epsilons: of one answer.
        config: of the decoder.
        seed: of the embedder, the attacker's pictures, training and noise.
        report: told about training and every cell.
    """
    total = len(radii) * len(epsilons) + 2
    cell = Cells(folder / "reconstruction-cells", "reconstruction", total, report)

    @cache
    def attacker() -> Attacker:
        chosen = np.random.default_rng(seed).permutation(len(data.train_images))[:_ATTACKER_ROWS]
        return Attacker(
            cached_embedder(data, settings, folder, seed=seed, report=report),
            data,
            data.train_images[chosen],
            data.train_labels[chosen],
            data.test_images[:_HELD_OUT],
            config,
            seed,
            report,
        )

    def drawn(epsilon: float, radius: float) -> Results:
        return attacker().draws(epsilon=epsilon, radius=radius)

    results: Results = {
        BARE: cell("bare", lambda: attacker().draws_without_protection()),
        NOTHING: cell("nothing", lambda: attacker().draws_blindly()),
        "released": {},
    }
    for epsilon in epsilons:
        by_radius = results["released"].setdefault(f"{epsilon:g}", {})
        for radius in radii:
            ratio = f"{radius / epsilon:.6g}"
            by_radius[f"{radius:g}"] = cell(ratio, partial(drawn, epsilon, radius))
    return results


def markdown(data: str, runs: Sequence[Results]) -> str:
    """Every measure as a table, and the paper's structural similarity.

    Args:
        data: name of the data set.
        runs: what ``run`` gave for each seed.
    """
    means, errors = combined(runs)
    grid = means["released"]
    radii = list(next(iter(grid.values())))
    head = f"| | {' | '.join(f'R = {radius}' for radius in radii)} |"
    rule = "|---|" + "---|" * len(radii)
    lines = [
        f"# Reconstruction from released embeddings: {data}",
        "",
        f"Mean over {len(runs)} seed(s); standard errors over seeds are at most",
        f"{_largest(errors['released'], 'ssim'):.3f} in structural similarity. The release is the",
        "live coordinates of the beta-VAE embedding with K-norm noise, delta 0; the decoder is",
        "trained on fresh answers. High similarity and low error mean that the picture shows.",
        "",
    ]
    for measure, title in MEASURES.items():
        lines += [f"## {title}", "", head, rule]
        lines += [
            f"| epsilon {epsilon} | "
            + " | ".join(f"{by_radius[radius][measure]:.3f}" for radius in radii)
            + " |"
            for epsilon, by_radius in grid.items()
        ]
        bare, nothing = means[BARE][measure], means[NOTHING][measure]
        lines += ["", f"Without protection {bare:.3f}; from nothing {nothing:.3f}.", ""]
    if data in PAPER_SSIM:
        head = f"| | {' | '.join(f'R = {radius:g}' for radius in RADII)} |"
        rule = "|---|" + "---|" * len(RADII)
        lines += ["## The paper's structural similarity (its stated epsilon)", "", head, rule]
        lines += [
            f"| epsilon {epsilon:g} | " + " | ".join(f"{value:.3f}" for value in values) + " |"
            for epsilon, values in PAPER_SSIM[data].items()
        ]
        lines.append("")
    return "\n".join(lines)


def _largest(errors: Results, measure: str) -> float:
    found = [cell[measure] for by_radius in errors.values() for cell in by_radius.values()]
    return float(max(found))


def decoder_settings(settings: TableSettings, *, seed: int) -> ReconstructionConfig:
    """A dense decoder of small pictures, a convolutional one of faces."""
    if settings.architecture == "convolutional":
        return ReconstructionConfig(
            architecture="convolutional", epochs=10, batch_size=250, seed=seed
        )
    return ReconstructionConfig(epochs=6, batch_size=500, seed=seed)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the tables are."""
    parser = seeded_parser("papers.posthoc.reconstruction_table", __doc__, runs="reconstruction")
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder,
            radii=chosen.radius,
            epsilons=chosen.epsilon,
            config=decoder_settings(settings, seed=seed),
            seed=seed,
            report=report,
        )

    runs = every_seed(chosen, measure)
    leave(chosen, "reconstruction", runs, markdown(chosen.data, runs))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
