"""The Private-kNN demonstration: a student learns from public pictures that private ones label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier

from reticent.core.guarantees import Guarantee
from reticent.datasets import Dataset
from reticent.demos.page import Demonstration, Fact, Pictures, Section, comparison
from reticent.release.fits import not_counted
from reticent.systems import Neighbours, PrivateKNNStudent
from reticent.systems.features import Features
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.training.progress import Report, silent
from reticent.training.students import StudentConfig

OURS = "student of Private-kNN, a model to publish"
BARE = "no protection: the nearest private records"
CONSTANT = "the most frequent answer"
_PRIVATE_SHARE = 0.8
_COMPONENTS = 40
_SHOWN = 12

_WAYS = """Each method is a release of its own at the same ε and δ, scored on held-out pictures.
Nothing was tuned for them. A model to publish answers any number of queries. Labels are released
one by one. If another method is better, take it: votes pay off if few queries have to be
answered. The command reticent plan tries all of them on public rows."""


def suggested(data: str, *, seed: int) -> PrivateKNNStudent:
    """Return settings for looking around: "digits" in seconds, "mnist" and "fashion" in minutes."""
    if data == "digits":
        config = StudentConfig(
            image_shape=(1, 8, 8),
            channels=(16, 32),
            width=64,
            epochs=150,
            batch_size=64,
            learning_rate=5e-3,
            turn=0.1,
        )
        return PrivateKNNStudent(
            epsilon=4.0,
            delta=1e-5,
            queries=(60, 40),
            neighbours=Neighbours(number=50, sampling_probability=0.5),
            features=Features(components=20),
            student=config,
            classes=range(10),
            random_state=seed,
        )
    config = StudentConfig(
        image_shape=(1, 28, 28), channels=(8, 16), width=64, epochs=6, learning_rate=4e-3
    )
    return PrivateKNNStudent(
        epsilon=1.0,
        delta=1e-5,
        queries=(300,),
        neighbours=Neighbours(number=150, sampling_probability=0.15),
        features=Features(map="upright hog" if data == "mnist" else "hog", components=40),
        student=config if data == "mnist" else replace(config, turn=0.05, flips=True),
        classes=range(10),
        random_state=seed,
    )


def run_demo(
    data: Dataset, student: PrivateKNNStudent, *, report: Report = silent
) -> Demonstration:
    """Fit a student by private votes, and compare it with other methods.

    Four fifths of the training part are private. The labels of the rest are read for scoring only.

    Args:
        data: pictures of one plane.
        student: the student with its settings, not fitted.
        report: receiver of the progress of training.
    """
    cut = round(_PRIVATE_SHARE * len(data.train_images))
    public, truth = data.train_images[cut:], data.train_labels[cut:]
    student.fit(data.train_images[:cut], data.train_labels[:cut], public=public, report=report)
    asked = np.concatenate(student.rounds_)
    released, guarantee = student.released_[asked], student.guarantee
    steps = student.plan_.steps
    results: dict[str, Any] = {
        "data": data.name,
        "private records": cut,
        "public pictures": len(public),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "queries": steps.queries,
        "neighbours": steps.neighbours,
        "sampling probability": steps.sampling_probability,
        "sigma of votes": steps.sigma_votes,
        "released right": float((released == truth[asked]).mean()),
        "student": float((student.predict(data.test_images) == data.test_labels).mean()),
        "others": rivals_of(data, cut, guarantee),
    }
    said = f"epsilon {guarantee.epsilon:.3g} at delta {guarantee.delta:g}"
    return Demonstration(
        data=data.name,
        title="A model to publish, from records that stay private",
        lead="""A guarantee limits what the labels and the model tell anyone about a single private
        record, whatever else they know. Private pictures vote on the labels of public ones. For
        each vote a fresh random part of the private records is drawn, the nearest of them vote, and
        the counts get noise. Only the winning label is released. A student model learns from these
        labels.""",
        facts=[
            Fact(
                results["student"],
                "of held-out pictures are classified right by a student that never saw a private "
                "one",
                "ours",
            ),
            Fact(
                results["released right"],
                f"of the {steps.queries} released labels are right",
                "label",
            ),
            Fact(
                results["others"][CONSTANT],
                "of held-out pictures are right if the answer is always the same class",
            ),
            Fact(
                results["others"][BARE],
                "are right by the nearest private records, without protection",
            ),
        ],
        notes=f"""Everything released costs ε = {guarantee.epsilon:.3g} together, at δ =
        {guarantee.delta:g}. {cut:,} records are private and {len(public):,} pictures are public.
        Each record takes part in a vote with probability {steps.sampling_probability:g}. The
        {steps.neighbours} nearest of them vote, and each count of votes gets noise of standard
        deviation {steps.sigma_votes:.4g}. A student can be right more often than the labels it
        learnt from: wrong labels are scattered, and it learns what the others have in common.""",
        sections=[
            Section(
                "What was asked, and what was answered",
                "Each public picture has its released label, and the true one if that is wrong.",
                [_answers(public[asked], released, truth[asked])],
            ),
            comparison(
                "Other ways, at the same total",
                _WAYS,
                {OURS: results["student"], **results["others"]},
                ours=OURS,
            ),
        ],
        system=student,
        results=results,
        summary=f"student {results['student']:.1%} right, labels {results['released right']:.1%} "
        f"right, {results['others'][CONSTANT]:.1%} by a constant, {said}",
    )


def rivals_of(data: Dataset, private: int, total: Guarantee) -> dict[str, float]:
    """Return the accuracy of other methods on the held-out pictures, at the same total.

    Their settings are fixed beforehand. The constant answer and the unprotected neighbours are
    included.

    Args:
        data: pictures.
        private: number of private training pictures. The others are public, without labels.
        total: guarantee of each method.
    """
    rows, codes = data.train_rows[:private], data.train_labels[:private]
    public, asked = data.train_rows[private:], len(data.test_rows)
    settings: dict[str, Any] = {
        "epsilon": total.epsilon,
        "delta": total.delta,
        "classes": range(data.classes),
    }
    projected = {**settings, "features": Features(components=_COMPONENTS)}
    models: dict[str, Any] = {
        "noisy gradient descent": NoisyGradientClassifier(**projected, records=private),
    }
    found: dict[str, npt.NDArray[Any]] = {}
    with not_counted("a comparison on a public data set, of which a user releases one"):
        for name, model in models.items():
            fitted = model.fit(rows, codes, public_X=public)
            found[f"{name}, a model to publish"] = fitted.predict(data.test_rows)
        voters = LinearVoteClassifier(**projected, answers=asked)
        found["linear vote, labels only"] = (
            voters.fit(rows, codes, public_X=public).release(data.test_rows).values
        )
    bare = KNeighborsClassifier(5).fit(rows, codes)
    constant = np.bincount(data.test_labels, minlength=data.classes).max() / asked
    return {
        **{name: float((labels == data.test_labels).mean()) for name, labels in found.items()},
        BARE: float(bare.score(data.test_rows, data.test_labels)),
        CONSTANT: float(constant),
    }


def _answers(
    pictures: npt.NDArray[np.float32], released: npt.NDArray[Any], truth: npt.NDArray[np.int64]
) -> Pictures:
    said = [
        ("withheld" if label == -1 else f"{label}") + ("" if label == true else f" (is {true})")
        for label, true in zip(released, truth, strict=True)
    ]
    rows = [("asked", "by the public", pictures[:_SHOWN])]
    return Pictures("The first of them, below what was released.", said[:_SHOWN], rows)
