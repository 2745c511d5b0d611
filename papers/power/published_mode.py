"""The published mode: Table 3, scores of rows (Figures 4, 5 and 10), the effect of p (Figure
11), and its inversion.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from papers.dpsgd import PrivateTraining, train_private
from papers.power.dp_adam import train_power_privately
from papers.power.inversion import invert, relative_errors
from papers.power.parts import Array, Parts, Results, server_hits
from reticent.published.power import PublishedPowerEncoder
from reticent.published.power_network import PowerTraining, per_sample_epsilon

ALPHA = 0.05
QUANTILES = np.linspace(0.0, 1.0, 401)
DP_ADAM_EPSILON = 3.0
DP_ADAM_DELTA = 1e-5

_SCORED_ROWS = 20_000
_INVERTED_ROWS = 2_000


def published_encoder(
    parts: Parts, *, private: bool = True, power: int = 1, batch_size: int | None = None
) -> PublishedPowerEncoder:
    """The published encoder fitted on the private rows; without ``private`` the paper's
    non-private baseline.
    """
    return _fitted(parts, private, power, batch_size or parts.settings.power_config.batch_size)


@lru_cache(maxsize=6)  # all that one seed needs
def _fitted(parts: Parts, private: bool, power: int, batch_size: int) -> PublishedPowerEncoder:
    settings = parts.settings
    config = replace(
        settings.power_config,
        private=private,
        power=power,
        batch_size=batch_size,
        seed=parts.seed,
    )
    return PublishedPowerEncoder(
        epsilon=1.0,
        alpha=ALPHA,
        schema=parts.schema,
        training=config,
        bandwidth_factor=settings.bandwidth_factor,
        random_state=parts.seed,
    ).fit(parts.private_rows, parts.private_labels)


def not_private(parts: Parts) -> Results:
    """Servers on the encoded rows themselves, and the majority rate."""
    rows, test = parts.schema.encode(parts.private_rows), parts.schema.encode(parts.test_rows)
    wanted = parts.test_labels
    right = server_hits(rows, parts.private_labels, test, wanted, seed=parts.seed)
    return {
        **{name: float(found.mean()) for name, found in right.items()},
        "majority": float(np.bincount(wanted).max() / len(wanted)),
    }


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
    rows, test = parts.schema.encode(parts.private_rows), parts.schema.encode(parts.test_rows)
    rows, test = parts.standardised(rows, test)
    predicted = train_private(rows, parts.private_labels, config).predict(test)
    return {"accuracy": float((predicted == parts.test_labels).mean())}


def published(parts: Parts) -> Results:
    """Table 3's shape: the published encoder, trained on the rows that it releases; servers per
    filter threshold.
    """
    settings = parts.settings
    encoder = published_encoder(parts)
    rows, labels = parts.private_rows, parts.private_labels
    scores, test_scores = encoder.scores(rows), encoder.scores(parts.test_rows)
    embedded, test_embedded = encoder.embed(rows), encoder.embed(parts.test_rows)
    results: Results = {
        "train scores": quantiles(scores),
        "test scores": quantiles(test_scores),
        "rows": {},
    }
    for epsilon in settings.published_epsilons:
        kept, test_kept = scores <= epsilon, test_scores <= epsilon
        released = np.where(kept[:, None], embedded, np.nan)
        right = server_hits(released, labels, test_embedded, parts.test_labels, seed=parts.seed)
        results["rows"][f"{epsilon:g}"] = {
            "released": float(kept.mean()),
            "test released": float(test_kept.mean()),
            "on all test rows": {name: float(found.mean()) for name, found in right.items()},
            "on released test rows": {
                name: float(found[test_kept].mean()) if test_kept.any() else float("nan")
                for name, found in right.items()
            },
        }
    return results


def baseline_scores(parts: Parts) -> Results:
    """Scores of the embeddings of the two baselines: without the privacy loss, and trained by
    DP-Adam.
    """
    rows = parts.private_rows[:_SCORED_ROWS]
    plain, network = published_encoder(parts, private=False), dp_adam_encoder(parts).network
    encoded = parts.schema.encode(rows)
    private = per_sample_epsilon(network, plain.density_, encoded, alpha=ALPHA)
    return {"non-private": quantiles(plain.scores(rows)), "DP-Adam": quantiles(private)}


@lru_cache(maxsize=1)
def dp_adam_encoder(parts: Parts) -> PowerTraining:
    """The encoder trained by DP-Adam on its utility loss alone, on the same rows."""
    settings = parts.settings
    return train_power_privately(
        parts.schema.encode(parts.private_rows),
        parts.private_labels,
        replace(settings.power_config, seed=parts.seed),
        epsilon=DP_ADAM_EPSILON,
        delta=DP_ADAM_DELTA,
        density=published_encoder(parts, private=False).density_,
    )


def powers(parts: Parts) -> Results:
    """Privacy loss along training for several p."""
    curves = {}
    for power in (1, 2, 3):
        training = published_encoder(parts, power=power).training_
        curves[str(power)] = list(training.privacy_losses)
    return curves


def inversion(parts: Parts) -> Results:
    """Held-out rows from their published embeddings, stored in single precision, by Newton's
    method.

    Twice: with the encoder alone, and with the public rows as starts. ``found``: a relative
    error below 1e-3.
    """
    encoder = published_encoder(parts)
    rows = parts.schema.encode(parts.test_rows[:_INVERTED_ROWS])
    released = encoder.embed(parts.test_rows[:_INVERTED_ROWS]).astype(np.float32)
    public = parts.schema.encode(parts.public_rows)
    results: Results = {}
    for name, starts in (("encoder alone", None), ("encoder and public rows", public)):
        errors = relative_errors(invert(encoder.training_.network, released, public=starts), rows)
        results[name] = {
            "found": float((errors < 1e-3).mean()),
            "median": float(np.median(errors)),
            "largest": float(errors.max()),
        }
    return results


def quantiles(scores: npt.ArrayLike) -> list[float]:
    """Scores at ``QUANTILES``; infinity becomes a number beyond every axis, so that it can be
    stored.
    """
    values: Array = np.minimum(np.asarray(scores, dtype=np.float64), 1e6)
    return [float(value) for value in np.quantile(values, QUANTILES)]
