"""Private-kNN for numbers: ``python -m papers.private_knn.regression``.

The supplement leaves regression open and names a clipped mean. Here a query's answer is the noisy
sum of the clipped targets of its k nearest records of a fresh Poisson sample, over k. Adding one
record swaps at most one neighbour, so the sum moves by at most the width of the range. All answers
together are (epsilon, delta)-private by the account of noisy votes. The target is the elevation of
a Forest Cover cell, from its nine other quantities. Beside it stand 2,000 public rows alone. Noise
and samples are seeded: these releases were not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from papers.datasets import load_covertype
from papers.seeded_command import command_of, leave, seeded_parser
from papers.seeds import combined, with_error
from reticent.accounting import calibrate_private_knn
from reticent.core.arrays import Array
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.noise import SeededSampler

Results = dict[str, Any]

EPSILONS = (0.5, 1.0, 2.0, 4.0)
NEIGHBOURS = (30, 100, 300)
_DELTA = 1e-5
_QUERIES, _PRIVATE, _PUBLIC = 200, 50_000, 2000
_RATE = 0.15
_LOWER, _UPPER = 1800.0, 3900.0  # metres, as on a map of the region
_STEPS = 100  # whole steps on either side of the middle


def measure(seed: int) -> Results:
    """Mean absolute errors in metres for one split."""
    data, random = load_covertype(), np.random.default_rng(seed)
    order = random.permutation(len(data.train_rows))[: _PUBLIC + _PRIVATE]
    rows = data.train_rows[order][:, :10].astype(np.float64)
    asked = data.test_rows[_QUERIES * seed : _QUERIES * (seed + 1), :10].astype(np.float64)
    center, spread = rows[:_PUBLIC, 1:].mean(axis=0), rows[:_PUBLIC, 1:].std(axis=0)
    features, queries = (np.clip((part[:, 1:] - center) / spread, -4, 4) for part in (rows, asked))
    target, truth = rows[:, 0], asked[:, 0]
    middle, step = 0.5 * (_LOWER + _UPPER), 0.5 * (_UPPER - _LOWER) / _STEPS
    # Whole steps from the middle, clipped to the public range.
    steps = np.clip(np.rint((target[_PUBLIC:] - middle) / step), -_STEPS, _STEPS).astype(np.int64)
    grid = PointGrid.of_range(-4.0, 4.0, features=9)
    # The steps travel as labels 0, 1, ..., so that records keep their order.
    records = Records.of(grid.points(features[_PUBLIC:]), steps + _STEPS, None)
    search = NeighbourSearch(records)
    found: Results = {"middle": _error(np.full(_QUERIES, middle), truth)}
    public = KNeighborsRegressor(10).fit(features[:_PUBLIC], target[:_PUBLIC])
    found["public"] = _error(public.predict(queries), truth)
    for neighbours in NEIGHBOURS:
        voters = SampledNeighbours(search, neighbours=neighbours, probability=_RATE)
        sums = []
        for lists in search.lists(grid.points(queries), depth=voters.depth):
            chosen = voters.draw(lists, sampler=SeededSampler(seed))
            values = np.where(chosen >= 0, records.votes[np.maximum(chosen, 0)] - _STEPS, 0)
            sums.append(values.sum(axis=1))
        exact = np.concatenate(sums)
        cells = {"no noise": _error(middle + step * exact / neighbours, truth)}
        for epsilon in EPSILONS:
            sigma = calibrate_private_knn(
                epsilon=epsilon,
                delta=_DELTA,
                queries=_QUERIES,
                answers=_QUERIES,
                neighbours=neighbours,
                sampling_probability=_RATE,
                threshold=None,
                noise_ratio=None,
                vote_sensitivity=2.0 * _STEPS,
                one_label=False,
            ).sigma_votes
            noise = SeededSampler(seed + 1).discrete_gaussian((_QUERIES,), sigma=sigma)
            released = np.clip((exact + noise) / neighbours, -_STEPS, _STEPS)
            cells[f"{epsilon:g}"] = _error(middle + step * released, truth)
        found[f"k = {neighbours}"] = cells
    return found


def _error(predicted: Array, truth: Array) -> float:
    return float(np.abs(predicted - truth).mean())


def markdown(runs: Sequence[Results], command: str) -> str:
    """The page."""
    means, errors = combined(runs)
    head = " | ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    lines = [
        "# Private-kNN for numbers: the elevation of Forest Cover cells",
        "",
        f"Command: `{command}`. Mean absolute error in metres, over {len(runs)} splits ± standard",
        (
            f"errors. {_PRIVATE:,} private records, {_QUERIES} queries, delta {_DELTA:g}, sampling "
            f"rate {_RATE:g}, range {_LOWER:g} to"
        ),
        f"{_UPPER:g} m. Answers are noisy clipped means, private in all together.",
        "",
        f"| answers | no noise | {head} |",
        "|---|---|" + "---|" * len(EPSILONS),
    ]
    for neighbours in NEIGHBOURS:
        mean, error = means[f"k = {neighbours}"], errors[f"k = {neighbours}"]
        cells = " | ".join(
            with_error(mean[name], error[name], digits=0)
            for name in ("no noise", *(f"{epsilon:g}" for epsilon in EPSILONS))
        )
        lines.append(f"| k = {neighbours} | {cells} |")
    public = with_error(means["public"], errors["public"], digits=0)
    middle = with_error(means["middle"], errors["middle"], digits=0)
    empty = " |" * len(EPSILONS)
    lines += [
        f"| ten nearest of {_PUBLIC:,} public rows | {public} |{empty}",
        f"| the middle of the range | {middle} |{empty}",
    ]
    ahead = [
        f"{epsilon:g}"
        for epsilon in EPSILONS
        if min(means[f"k = {k}"][f"{epsilon:g}"] for k in NEIGHBOURS) < means["public"]
    ]
    lines += [
        "",
        f"Ahead of the public rows alone at epsilon: {', '.join(ahead) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the page, print where it is."""
    module = "papers.private_knn.regression"
    parser = seeded_parser(module, __doc__ or "", runs="knn-regression", data=())
    chosen = parser.parse_args(arguments)
    runs = [measure(seed) for seed in chosen.seeds]
    leave(chosen, "regression", runs, markdown(runs, command_of(chosen, module)))


if __name__ == "__main__":
    main()
