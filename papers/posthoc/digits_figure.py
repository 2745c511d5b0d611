"""What labels and embeddings of written digits are worth at a proved total, over several seeds:
``python -m papers.posthoc.digits_figure``.

Every seed is the job of ``reticent demo posthoc`` at several totals, without its attacks and beside
published obfuscators. Each is cached in the folder, so an interrupted command continues.
Noise of releases is never seeded, so another run differs a little.
"""

from __future__ import annotations

import argparse
import json
import math
from itertools import cycle
from pathlib import Path
from typing import Any

from torch import nn

from papers.drawings import empty_drawing, png
from papers.line_figure import utility
from papers.posthoc.settings import EPSILONS
from papers.result_files import write_result
from papers.seeds import combined
from reticent.datasets import Dataset, load_digits
from reticent.demos.posthoc import (
    LABEL,
    OURS,
    PLAIN,
    RESPONSE,
    Job,
    Settings,
    response_accuracy,
)
from reticent.pages.line_chart import Level, Series
from reticent.published.obfuscators import PublishedObfuscator
from reticent.training.parts import LiveCoordinates
from reticent.training.progress import Report, bar

PUBLISHED = ("Encoder", "C-N", "ARL-C-N")
_PUBLISHED_EPOCHS = 40

_SHAPES = {
    LABEL: ("ours", "circle", "solid"),
    OURS: ("label", "diamond", "solid"),
    PLAIN: ("plain", "triangle", "solid"),
    RESPONSE: ("best", "square", "dashed"),
}
_PUBLISHED = "published obfuscator "
_PUBLISHED_SHAPES = (
    ("published", "circle", "dotted"),
    ("published", "diamond", "dashdot"),
    ("published", "triangle", "solid"),
)


def one_run(data: Dataset, config: Settings, *, report: Report) -> dict[str, Any]:
    """Accuracies of one seed: by name and epsilon, and without protection."""
    job = Job(data, config, report=report)
    published = {name: _published(job, name) for name in PUBLISHED}
    ways = {OURS: job.trained(), PLAIN: LiveCoordinates(), **published}
    bare = job.learnt(job.train, job.test)
    lines: dict[str, dict[str, float]] = {name: {} for name in (*ways, LABEL, RESPONSE)}
    for epsilon in EPSILONS:
        at = f"{epsilon:g}"
        for name, obfuscator in ways.items():
            lines[name][at] = job.served(job.encoder(obfuscator, epsilon=epsilon)).accuracy
        lines[LABEL][at] = job.served(job.classifier(epsilon=epsilon)).accuracy
        lines[RESPONSE][at] = response_accuracy(bare, epsilon=epsilon, classes=data.classes)
    return {
        "lines": lines,
        "levels": {"no protection": bare, "one class always": job.constant()},
        "pictures": len(job.test_images),
    }


def _published(job: Job, name: str) -> nn.Module:
    settings = job.settings
    part = PublishedObfuscator(
        row=name,
        hidden=settings.hidden,
        outputs=settings.outputs,
        epochs=_PUBLISHED_EPOCHS,
        random_state=settings.seed,
    )
    return part.fit(job.train, job.labels, report=job.report).network_


def run(
    data: Dataset, configs: list[Settings], folder: Path, *, report: Report
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Means over the configs, which differ in their seed, and their standard errors."""
    runs = []
    for config in configs:
        path = folder / f"{data.name}-{config.seed}.json"
        if not path.exists():
            write_result(path, json.dumps(one_run(data, config, report=report), indent=1))
        runs.append(json.loads(path.read_text(encoding="utf-8")))
    return combined(runs)


def half_width(mean: float, error: float, pictures: float) -> float:
    """Half of the 95 % interval of a mean over seeds: how much seeds differ, and that every one of
    them was scored on the same ``pictures`` pictures.

    Example:
        >>> round(half_width(0.5, 0.0, 10_000), 4)
        0.0098
    """
    return 1.96 * math.sqrt(error**2 + mean * (1.0 - mean) / pictures)


def series_of(means: dict[str, Any], errors: dict[str, Any]) -> list[Series]:
    """Every method over epsilon, label and embedding first, the published ones last."""
    published = [name for name in means["lines"] if name not in _SHAPES]
    shapes = dict(zip(published, cycle(_PUBLISHED_SHAPES), strict=False))
    return [
        Series(
            name if name in _SHAPES else _PUBLISHED + name,
            tuple(
                (float(at), mean, half_width(mean, errors["lines"][name][at], means["pictures"]))
                for at, mean in means["lines"][name].items()
            ),
            *(_SHAPES | shapes)[name],
        )
        for name in (LABEL, OURS, PLAIN, RESPONSE, *published)
    ]


def figure(means: dict[str, Any], errors: dict[str, Any], config: Settings) -> bytes:
    """PNG of accuracy against epsilon."""
    drawing = empty_drawing(8.6, 4.6)
    axes = utility(
        drawing.add_subplot(),
        series_of(means, errors),
        [Level(name, value) for name, value in means["levels"].items()],
        x_name=f"proved total ε per picture (δ ≤ {config.delta:g}, R = {config.radius:g}; "
        "smaller protects more)",
        y_name="held-out digits read right",
        y_range=(0.0, 1.0),
        title="A server reads a digit from what a device released",
    )
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return png(drawing, dpi=130)


def markdown(means: dict[str, Any], errors: dict[str, Any], seeds: int) -> str:
    """The same as a page."""
    places = list(means["lines"][LABEL])
    rows = [
        f"| {name} | "
        + " | ".join(
            f"{100 * mean:.1f} ± {100 * errors['lines'][name][at]:.1f}" for at, mean in line.items()
        )
        + " |"
        for name, line in sorted(means["lines"].items(), key=lambda item: -item[1][places[1]])
    ]
    return "\n".join(
        [
            "# Digits: accuracy at a proved total",
            "",
            f"Printed by `python -m papers.posthoc.digits_figure --seeds {seeds}`.",
            (
                f"Held-out accuracy in percent, mean of {seeds} seeds and its standard error; "
                f"every seed is scored on {means['pictures']:g} pictures, which adds about "
                f"{100 * math.sqrt(0.2 / means['pictures']):.0f} points. The figure's bars hold "
                "both."
            ),
            "",
            "| released | " + " | ".join(f"epsilon {place}" for place in places) + " |",
            "|---" * (len(places) + 1) + "|",
            *rows,
            "",
            (
                "From embeddings without noise a server is right on "
                f"{100 * means['levels']['no protection']:.1f}, by one class always on "
                f"{100 * means['levels']['one class always']:.1f}. The network of *ours, label "
                "only* is another one, trained for the label alone, and can be better than that."
            ),
            "",
            (
                "*Ours, label only* (by the noisy maximum; [other mechanisms](posthoc-labels.md)) "
                "serves one question; all that release an embedding let a "
                "server ask others. *Noise on the embedding* is this package too, without training "
                "for the noise. *Randomised response* keeps any two pictures from being told "
                "apart, all others pictures whose embeddings lie within R: it is the better "
                "choice wherever it is as accurate. The published obfuscators are trained as in "
                "their papers and released by the same proof as ours."
            ),
            "",
            "![accuracy against epsilon](posthoc-digits.png)",
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="runs, one per seed from 0 on")
    parser.add_argument("--out", type=Path, default=Path("runs/posthoc-digits-figure"))
    options = parser.parse_args(arguments)
    if options.seeds < 2:
        parser.error(f"--seeds={options.seeds}: expected at least 2; one has no standard error")
    configs = [Settings(seed=seed) for seed in range(options.seeds)]
    with bar() as report:
        means, errors = run(load_digits(), configs, options.out, report=report)
    write_result(options.out / "posthoc-digits.md", markdown(means, errors, options.seeds))
    write_result(options.out / "posthoc-digits.png", figure(means, errors, configs[0]))
    print(options.out / "posthoc-digits.md")


if __name__ == "__main__":
    main()
