"""Guarantee cards of posthoc releases, in plain words."""

from __future__ import annotations

from reticent.core.guarantees import GuaranteeCard
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.systems import clauses as say
from reticent.systems.posthoc.certificates import CERTIFICATES
from reticent.systems.posthoc.plans import releases_labels
from reticent.systems.posthoc.query import PrivateQuery


def posthoc_card(query: PrivateQuery) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what is assumed."""
    guarantee, plan, bound = query.mechanism.guarantee, query.plan, query.bound
    adjacency = query.requirement.adjacency
    radius = f"{adjacency.radius:g}"
    any_two = isinstance(query.rule, FiniteChannel) and isinstance(query.rule.nodes, AnyTwo)
    any_two = any_two or query.any_two_points
    near = (
        f"whatever the two are (the {adjacency.space} is clipped to a public box)"
        if query.any_two_points
        else f"whenever the two lie within {adjacency.metric.value} distance {radius} of each "
        f"other in the {adjacency.space}"
    )
    withheld = (
        f"A share of about {1 - plan.released:.1%} of answers is withheld (measured on "
        "calibration data); a withheld answer costs as much as any other."
        if plan.path == "local"
        else say.ALWAYS_ANSWERED
    )
    return say.input_card(
        query,
        title=f"Released {'label' if releases_labels(plan.mechanism) else 'embedding'} with a "
        "posthoc guarantee",
        protected=f"Which of two inputs an answer came from, {near}: "
        f"{say.odds(guarantee, between='between them ')}. {say.naming_words(guarantee)} {withheld}",
        from_whom=say.INTO_THE_BUNDLE.format(values="values"),
        assumptions=say.phrases(
            say.OWNERS_AGREED.format(
                data="the data that the networks were trained and calibrated on", more=""
            ),
            say.TRUSTED_DEVICE.format(input="input"),
            query.embedding.kind == "module"
            and "the user's own embedder answers every input, and in the same time",
            query.rule is None
            and bound.kind not in CERTIFICATES
            and f"the user's own bound {bound.kind!r} holds at every point, and its time does not "
            "depend on the point",
        ),
        not_protected=say.phrases(
            say.REFUSED,
            not any_two
            and f"the input beyond distance {radius}: this is not differential privacy of the "
            "whole picture, and which rough kind of input it is may well be visible; look at "
            "decoded neighbours to see what that means",
            not any_two
            and say.farther_words(guarantee, f"inputs h times {radius} apart, h a whole number"),
            say.TWICE.format(input="input"),
            "the data that the networks were trained on",
        ),
        details=_details(query),
    )


def _details(query: PrivateQuery) -> tuple[tuple[str, str], ...]:
    plan = query.plan
    if query.rule is not None:
        path = "exact check of the whole mechanism"
        rests_on = query.rule.rests_on()
    else:
        whole = plan.path == "global"
        path = "bound over the whole public domain" if whole else "propose, test, release"
        rests_on = (
            ("Lipschitz proposal", f"{plan.proposal:.6g}"),
            ("certificate", query.bound.kind),
        )
    return (
        ("path", path),
        ("mechanism", plan.mechanism),
        *rests_on,
        (
            "epsilon for the test, for the release",
            f"{plan.epsilon_test:.6g}, {plan.epsilon_release:.6g}",
        ),
        ("delta for the test, for the release", f"{plan.delta_test:.3g}, {plan.delta_release:.3g}"),
        ("expected utility on calibration data", f"{plan.utility:.4f}"),
    )
