"""Guarantee cards of released table rows, in plain words."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

from reticent.core.guarantees import GuaranteeCard
from reticent.mechanisms import KNormMechanism
from reticent.systems.power.likeliest_query import LikeliestQuery
from reticent.systems.power.protected_query import ProtectedQuery
from reticent.systems.power.protection import AttributeRadii, reach
from reticent.systems.power.query import PowerQuery
from reticent.systems.power.score_query import ScoreCodeQuery
from reticent.tables.attributes import Numeric
from reticent.tables.schema import TabularSchema

_ASSUMED = (
    (
        "the rows that the encoder was trained and calibrated on are public, or their owners have "
        "agreed"
    ),
    "the schema (columns, ranges, categories) was public before the records were seen",
    "the release runs on a device that the owner of the record trusts",
    (
        "the noise comes from the operating system's random numbers (an answer that was made with "
        "a seed is not private)"
    ),
    "the operating system, the processor, numpy and torch compute what they document",
)


def power_card(
    query: PowerQuery | ScoreCodeQuery | ProtectedQuery | LikeliestQuery,
) -> GuaranteeCard:
    """The card of ``query``: what is protected, from whom, and what is assumed."""
    plan, guarantee = query.plan, query.mechanism.guarantee
    factor = (
        "no observer's odds between them change by more than a factor "
        f"e^{guarantee.epsilon:g} per answer"
    )
    if guarantee.delta:
        factor = (
            "the probability of any set of answers changes by at most a factor "
            f"e^{guarantee.epsilon:g}, plus "
            f"{guarantee.delta:g}, per answer"
        )
    details: list[tuple[str, str]] = []
    if plan.radius is None:
        protected = (
            f"The whole record: between any two records of the schema, {factor}. This "
            "is local differential privacy."
        )
        limit = "that a record is in the table at all, and its label if that is sent along"
    elif isinstance(plan.radius, AttributeRadii):
        radii = plan.radius.radii
        inside = "; ".join(f"{name} {reach(radius)}" for name, radius in radii if radius)
        outside = [name for name, radius in radii if not radius]
        protected = (
            "Which of two records an answer came from, whenever they differ, in any number of "
            "attributes at once, by no more than the radius of each, in the table's own units, and "
            f"agree in every attribute without one: {factor}."
        )
        details.append(("radius of each protected attribute", inside))
        details.append(("attributes that are not protected", ", ".join(outside) or "none"))
        if any(
            radius and math.isfinite(radius) and attribute.width > 1 and not attribute.codes
            for (_, radius), attribute in zip(radii, query.schema.attributes, strict=True)
        ):
            details.append(
                (
                    "missing values",
                    (
                        "within a finite radius of a number that may be missing: both "
                        "are there, or both are missing; which, is not protected"
                    ),
                )
            )
        limit = (
            "attributes of radius 0 ("
            + (", ".join(outside) or "none")
            + "): what is released depends on them without noise, and may show them; changes "
            "beyond the radii; and the label, if sent"
        )
    else:
        protected = (
            "Which of two records an answer came from, whenever they are at most "
            f"{plan.radius:g} apart in the encoded "
            f"space, where a change of any one attribute is at most 1: {factor}."
        )
        details.append(
            ("the radius, on one attribute alone", _in_own_units(query.schema, plan.radius))
        )
        # Of the whole record: with free coordinates two records may be told apart for certain.
        if isinstance(query, PowerQuery) and isinstance(query.mechanism, KNormMechanism):
            offset = _rounded_up(query.mechanism.metric_offset)
            protected += (
                " Records at any distance r are told apart by at most "
                f"e^({guarantee.epsilon:g} r / {plan.radius:g} + {offset}): "
                "Lipschitz privacy, up to the grid's offset."
            )
            details.append(
                ("offset of the Lipschitz statement, from the grid", f"{offset} at every distance")
            )
        if isinstance(query, ProtectedQuery | LikeliestQuery):
            details.append(
                (
                    "read as it is, without noise",
                    (
                        "categories, and which numbers are missing: no two records within the "
                        "radius differ in them, and nothing is promised about two that do"
                    ),
                )
            )
        free = "categories, and " if isinstance(query, ProtectedQuery | LikeliestQuery) else ""
        limit = (
            f"the record beyond distance {plan.radius:g}: {free}several attributes together "
            "may be visible; and its label, if sent"
        )
    mechanism = {
        "code": "randomised response on a code",
        "score-code": f"{plan.response} on bins of a public {plan.model} model's score",
        "k-norm-l2": "K-norm noise in l2",
        "gaussian": "Gaussian noise",
        "score-noise": "K-norm noise in l-infinity on scores of what is protected",
        "score-levels": "level response on the side of a score of what is protected",
        "clear-noise": "K-norm noise on what is protected; the rest as it is",
        "clear-code": f"randomised response on which of the {plan.candidates} labels that are "
        "likeliest by what is not protected a public forest names",
    }[plan.mechanism]
    bound = query.bound
    return GuaranteeCard(
        title="Released embedding of a table row",
        protected=f"{protected} No answer is ever withheld.",
        from_whom="Anyone who sees the released values, the receipt and this whole bundle, "
        "encoder included, with any other "
        "knowledge and any computing power.",
        guarantee=guarantee,
        assumptions=_ASSUMED,
        not_protected=(
            limit,
            (
                "several answers about one record without adding them up: two answers cost twice "
                "as much"
            ),
            "the rows that the encoder was trained on",
        ),
        details=(
            ("mechanism", mechanism),
            ("released values per row", str(query.outputs)),
            (
                "Lipschitz constant",
                "not needed" if bound.kind == "none" else f"{bound.constant:.9g} ({bound.kind})",
            ),
            (
                f"expected {plan.scoring.replace('_', ' ')} on calibration rows",
                f"{plan.utility:.4f}" + (" nats" if plan.scoring == "information" else ""),
            ),
            *details,
        ),
    )


def _rounded_up(value: float) -> str:
    """``value``, at least 0, to two digits and not below it."""
    return f"{Decimal(value).normalize(Context(prec=2, rounding=ROUND_CEILING)):.1e}"


def _in_own_units(schema: TabularSchema, radius: float) -> str:
    """What a move of one attribute by ``radius``, and of no other, is in the table's units."""
    if radius >= 1:
        return "any change of it"
    kinds, numbers = (
        [],
        [attribute for attribute in schema.attributes if isinstance(attribute, Numeric)],
    )
    if any(number.scale == "linear" for number in numbers):
        kinds.append(f"{radius:g} of the range of a number")
    logarithmic = [number for number in numbers if number.scale == "log"]
    if logarithmic:
        example = min(logarithmic, key=lambda number: number.upper - number.lower)
        reach = math.expm1(radius * math.log1p(example.upper - example.lower))
        kinds.append(
            "of a number on a logarithmic scale a factor, counted from its lower end ("
            f"{example.name}: {1 + reach:.3g} in 1 + value - lower, so from {example.lower:g} "
            f"to {example.lower + reach:.3g})"
        )
    if len(numbers) < len(schema.attributes):
        kinds.append("of a category nothing: two are 1 apart")
    if any(number.missing is not None for number in numbers) and radius < math.sqrt(0.75):
        kinds.append("not whether a number is missing")
    return "; ".join(kinds)
