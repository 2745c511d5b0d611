"""The demonstration of a model to publish, from private records and public rows without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier

from reticent.core.guarantees import Guarantee
from reticent.datasets import Dataset
from reticent.demos.page import Demonstration, comparison
from reticent.pages.page import Fact, Pictures, Section
from reticent.release.fits import not_counted
from reticent.systems import PublicStartClassifier
from reticent.systems.features import Features
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.training.progress import Report, silent

OURS = "a start on public rows, a model to publish"
BARE = "no protection: the nearest private records"
CONSTANT = "the most frequent answer"
_PRIVATE_SHARE = 0.8
_COMPONENTS = 40
_SHOWN = 12
_EPSILON, _DELTA = 1.0, 1e-5

_WAYS = """Each method is a release of its own at the same ε and δ, scored on held-out pictures.
Nothing was tuned for them. A model to publish answers any number of queries. Labels are released
one by one. The command reticent plan tries all of them on public rows."""


def run_demo(data: Dataset, *, report: Report = silent) -> Demonstration:
    """Fit a model with noise, and compare it with other methods.

    Four fifths of the training part are private. The others are public, without their labels.

    Args:
        data: pictures.
        report: receiver of the progress, called after each stage.
    """
    cut = round(_PRIVATE_SHARE * len(data.train_rows))
    public = data.train_rows[cut:]
    model = PublicStartClassifier(
        epsilon=_EPSILON, delta=_DELTA, classes=range(data.classes), rows="embedding", records=cut
    ).fit(data.train_rows[:cut], data.train_labels[:cut], public_X=public)
    said, guarantee = model.predict(data.test_rows), model.guarantee
    report("model", 1, 2, float("nan"))
    results: dict[str, Any] = {
        "data": data.name,
        "private records": cut,
        "public pictures": len(public),
        "guarantee": guarantee.to_dict(),
        "model": float((said == data.test_labels).mean()),
        "others": rivals_of(data, cut, guarantee),
    }
    report("other ways", 2, 2, float("nan"))
    return Demonstration(
        data=data.name,
        title="A model to publish, from records that stay private",
        lead="""A guarantee limits what the model tells anyone about a single private record,
        whatever else they know. The model learns from sums over all records, and each sum gets
        noise that hides any one of them. Public pictures, without labels, say which directions are
        worth a sum.""",
        facts=[
            Fact(
                results["model"],
                "of held-out pictures are classified right by a model that may be published",
                "ours",
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
        notes=f"""The model, and all that it will ever answer, costs ε = {guarantee.epsilon:.3g} at
        δ = {guarantee.delta:g}. {cut:,} records are private and {len(public):,} pictures are
        public.""",
        sections=[
            Section(
                "What it answers",
                "Each held-out picture has the model's label, and the true one if that is wrong.",
                [_answers(data.test_images, said, data.test_labels)],
            ),
            comparison(
                "Other ways, at the same total",
                _WAYS,
                {OURS: results["model"], **results["others"]},
                ours=OURS,
            ),
        ],
        system=model,
        results=results,
        summary=f"model {results['model']:.1%} right, {results['others'][CONSTANT]:.1%} by a "
        f"constant, epsilon {guarantee.epsilon:.3g} at delta {guarantee.delta:g}",
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
        "features": Features(components=_COMPONENTS),
    }
    with not_counted("a comparison on a public data set, of which a user releases one"):
        descent = NoisyGradientClassifier(**settings, records=private)
        voters = LinearVoteClassifier(**settings, answers=asked).fit(rows, codes, public_X=public)
        found = {
            "noisy gradient descent, a model to publish": descent.fit(
                rows, codes, public_X=public
            ).predict(data.test_rows),
            "linear vote, labels only": voters.release(data.test_rows).values,
        }
    bare = KNeighborsClassifier(5).fit(rows, codes)
    constant = np.bincount(data.test_labels, minlength=data.classes).max() / asked
    return {
        **{name: float((labels == data.test_labels).mean()) for name, labels in found.items()},
        BARE: float(bare.score(data.test_rows, data.test_labels)),
        CONSTANT: float(constant),
    }


def _answers(
    pictures: npt.NDArray[np.float32], said: npt.NDArray[Any], truth: npt.NDArray[np.int64]
) -> Pictures:
    told = [
        f"{label}" + ("" if label == true else f" (is {true})")
        for label, true in zip(said, truth, strict=True)
    ]
    rows = [("asked", "held out", pictures[:_SHOWN])]
    return Pictures("The first of them, below the model's answer.", told[:_SHOWN], rows)
