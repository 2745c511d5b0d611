"""What an attacker makes of released table rows: the published mode inverted, the default mode
decoded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.attacks.hijacking import (
    HijackingConfig,
    hijacking_quality,
    majority_guess,
    train_hijacker,
)
from reticent.attacks.inversion import invert, relative_errors
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.published import PublishedQuery
from reticent.systems.power.settings import PublishedMode
from reticent.tables.attributes import Attribute, Numeric, OneHot
from reticent.tables.decoding import decode
from reticent.tables.schema import TabularSchema
from reticent.training.power.published import PowerConfig

Array = npt.NDArray[np.float64]

NEAR = 0.05
"""In examples a number counts as right if it is off by at most this share of its public range
(of its logarithm's, if that is taken)."""

PUBLISHED, NOTHING = "published mode", "nothing"
"""Names of what the attacker sees, beside the names of the default mode's encoders."""

_THREE_DIGITS = 1e-3


@dataclass(frozen=True, eq=False)
class Target:
    """Who knows what.

    Attributes:
        schema: public.
        public: the attacker's own rows of the same kind, which encoders learnt from.
        private, private_labels: what the published mode learns from, as in its paper.
        held_out: rows that are released and attacked.
    """

    schema: TabularSchema
    public: npt.NDArray[Any]
    private: npt.NDArray[Any]
    private_labels: npt.NDArray[np.int64]
    held_out: npt.NDArray[Any]


def attack_results(
    encoders: Mapping[str, PowerEncoder],
    target: Target,
    *,
    score: float,
    bandwidth_factor: float,
    power_config: PowerConfig,
    hijacking: HijackingConfig,
    examples: int,
    seed: int,
) -> dict[str, Any]:
    """Plain values for JSON: quality of every attack on the held-out rows, and what it says of a
    few of them.

    Args:
        encoders: fitted encoders of the default mode, by name.
        target: rows.
        score, bandwidth_factor, power_config: of the published mode.
        hijacking: settings of the decoder that attacks the default mode.
        examples: records to show: the first ones that the published mode did not withhold, then the
            first others.
        seed: of the published mode's training.
    """
    schema = target.schema
    truth, known = schema.encode(target.held_out), schema.encode(target.public)
    published = PowerEncoder(
        epsilon=score,
        delta=0.05,
        radius=None,
        schema=schema,
        random_state=seed,
        published=PublishedMode(training=power_config, bandwidth_factor=bandwidth_factor),
    ).fit(target.private, target.private_labels)
    answer, query = published.release(target.held_out), published.query_
    assert isinstance(query, PublishedQuery)
    withheld = np.asarray(answer.withheld)
    inverted = invert(query.network, answer.values)
    errors = relative_errors(inverted, truth)[~withheld]
    guesses: dict[str, Array] = {}
    for name, encoder in encoders.items():
        decoder = train_hijacker(
            np.asarray(encoder.release(target.public).values), known, hijacking
        )
        guesses[name] = decoder.reconstruct(np.asarray(encoder.release(target.held_out).values))
    qualities = [_quality(name, found, truth, schema) for name, found in guesses.items()]
    qualities.append(_quality(NOTHING, majority_guess(known, len(truth)), truth, schema))
    if len(errors):
        qualities.insert(0, _quality(PUBLISHED, inverted[~withheld], truth[~withheld], schema))
    shown = np.argsort(withheld, kind="stable")[:examples]
    found = {PUBLISHED: inverted[shown], **{name: guess[shown] for name, guess in guesses.items()}}
    found[NOTHING] = np.tile(_middle(known, schema), (len(shown), 1))
    return {
        "published_mode": {
            "score": score,
            "bandwidth_factor": bandwidth_factor,
            "released": float(1 - withheld.mean()),
            "to_three_digits": float((errors < _THREE_DIGITS).mean()) if len(errors) else None,
        },
        "qualities": qualities,
        "different_guesses": {
            name: len(np.unique(guess.round(6), axis=0)) for name, guess in guesses.items()
        },
        "near": NEAR,
        "attributes": [attribute.name for attribute in schema.attributes],
        "examples": [
            {
                "record": _words(schema, target.held_out[row : row + 1])[0],
                "guesses": {
                    name: _reading(rows[place], truth[row], schema)
                    for name, rows in found.items()
                    if not (name == PUBLISHED and withheld[row])
                },
            }
            for place, row in enumerate(shown)
        ],
    }


def _reading(found: Array, truth: Array, schema: TabularSchema) -> dict[str, Any]:
    """What an attacker's encoded row says in words, and which of it is right."""
    return {
        "words": _words(schema, decode(schema, found[None]))[0],
        "right": _right(found[None], truth[None], schema)[0].tolist(),
    }


def _middle(rows: Array, schema: TabularSchema) -> Array:
    """The likeliest single row, attribute by attribute: the most frequent category, the median
    of numbers.
    """
    middle = majority_guess(rows, 1)[0]
    for _, part, one_hot in schema.groups:
        if not one_hot:
            middle[part] = np.median(rows[:, part], axis=0)
    return np.asarray(middle)


def _right(found: Array, truth: Array, schema: TabularSchema) -> npt.NDArray[np.bool_]:
    """Which attributes an attacker found, shape (n, attributes): the category, or a number to
    ``NEAR``.
    """
    return np.stack(
        [
            found[:, part].argmax(axis=1) == truth[:, part].argmax(axis=1)
            if one_hot
            else (np.abs(found[:, part] - truth[:, part]) <= NEAR).all(axis=1)
            for _, part, one_hot in schema.groups
        ],
        axis=1,
    )


def _quality(sees: str, found: Array, truth: Array, schema: TabularSchema) -> dict[str, Any]:
    quality = hijacking_quality(found, truth, schema.groups)
    places = [part.start for _, part, one_hot in schema.groups if not one_hot]
    return {
        "sees": sees,
        "categories": None if math.isnan(quality.category) else quality.category,
        "all_categories": None if math.isnan(quality.all_categories) else quality.all_categories,
        "number_error": float(np.sqrt(np.square(found - truth)[:, places].mean()))
        if places
        else None,
        "squared_error": quality.squared_error,
    }


def _words(schema: TabularSchema, rows: npt.NDArray[Any]) -> list[list[str]]:
    """One word per attribute and row: a number as its range needs it, a category, or the name of
    the column that is 1.
    """
    lines: list[list[str]] = []
    for row in rows:
        line, start = [], 0
        for attribute in schema.attributes:
            line.append(_word(attribute, row[start : start + attribute.columns]))
            start += attribute.columns
        lines.append(line)
    return lines


def _word(attribute: Attribute, fields: npt.NDArray[Any]) -> str:
    if isinstance(attribute, OneHot):
        return attribute.names[int(np.argmax(fields.astype(np.float64)))]
    if not isinstance(attribute, Numeric):
        return str(fields[0])
    value = float(fields[0])
    if attribute.missing is not None and value == attribute.missing:
        return "missing"
    digits = max(0, 2 - math.floor(math.log10(attribute.upper - attribute.lower)))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
