"""The cells of the Power Mechanism's tables: published, default, raw columns, attacks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.attacks.hijacking import HijackingConfig, hijacking_quality, majority_guess, train_hijacker
from reticent.attacks.inversion import invert, relative_errors
from reticent.attacks.reconstruction_bound import reconstruction_bound, smoothed
from reticent.datasets.table import Table
from reticent.experiments.power_baselines import raw_columns, raw_vector
from reticent.experiments.power_settings import SERVERS, PowerSettings
from reticent.noise import SeededSampler
from reticent.systems.power_encoder import PowerEncoder
from reticent.systems.power_published import PublishedQuery
from reticent.systems.power_servers import train_server
from reticent.systems.tabular import TabularSchema
from reticent.training.dpsgd import PrivateTraining, train_private
from reticent.training.power_density import KernelDensity, bandwidth, fisher_trace

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Results = dict[str, Any]

ATTACK_ROWS = 4000
DP_ADAM_DELTA = 1e-5


@dataclass(frozen=True, eq=False)
class Parts:
    """One table, cut for the experiments.

    Attributes:
        table: the whole.
        schema: its public schema.
        settings: fixed settings.
        public_rows, private_rows, test_rows: rows as in the table.
        public_labels, private_labels, test_labels: their labels.
        seed: of training, of the cut and of the experiment's noise.
    """

    table: Table
    schema: TabularSchema
    settings: PowerSettings
    public_rows: npt.NDArray[Any]
    private_rows: npt.NDArray[Any]
    test_rows: npt.NDArray[Any]
    public_labels: Labels
    private_labels: Labels
    test_labels: Labels
    seed: int

    @classmethod
    def of(cls, settings: PowerSettings, *, seed: int, tuning: bool) -> Parts:
        """The table of ``settings``; with ``tuning`` a fifth of its training part takes the place of the held-out part."""
        table = settings.load()
        if tuning:
            table = table.for_tuning(held_out=0.2, seed=1)
        order = np.random.default_rng(seed).permutation(len(table.train_rows))
        public = order[: round(settings.public_share * len(order))]
        private = order[len(public) :][: max(settings.private_rows, settings.published_rows)]
        held = np.random.default_rng(seed).permutation(len(table.test_rows))[: settings.test_rows]
        return cls(
            table,
            settings.schema(table.columns),
            settings,
            table.train_rows[public],
            table.train_rows[private],
            table.test_rows[held],
            table.train_labels[public],
            table.train_labels[private],
            table.test_labels[held],
            seed,
        )


def server_accuracies(released: Array, labels: Labels, tested: Array, wanted: Labels, *, seed: int) -> Results:
    """Accuracy of every server on released test rows; withheld rows are errors."""
    return {name: float(right.mean()) for name, right in _right(released, labels, tested, wanted, seed=seed).items()}


def _right(released: Array, labels: Labels, tested: Array, wanted: Labels, *, seed: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether each server is right about each test row; a server without two classes to learn from never is."""
    kept = np.isfinite(released).all(axis=1)
    if len(np.unique(labels[kept])) < 2:
        return {name: np.zeros(len(wanted), dtype=np.bool_) for name in SERVERS}
    return {name: train_server(name, released, labels, seed=seed).predict(tested) == wanted for name in SERVERS}


def non_private(parts: Parts) -> Results:
    """Servers on the encoded rows themselves, and the majority rate."""
    figures = server_accuracies(
        parts.schema.encode(parts.private_rows[: parts.settings.private_rows]),
        parts.private_labels[: parts.settings.private_rows],
        parts.schema.encode(parts.test_rows),
        parts.test_labels,
        seed=parts.seed,
    )
    return {**figures, "majority": float(np.bincount(parts.test_labels).max() / len(parts.test_labels))}


def published(parts: Parts) -> Results:
    """Table 3's shape: the published encoder, trained on the rows that it releases; servers per filter threshold."""
    settings = parts.settings
    encoder = published_encoder(parts, private=True)
    query = _published_query(encoder)
    private, test = parts.schema.encode(parts.private_rows), parts.schema.encode(parts.test_rows)
    start = time.process_time()
    scores, test_scores = query.scores(private), query.scores(test)
    seconds = time.process_time() - start
    embedded, test_embedded = query.exact(private), query.exact(test)
    training = encoder.training_
    assert training is not None
    results: Results = {
        "score seconds": seconds,
        "privacy losses": list(training.privacy_losses),
        "utility losses": list(training.utility_losses),
        "train scores": np.quantile(_finite(scores), np.linspace(0, 1, 101)).tolist(),
        "test scores": np.quantile(_finite(test_scores), np.linspace(0, 1, 101)).tolist(),
        "rows": {},
    }
    for epsilon in settings.published_epsilons:
        kept, test_kept = scores <= epsilon, test_scores <= epsilon
        released = np.where(kept[:, None], embedded, np.nan)
        right = _right(released, parts.private_labels, test_embedded, parts.test_labels, seed=parts.seed)
        results["rows"][f"{epsilon:g}"] = {
            "released": float(kept.mean()),
            "test released": float(test_kept.mean()),
            "on all test rows": {name: float(found.mean()) for name, found in right.items()},
            "on released test rows": {
                name: float(found[test_kept].mean()) if test_kept.any() else 0.0 for name, found in right.items()
            },
        }
    return results


def published_encoder(parts: Parts, *, private: bool, power: int = 1) -> PowerEncoder:
    """The published encoder fitted on the private rows; without ``private`` the paper's non-private baseline."""
    return PowerEncoder(
        epsilon=1.0,
        delta=0.05,
        radius=None,
        schema=parts.schema,
        mode="published",
        power_config=replace(parts.settings.power_config, private=private, power=power, seed=parts.seed),
        bandwidth_factor=parts.settings.bandwidth_factor,
        random_state=parts.seed,
    ).fit(parts.private_rows, parts.private_labels)


def unprotected_scores(parts: Parts) -> Results:
    """Scores of the non-private baseline's embeddings, as quantiles."""
    query = _published_query(published_encoder(parts, private=False))
    scores = query.scores(parts.schema.encode(parts.private_rows[:20_000]))
    return {"train scores": np.quantile(_finite(scores), np.linspace(0, 1, 101)).tolist()}


def powers(parts: Parts) -> Results:
    """Privacy loss along training for several p (the paper's figure 11)."""
    curves = {}
    for power in (1, 2, 3):
        training = published_encoder(parts, private=True, power=power).training_
        assert training is not None
        curves[str(power)] = list(training.privacy_losses)
    return curves


def inversion(parts: Parts) -> Results:
    """Share of released test rows that Newton's method gives back to a relative error below 1e-3."""
    query = _published_query(published_encoder(parts, private=True))
    rows = parts.schema.encode(parts.test_rows[:2000])
    released = query.exact(rows).astype(np.float32)
    errors = relative_errors(invert(query.network, released), rows)
    return {"share below 1e-3": float((errors < 1e-3).mean()), "median": float(np.median(errors)), "largest": float(errors.max())}


def default(parts: Parts, *, epsilon: float, radius: float | None) -> Results:
    """Ours: fitted on public rows, private and test rows released, servers trained on what was released."""
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=radius,
        schema=parts.schema,
        outputs=parts.settings.outputs,
        epochs=parts.settings.epochs,
        random_state=parts.seed,
    ).fit(parts.public_rows, parts.public_labels)
    count, private_labels = parts.settings.private_rows, parts.private_labels[: parts.settings.private_rows]
    released = encoder.simulate(parts.private_rows[:count], seed=parts.seed).values
    tested = encoder.simulate(parts.test_rows, seed=parts.seed + 1).values
    figures = server_accuracies(released, private_labels, tested, parts.test_labels, seed=parts.seed)
    plan = encoder.considered_[0]
    return {
        **figures,
        "law": plan.law,
        "outputs": int(released.shape[1]),
        "considered": [[other.law, other.utility] for other in encoder.considered_],
    }


def raw(parts: Parts, *, epsilon: float, radius: float | None) -> Results:
    """Raw columns under the same budget and adjacency; each server's better one of the two ways where there are two."""
    count, labels = parts.settings.private_rows, parts.private_labels[: parts.settings.private_rows]
    private, test = parts.schema.encode(parts.private_rows[:count]), parts.schema.encode(parts.test_rows)
    ways = [
        [raw_columns(parts.schema, rows, epsilon=epsilon, seed=parts.seed + index) for index, rows in enumerate((private, test))]
    ]
    if radius is not None:
        ways.append(
            [
                raw_vector(rows, epsilon=epsilon, radius=radius, seed=parts.seed + index)
                for index, rows in enumerate((private, test))
            ]
        )
    found = [server_accuracies(released, labels, tested, parts.test_labels, seed=parts.seed) for released, tested in ways]
    return {name: max(figures[name] for figures in found) for name in SERVERS}


def dp_adam(parts: Parts, *, epsilon: float) -> Results:
    """Weights trained by DP-Adam on the same private rows; its test rows are not protected at all."""
    count = parts.settings.private_rows
    config = PrivateTraining(
        epsilon=epsilon,
        delta=DP_ADAM_DELTA,
        hidden=(64,),
        epochs=10,
        batch_size=512,
        learning_rate=3e-3,
        optimizer="adam",
        seed=parts.seed,
    )
    model = train_private(parts.schema.encode(parts.private_rows[:count]), parts.private_labels[:count], config)
    predicted = model.predict(parts.schema.encode(parts.test_rows))
    return {"accuracy": float((predicted == parts.test_labels).mean())}


def hijacking(parts: Parts, *, epsilon: float, radius: float | None) -> Results:
    """Table 5: a decoder trained on public rows, against published and default embeddings and the majority guess."""
    config = HijackingConfig(seed=parts.seed)
    own, target = parts.public_rows[:ATTACK_ROWS], parts.test_rows[:ATTACK_ROWS]
    rows, truth = parts.schema.encode(own), parts.schema.encode(target)
    results: Results = {}

    def attack(name: str, released: Array, tested: Array) -> None:
        found = train_hijacker(released, rows, config).reconstruct(tested)
        results[name] = vars(hijacking_quality(found, truth, parts.schema.groups))

    for name, private in (("published", True), ("non-private", False)):
        query = _published_query(published_encoder(parts, private=private))
        attack(name, query.exact(rows), query.exact(truth))
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=radius,
        schema=parts.schema,
        outputs=parts.settings.outputs,
        epochs=parts.settings.epochs,
        random_state=parts.seed,
    ).fit(parts.public_rows, parts.public_labels)
    attack("default", encoder.simulate(own, seed=parts.seed).values, encoder.simulate(target, seed=parts.seed + 1).values)
    results["majority guess"] = vars(hijacking_quality(majority_guess(rows, len(truth)), truth, parts.schema.groups))
    return results


def _published_query(encoder: PowerEncoder) -> PublishedQuery:
    query = encoder.query_
    assert isinstance(query, PublishedQuery)
    return query


def _finite(scores: Array) -> Array:
    """Scores with infinity replaced by a number beyond every axis, so that quantiles can be stored."""
    return np.minimum(scores, 1e6)


def bound_and_attack(parts: Parts, *, epsilon: float, radius: float) -> Results:
    """The reconstruction bound beside a decoder's error, both on rows drawn from the same density estimate."""
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=radius,
        schema=parts.schema,
        law="k-norm-l2",
        outputs=parts.settings.outputs,
        epochs=parts.settings.epochs,
        random_state=parts.seed,
    ).fit(parts.public_rows, parts.public_labels)
    own, target = parts.schema.encode(parts.public_rows), parts.schema.encode(parts.test_rows[:ATTACK_ROWS])
    density = KernelDensity(own.astype(np.float32), bandwidth(own, rule="scott"))
    information = fisher_trace(density)
    own = smoothed(own, bandwidth=density.bandwidth, seed=parts.seed)
    random = np.random.default_rng(parts.seed)
    target = smoothed(
        density.centers[random.integers(len(own), size=len(target))], bandwidth=density.bandwidth, seed=parts.seed + 1
    )
    query = encoder.query_
    sampler = SeededSampler(parts.seed)
    released, tested = (query.answer(rows, sampler=sampler)[0] for rows in (own, target))
    found = train_hijacker(released, own, HijackingConfig(seed=parts.seed)).reconstruct(tested)
    quality = hijacking_quality(found, target, parts.schema.groups)
    blind = hijacking_quality(majority_guess(own, len(target)), target, parts.schema.groups)
    return {
        "bound": reconstruction_bound(parts.schema.dimension, lipschitz_epsilon=epsilon / radius, prior_information=information),
        "attack": quality.squared_error,
        "blind guess": blind.squared_error,
        "prior information": information,
        "bandwidth": density.bandwidth,
    }
