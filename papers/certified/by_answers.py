"""Answers one by one on the tables of ``papers.choose.left_out``: ``python -m
papers.certified.by_answers --tables FOLDER``.

Each way of answering is fitted on the private records of a split, beside labelled public rows, and
answers rows that had no part in it, at one total and several numbers of answers. The released model
of ``PublicStartClassifier`` and the public models alone, whose labels cost nothing more however
many there are, stand beside them. Settings follow from public numbers. Accuracies are means over
draws of the noise. A way is *at the top* where it is within one standard error of the best, on the
scored rows. It is *alone ahead* where it is more than that ahead of all other ways to answer one by
one. Cases are kept in ``--cache``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from papers.certified.beside_public import Kept
from papers.choose.left_out import DELTA, Rows, rows_of, task_of
from papers.choose.sources import DATA, Source, table_of
from papers.result_files import cached_result
from reticent.core.arrays import Integers
from reticent.core.guarantees import AddRemove
from reticent.neighbours import PointGrid
from reticent.neighbours.exhaustive import Exhaustive
from reticent.noise import SeededSampler
from reticent.planning.tasks import Task
from reticent.release.fits import not_counted
from reticent.systems import (
    CertifiedNetwork,
    ConvexCertifiedClassifier,
    HiddenLayer,
    LinearVoteClassifier,
)
from reticent.systems.certified.choosing import calibrated_choice, enough_distance
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession
from reticent.systems.private_knn.radii import kernels_by_share
from reticent.systems.votes.public_start import PublicStartClassifier

TOTALS = (0.1, 1.0, 10.0)
ANSWERS = (1, 10, 100, 1000, 10_000)
SEEDS = (1, 2, 3)
SCORED = 1000
SMALL = 1000
_SHARE = 0.05

Case = dict[str, float]
"""Accuracy by total and number of answers, joined by a space."""


def _key(epsilon: float, answers: int) -> str:
    return f"{epsilon:g} {answers}"


def _tasks(rows: Rows) -> Iterator[Task]:
    for epsilon in TOTALS:
        for answers in ANSWERS:
            plain = task_of(rows, epsilon)
            yield Task(**{**vars(plain), "answers": answers})


def _common(rows: Rows) -> dict[str, Any]:
    return {"epsilon": 1.0, "delta": DELTA, "classes": range(rows.classes)}


def _votes(rows: Rows, **settings: Any) -> Case:
    found: Case = {}
    for task in _tasks(rows):
        epsilon, answers = task.guarantee.epsilon, task.answers or 1
        vote = LinearVoteClassifier(
            **{**_common(rows), "epsilon": epsilon}, answers=answers, **settings
        ).fit(rows.private, rows.labels[1], public_X=rows.public, public_y=rows.labels[0])
        told = vote.simulate_totals(rows.scored, totals=[(epsilon, DELTA, answers)], seeds=SEEDS)
        found[_key(epsilon, answers)] = float((told == rows.labels[2]).mean())
    return found


def plain_vote(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of the linear vote that has no public models."""
    return _votes(rows, clip_quantile=0.6)


def residual_vote(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of the linear vote beside public models."""
    return _votes(rows, features=reference)


def _certified(rows: Rows, made: Callable[[Task], Any]) -> Case:
    found: Case = {}
    kept: dict[str, tuple[Integers, Integers]] = {}
    for task in _tasks(rows):
        epsilon, answers = task.guarantee.epsilon, task.answers or 1
        system = made(task)
        name = repr(getattr(system, "regularization", None))
        if name not in kept:
            system.fit(rows.private, rows.labels[1], public_X=rows.public, public_y=rows.labels[0])
            kept[name] = system.query_.stable_distances(system.checked(rows.scored))
        mechanism: Any = calibrated_choice(
            "auto", classes=rows.classes, epsilon=epsilon, delta=DELTA, answers=answers
        ).mechanism(rows.classes, AddRemove())
        told = [mechanism.release(*kept[name], sampler=SeededSampler(seed)) for seed in SEEDS]
        found[_key(epsilon, answers)] = float((np.stack(told) == rows.labels[2]).mean())
    return found


def convex(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of the convex certificate beside public models.

    Its regularization is the distance at which 19 of 20 labels are right.
    """
    features = reference.start(rows.public, rows.labels[0], rows.classes)[0].space.dimension

    def made(task: Task) -> ConvexCertifiedClassifier:
        needed = enough_distance(
            classes=rows.classes,
            epsilon=task.guarantee.epsilon,
            delta=DELTA,
            answers=task.answers or 1,
        )
        return ConvexCertifiedClassifier(
            epsilon=1.0,
            classes=range(rows.classes),
            regularization=max(needed, features / 30.0),
            features=reference,
        )

    return _certified(rows, made)


def hidden(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of the hidden layer beside public models, by what IMDB's rows chose."""
    training = HiddenLayer(
        records=len(rows.private), reach=48.0, steps=14, spread=0.05, random_state=0
    )
    return _certified(
        rows,
        lambda task: CertifiedNetwork(
            epsilon=1.0,
            classes=range(rows.classes),
            training=training,
            features=reference.trusted(0.25),
        ),
    )


def neighbours(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of individual kNN, whose balls hold a twentieth of the public rows.

    Of fewer answers than rows, each part of the rows is asked of whole budgets.
    """
    grid = PointGrid.around(rows.public)
    points, asked = grid.points(rows.private), grid.points(rows.scored)
    near = Exhaustive.of(grid.points(rows.public))
    kernels = kernels_by_share(asked, near, len(rows.public), share=_SHARE, power=1)
    found: Case = {}
    for task in _tasks(rows):
        answers = task.answers or 1
        votes = max(1.0, 0.3 * _SHARE * answers)
        plan = IndividualNoise.of(
            epsilon=task.guarantee.epsilon,
            delta=DELTA,
            classes=rows.classes,
            votes=votes,
            looks=(1,),
            lead=1.0,
            adjacency=AddRemove(),
        )
        size = min(len(asked), answers)
        told = np.empty((len(SEEDS), len(asked)), dtype=np.int64)
        for draw, seed in enumerate(SEEDS):
            sampler = SeededSampler(seed)
            for first in range(0, len(asked), size):
                some = slice(first, first + size)
                session = IndividualSession(
                    plan, noise_scale=1.0, cap_scale=max(size / answers, 1.0 / votes)
                )
                held = HeldRecords(session.filter, dimension=grid.dimension, by_person=False)
                held.insert([points], rows.labels[1], None)
                told[draw, some] = session.answer(held, asked[some], kernels[some], sampler=sampler)
        found[_key(task.guarantee.epsilon, answers)] = float((told == rows.labels[2]).mean())
    return found


def released(rows: Rows, reference: Kept) -> Case:
    """Return accuracies of the released model, at any number of answers."""
    model = PublicStartClassifier(**_common(rows), rows=rows.kind, records=len(rows.private))
    fits = model.simulate_fits(
        rows.private,
        rows.labels[1],
        totals=[(epsilon, DELTA) for epsilon in TOTALS],
        seeds=SEEDS,
        public_X=rows.public,
        public_y=rows.labels[0],
    )
    found: Case = {}
    for epsilon in TOTALS:
        right = [(next(fits).predict(rows.scored) == rows.labels[2]).mean() for _ in SEEDS]
        found |= {_key(epsilon, answers): float(np.mean(right)) for answers in ANSWERS}
    return found


def public_alone(rows: Rows, reference: Kept) -> Case:
    """Return the accuracy of the public models alone."""
    start = reference.start(rows.public, rows.labels[0], rows.classes)[0]
    logs = PublicStartEmbedding(start, reference).embed(rows.scored)[:, -rows.classes :]
    right = float((logs.argmax(axis=1) == rows.labels[2]).mean())
    return {_key(epsilon, answers): right for epsilon in TOTALS for answers in ANSWERS}


WAYS: dict[str, Callable[[Rows, Kept], Case]] = {
    "public models alone": public_alone,
    "public start, a released model": released,
    "linear vote": plain_vote,
    "linear vote beside public models": residual_vote,
    "convex certificate beside public models": convex,
    "hidden layer beside public models": hidden,
    "individual kNN": neighbours,
}


ONE_BY_ONE = tuple(WAYS)[2:]


def one_case(name: str, source: Source, split: int, cache: Path) -> Case:
    """Return accuracies of all ways on one split of one table; each way is kept in ``cache``."""
    rows = rows_of(source, split)
    rows = replace(
        rows, scored=rows.scored[:SCORED], labels=(*rows.labels[:2], rows.labels[2][:SCORED])
    )
    reference = Kept(rows=rows.kind, records=len(rows.private))
    found: Case = {}
    with not_counted("a comparison on public data sets"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for way, of in WAYS.items():
            path = cache / f"by-answers-{name}-{split}-{way.replace(' ', '-')}.json"
            case = cached_result(path, partial(of, rows, reference))
            found |= {f"{way}|{key}": value for key, value in case.items()}
    return {**found, "scored": len(rows.scored), "private": len(rows.private)}


def table(cases: dict[str, Case]) -> str:
    """Return Markdown: how far each way is behind the best, and how often it is at the top."""
    lines = [
        "| total, answers | way | behind the best, mean | worst | at the top | alone ahead |",
        "|---|---|---|---|---|---|",
    ]
    for epsilon in TOTALS:
        for answers in ANSWERS:
            key = _key(epsilon, answers)
            scores = {
                way: np.array([case[f"{way}|{key}"] for case in cases.values()]) for way in WAYS
            }
            best = np.max(list(scores.values()), axis=0)
            error = np.sqrt(best * (1 - best) / [case["scored"] for case in cases.values()])
            for way, own in scores.items():
                behind = 100 * (best - own)
                others = [scores[one] for one in ONE_BY_ONE if one != way]
                ahead = int((own - np.max(others, axis=0) > error).sum())
                lines.append(
                    f"| {epsilon:g}, {answers:,} | {way} | {behind.mean():.2f} ± "
                    f"{behind.std(ddof=1) / len(behind) ** 0.5:.2f} | {behind.max():.2f} | "
                    f"{int((best - own <= error).sum())} of {len(behind)} | "
                    f"{ahead if way in ONE_BY_ONE else ''} |"
                )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print the table and each case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=Path, help="CSV files of papers.choose.export_outcomes")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU time; later cases wait")
    parser.add_argument("--cache", type=Path, default=Path("runs/certified/cache"))
    chosen = parser.parse_args(arguments)
    sources = dict(DATA)
    for path in sorted(chosen.tables.glob("*.csv")) if chosen.tables else ():
        sources[path.stem] = partial(table_of, path)
    cases: dict[str, Case] = {}
    for name, load in sources.items():
        source = load()
        for split in range(chosen.splits):
            if len(source.labels) >= SMALL and time.process_time() < chosen.seconds:
                cases[f"{name} {split}"] = one_case(name, source, split, chosen.cache)
    print(table(cases))
    print("\n| table | private | " + " | ".join(WAYS) + " |\n" + "|---" * (len(WAYS) + 2) + "|")
    for name, case in cases.items():
        cells = [
            " ".join(f"{100 * case[f'{way}|{_key(1.0, answers)}']:.1f}" for answers in ANSWERS)
            for way in WAYS
        ]
        print(f"| {name} | {case['private']:,.0f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
