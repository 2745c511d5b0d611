"""Accuracy at proved budgets: the default mode, raw columns under local privacy, DP-Adam, and no
protection.
"""

from __future__ import annotations

import numpy as np

from papers.dpsgd import PrivateTraining, train_private
from papers.power.parts import Parts, Results, server_accuracies
from papers.power.settings import SERVERS
from papers.power.within import raw_vector
from reticent.demos.power import raw_columns
from reticent.systems import VectorTraining
from reticent.systems.power.encoder import PowerEncoder

DP_ADAM_DELTA = 1e-5


def non_private(parts: Parts) -> Results:
    """Servers on the encoded rows themselves; servers that learnt from the *public* rows alone;
    the majority rate.
    """
    private, labels = parts.released()
    test, wanted = parts.schema.encode(parts.test_rows), parts.test_labels
    public = parts.schema.encode(parts.public_rows)
    return {
        **server_accuracies(private, labels, test, wanted, seed=parts.seed),
        "public rows": server_accuracies(
            public, parts.public_labels, test, wanted, seed=parts.seed
        ),
        "majority": float(np.bincount(wanted).max() / len(wanted)),
    }


def default_encoder(
    parts: Parts, *, epsilon: float, radius: float | None, mechanism: str = "auto"
) -> PowerEncoder:
    """The default mode's encoder, fitted on the public rows."""
    return PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=radius,
        schema=parts.schema,
        mechanism=mechanism,
        random_state=parts.seed,
        training=VectorTraining(outputs=parts.settings.outputs, epochs=parts.settings.epochs),
    ).fit(parts.public_rows, parts.public_labels)


def default(parts: Parts, *, epsilon: float, radius: float | None) -> Results:
    """Ours: fitted on public rows, private and test rows released, servers trained on what was
    released.
    """
    encoder = default_encoder(parts, epsilon=epsilon, radius=radius)
    _, labels = parts.released()
    released = encoder.simulate(parts.private_rows[: len(labels)], seed=parts.seed).values
    tested = encoder.simulate(parts.test_rows, seed=parts.seed + 1).values
    return {
        **server_accuracies(released, labels, tested, parts.test_labels, seed=parts.seed),
        "mechanism": f"{encoder.mechanism_}, {released.shape[1]}",
    }


def raw(parts: Parts, *, epsilon: float, radius: float | None) -> Results:
    """Raw columns under the same budget and adjacency; each server's better one of the two ways
    where there are two.
    """
    private, labels = parts.released()
    both = (private, parts.schema.encode(parts.test_rows))
    seeds = (parts.seed, parts.seed + 1)
    ways = [
        [
            raw_columns(parts.schema, rows, epsilon=epsilon, seed=seed)
            for rows, seed in zip(both, seeds, strict=True)
        ],
    ]
    if radius is not None:
        ways.append(
            [
                raw_vector(rows, epsilon=epsilon, radius=radius, seed=seed)
                for rows, seed in zip(both, seeds, strict=True)
            ]
        )
    found = [
        server_accuracies(released, labels, tested, parts.test_labels, seed=parts.seed)
        for released, tested in ways
    ]
    return {name: max(figures[name] for figures in found) for name in SERVERS}


def dp_adam(parts: Parts, *, epsilon: float) -> Results:
    """Weights trained by DP-Adam on the same private rows; its test rows are not protected at all.

    Settings were chosen on a part of the training rows; columns are scaled by what is public.
    """
    config = PrivateTraining(
        epsilon=epsilon,
        delta=DP_ADAM_DELTA,
        hidden=(64,),
        epochs=20,
        batch_size=512,
        learning_rate=1e-2,
        optimizer="adam",
        seed=parts.seed,
    )
    rows, labels = parts.released()
    rows, test = parts.standardised(rows, parts.schema.encode(parts.test_rows))
    predicted = train_private(rows, labels, config).predict(test)
    return {"accuracy": float((predicted == parts.test_labels).mean())}
