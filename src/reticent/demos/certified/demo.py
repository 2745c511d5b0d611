"""The certified demonstration: train, certify, release labels, and see what the certificates are
worth.

Everything is computed here. The bars of accuracy are exact expectations over each mechanism's
randomness; one row per data set is a real release with noise from the operating system.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import positive
from reticent.core.errors import UnknownName
from reticent.demos.certified.chart import Chart
from reticent.demos.certified.expected_accuracy import OURS, PURE, Answers
from reticent.demos.certified.problems import PROBLEMS, problem_of
from reticent.demos.certified.rungs import CONSTANT, PUBLIC, rungs_of
from reticent.systems import CertifiedClassifier
from reticent.training.progress import Report, silent

_EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_SUGGESTED = {"blobs": 0.03, "blobs-close": 0.03, "digits": 1.0, "pneumonia": 0.1, "imdb": 0.1}
_ANSWERS = (1, 10, 100, 1000, 10_000)
_DELTA = 1e-5
_TOTAL = 1.0
"""Epsilon of many answers together."""
_OPENED = 200
"""Records that are made public where a problem has no public rows of its own."""

DEMO_PROBLEMS = tuple(name for name in PROBLEMS if name in _SUGGESTED)
"""Problems that have a demonstration; blobs are generated and digits come with scikit-learn, the
others need files.
"""


@dataclass(frozen=True, eq=False)
class CertifiedOutcome:
    """What a demonstration found.

    Attributes:
        results: plain values for JSON.
        accuracy: accuracy against epsilon.
        fraction: certified fraction against k.
        many: accuracy against the number of answers, at one total.
        classifier: the fitted system at the demonstration's epsilon.
        held_out: queries, for trying the bundle.
    """

    results: dict[str, Any]
    accuracy: Chart
    fraction: Chart
    many: Chart
    classifier: CertifiedClassifier
    held_out: npt.NDArray[np.float64]


def run_certified_demo(
    data: str, *, epsilon: float | None = None, report: Report = silent
) -> CertifiedOutcome:
    """Trains on private records, certifies, releases labels of held-out queries, and compares with
    what was published.

    Args:
        data: one of ``DEMO_PROBLEMS``.
        epsilon: of one answer, or None for one that suits the data.
        report: told after each stage.

    Raises:
        UnknownName: no demonstration for that data.
        DataUnavailable: its files are missing.
    """
    if data not in _SUGGESTED:
        raise UnknownName(f"data={data!r}: expected one of {', '.join(DEMO_PROBLEMS)}")
    chosen = _SUGGESTED[data] if epsilon is None else positive(epsilon, name="epsilon")
    problem = problem_of(data)
    if not len(problem.public_rows):
        problem = problem.opened(_OPENED)
    report("certified demonstration", 1, 4, float("nan"))
    seconds: dict[str, float] = {}
    start = process_time()
    system = problem.system()
    assert isinstance(system, CertifiedClassifier)
    system.set_params(epsilon=chosen)
    system.fit(problem.X, problem.y)
    seconds[f"training and certificates for every k from 0 to {problem.k_max}"] = (
        process_time() - start
    )
    report("certified demonstration", 2, 4, float("nan"))
    start = process_time()
    labels, distances = system.stable_distances(problem.queries)
    seconds[f"stable distances of {len(labels):,} queries"] = process_time() - start
    answers = Answers(labels, distances, labels[None], problem.truth, problem.classes)
    start = process_time()
    released = system.release(problem.queries)
    seconds[f"release of {len(labels):,} labels"] = process_time() - start
    report("certified demonstration", 3, 4, float("nan"))

    epsilons = sorted({*_EPSILONS, chosen})
    start = process_time()
    rungs = rungs_of(problem, answers, epsilons=epsilons, total=_TOTAL)
    seconds["the other methods, tuned on public rows"] = process_time() - start
    report("certified demonstration", 4, 4, float("nan"))

    names = list(PURE) if problem.classes == 2 else [OURS]
    series = {name: [(value, PURE[name](answers, value)) for value in epsilons] for name in names}
    levels = {PUBLIC: rungs.public, CONSTANT: rungs.constant}
    many = Chart(
        f"Accuracy against the number of answers: {data}",
        f"answers, together epsilon = {_TOTAL:g} at delta = {_DELTA:g}",
        "accuracy on held-out queries",
        rungs.many,
        {"noise-free": answers.noise_free, **levels},
        y_range=(0.0, 1.02),
    )
    accuracy = Chart(
        f"Accuracy against epsilon: {data}",
        "epsilon of one answer (smaller protects more)",
        "accuracy on held-out queries",
        {**series, **rungs.one},
        {"noise-free": answers.noise_free, **levels},
        y_range=(0.0, 1.02),
        notes=(problem.about,),
    )
    places = [k for k in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 600) if k <= problem.k_max]
    fraction = Chart(
        f"Labels that survive k changed records: {data}",
        "changed records k",
        "share of queries",
        {"ours: certified": [(float(k), float((distances >= k).mean())) for k in places]},
        y_range=(0.0, 1.02),
    )
    received = np.asarray(released.values)
    results = {
        "data": {
            "name": data,
            "about": problem.about,
            "records": len(problem.X),
            "queries": len(labels),
        },
        "classes": problem.classes,
        "epsilon": chosen,
        "accuracy_noise_free": answers.noise_free,
        "accuracy_released": float((received == problem.truth).mean()),
        "accuracy_at_epsilon": {
            **{name: PURE[name](answers, chosen) for name in names},
            **rungs.accuracies(chosen),
        },
        "public_rows": len(problem.public_rows),
        "median_distance": float(np.median(distances)),
        "k_max": problem.k_max,
        "guarantee": system.guarantee.to_dict(),
        "totals": [
            {
                "answers": count,
                "epsilon": system.total(answers=count, delta=_DELTA).epsilon,
                "delta": _DELTA,
            }
            for count in _ANSWERS
        ],
        "accuracy": accuracy.to_dict(),
        "fraction": fraction.to_dict(),
        "many": many.to_dict(),
        "many_others": rungs.others,
        "sampler": released.receipt.sampler,
        "cpu_seconds": {name: round(value, 2) for name, value in seconds.items()},
    }
    return CertifiedOutcome(results, accuracy, fraction, many, system, problem.queries)
