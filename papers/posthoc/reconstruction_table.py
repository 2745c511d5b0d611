"""What a decoder draws from released embeddings, the paper's tables of reconstruction: ``python -m
papers.posthoc.reconstruction_table --data mnist``.

Structural similarity, l1, l2 and peak signal-to-noise ratio on held-out pictures, for every radius
and epsilon of the paper. Released are the live coordinates of the embedding with K-norm noise, at a
proved epsilon and delta 0. The attacker knows the noise, owns pictures, and trains a decoder on
fresh answers about them. Beside it stands randomised response on a classifier's label, which
protects any two pictures: there he draws the mean of his own, weighted by how likely each is to get
that answer. The noise depends on the radius over epsilon alone: cells of one ratio are
one measurement. Every cell is cached in the folder, so an interrupted run continues.

Reference: Posthoc privacy guarantees for collaborative inference, supplement, Tables 2 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import EPSILONS, TableSettings, settings_of
from papers.seeded_command import (
    Cells,
    command_of,
    every_seed,
    leave,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.attacks import DecoderConfig, picture_quality, train_decoder
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.datasets import Dataset
from reticent.demos.posthoc import RESPONSE
from reticent.mechanisms import AdditiveMechanism, FiniteChannel
from reticent.noise import SeededSampler
from reticent.systems import Calibration, PosthocEncoder
from reticent.systems.posthoc.calibration import noise_adder
from reticent.training.embedder import Embedder
from reticent.training.heads import Head, HeadConfig, train_head
from reticent.training.progress import Report

Results = dict[str, Any]

RADII = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The paper's."""

MEASURES = {
    "ssim": ("Structural similarity", 3),
    "l1": ("Mean absolute error (l1)", 4),
    "l2": ("Mean squared error (l2)", 4),
    "psnr_peak_1": ("Peak signal-to-noise ratio in dB, peak 1", 2),
    "psnr_peak_255": ("Peak signal-to-noise ratio in dB, peak 255 on pixels in [0, 1]", 2),
}
"""Titles, and digits behind the point."""

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
_LABEL_EPOCHS = 20


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
    config: DecoderConfig
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
            calibration=Calibration(path="global"),
            random_state=self.seed,
        ).fit(own, self.own_labels)
        query = encoder.query_
        assert isinstance(query.mechanism, AdditiveMechanism)
        decoder = train_decoder(
            query.network.forward(query.points(own)),
            self.own,
            self.config,
            noise=noise_adder(_MECHANISM, query.mechanism.scale),
            report=self.report,
        )
        held = self.embedder.embed(self.held).astype(np.float64)
        released = encoder.simulate(held, seed=self.seed).values
        return picture_quality(self.held, decoder.reconstruct(released)).to_dict()

    @cached_property
    def labels(self) -> Head:
        """A classifier of embeddings, whose labels are released by randomised response."""
        config = HeadConfig(epochs=_LABEL_EPOCHS, seed=self.seed)
        own = self.embedder.embed(self.own)
        return train_head(own, self.own_labels, config, noise=None, report=self.report)

    def draws_by_label(self, *, epsilon: float) -> Results:
        """How close he comes to pictures whose label was released by randomised response."""
        own = self._logits(self.own)
        response = FiniteChannel.response(
            own.shape[1], epsilon=epsilon, adjacency=Neighborhood(Norm.LINF, 1.0, "any")
        )
        weights = response.probabilities(own.argmax(axis=1))
        means = np.einsum("nl,nhw->lhw", weights / weights.sum(axis=0), self.own)
        held = self._logits(self.held).argmax(axis=1)
        answers = response.release(held, sampler=SeededSampler(self.seed))
        return picture_quality(self.held, means[answers]).to_dict()

    def _logits(self, pictures: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        head, points = self.labels, torch.from_numpy(self.embedder.embed(pictures))
        with torch.no_grad():
            logits = head(points).numpy()
        return np.asarray(logits, dtype=np.float64)

    def draws_without_protection(self) -> Results:
        """How close he comes from the embedding itself."""
        decoder = train_decoder(
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
    config: DecoderConfig,
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
        config: of the decoder; cells of another critic's weight stand beside each other.
        seed: of the embedder, the attacker's pictures, training and noise.
        report: told about training and every cell.
    """
    with_critic = "" if config.critic == 0 else f"-critic-{config.critic:g}"
    total = (len(radii) + 1) * len(epsilons) + 2
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

    def by_label(epsilon: float) -> Results:
        return attacker().draws_by_label(epsilon=epsilon)

    results: Results = {
        BARE: cell(f"bare{with_critic}", lambda: attacker().draws_without_protection()),
        NOTHING: cell("nothing", lambda: attacker().draws_blindly()),
        "released": {},
        RESPONSE: {},
    }
    for epsilon in epsilons:
        by_radius = results["released"].setdefault(f"{epsilon:g}", {})
        for radius in radii:
            ratio = f"{radius / epsilon:.6g}"
            by_radius[f"{radius:g}"] = cell(
                f"{ratio}{with_critic}", partial(drawn, epsilon, radius)
            )
        results[RESPONSE][f"{epsilon:g}"] = cell(f"label-{epsilon:g}", partial(by_label, epsilon))
    return results


def markdown(data: str, runs: Sequence[Results], *, command: str) -> str:
    """Every measure as a table with standard errors over seeds, and the paper's similarity.

    Args:
        data: name of the data set.
        runs: what ``run`` gave for each seed.
        command: that prints it.
    """
    means, errors = combined(runs)
    grid = means["released"]
    radii = list(next(iter(grid.values())))
    head = f"| | {' | '.join(f'R = {radius}' for radius in radii)} | {RESPONSE} |"
    rule = "|---|" + "---|" * (len(radii) + 1)
    lines = [
        f"# Reconstruction from released embeddings: {data}",
        "",
        f"Printed by `{command}`.",
        "The release is the live coordinates of the beta-VAE embedding with K-norm noise, delta 0;",
        f"the decoder is trained on fresh answers about {_ATTACKER_ROWS:,} pictures of the",
        f"attacker's own. Quality on {_HELD_OUT:,} held-out pictures: {over(len(runs))}",
        "High similarity and low error mean that the picture shows. The last column protects any",
        "two pictures; its attacker draws the mean of his own, weighted by how likely each is to",
        "get the answer.",
        "",
    ]
    for measure, (title, digits) in MEASURES.items():
        lines += [f"## {title}", "", head, rule]
        for epsilon, by_radius in grid.items():
            cells = [
                with_error(
                    by_radius[radius][measure],
                    errors["released"][epsilon][radius][measure],
                    digits=digits,
                )
                for radius in radii
            ]
            label, error = means[RESPONSE][epsilon][measure], errors[RESPONSE][epsilon][measure]
            cells.append(with_error(label, error, digits=digits))
            lines.append(f"| epsilon {epsilon} | {' | '.join(cells)} |")
        bare, nothing = (
            with_error(means[name][measure], errors[name][measure], digits=digits)
            for name in (BARE, NOTHING)
        )
        lines += ["", f"Without protection {bare}; from nothing {nothing}.", ""]
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


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the tables are."""
    parser = seeded_parser("papers.posthoc.reconstruction_table", __doc__, runs="reconstruction")
    parser.add_argument("--radius", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument(
        "--critic",
        type=float,
        default=0.0,
        help="weight of a critic in the decoder's loss (default: 0, a decoder of least error)",
    )
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(
            data,
            settings,
            folder,
            radii=chosen.radius,
            epsilons=chosen.epsilon,
            config=DecoderConfig(epochs=6, batch_size=500, seed=seed, critic=chosen.critic),
            seed=seed,
            report=report,
        )

    runs = every_seed(chosen, measure)
    command = command_of(
        chosen,
        "papers.posthoc.reconstruction_table",
        radius=list(RADII),
        epsilon=list(EPSILONS),
        critic=0.0,
    )
    name = f"posthoc-reconstruction-{chosen.data}"
    leave(chosen, name, runs, markdown(chosen.data, runs, command=command))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
