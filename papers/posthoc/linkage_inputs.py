"""Data sets whose embeddings ``papers.posthoc.linkage`` releases, and which rows serve for what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from torch import from_numpy, nn, no_grad

from papers.choose.features import COMPONENTS, patch_features
from papers.datasets import load_cifar10, load_imdb
from papers.result_files import write_result
from reticent.core.arrays import Integers
from reticent.training.parts import LiveCoordinates, NoiseAware, PublicDiscriminants, PublicPCA
from reticent.training.parts.contract import Part
from reticent.training.progress import Report
from reticent.training.public_features import PublicPCA as PublicComponents

Array = npt.NDArray[np.float64]

_PUBLIC_REVIEWS = 6_000
_PUBLIC_PICTURES = 5_000
_BLOCK = 1_000
_TRAINED_VALUES = 4

# Of discriminants: noise is the same in all directions, so what matters is how far apart classes
# are in units of the embedding. Chosen on public pictures of CIFAR-10 among .05 to .999.
_TOWARDS_MEANS = 0.9


@dataclass(frozen=True, eq=False)
class Inputs:
    """Embeddings and labels of one data set.

    Attributes:
        public, public_y: what radius, released maps and calibration are fitted on; shape (n, d).
        asked, asked_y: private rows that nothing is fitted on, each released once, which a server
            learns from; no rows where the server learns from public ones alone.
        held, held_y: held-out rows, for final figures.
    """

    public: Array
    public_y: Integers
    asked: Array
    asked_y: Integers
    held: Array
    held_y: Integers


@dataclass(frozen=True)
class Source:
    """A data set of embeddings, and what is asked about them.

    Attributes:
        one, several: what an input is called.
        task: what the label is called.
        about: what the embeddings are and which rows serve for what; lines of the page.
        classes: how many labels.
        strength: of the logistic regression whose label is released, the inverse of its penalty;
            chosen on public rows.
        load: embeddings, from a folder where they were kept.
    """

    one: str
    several: str
    task: str
    about: tuple[str, ...]
    classes: int
    strength: float
    load: Callable[[Path, Report], Inputs]

    @property
    def rules(self) -> dict[int, str]:
        """Radii: the distance to this public row, in the median."""
        return {1: f"the nearest other {self.one}", 10: "the tenth nearest"}

    @property
    def vectors(self) -> dict[str, Part]:
        """Maps whose values are released, by name: public linear ones, and a 1-Lipschitz network
        that is trained through the noise.
        """
        values = self.classes - 1
        trained = min(values, _TRAINED_VALUES)
        return {
            f"class discriminants, {_values(values)}": PublicDiscriminants(),
            **{f"principal components, {_values(n)}": PublicPCA(outputs=n) for n in (4, 16, 32)},
            "live coordinates": LiveCoordinates(),
            f"directions of class means, {_values(values)}": PublicDiscriminants(
                shrinkage=_TOWARDS_MEANS
            ),
            f"network trained through the noise, {_values(trained)}": NoiseAware(outputs=trained),
        }


def _values(number: int) -> str:
    return f"{number} value{'s' if number > 1 else ''}"


def classifier(rows: Array, labels: Integers, *, strength: float) -> nn.Linear:
    """Logistic regression of labels 0, 1, ... as one logit for each.

    Args:
        rows: shape (n, d).
        labels: shape (n,), at least two.
        strength: inverse of the penalty on weights, above 0.
    """
    model = LogisticRegression(C=strength, max_iter=1_000).fit(rows, labels)
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:  # of two labels, scikit-learn has the difference of logits
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    layer = nn.Linear(*weight.shape[::-1])
    with no_grad():
        layer.weight.copy_(from_numpy(weight))
        layer.bias.copy_(from_numpy(bias))
    return layer


def reviews(folder: Path, report: Report) -> Inputs:
    """Sentence embeddings of IMDB reviews; nothing is kept in ``folder``."""
    data = load_imdb()
    public, none = slice(0, _PUBLIC_REVIEWS), slice(0, 0)
    rows, labels = data.train_rows, data.train_labels
    return Inputs(
        rows[public], labels[public], rows[none], labels[none], data.test_rows, data.test_labels
    )


def pictures(folder: Path, report: Report) -> Inputs:
    """Features of CIFAR-10 that were learned on a public half of its training pictures; computed
    once (minutes), then read from ``folder``.
    """
    path = folder / "features.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            return Inputs(**stored)
    data = load_cifar10()
    rows, labels, cut = data.train_rows, data.train_labels, _PUBLIC_PICTURES
    patches = patch_features("cifar10").fit(rows[:cut])
    reduced = PublicComponents(components=COMPONENTS, of=patches).fit(rows[:cut])

    def features(stage: str, images: Array) -> Array:
        blocks: list[Array] = []
        for start in range(0, len(images), _BLOCK):
            blocks.append(reduced.features(images[start : start + _BLOCK]))
            report(stage, start + len(blocks[-1]), len(images), float("nan"))
        return np.concatenate(blocks)

    found = Inputs(
        public=features("public pictures", rows[:cut]),
        public_y=labels[:cut],
        asked=features("private pictures", rows[cut:]),
        asked_y=labels[cut:],
        held=features("held-out pictures", data.test_rows),
        held_y=data.test_labels,
    )
    buffer = BytesIO()
    np.savez(buffer, **{field.name: getattr(found, field.name) for field in fields(found)})
    write_result(path, buffer.getvalue())
    return found


SOURCES = {
    "reviews": Source(
        one="review",
        several="reviews",
        task="sentiment",
        about=(
            "Sentence embeddings of reviews, 384 numbers. Radius, released maps and the server are",
            "fitted on 6,000 public reviews.",
        ),
        classes=2,
        strength=10.0,
        load=reviews,
    ),
    "cifar10": Source(
        one="picture",
        several="pictures",
        task="class",
        about=(
            "CIFAR-10: 400 principal components of patch features. Of the 10,000 training pictures",
            "5,000 are public, with labels: features, radius, released maps and calibration are",
            "fitted on these alone. The other 5,000 are private.",
        ),
        classes=10,
        strength=10.0,
        load=pictures,
    ),
}
"""Data sets by the name that the command knows them by."""
