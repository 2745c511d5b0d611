"""What attackers make of released rows: the hijacking decoder (Table 5), and the reconstruction
bound beside an attack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from papers.power.parts import Array, Parts, Results
from papers.power.published_mode import dp_adam_encoder, published_encoder
from papers.power.reconstruction_bound import fisher_bound, reconstruction_bound, smoothed
from reticent.attacks import DecoderConfig, train_decoder
from reticent.noise import SeededSampler
from reticent.published.density import KernelDensity, bandwidth
from reticent.systems import PowerEncoder, VectorTraining

ATTACK_ROWS = 4000
RADIUS = 0.1
"""l2 radius of the releases that the reconstruction bound is for."""


def hijacking(parts: Parts) -> Results:
    """Table 5: a decoder trained on public rows, against published embeddings, a code that hides
    any two records from each other at epsilon 1, and the majority guess.
    """
    config = DecoderConfig(epochs=20, seed=parts.seed)
    own, target = parts.public_rows[:ATTACK_ROWS], parts.test_rows[:ATTACK_ROWS]
    rows, truth = parts.schema.encode(own), parts.schema.encode(target)
    results: Results = {}

    def attack(name: str, released: Array, tested: Array) -> None:
        found = train_decoder(released, rows, config).reconstruct(tested)
        results[name] = hijacking_quality(found, truth, parts.schema.groups)

    for name, private in (("published", True), ("non-private", False)):
        network = published_encoder(parts, private=private).training_.network
        attack(name, network.embed(rows), network.embed(truth))
    network = dp_adam_encoder(parts).network
    attack("DP-Adam", network.embed(rows), network.embed(truth))
    encoder = _proved_encoder(parts, epsilon=1.0, radius=None, mechanism="auto")
    attack(
        "ours, any two records, epsilon 1",
        encoder.simulate(own, seed=parts.seed).values,
        encoder.simulate(target, seed=parts.seed + 1).values,
    )
    results["majority guess"] = hijacking_quality(
        majority_guess(rows, len(truth)), truth, parts.schema.groups
    )
    return results


def hijacking_quality(
    found: npt.NDArray[np.floating], rows: Array, groups: Sequence[tuple[str, slice, bool]]
) -> dict[str, float]:
    """How near drawn rows, shape (n, d), are to the true encoded ones: the share of rows whose
    categories were *all* right (the paper's "accuracy"), the mean share of right categories,
    squared errors per coordinate and per row, and the correlation of all coordinates.

    Args:
        found: the attacker's rows.
        rows: the true rows.
        groups: name, coordinates and whether they are one-hot, for each attribute
            (``TabularSchema.groups``). At least one is one-hot.
    """
    right = [
        found[:, part].argmax(axis=1) == rows[:, part].argmax(axis=1)
        for _, part, one_hot in groups
        if one_hot
    ]
    table, squared = np.stack(right, axis=1), np.square(found - rows)
    return {
        "all_categories": float(table.all(axis=1).mean()),
        "category": float(table.mean()),
        "mean_squared_error": float(squared.mean()),
        "correlation": float(np.corrcoef(found.ravel(), rows.ravel())[0, 1]),
        "squared_error": float(squared.sum(axis=1).mean()),
    }


def majority_guess(rows: Array, count: int) -> Array:
    """The mean of public rows, ``count`` times: the largest entry of the mean of a one-hot code is
    its most frequent category.
    """
    return np.tile(rows.mean(axis=0), (count, 1))


def _proved_encoder(
    parts: Parts, *, epsilon: float, radius: float | None, mechanism: str
) -> PowerEncoder:
    return PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=radius,
        schema=parts.schema,
        mechanism=mechanism,
        random_state=parts.seed,
        training=VectorTraining(outputs=(1, 2), epochs=12),
    ).fit(parts.public_rows, parts.public_labels)


def bound_and_attack(parts: Parts, *, epsilon: float) -> Results:
    """The reconstruction bound beside a decoder's error, both on rows drawn from the same
    density estimate.
    """
    encoder = _proved_encoder(parts, epsilon=epsilon, radius=RADIUS, mechanism="k-norm-l2")
    own, target = (
        parts.schema.encode(parts.public_rows),
        parts.schema.encode(parts.test_rows[:ATTACK_ROWS]),
    )
    density = KernelDensity(own.astype(np.float32), bandwidth(own))
    information = fisher_bound(density)
    own = smoothed(own, bandwidth=density.bandwidth, seed=parts.seed)
    random = np.random.default_rng(parts.seed)
    target = smoothed(
        density.centers[random.integers(len(own), size=len(target))],
        bandwidth=density.bandwidth,
        seed=parts.seed + 1,
    )
    sampler = SeededSampler(parts.seed)
    released, tested = (encoder.query_.answer(rows, sampler=sampler)[0] for rows in (own, target))
    found = train_decoder(released, own, DecoderConfig(epochs=20, seed=parts.seed)).reconstruct(
        tested
    )
    quality = hijacking_quality(found, target, parts.schema.groups)
    blind = hijacking_quality(majority_guess(own, len(target)), target, parts.schema.groups)
    return {
        "bound": reconstruction_bound(
            parts.schema.dimension,
            lipschitz_epsilon=epsilon / RADIUS,
            prior_information=information,
        ),
        "record known": parts.schema.dimension * density.bandwidth**2,
        "attack": quality["squared_error"],
        "blind guess": blind["squared_error"],
        "prior information": information,
        "bandwidth": density.bandwidth,
    }
