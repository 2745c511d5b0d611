"""Private prediction that starts from public models: ``python -m papers.certified.beside_public``.

Each way stands beside the public models alone on the same split: a distance that is reached by
ignoring the records is none. Weight, clip and regularization are shown as curves. The hidden
layer's settings are chosen on public rows, which stand in for the records. Means over splits and
their standard errors. Answers are counted at a total of (10, 1e-5), until a point is lost.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from typing_extensions import override

from papers.certified.hidden_intervals import interval_certified
from papers.certified.rungs import answers_until, certified_curve
from papers.datasets import load_covertype, load_fashion, load_imdb
from papers.result_files import cached_result, write_result
from papers.seeds import combined
from reticent.core.arrays import Array, Integers
from reticent.datasets import load_digits
from reticent.demos.certified import whitening
from reticent.release.fits import not_counted
from reticent.retraining import HiddenSettings, hidden_model
from reticent.systems import (
    CertifiedNetwork,
    ConvexCertifiedClassifier,
    HiddenLayer,
    LinearVoteClassifier,
    PublicReference,
)
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.votes.responses import MarginResponse
from reticent.training.public_start import PublicStart

CLIP = 0.8
"""Share of public rows whose vote is not cut, where weights are compared."""

WEIGHTS = (0.25, 0.5, 1.0, 2.0)
REACHES = ((32.0, 10), (48.0, 14), (64.0, 20))
"""Reach and steps of the hidden layer, of which one is chosen."""

TRUSTS = (0.1, 0.25, 0.5, 1.0)
SPREAD = 0.05
TOTAL = 10.0
NETWORK = "a network of 100 units on public rows alone"
ALONE = "public models alone"
TREES = "public boosted trees alone"
BOOSTED = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.07, random_state=0)
VOTE = "linear vote beside them"
PLAIN = "linear vote alone"
HIDDEN = "hidden layer of 128 units"


class Split(NamedTuple):
    """Public, private and asked rows with their labels; what rows are, components, lambdas, and
    clips.
    """

    public: tuple[Array, Integers]
    private: tuple[Array, Integers]
    asked: tuple[Array, Integers]
    rows: str
    components: int | None
    strengths: tuple[float, ...]
    clips: tuple[float, ...]


class Kept(PublicReference):
    """A reference whose public models are made once, for all that take it."""

    @override
    def start(self, rows: Array, codes: Integers, classes: int) -> tuple[PublicStart, Array]:
        kept: dict[str, Any] = vars(self)
        if "_started" not in kept:
            object.__setattr__(self, "_started", super().start(rows, codes, classes))
        return kept["_started"]  # type: ignore[no-any-return]

    def trusted(self, weight: float) -> Kept:
        """Return the same public models at another weight."""
        other = Kept(**{**self.get_params(), "weight": weight})
        object.__setattr__(other, "_started", vars(self).get("_started"))
        return other


def _imdb(seed: int) -> Split:
    data = load_imdb()
    order = np.random.default_rng(seed).permutation(len(data.train_rows))
    public, private = order[:2000], order[2000:]
    rows, labels = data.train_rows, data.train_labels
    return Split(
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        (data.test_rows, data.test_labels),
        "embedding",
        200,
        (10.0, 100.0, 1000.0),
        (0.95, 0.99, 1.0),
    )


def _covertype(seed: int) -> Split:
    data = load_covertype()
    order = np.random.default_rng(seed).permutation(len(data.train_rows))[:60_000]
    rows = data.train_rows[order].astype(np.float64)
    labels = (data.train_labels[order] == np.bincount(data.train_labels).argmax()).astype(np.int64)
    asked = np.random.default_rng(seed).permutation(len(data.test_rows))[:4000]
    truth = (data.test_labels[asked] == np.bincount(data.train_labels).argmax()).astype(np.int64)
    return Split(
        (rows[:5000], labels[:5000]),
        (rows[5000:], labels[5000:]),
        (data.test_rows[asked].astype(np.float64), truth),
        "table",
        None,
        (10.0, 100.0, 1000.0),
        (1.0,),
    )


SPLITS: dict[str, Callable[[int], Split]] = {"imdb": _imdb, "covertype": _covertype}


def _scores(labels: Integers, distances: Integers, truth: Integers) -> dict[str, float]:
    curve = certified_curve(labels, distances, truth, "signed-distance")
    accuracy = float((labels == truth).mean())
    return {
        "accuracy": accuracy,
        "median distance": float(np.median(distances)),
        "share at 20": float((distances >= 20).mean()),
        "answers": answers_until(curve, accuracy - 0.01, TOTAL),
    }


def _voted(vote: LinearVoteClassifier, sums: Integers, truth: Integers) -> dict[str, float]:
    assert isinstance(vote.response_, MarginResponse)
    levels = vote.response_.levels(sums.astype(np.float64))
    return _scores(sums.argmax(axis=1), levels, truth)


def _vote(split: Split, clip: float, **settings: Any) -> LinearVoteClassifier:
    return LinearVoteClassifier(
        epsilon=TOTAL, delta=0.0, classes=(0, 1), answers=1, clip_quantile=clip, **settings
    ).fit(*split.private, public_X=split.public[0], public_y=split.public[1])


def by_weight(split: Split, reference: Kept) -> dict[str, Any]:
    """Return the vote's figures, by what public models count."""
    vote = _vote(split, CLIP, features=reference)
    queries, truth = split.asked
    table, opening = vote.vote_table(queries), vote.opening(vote.asked(vote.checked(queries)))
    return {  # what public models add to the table is linear in the weight
        f"{VOTE}, weight {weight:g}": _voted(
            vote, table + np.rint((weight - 1.0) * opening).astype(np.int64), truth
        )
        for weight in WEIGHTS
    }


def by_clip(split: Split, reference: Kept) -> dict[str, Any]:
    """Return the vote's figures at weight 1, by the share of public rows whose vote is not cut."""
    found = {}
    for clip in split.clips:
        vote = _vote(split, clip, features=reference)
        table = vote.vote_table(split.asked[0])
        found[f"{VOTE}, clip {clip:g}"] = _voted(vote, table, split.asked[1])
    return found


def without_public_models(split: Split, reference: Kept) -> dict[str, Any]:
    """Return figures of the vote and of the hidden layer that have no public models beside them.

    The vote's settings are those that do best on halves of the public rows.
    """
    rows, labels = split.public
    half = len(rows) // 2
    grid = LinearVoteClassifier.settings_grid(
        n_private=len(split.private[1]),
        n_public=half,
        features=rows.shape[1],
        classes=2,
        epsilon=TOTAL,
    )
    halves = Split((rows, labels), (rows[:half], labels[:half]), split.asked, "", None, (), ())

    def score(settings: dict[str, Any]) -> float:
        told = _vote(halves, **_clip_first(settings)).exact_predict(rows[half:])
        return float((told == labels[half:]).mean())

    vote = _vote(split, **_clip_first(max(grid, key=score)))
    found = {PLAIN: _voted(vote, vote.vote_table(split.asked[0]), split.asked[1])}
    started = PublicStartEmbedding(reference.start(rows, labels, 2)[0], reference)
    size = started.sizes[1]
    private, asked = (started.embed(X)[:, :size] for X in (split.private[0], split.asked[0]))
    network = CertifiedNetwork(
        epsilon=1.0,
        classes=(0, 1),
        training=HiddenLayer(records=len(private), spread=SPREAD, random_state=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # half of the rows are longer than the mean
        distances = network.fit(private, split.private[1]).stable_distances(asked)
    return {**found, f"{HIDDEN} alone": _scores(*distances, split.asked[1])}


def _clip_first(settings: dict[str, Any]) -> dict[str, Any]:
    return {"clip": settings["clip_quantile"]} | {
        name: value for name, value in settings.items() if name != "clip_quantile"
    }


def by_regularization(split: Split, reference: Kept) -> dict[str, Any]:
    """Return the convex certificate's figures, by lambda."""
    found = {}
    for strength in split.strengths:
        convex = ConvexCertifiedClassifier(
            epsilon=1.0, classes=(0, 1), regularization=strength, features=reference
        ).fit(*split.private, public_X=split.public[0], public_y=split.public[1])
        distances = convex.stable_distances(split.asked[0])
        found[f"convex certificate beside them, lambda {strength:g}"] = _scores(
            *distances, split.asked[1]
        )
    return found


def chosen_hidden(split: Split, reference: Kept) -> tuple[float, float, int]:
    """Return weight, reach and steps that do best on public rows.

    Four of five parts of them stand in for the records, with log odds of models that did not see
    them, and distances grow with the number of records. Of the settings with three quarters
    certified at 20, the one that is right most often on the fifth part is taken, or else the one
    that certifies most.
    """
    rows, labels = split.public
    start, logs = reference.start(rows, labels, 2)
    points = PublicStartEmbedding(start, reference).embed(rows)[:, : start.space.dimension]
    odds = logs[:, 1] - logs[:, 0]
    part = np.random.default_rng(0).integers(0, 5, len(rows))
    best: tuple[float, float, tuple[float, float, int]] = (-1.0, -1.0, (1.0, *REACHES[0]))
    for weight in TRUSTS:
        for reach, steps in REACHES:
            right, kept = 0.0, 0.0
            for held in range(5):
                some, others = part != held, part == held
                settings = HiddenSettings(
                    features=points.shape[1],
                    records=int(some.sum()),
                    reach=reach,
                    steps=steps,
                    spread=SPREAD,
                    offset_bound=8.0,
                )
                model = hidden_model(
                    points[some], labels[some], settings, seed=0, offsets=weight * odds[some]
                )
                told, reserves = model.reserves(points[others], weight * odds[others])
                far = reserves * (len(split.private[1]) / settings.records)
                right += float((told == labels[others]).sum()) / len(rows)
                kept += float((far > 20).sum()) / len(rows)
            best = max(best, (min(kept, 0.75), right, (weight, reach, steps)))
    return best[2]


def hidden_beside(split: Split, reference: Kept) -> dict[str, Any]:
    """Return figures of the hidden layer, and of intervals around the same weights."""
    weight, reach, steps = chosen_hidden(split, reference)
    network = CertifiedNetwork(
        epsilon=1.0,
        classes=(0, 1),
        training=HiddenLayer(
            records=len(split.private[1]), reach=reach, steps=steps, spread=SPREAD, random_state=0
        ),
        features=reference.trusted(weight),
    ).fit(*split.private, public_X=split.public[0], public_y=split.public[1])
    found = _scores(*network.stable_distances(split.asked[0]), split.asked[1])
    return {f"{HIDDEN} beside them": {**found, "weight": weight, "reach": reach}}


def against_intervals(split: Split, reference: Kept) -> dict[str, Any]:
    """Return shares certified by the ball, and by intervals around the same weights."""
    started = PublicStartEmbedding(reference.start(*split.public, 2)[0], reference)
    size = started.sizes[1]
    X, queries = (started.embed(rows)[:, :size] for rows in (split.private[0], split.asked[0]))
    settings = HiddenSettings(features=size, records=len(X), spread=1.0)
    distances = hidden_model(X, split.private[1], settings, seed=0).stable_distances(queries)[1]
    ball: dict[str, float] = {}
    boxes: dict[str, float] = {}
    for k in (1, 2, 20):
        told = interval_certified(X, split.private[1], queries, settings, seed=0, k=k)
        boxes |= {f"share at {k}": float(told.mean())}
        boxes |= {f"share beyond the ball at {k}": float((told & (distances < k)).mean())}
        ball |= {f"share at {k}": float((distances >= k).mean())}
    return {f"{HIDDEN}, ball": ball, f"{HIDDEN}, intervals around the same weights": boxes}


def limits(split: Split, reference: Kept) -> dict[str, Any]:
    """Return accuracies without any guarantee: with the same log odds, and of trees on all rows."""
    started = PublicStartEmbedding(reference.start(*split.public, 2)[0], reference)
    size, truth = started.sizes[1], split.asked[1]

    def columns(rows: Array) -> Array:
        found = started.embed(rows)
        return np.column_stack([found[:, :size], found[:, size + 1] - found[:, size]])

    linear = LogisticRegression(max_iter=300).fit(columns(split.private[0]), split.private[1])
    trees = HistGradientBoostingClassifier(random_state=0).fit(
        np.vstack([split.public[0], split.private[0]]),
        np.concatenate([split.public[1], split.private[1]]),
    )
    return {
        "not private: logistic regression with their log odds": {
            "accuracy": float(linear.score(columns(split.asked[0]), truth))
        },
        "not private: boosted trees on all records": {
            "accuracy": float(trees.score(split.asked[0], truth))
        },
    }


def beside_trees(split: Split, reference: Kept) -> dict[str, Any]:
    """Return figures of boosted trees of public rows alone, and of certificates beside them.

    Numbers of components are the defaults of tables and of embeddings.
    """
    rows, labels = split.public
    found: dict[str, Any] = {}
    for components, strength in ((150, 30.0), (400, 30.0), (400, 100.0)):
        trees = Kept(rows=split.rows, components=components, models=[BOOSTED])
        start = PublicStartEmbedding(trees.start(rows, labels, 2)[0], trees)
        told = start.embed(split.asked[0])[:, -2:].argmax(axis=1)
        found[TREES] = {"accuracy": float((told == split.asked[1]).mean())}
        convex = ConvexCertifiedClassifier(
            epsilon=1.0, classes=(0, 1), regularization=strength, features=trees
        ).fit(*split.private, public_X=rows, public_y=labels)
        found[f"convex certificate beside these, {components} components, lambda {strength:g}"] = (
            _scores(*convex.stable_distances(split.asked[0]), split.asked[1])
        )
    return found


def public_alone(split: Split, reference: Kept) -> dict[str, Any]:
    """Return accuracies of public rows alone."""
    start = reference.start(*split.public, 2)[0]
    queries, truth = split.asked
    logs = PublicStartEmbedding(start, reference).embed(queries)[:, -2:]
    scaled, asked = (start.row_details.scaled(x) for x in (split.public[0], queries))
    network = MLPClassifier((100,), alpha=10.0, learning_rate_init=2e-3, random_state=0)
    network.fit(scaled, split.public[1])
    return {
        ALONE: {"accuracy": float((logs.argmax(axis=1) == truth).mean())},
        NETWORK: {"accuracy": float((network.predict(asked) == truth).mean())},
    }


WAYS: dict[str, Callable[[Split, Kept], dict[str, Any]]] = {
    "weight": by_weight,
    "clip": by_clip,
    "convex": by_regularization,
    "trees": beside_trees,
    "hidden": hidden_beside,
    "plain": without_public_models,
    "intervals": against_intervals,
    "limits": limits,
    "public": public_alone,
}


def one_split(name: str, seed: int, ways: Sequence[str], cache: Path) -> dict[str, Any]:
    """Return figures of one seed, of two labels. Each way is kept in ``cache``."""
    split = SPLITS[name](seed)
    reference = Kept(rows=split.rows, components=split.components, records=len(split.private[1]))
    found: dict[str, Any] = {}
    with not_counted("a comparison on a public data set"):
        for way in ways:
            path = cache / f"beside-{name}-{way}-{seed}.json"
            found |= cached_result(path, partial(WAYS[way], split, reference))
    return found


def several(name: str, seed: int) -> dict[str, Any]:
    """Return figures of ten labels, one against one, alone and beside public models."""
    data = load_digits() if name == "digits" else load_fashion()
    rows = data.train_images.reshape(len(data.train_images), -1).astype(np.float64)
    asked = data.test_images.reshape(len(data.test_images), -1).astype(np.float64)
    order = np.random.default_rng(seed).permutation(len(rows))
    known, kept, size = (200, len(rows), 20) if name == "digits" else (2000, 11_000, 30)
    white = whitening(rows[order[:known]], size, floor=0.05)
    bound = float(np.quantile(np.linalg.norm(white(rows[order[:known]]), axis=1), 0.8))
    private = order[known:kept]
    queries, truth = white(asked[:1000]), data.test_labels[:1000]
    public = order[:known]
    marks, known_marks = data.train_labels, data.train_labels[public]
    alone = LogisticRegression(max_iter=1000).fit(white(rows[public]), known_marks)
    reference = Kept(rows="embedding", components=size)
    start = reference.start(white(rows[public]), known_marks, 10)[0]
    logs = PublicStartEmbedding(start, reference).embed(queries)[:, -10:]
    found: dict[str, Any] = {}
    with not_counted("a comparison on a public data set"):
        for strength, beside in product((1.0, 10.0, 20.0, 100.0), (False, True)):
            given = {"public_X": white(rows[public]), "public_y": known_marks} if beside else {}
            labels, distances = (
                ConvexCertifiedClassifier(
                    epsilon=1.0,
                    classes=range(10),
                    regularization=strength,
                    norm_bound=1.0 if beside else bound,
                    features=reference if beside else None,
                )
                .fit(white(rows[private]), marks[private], **given)
                .stable_distances(queries)
            )
            place = " beside public models" if beside else ""
            found[f"one against one{place}, lambda {strength:g}"] = {
                "accuracy": float((labels == truth).mean()),
                "median distance": float(np.median(distances)),
                "share at 6": float((distances >= 6).mean()),
                "share at 12": float((distances >= 12).mean()),
            }
    found[ALONE] = {"accuracy": float((logs.argmax(axis=1) == truth).mean())}
    found["the public rows alone, with labels"] = {"accuracy": float(alone.score(queries, truth))}
    return found


def markdown(name: str, means: dict[str, Any], errors: dict[str, Any], seeds: int) -> str:
    """Return the table as Markdown."""
    columns = list(dict.fromkeys(column for row in means.values() for column in row))
    lines = [
        f"## {name}, {seeds} splits",
        "",
        f"| | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for way, row in means.items():
        cells = [
            ""
            if column not in row
            else f"{row[column]:.4f} ± {errors[way][column]:.4f}"
            if column == "accuracy" or "share" in column
            else f"{row[column]:.2g}"
            if column in ("weight", "reach")
            else f"{row[column]:,.0f} ± {errors[way][column]:,.0f}"
            for column in columns
        ]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=(*SPLITS, "digits", "fashion"), default="imdb")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/certified"))
    parser.add_argument("--cache", type=Path, default=Path("runs/certified/cache"))
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS))
    chosen = parser.parse_args(arguments)
    runs = [
        one_split(chosen.data, seed, chosen.ways, chosen.cache)
        if chosen.data in SPLITS
        else cached_result(
            chosen.cache / f"beside-{chosen.data}-{seed}.json", partial(several, chosen.data, seed)
        )
        for seed in range(chosen.seeds)
    ]
    means, errors = combined(runs)
    text = markdown(chosen.data, means, errors, chosen.seeds)
    content = {"means": means, "standard errors": errors, "seeds": chosen.seeds}
    write_result(chosen.out / f"beside-{chosen.data}.json", json.dumps(content, indent=1))
    write_result(chosen.out / f"beside-{chosen.data}.md", text)
    print(text)


if __name__ == "__main__":
    main()
