"""Guarantee cards of posthoc releases, in plain words."""

from __future__ import annotations

import math

from reticent.accounting.telling_apart import which_of_two_cap
from reticent.core.guarantees import GuaranteeCard
from reticent.mechanisms import ArgmaxResponse
from reticent.systems.card_words import factor_words, farther_words, share_words
from reticent.systems.posthoc.certificates import CERTIFICATES
from reticent.systems.posthoc.label_rules import LabelRule
from reticent.systems.posthoc.plans import releases_labels
from reticent.systems.posthoc.query import PrivateQuery


def posthoc_card(query: PrivateQuery) -> GuaranteeCard:
    """The card of ``query``: what is protected, from whom, and what is assumed."""
    guarantee = query.mechanism.guarantee
    adjacency, plan = query.requirement.adjacency, query.plan
    what = "label" if releases_labels(plan.mechanism) else "embedding"
    factor = f"a factor of {factor_words(guarantee.epsilon)}"
    protected = (
        "Which of two inputs an answer came from, whenever the two lie within "
        f"{adjacency.metric.value} distance "
        f"{adjacency.radius:g} of each other in the {adjacency.space}: "
    )
    protected += (
        f"the probability of any set of answers changes by at most {factor}, plus "
        f"{guarantee.delta:g}, per answer."
        if guarantee.delta
        else f"no observer's odds between them change by more than {factor} per answer."
    )
    cap = float(which_of_two_cap(guarantee.epsilon, guarantee.delta))
    protected += (
        " Who holds two of them to be equally likely names the right one with probability at most "
        f"{share_words(cap)} after one answer."
    )
    withheld = (
        f"A share of about {1 - plan.released:.1%} of answers is withheld (measured on "
        "calibration data); "
        "a withheld answer costs as much as any other."
        if plan.path == "local"
        else "No answer is ever withheld."
    )
    return GuaranteeCard(
        title=f"Released {what} with a posthoc guarantee",
        protected=f"{protected} {withheld}",
        from_whom="Anyone who sees the released values, the receipt and this whole bundle, "
        "with any other knowledge and any "
        "computing power: the server, its operator, an eavesdropper.",
        guarantee=guarantee,
        assumptions=(
            (
                "the data that the networks were trained and calibrated on are public, or their "
                "owners have agreed"
            ),
            "the release runs on a device that the owner of the input trusts",
            *(
                ()
                if query.embedding.kind != "module"
                else ("the user's own embedder answers every input, and in the same time",)
            ),
            *(
                ()
                if query.rule is not None or query.bound.kind in CERTIFICATES
                else (
                    (
                        f"the user's own bound {query.bound.kind!r} holds at every point, and its "
                        "time does not depend on the point"
                    ),
                )
            ),
            (
                "the noise comes from the operating system's random numbers (an answer that was "
                "made with a seed is not private)"
            ),
            "the observer does not see how long one release took or how much memory it used",
            "the operating system, the processor, numpy and torch compute what they document",
        ),
        not_protected=(
            (
                "that an input holds NaN or infinity: such a request is refused as a whole, before "
                "anything is charged"
            ),
            (
                f"the input beyond distance {adjacency.radius:g}: this is not differential "
                "privacy of the whole picture, and "
                "which rough kind of input it is may well be visible; look at decoded "
                "neighbours to see what that means"
            ),
            *(
                ()
                if isinstance(query.rule, ArgmaxResponse)
                else (
                    farther_words(
                        guarantee, f"inputs h times {adjacency.radius:g} apart, h a whole number"
                    ),
                )
            ),
            (
                "several answers about one input without adding them up: two answers cost twice as "
                "much"
            ),
            "the data that the networks were trained on",
        ),
        details=(
            (
                "path",
                "exact check of the whole mechanism"
                if query.rule is not None
                else "bound over the whole public domain"
                if plan.path == "global"
                else "propose, test, release",
            ),
            ("mechanism", plan.mechanism),
            *(
                (("Lipschitz proposal", f"{plan.proposal:.6g}"), ("certificate", query.bound.kind))
                if query.rule is None
                else _rule_details(query.rule)
            ),
            (
                "epsilon for the test, for the release",
                f"{plan.epsilon_test:.6g}, {plan.epsilon_release:.6g}",
            ),
            (
                "delta for the test, for the release",
                f"{plan.delta_test:.3g}, {plan.delta_release:.3g}",
            ),
            ("expected utility on calibration data", f"{plan.utility:.4f}"),
        ),
    )


def _rule_details(rule: LabelRule) -> tuple[tuple[str, str], ...]:
    if isinstance(rule, ArgmaxResponse):
        return (("holds for", "any two inputs, however far apart"),)
    lattice = rule.lattice
    side = math.ldexp(lattice.side, lattice.exponent)
    cells = " x ".join(str(size) for size in lattice.shape)
    return (("lattice", f"{cells} cells of side {side:.6g}, {lattice.size} in all"),)
