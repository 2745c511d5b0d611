"""Guarantee cards of released table rows, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from reticent.core.guarantees import GuaranteeCard
from reticent.mechanisms import AnyTwo, KNormMechanism
from reticent.systems import clauses as say
from reticent.systems.power.code_query import CROWD, CodeQuery, CodeTarget, EmbeddedPoints
from reticent.systems.power.code_targets import NearRows
from reticent.systems.power.protection import AttributeRadii, reach
from reticent.systems.power.query import ClearQuery, PowerQuery, RowQuery
from reticent.systems.scores import channel_scores
from reticent.tables.attributes import Numeric
from reticent.tables.schema import TabularSchema

_MECHANISMS = {
    "k-norm-l2": "K-norm noise in l2",
    "gaussian": "Gaussian noise",
    "clear-noise": "K-norm noise on what is protected; the rest as it is",
    "clear-code": "randomised response on which of the {candidates} labels that are likeliest by "
    "what is not protected a public forest names",
}


@dataclass(frozen=True)
class _Scope:
    """Records that are told apart no better than stated: for how many attributes, and how far."""

    protected: str
    beyond: str
    details: tuple[tuple[str, str], ...] = ()


def power_card(query: RowQuery) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what is assumed."""
    plan = query.plan
    if plan.radius is None:
        scope = _whole_record(query)
    elif isinstance(plan.radius, AttributeRadii):
        scope = _by_attribute(query, plan.radius)
    else:
        scope = _within_radius(query, plan.radius)
    return say.input_card(
        query,
        title="Released embedding of a table row",
        protected=f"{scope.protected} {say.ALWAYS_ANSWERED}",
        from_whom=say.INTO_THE_BUNDLE.format(values="values"),
        assumptions=say.phrases(
            say.OWNERS_AGREED.format(
                data="the rows that the encoder was trained and calibrated on", more=""
            ),
            "the schema (columns, ranges, categories) was public before the records were seen",
            say.TRUSTED_DEVICE.format(input="record"),
        ),
        not_protected=say.phrases(
            scope.beyond,
            say.TWICE.format(input="record"),
            "the rows that the encoder was trained on",
        ),
        details=(
            (
                "mechanism",
                _MECHANISMS[plan.mechanism].format(candidates=plan.candidates),
            ),
            ("released values per row", str(query.outputs)),
            (
                "Lipschitz constant",
                "not needed"
                if query.certificate == "none"
                else f"{query.constant:.9g} ({query.certificate})",
            ),
            (
                f"expected {plan.scoring.replace('_', ' ')} on calibration rows",
                f"{plan.utility:.4f}" + (" nats" if plan.scoring == "information" else ""),
            ),
            *scope.details,
        ),
    )


def _factor(query: RowQuery) -> str:
    return say.odds(query.mechanism.guarantee, between="between them ")


def _whole_record(query: RowQuery) -> _Scope:
    return _Scope(
        f"The whole record: between any two records of the schema, {_factor(query)}. This is local "
        "differential privacy.",
        "that a record is in the table at all, and its label if that is sent along",
    )


def _by_attribute(query: RowQuery, radii: AttributeRadii) -> _Scope:
    inside = "; ".join(f"{name} {reach(radius)}" for name, radius in radii.radii if radius)
    outside = ", ".join(name for name, radius in radii.radii if not radius) or "none"
    missing = any(
        radius and math.isfinite(radius) and attribute.width > 1 and not attribute.codes
        for (_, radius), attribute in zip(radii.radii, query.schema.attributes, strict=True)
    )
    details = [
        ("radius of each protected attribute", inside),
        ("attributes that are not protected", outside),
    ]
    if missing:
        details.append(
            (
                "missing values",
                (
                    "within a finite radius of a number that may be missing: both are there, or "
                    "both are missing; which, is not protected"
                ),
            )
        )
    return _Scope(
        "Which of two records an answer came from, whenever they differ, in any number of "
        "attributes at once, by no more than the radius of each, in the table's own units, and "
        f"agree in every attribute without one: {_factor(query)}.",
        f"attributes of radius 0 ({outside}): what is released depends on them without noise, and "
        "may show them; changes beyond the radii; and the label, if sent",
        tuple(details),
    )


def _within_radius(query: RowQuery, radius: float) -> _Scope:
    protected = (
        f"Which of two records an answer came from, whenever they are at most {radius:g} apart in "
        f"the encoded space, where a change of any one attribute is at most 1: {_factor(query)}."
    )
    details = [("the radius, on one attribute alone", _in_own_units(query.schema, radius))]
    # Of the whole record: with free coordinates two records may be told apart for certain.
    if isinstance(query, PowerQuery) and isinstance(query.mechanism, KNormMechanism):
        offset = _rounded_up(query.mechanism.metric_offset)
        protected += (
            " Records at any distance r are told apart by at most "
            f"e^({query.mechanism.epsilon:g} r / {radius:g} + {offset}): Lipschitz privacy, up to "
            "the grid's offset."
        )
        details.append(
            ("offset of the Lipschitz statement, from the grid", f"{offset} at every distance")
        )
    free = isinstance(query, ClearQuery)
    if free:
        details.append(
            (
                "read as it is, without noise",
                (
                    "categories, and which numbers are missing: no two records within the radius "
                    "differ in them, and nothing is promised about two that do"
                ),
            )
        )
    return _Scope(
        protected,
        f"the record beyond distance {radius:g}: {'categories, and ' if free else ''}several "
        "attributes together may be visible; and its label, if sent",
        tuple(details),
    )


def _rounded_up(value: float) -> str:
    """Return ``value``, at least 0, to two digits and not below it."""
    return f"{Decimal(value).normalize(Context(prec=2, rounding=ROUND_CEILING)):.1e}"


def _in_own_units(schema: TabularSchema, radius: float) -> str:
    """Say what a move of one attribute by ``radius``, and of no other, is in the table's units."""
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


def code_card(query: CodeQuery) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what it is worth for whom."""
    guarantee, (mean, worst) = query.mechanism.guarantee, query.crowd
    adjacency, points = query.mechanism.adjacency, isinstance(query.inputs, EmbeddedPoints)
    what = "input" if points else "record"
    near = not isinstance(query.mechanism.nodes, AnyTwo)
    whole = f"The whole {what}: between any two " + (
        "inputs" if points else "records of the schema"
    )
    local = "" if near else " This is local differential privacy."
    some = f"Which of two {what}s an answer came from, whenever they are {adjacency.describe()}:"
    details = [*query.mechanism.rests_on(), ("answers", str(query.outputs))]
    if near and isinstance(query.near, NearRows):
        kind = "nearest to it" if query.near.other is None else "nearest with another value of "
        joined = f"each public row to the {query.near.neighbours} {kind}{query.near.other or ''}"
        details.append(("joined", joined))
    details += [
        (f"worth for {target.name}, on public rows held out", _worth(target))
        for target in query.served
    ]
    others = [target for target in query.targets if target.worth is None]
    told = [
        (target.name, channel_scores(query.mechanism.matrix.T @ target.joint).information)
        for target in others
    ]
    left = "; ".join(f"{name} {nats:.4f}" for name, nats in told)
    details.append(("nats left of each other column of categories", left or "none is held"))
    details.append(
        (
            f"which of {CROWD}",
            (
                f"the best guess names the right one of {CROWD} {what}s drawn like the public ones "
                f"with probability {mean:.4f}, and at most {worst:.4f} for the worst {CROWD}"
            ),
        )
    )
    return say.input_card(
        query,
        title=f"Released code of {'an input' if points else 'a table row'}, for its targets",
        protected=f"{some if near else whole + ','} "
        f"{say.odds(guarantee, between='between them ')}.{local} {say.naming_words(guarantee)} "
        f"{say.ALWAYS_ANSWERED}",
        from_whom=say.INTO_THE_BUNDLE.format(values="codes"),
        assumptions=say.phrases(
            say.OWNERS_AGREED.format(
                data="the rows that nodes and channel were fitted on", more=""
            ),
            not points
            and "the schema (columns, ranges, categories) was public before the records were seen",
            say.TRUSTED_DEVICE.format(input=what),
        ),
        not_protected=say.phrases(
            not points
            and "that a record is in the table at all, and its label if that is sent along",
            near and say.farther_words(guarantee, f"{what}s h steps between neighbours apart"),
            say.TWICE.format(input=what),
            "the rows that nodes and channel were fitted on",
        ),
        details=tuple(details),
    )


def _worth(target: CodeTarget) -> str:
    """Say what a release is worth for one target, beside the constant, the target alone and a
    split.
    """
    worth = target.worth
    assert worth is not None
    parts = []
    for score in ("log loss", "AUC", "accuracy", "recall", "explained"):
        if score in worth.held["released"]:
            value = worth.held["released"][score]
            beside = [
                f"{words} {worth.held[name][score]:.3f}"
                for name, words in (
                    ("constant", "constant"),
                    ("alone", "this target alone"),
                    ("split", "a split of epsilon"),
                )
            ]
            parts.append(f"{score} {value:.3f} ({', '.join(beside)})")
    return (
        f"{'; '.join(parts)}; {worth.kept:.0%} of what it would have alone, on the rows that were "
        f"fitted on; standard error of the first {worth.error:.3f} over {worth.rows} rows"
    )
