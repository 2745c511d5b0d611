"""The Private-kNN demonstration: private pictures label public ones, and a student learns from
the labels.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier

from reticent.accounting import calibrate_private_knn
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.datasets import Dataset
from reticent.demos.private_knn.explanations import on_facts, on_rungs
from reticent.pages.parts import card_section, document, explained, figure_table, percent
from reticent.plots import empty_drawing, png
from reticent.release.fits import not_counted
from reticent.systems import IndividualKNNClassifier, PrivateKNNStudent
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.features import Features
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.moment import MomentClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.radius_votes import RadiusVotesClassifier
from reticent.systems.votes.released_model import ReleasedModel
from reticent.training.pate import PateTeachers
from reticent.training.progress import Report
from reticent.training.students import StudentConfig

_SHOWN = 40
_COLUMNS = 10
_PRIVATE_SHARE = 0.8
_COMPONENTS = 40
_CELLS = 64
_SHARE, _VOTES_EACH = 0.02, 10.0
_BARE_NEIGHBOURS = 5
_TEACHER_RECORDS, _TEACHER_RIDGE = 50, 10.0

BARE = "no protection: the nearest private records"


@dataclass(frozen=True, eq=False)
class KnnDemo:
    """What the demonstration has to show.

    Attributes:
        student: fitted; it may be published.
        card: the guarantee.
        results: plain values for JSON.
        rungs: what other ways get right at the same total.
        figure: PNG, some public pictures with their released labels.
    """

    student: PrivateKNNStudent
    card: GuaranteeCard
    results: dict[str, Any]
    rungs: dict[str, float]
    figure: bytes


def suggested(data: str, *, seed: int) -> PrivateKNNStudent:
    """Settings for looking around: "digits" in seconds, "mnist" and "fashion" in minutes."""
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
            neighbours=50,
            sampling_probability=0.5,
            feature_map="identity",
            reduce_to=20,
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
        neighbours=150,
        sampling_probability=0.15,
        feature_map="upright hog" if data == "mnist" else "hog",
        student=config if data == "mnist" else replace(config, turn=0.05, flips=True),
        classes=range(10),
        random_state=seed,
    )


def run_demo(data: Dataset, student: PrivateKNNStudent, *, report: Report) -> KnnDemo:
    """Four fifths of the training part are private; of the rest the labels are read for scoring
    only.

    Args:
        data: pictures of one plane.
        student: settings, not fitted.
        report: told about training.
    """
    cut = round(_PRIVATE_SHARE * len(data.train_images))
    private, public = data.train_images[:cut], data.train_images[cut:]
    truth = data.train_labels[cut:]
    student.fit(private, data.train_labels[:cut], public=public, report=report)
    asked = np.concatenate(student.rounds_)
    released = student.released_[asked]
    guarantee, steps = student.guarantee, student.plan_.steps
    results = {
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
    }
    figure = _figure(public[asked], released, truth[asked])
    return KnnDemo(student, student.card(), results, rungs(data, cut, guarantee), figure)


def rungs(data: Dataset, private: int, total: Guarantee) -> dict[str, float]:
    """What other ways get right of the held-out pictures at the same total, settings fixed
    beforehand, and the constant answer.

    Args:
        data: pictures.
        private: how many of the training pictures are private; the others are public, without
            labels.
        total: of each way.
    """
    rows, codes = data.train_rows[:private], data.train_labels[:private]
    public = data.train_rows[private:]
    settings: dict[str, Any] = {
        "epsilon": total.epsilon,
        "delta": total.delta,
        "classes": range(data.classes),
    }
    models: dict[str, ReleasedModel] = {
        "noisy gradient descent": NoisyGradientClassifier(
            **settings, features=Features(components=_COMPONENTS), records=private
        ),
        "moments": MomentClassifier(**settings, features=Features(components=_COMPONENTS)),
        "cells": CellsClassifier(
            **settings, features=Features(components=_COMPONENTS), cells=_CELLS
        ),
    }
    asked = len(data.test_rows)
    voters: dict[str, Any] = {
        "votes with a budget for each record": IndividualKNNClassifier(
            **settings, share=_SHARE, votes=_VOTES_EACH
        ),
        "radius votes": RadiusVotesClassifier(**settings, answers=asked, share=_SHARE),
        "linear vote": LinearVoteClassifier(
            **settings, answers=asked, features=Features(components=_COMPONENTS)
        ),
    }
    with not_counted("a comparison on a public data set, of which a user releases one"):
        found = {
            f"{name}, a model to publish": model.fit(rows, codes, public_X=public).predict(
                data.test_rows
            )
            for name, model in models.items()
        }
        for name, model in voters.items():
            fitted = model.fit(rows, codes, public_X=public)
            found[f"{name}, labels only"] = fitted.release(data.test_rows).values
    found["PATE, labels only"] = _pate(rows, codes, public, data, total)
    right = {name: float((labels == data.test_labels).mean()) for name, labels in found.items()}
    constant = np.bincount(data.test_labels, minlength=data.classes).max() / len(data.test_labels)
    bare = KNeighborsClassifier(_BARE_NEIGHBOURS).fit(rows, codes)
    return {
        **right,
        BARE: float(bare.score(data.test_rows, data.test_labels)),
        "the most frequent answer": float(constant),
    }


def _pate(
    rows: npt.NDArray[Any],
    codes: npt.NDArray[np.int64],
    public: npt.NDArray[Any],
    data: Dataset,
    total: Guarantee,
) -> npt.NDArray[np.int64]:
    """Labels by teachers on parts of the records, whose counts get noise for every picture. The
    noise is drawn from a seed: PATE is scored here, and releases nothing.
    """
    teachers = max(2, len(rows) // _TEACHER_RECORDS)
    votes = PateTeachers.of(
        rows,
        codes,
        None,
        teachers=teachers,
        classes=data.classes,
        public_features=public,
        ridge=_TEACHER_RIDGE,
    ).votes(data.test_rows)
    steps = calibrate_private_knn(
        epsilon=total.epsilon,
        delta=total.delta,
        queries=len(data.test_rows),
        answers=len(data.test_rows),
        neighbours=teachers,
        sampling_probability=1.0,
        threshold=None,
        noise_ratio=None,
    )
    noise = np.random.default_rng(0).normal(0.0, steps.sigma_votes, votes.shape)
    return np.asarray((votes + noise).argmax(axis=1))


def page(demo: KnnDemo) -> str:
    """The whole page as HTML; it needs nothing beside it."""
    results = demo.results
    facts = [
        (
            percent(results["student"]),
            "of held-out pictures right, by a student that never saw a private picture",
        ),
        (percent(results["released right"]), f"of {results['queries']} released labels right"),
        (f"ε = {results['epsilon']:.3g}", f"for everything released, at δ = {results['delta']:g}"),
    ]
    shown = "".join(
        f"<li><b>{escape(number)}</b><span>{escape(text)}</span></li>" for number, text in facts
    )
    rows = [
        (name, [escape(f"{value:.4g}" if isinstance(value, float) else str(value))], "")
        for name, value in results.items()
    ]
    body = [
        f"""<header><p class="name-of">reticent · {escape(results["data"])}</p>
<h1>A model to publish, from records that stay private</h1>
<p class="lead">Every single private record is protected from whoever gets the labels or the model,
whatever else they know. Public pictures without labels ask the private ones: each time a fresh
random part of the records takes part, the nearest of them vote, the votes get noise, and only the
winner is told. A student learns from the winners.</p></header>""",
        (
            f'<main><ul class="facts" aria-label="Main results">{shown}</ul>'
            f"{explained(on_facts(results))}"
        ),
        f"""<section aria-labelledby="asked">
<h2 id="asked">What was asked, and what was answered</h2><figure>
<img src="data:image/png;base64,{base64.b64encode(demo.figure).decode()}"
alt="Public pictures, each with its released label; wrong ones are marked."></figure>
</section>""",
        '<section aria-labelledby="rungs"><h2 id="rungs">Other ways, at the same total</h2>',
        (
            "<p>Each is a release of its own at the same ε and δ, scored on held-out pictures; "
            "nothing was tuned for them. A model to publish answers any number of queries; labels "
            "are released one by one.</p>"
        ),
        figure_table("", "way", ("right",), _compared(demo))
        + f"{explained(on_rungs(results, demo.rungs, BARE))}</section>",
        card_section(demo.card),
        '<section aria-labelledby="numbers"><h2 id="numbers">Numbers</h2>',
        f"{figure_table('', 'name', ('value',), rows)}</section></main>",
    ]
    return document(
        title=f"Private-kNN: {results['data']}", about="A student of private neighbours", body=body
    )


def _compared(demo: KnnDemo) -> list[tuple[str, list[str], str]]:
    """The student among the other ways, the best one first."""
    named = {"student of Private-kNN, a model to publish": demo.results["student"], **demo.rungs}
    ranked = sorted(named.items(), key=lambda item: -item[1])
    return [(escape(name), [percent(right)], "") for name, right in ranked]


def _figure(
    pictures: npt.NDArray[np.float32], released: npt.NDArray[Any], truth: npt.NDArray[np.int64]
) -> bytes:
    count = min(_SHOWN, len(pictures))
    lines = -(-count // _COLUMNS)
    drawing = empty_drawing(_COLUMNS * 0.8, lines * 1.0)
    panels = np.atleast_1d(drawing.subplots(lines, _COLUMNS, squeeze=False).ravel())
    for place, axes in enumerate(panels):
        axes.axis("off")
        if place < count:
            right = released[place] == truth[place]
            axes.imshow(pictures[place], cmap="gray_r", vmin=0, vmax=1)
            label = "withheld" if released[place] == -1 else str(released[place])
            axes.set_title(
                label if right else f"{label} (is {truth[place]})",
                fontsize=8,
                color="black" if right else "#b3261e",
            )
    return png(drawing, dpi=120)
