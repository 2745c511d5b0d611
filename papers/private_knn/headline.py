"""The Private-kNN paper's headline, with totals that hold: ``python -m papers.private_knn.headline
--data mnist``.

Private records are the training part; public pictures the first nine tenths of the held-out
part, whose labels are read for scoring only; students are scored on the last tenth, which
nothing else sees. Rows: Private-kNN calibrated to a total, in rounds; the paper's own setting at
what it really costs; PATE on the same features at the calibrated total, by Gaussian noise with
confident aggregation and by Laplace noise. Every row ends with the same kind of student, and is
cached in the folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from papers.datasets import load
from papers.private_knn.pate_teachers import PateTeachers
from papers.private_knn.query_choice import representatives
from papers.private_knn.reduced_features import ReducedFeatures
from papers.private_knn.students import (
    Student,
    StudentConfig,
    UnitLength,
    as_printed,
    train_student,
)
from papers.result_files import write_result
from reticent.accounting import PrivateKnnSteps, calibrate_private_knn, epsilon_per_answer
from reticent.core.arrays import Integers
from reticent.core.guarantees import AddRemove, Unit
from reticent.datasets import Dataset
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.noise import SecureSampler
from reticent.systems.private_knn.inputs import feature_map_of, grid_of
from reticent.systems.private_knn.plan import UNANSWERED, KnnNoise
from reticent.training.features import (
    FeatureMap,
    ModuleFeatures,
    Origin,
    upright,
)
from reticent.training.progress import Report, bar, silent

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

DELTA = 1e-5
PUBLISHED: dict[str, str] = {
    "mnist": "published: epsilon 0.47, accuracy 98.8 % (735 labels); PATE 1.97, 98.5 % (286 "
    "labels); without privacy 99.2 %",
    "fashion": "not in the paper",
    "cifar10": "not in the paper; here 10,000 private records only",
}


TUNED = ("mnist", "digits")
"""Data sets whose settings were chosen by looking at private labels."""


@dataclass(frozen=True)
class HeadlineSettings:
    """Settings of one data set, fixed before a run.

    Those of "mnist" and "digits" were tuned on a split of the training part, whose labels are
    private; no epsilon pays for that.

    Attributes:
        image_shape: channels, height, width.
        features: name of the first round's feature map, or None for the pixels.
        upright: whether every picture, private or public, is sheared upright first, each by itself.
        reduce_to: principal directions of the first round's features.
        epsilon: total of the calibrated row and of PATE.
        rounds: queries of each round.
        neighbours, sampling_probability: of Private-kNN.
        teachers: of PATE.
        student: settings of the students.
        last_epochs: of the student that is scored.
    """

    image_shape: tuple[int, int, int]
    features: str | None
    upright: bool
    reduce_to: int
    epsilon: float
    rounds: tuple[int, ...]
    neighbours: int
    sampling_probability: float
    teachers: int
    student: StudentConfig
    last_epochs: int


def settings_of(data: str) -> HeadlineSettings:
    """The settings of ``data``: digits, mnist, fashion or cifar10."""
    written = HeadlineSettings(
        image_shape=(1, 28, 28),
        features="hog",
        upright=True,
        reduce_to=40,
        epsilon=0.5,
        rounds=(150, 250),
        neighbours=150,
        sampling_probability=0.15,
        teachers=250,
        student=StudentConfig(
            image_shape=(1, 28, 28),
            channels=(16, 32),
            epochs=12,
            learning_rate=3e-3,
            confidence=0.9,
        ),
        last_epochs=30,
    )
    if data == "mnist":
        return written
    if data == "digits":
        small = StudentConfig(
            image_shape=(1, 8, 8),
            channels=(16, 32),
            hidden=(64,),
            epochs=150,
            batch_size=64,
            learning_rate=5e-3,
            turn=0.1,
        )
        return replace(
            written,
            image_shape=(1, 8, 8),
            features=None,
            reduce_to=20,
            upright=False,
            epsilon=4.0,
            rounds=(60, 40),
            neighbours=50,
            sampling_probability=0.5,
            teachers=30,
            student=small,
            last_epochs=150,
        )
    if data == "fashion":
        clothes = replace(written.student, turn=0.05, zoom=0.1, shift=0.07, flips=True)
        return replace(written, upright=False, epsilon=1.0, rounds=(300,), student=clothes)
    photographs = StudentConfig(
        image_shape=(3, 32, 32),
        channels=(16, 32),
        epochs=12,
        learning_rate=3e-3,
        turn=0.1,
        shift=0.1,
        flips=True,
    )
    return replace(
        written,
        image_shape=(3, 32, 32),
        upright=False,
        epsilon=2.0,
        rounds=(400,),
        neighbours=60,
        teachers=50,
        student=photographs,
    )


@dataclass(frozen=True, eq=False)
class Parts:
    """Flat pictures of the three parts, with labels; those of ``public`` and ``scored`` are for
    scoring only.
    """

    private: Array
    codes: Integers
    public: Array
    public_truth: Integers
    scored: Array
    scored_truth: Integers
    classes: int


def parts_of(data: Dataset, settings: HeadlineSettings) -> Parts:
    """The private, the public and the scored part."""

    def straight(rows: Array) -> Array:
        if not settings.upright:
            return rows
        shape = settings.image_shape[1:]
        return np.clip(np.stack([upright(row.reshape(shape)).reshape(-1) for row in rows]), 0, 1)

    test = straight(data.test_rows)
    cut = 9 * len(test) // 10
    return Parts(
        straight(data.train_rows),
        data.train_labels,
        test[:cut],
        data.test_labels[:cut],
        test[cut:],
        data.test_labels[cut:],
        data.classes,
    )


def calibrated(parts: Parts, settings: HeadlineSettings, seed: int, report: Report) -> Results:
    """Private-kNN in rounds at the required total.

    A round asks for the middles of clusters, in the features of the student before it, and leaves
    out the labels that this student contradicts: its features were worse.
    """
    plan = KnnNoise.of(
        epsilon=settings.epsilon,
        delta=DELTA,
        queries=sum(settings.rounds),
        answers=None,
        neighbours=settings.neighbours,
        sampling_probability=settings.sampling_probability,
        threshold=None,
        classes=parts.classes,
        adjacency=AddRemove(1, Unit.RECORD),
    )
    features = _features(parts, settings)
    labels = np.full(len(parts.public), UNANSWERED, dtype=np.int64)
    lessons, rounds, asked = labels.copy(), [], np.zeros(0, dtype=np.int64)
    student: Student | None = None
    for number, wanted in enumerate(settings.rounds):
        lessons = labels.copy()
        if student is not None:
            features = ModuleFeatures(
                torch.nn.Sequential(student.features, UnitLength()),
                settings.image_shape,
                Origin.RELEASED,
            )
            contradicted = student.probabilities(parts.public).argmax(axis=1) != labels
            lessons[asked[contradicted[asked]]] = UNANSWERED
        public = features.features(parts.public)
        places = representatives(public, wanted, asked=asked, seed=seed + number)
        grid = PointGrid.around(public)
        voters = SampledNeighbours(
            NeighbourSearch(
                Records.of(grid.points(features.features(parts.private)), parts.codes, None)
            ),
            neighbours=settings.neighbours,
            probability=settings.sampling_probability,
        )
        answers = plan.answer(grid.points(public[places]), voters, sampler=SecureSampler())
        labels[places] = lessons[places] = answers
        rounds.append(float((answers == parts.public_truth[places]).mean()))
        asked = np.concatenate([asked, places])
        last = number == len(settings.rounds) - 1
        epochs = settings.last_epochs if last else settings.student.epochs
        student = train_student(
            parts.public,
            lessons,
            classes=parts.classes,
            config=replace(settings.student, epochs=epochs, seed=seed + number),
            report=report,
        )
    assert student is not None
    return {**_scores(student, parts), **_cost(plan), "released right, by round": rounds}


def as_in_the_paper(parts: Parts, settings: HeadlineSettings, seed: int, report: Report) -> Results:
    """The paper's MNIST setting, one round: k 300, sampling 0.15, threshold 180, sigma 75 and
    25, 735 labels of 1,000 queries.
    """
    places = np.random.default_rng(seed).permutation(len(parts.public))[:1000]
    steps = PrivateKnnSteps(
        queries=len(places),
        answers=min(735, len(places)),
        neighbours=300,
        sampling_probability=0.15,
        threshold=180.0,
        sigma_votes=25.0,
        sigma_screening=75.0,
    )
    plan = KnnNoise(steps, DELTA, parts.classes)
    features = _features(parts, settings)
    private, asked = (features.features(rows) for rows in (parts.private, parts.public[places]))
    grid = grid_of(None, features, private.shape[1], None)
    voters = SampledNeighbours(
        NeighbourSearch(Records.of(grid.points(private), parts.codes, None)),
        neighbours=steps.neighbours,
        probability=steps.sampling_probability,
    )
    released = plan.answer(grid.points(asked), voters, sampler=SecureSampler())
    released[np.cumsum(released != UNANSWERED) > steps.answers] = UNANSWERED
    return _taught(released, places, parts, settings, seed, report, plan)


def pate(
    parts: Parts, settings: HeadlineSettings, seed: int, report: Report, *, laplace: bool
) -> Results:
    """PATE at the required total, on the same features and as many queries as the calibrated row
    asks.
    """
    features = _features(parts, settings)
    public = features.features(parts.public)
    queries = sum(settings.rounds)
    places = representatives(public, queries, asked=[], seed=seed)
    teachers = PateTeachers.of(
        features.features(parts.private),
        parts.codes,
        None,
        teachers=settings.teachers,
        classes=parts.classes,
        public_features=public,
        ridge=1.0,
    )
    votes = teachers.votes(public[places])
    sampler = SecureSampler()
    if laplace:
        # One record moves a vote, so two counts by 1: noise of scale 2 / epsilon makes one label
        # epsilon-private.
        scale = 2.0 / epsilon_per_answer(epsilon=settings.epsilon, delta=DELTA, answers=queries)
        released = (votes + sampler.discrete_laplace(votes.shape, scale=scale)).argmax(axis=1)
        outcome = _taught(released, places, parts, settings, seed, report, None)
        return {
            **outcome,
            "epsilon": settings.epsilon,
            "scale": scale,
            "bound": "optimal composition of pure costs",
        }
    threshold = 0.5 * settings.teachers
    steps = calibrate_private_knn(
        epsilon=settings.epsilon,
        delta=DELTA,
        queries=queries,
        answers=queries,
        neighbours=settings.teachers,
        sampling_probability=1.0,
        threshold=threshold,
        noise_ratio=3.0,
    )
    plan = KnnNoise(steps, DELTA, parts.classes)
    assert plan.screening is not None
    passed = plan.screening.release(votes.max(axis=1), sampler=sampler)
    released = np.full(queries, UNANSWERED, dtype=np.int64)
    released[passed] = plan.argmax.release(votes[passed], sampler=sampler)
    return _taught(released, places, parts, settings, seed, report, plan)


_PRINTED = "Private-kNN, calibrated, the paper's network"

ROWS: dict[str, Callable[[Parts, HeadlineSettings, int, Report], Results]] = {
    "Private-kNN, calibrated": calibrated,
    "Private-kNN, the paper's setting": as_in_the_paper,
    _PRINTED: lambda parts, settings, seed, report: calibrated(
        parts, replace(settings, student=as_printed(settings.student)), seed, report
    ),
    "PATE, Gaussian noise, confident": lambda *given: pate(*given, laplace=False),
    "PATE, Laplace noise": lambda *given: pate(*given, laplace=True),
}


def _features(parts: Parts, settings: HeadlineSettings) -> FeatureMap:
    return ReducedFeatures.of(
        feature_map_of(settings.features, settings.image_shape),
        parts.public,
        dimension=settings.reduce_to,
    )


def _taught(
    released: Integers,
    places: Integers,
    parts: Parts,
    settings: HeadlineSettings,
    seed: int,
    report: Report,
    plan: KnnNoise | None,
) -> Results:
    """The student of one round of released labels, scored."""
    lessons = np.full(len(parts.public), UNANSWERED, dtype=np.int64)
    lessons[places] = released
    answered = released != UNANSWERED
    if not answered.any():
        return {"labels": 0, **({} if plan is None else _cost(plan))}
    config = replace(settings.student, epochs=settings.last_epochs, seed=seed)
    student = train_student(
        parts.public, lessons, classes=parts.classes, config=config, report=report
    )
    right = float((released[answered] == parts.public_truth[places][answered]).mean())
    return {
        **_scores(student, parts),
        **({} if plan is None else _cost(plan)),
        "labels": int(answered.sum()),
        "queries": len(places),
        "released right": right,
    }


def _scores(student: Student, parts: Parts) -> Results:
    def accuracy(pictures: Array, truth: Integers) -> float:
        return float((student.probabilities(pictures).argmax(axis=1) == truth).mean())

    return {
        "accuracy": accuracy(parts.scored, parts.scored_truth),
        "accuracy on public pictures": accuracy(parts.public, parts.public_truth),
    }


def _cost(plan: KnnNoise) -> Results:
    return {
        "epsilon": plan.total.epsilon,
        "delta": plan.delta,
        "bound": plan.total.bound,
        "queries": plan.steps.queries,
        "sigma of votes": plan.steps.sigma_votes,
        "sigma of screening": plan.steps.sigma_screening,
    }


_TUNED = "Settings were tuned on a split of the private training part, which no epsilon pays for."


def table(data: str, rows: dict[str, Results]) -> str:
    """The results as Markdown."""
    lines = [
        f"# Private-kNN on {data}",
        "",
        f"`python -m papers.private_knn.headline --data {data}`; delta = {DELTA:g};",
        f"{PUBLISHED.get(data, 'not in the paper')}.",
        "",
        "Epsilon covers what a run releases. "
        + (_TUNED if data in TUNED else "Settings were not tuned."),
        "",
        (
            "| row | epsilon | queries | labels right | student, unseen pictures | student, public "
            "pictures (transductive) | bound |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        rounds = row.get(
            "released right, by round", [row["released right"]] if "released right" in row else []
        )
        right = ", ".join(f"{share:.1%}" for share in rounds) or "none released"
        scores = [
            f"{row[key]:.1%}" if key in row else "-"
            for key in ("accuracy", "accuracy on public pictures")
        ]
        asked = row.get("queries", "-")
        lines.append(
            f"| {name} | {row['epsilon']:.3f} | {asked} | {right} | {scores[0]} | {scores[1]} "
            f"| {row['bound']} |"
        )
    return "\n".join(lines) + "\n"


def run(
    data: str, names: list[str], *, folder: Path, seed: int, report: Report = silent
) -> dict[str, Results]:
    """The rows called ``names``, each computed once and kept in ``folder``."""
    settings = settings_of(data)
    path = folder / f"headline-{data}.json"
    rows: dict[str, Results] = json.loads(path.read_text()) if path.is_file() else {}
    missing = [name for name in names if name not in rows]
    if missing:
        parts = parts_of(load(data), settings)
        for name in missing:
            rows[name] = ROWS[name](parts, settings, seed, report)
            write_result(path, json.dumps(rows, indent=2, allow_nan=False) + "\n")
    return {name: rows[name] for name in ROWS if name in rows}


def main() -> None:
    """Runs the rows and writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", choices=("digits", "mnist", "fashion", "cifar10"), default="digits"
    )
    parser.add_argument(
        "--rows",
        nargs="*",
        default=[name for name in ROWS if name != _PRINTED],
        choices=list(ROWS),
        help="default: all but that of the paper's network, which takes an hour on MNIST",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/knn"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with bar() as report:
        rows = run(
            arguments.data, arguments.rows, folder=arguments.out, seed=arguments.seed, report=report
        )
    text = table(arguments.data, rows)
    write_result(arguments.out / f"headline-{arguments.data}.md", text)
    print(text)


if __name__ == "__main__":
    main()
