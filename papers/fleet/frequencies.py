"""Shares of ten labels from shuffled reports: ``python -m papers.fleet.frequencies``.

Each of n devices holds one of ten labels, whose shares fall like 1/rank. The central guarantee is
(epsilon, 1e-6) for one device. Shuffled reports are randomised response at the largest local
epsilon that the shuffled multiset allows. Beside them stand subset selection at the same number as
a local guarantee, which is the best local mechanism for shares, and a trusted curator who adds
Laplace noise to the exact counts. The error is the mean distance of a share from the devices' own.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from papers.result_files import write_result
from papers.seeds import Results, combined, with_error
from reticent.accounting import local_epsilon_for
from reticent.core.guarantees import Replace
from reticent.fleet.estimates import node_shares
from reticent.mechanisms import FiniteChannel
from reticent.noise import SeededSampler

LABELS, DELTA = 10, 1e-6
DEVICES, EPSILONS = (10_000, 100_000), (0.2, 1.0)

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def errors(devices: int, epsilon: float, *, local: float, seed: int) -> Results:
    """Return the mean error of a share in one run, by method.

    Args:
        devices: number of devices.
        epsilon: central epsilon.
        local: local epsilon of the shuffled reports.
        seed: seed of labels and noise.
    """
    random = np.random.default_rng(seed)
    law = 1.0 / np.arange(1, LABELS + 1)
    labels = random.choice(LABELS, size=devices, p=law / law.sum())
    truth = np.bincount(labels, minlength=LABELS) / devices
    response = FiniteChannel.response(LABELS, epsilon=local, adjacency=Replace())
    codes = response.release(labels, sampler=SeededSampler(seed))
    counts = np.bincount(codes, minlength=LABELS)
    even = np.full(LABELS, 1 / LABELS)
    found = {
        "shuffled": node_shares(counts, response.matrix, masses=even, rows=1).values,
        "local": subset_shares(labels, epsilon, random),
        # a replaced device moves two counts by one each
        "curator": truth + random.laplace(scale=2.0 / epsilon, size=LABELS) / devices,
    }
    return {name: float(np.abs(shares - truth).mean()) for name, shares in found.items()}


def subset_shares(labels: Integers, epsilon: float, random: np.random.Generator) -> Array:
    """Return the shares that subset selection tells, with the best size of the subsets.

    A device sends a subset of the labels. Subsets that hold its own are e^epsilon times likelier.

    References:
        - Ye and Barg (2018), "Optimal schemes for discrete distribution estimation under locally
          differential privacy", arXiv:1702.00610.
    """
    size = max(1, round(LABELS / (math.exp(epsilon) + 1)))
    odds = math.exp(epsilon) * size
    holds = odds / (odds + LABELS - size)
    order = random.random((len(labels), LABELS)).argsort(axis=1)
    own = random.random(len(labels)) < holds
    # the other labels of the subset, and the own one where it is held
    others = order[order != labels[:, None]].reshape(len(labels), LABELS - 1)
    wanted = np.where(own, size - 1, size)
    taken = np.arange(LABELS - 1) < wanted[:, None]
    counts = np.bincount(others[taken], minlength=LABELS) + np.bincount(
        labels[own], minlength=LABELS
    )
    strange = (holds * (size - 1) + (1 - holds) * size) / (LABELS - 1)
    return np.asarray((counts / len(labels) - strange) / (holds - strange))


def main() -> None:
    """Print and store the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("docs/results/fleet"))
    given = parser.parse_args()
    lines = [
        "# Shares of ten labels",
        "",
        f"Printed by `python -m papers.fleet.frequencies`, with errors over {given.seeds} runs.",
        "The error is the mean distance of a label's share from that among the devices.",
        "The central guarantee is (epsilon, 1e-6) for one device in all three columns.",
        "",
        "| devices | central epsilon | local epsilon | shuffled | local | trusted curator |",
        "|---|---|---|---|---|---|",
    ]
    results: Results = {}
    for devices in DEVICES:
        for epsilon in EPSILONS:
            local = local_epsilon_for(devices=devices, labels=LABELS, epsilon=epsilon, delta=DELTA)
            mean, error = combined(
                [errors(devices, epsilon, local=local, seed=s) for s in range(given.seeds)]
            )
            results[f"{devices}/{epsilon:g}"] = {"local": local, "mean": mean, "error": error}
            cells = [
                with_error(mean[name], error[name], digits=6)
                for name in ("shuffled", "local", "curator")
            ]
            lines.append(f"| {devices:,} | {epsilon:g} | {local:.3f} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    write_result(given.output / "frequencies.json", json.dumps(results, indent=2))
    write_result(given.output / "frequencies.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
