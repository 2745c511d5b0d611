"""What a tighter certificate is worth: ``python -m papers.posthoc.certificate_table --data mnist``.

One published obfuscator (8-16-8), one embedding, and the local path of ``PosthocEncoder`` with
each certificate: the proposal that calibration chooses, the noise scale that follows, what is
withheld, accuracy, and seconds. Nothing but the certificate differs between rows.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.exact.constants import ExactBound
from papers.posthoc.settings import TableSettings, settings_of
from papers.result_files import write_result
from reticent.datasets import Dataset
from reticent.mechanisms import AdditiveMechanism, ProposeTestRelease
from reticent.published.obfuscators import PUBLISHED_ROWS, PublishedObfuscator
from reticent.systems import Calibration, PosthocEncoder
from reticent.training.progress import Report, bar

CERTIFICATES = ("interval", "layered")
"""The rows, loosest first. An exact search may take any time at a private point, so that no
release stands on it; its constants are a column."""

HIDDEN, OUTPUTS = (16,), 8
_FIT_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One certificate at one total.

    Attributes:
        certificate: its name.
        epsilon: proved total of one answer, delta is the table's.
        proposal: P, l-infinity to l1.
        scale: noise scale of every released value, for P times the effective radius.
        local_constant: mean bound on the local constant at radius R over released points.
        exact_constant: mean of the local constants themselves, by exact search.
        withheld: share of withheld answers.
        accuracy: withheld answers counted as errors.
        calibration_seconds, release_seconds: wall time of ``fit`` (the networks are trained
            before) and of ``release``.
    """

    certificate: str
    epsilon: float
    proposal: float
    scale: float
    local_constant: float
    exact_constant: float
    withheld: float
    accuracy: float
    calibration_seconds: float
    release_seconds: float


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    obfuscator_row: str,
    epsilons: tuple[float, ...],
    delta: float,
    rows: int,
    seed: int,
    report: Report,
) -> list[Row]:
    """Every certificate at every total, on the first ``rows`` held-out pictures.

    Args:
        data: the data set that ``settings`` were made for.
        settings: radius and embedder.
        folder: where the embedder is kept, made if missing.
        obfuscator_row: name of a row of the published table.
        epsilons: totals, each above 0.
        delta: total delta, in (0, 1).
        rows: how many held-out pictures are released.
        seed: of training and of the experiment's noise (so: not private).
        report: told about progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
    points = embedder.embed(data.train_images)
    part = PublishedObfuscator(
        row=obfuscator_row,
        hidden=HIDDEN,
        outputs=OUTPUTS,
        epochs=settings.published_epochs,
        batch_size=256,
        random_state=seed,
    )
    obfuscator = part.fit(points, data.train_labels, report=report).network_
    order = np.random.default_rng(seed).permutation(len(points))[:_FIT_ROWS]
    table = []
    for epsilon in epsilons:
        for name in CERTIFICATES:
            encoder = PosthocEncoder(
                epsilon=epsilon,
                delta=delta,
                radius=settings.radius,
                embedder="identity",
                obfuscator=obfuscator,
                mechanism="laplace",
                calibration=Calibration(path="local", certificate=name),
                random_state=seed,
            )
            start = time.perf_counter()
            encoder.fit(points[order], data.train_labels[order])
            fitted = time.perf_counter()
            row = measure(
                encoder, embedder.embed(data.test_images[:rows]), data.test_labels[:rows], seed=seed
            )
            table.append(replace(row, certificate=name, calibration_seconds=fitted - start))
            report(
                "certificates", len(table), len(epsilons) * len(CERTIFICATES), 1.0 - row.accuracy
            )
    return table


def measure(encoder: PosthocEncoder, points: np.ndarray, labels: np.ndarray, *, seed: int) -> Row:
    """One seeded release of ``points`` by a fitted encoder on the local path.

    Args:
        encoder: fitted with labels.
        points: embeddings, shape (n, d).
        labels: shape (n,), integers.
        seed: of the noise.
    """
    start = time.perf_counter()
    release = encoder.simulate(points, seed=seed)
    seconds = time.perf_counter() - start
    query = encoder.query_
    mechanism = query.mechanism
    assert isinstance(mechanism, ProposeTestRelease)
    assert isinstance(mechanism.inner, AdditiveMechanism)
    assert encoder.head_ is not None
    assert encoder.classes_ is not None
    predicted = encoder.head_.predict(release.values)
    bound, radius = query.bound, query.requirement.adjacency.radius
    exact = ExactBound(
        query.network, domain=bound.domain, input_norm=bound.input_norm, output=bound.output
    )
    right = (predicted >= 0) & (encoder.classes_[predicted] == labels)
    return Row(
        certificate=query.bound.kind,
        epsilon=mechanism.guarantee.epsilon,
        proposal=query.plan.proposal,
        scale=mechanism.inner.scale,
        local_constant=float(bound.bound(query.points(points), radius).mean()),
        exact_constant=float(exact.bound(query.points(points), radius).mean()),
        withheld=float(release.withheld.mean()),
        accuracy=float(right.mean()),
        calibration_seconds=0.0,
        release_seconds=seconds,
    )


def markdown(table: list[Row], *, title: str) -> str:
    """The table as Markdown."""
    lines = [
        f"# {title}",
        "",
        (
            "P is proposed by calibration; the scale is that of the Laplace noise of every "
            "released value; withheld answers count as"
        ),
        (
            "errors. The exact constant is that of the same function at the same points, by "
            "complete search; no release stands on"
        ),
        (
            "it, because how long a search takes depends on the private point. Seeds drive the "
            "noise of this experiment: these"
        ),
        "releases are not private.",
        "",
        (
            "| total epsilon | certificate | bound | exact constant | P | noise scale | withheld | "
            "accuracy | fit, s | release, s |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.epsilon:.3g} | {row.certificate} | {row.local_constant:.2f} | "
        f"{row.exact_constant:.2f} | {row.proposal:.2f} | "
        f"{row.scale:.3f} | {row.withheld:.1%} | {row.accuracy:.3f} | "
        f"{row.calibration_seconds:.1f} | {row.release_seconds:.2f} |"
        for row in table
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, write the table, print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=("mnist", "fashion"), required=True)
    parser.add_argument(
        "--row", choices=PUBLISHED_ROWS, default="Encoder", help="published obfuscator"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument(
        "--delta", type=float, default=0.05, help="total delta (default: the paper's .05)"
    )
    parser.add_argument("--rows", type=int, default=1000, help="held-out pictures to release")
    parser.add_argument(
        "--out", type=Path, help="output and cache folder (default: runs/certificates-DATA)"
    )
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    folder = chosen.out if chosen.out is not None else Path("runs") / f"certificates-{chosen.data}"
    settings = settings_of(chosen.data)
    with bar() as report:
        table = run(
            load(chosen.data),
            settings,
            folder,
            obfuscator_row=chosen.row,
            epsilons=tuple(chosen.epsilons),
            delta=chosen.delta,
            rows=chosen.rows,
            seed=chosen.seed,
            report=report,
        )
    title = (
        f"Certificates: {chosen.data}, 8-16-8 obfuscator ({chosen.row}), R = {settings.radius:g}, "
        f"delta {chosen.delta:g}, {chosen.rows} pictures"
    )
    write_result(folder / "results.json", json.dumps([asdict(row) for row in table], indent=2))
    write_result(folder / "table.md", markdown(table, title=title))
    print(folder / "table.md")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
