"""The clauses of guarantee cards, each worded once. Systems compose their cards of these."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from reticent.accounting.telling_apart import beyond, which_of_two_cap
from reticent.core.guarantees import (
    Adjacency,
    Guarantee,
    GuaranteeCard,
    Neighborhood,
    Replace,
)
from reticent.release.paying import same_records_again

if TYPE_CHECKING:  # what audits import knows no estimator
    from reticent.systems.releasing_system import Query


def phrases(*said: str | bool | None) -> tuple[str, ...]:
    """Return the phrases of what is said, in its order, without False and None."""
    return tuple(one for one in said if isinstance(one, str) and one)


# What has to be true of the machine and of the observer, for every system.
FRESH_NOISE = (
    "the noise comes from the operating system's random numbers (an answer that was made with a "
    "seed is not private)"
)
UNTIMED = "the observer does not see how long an answer took or how much memory it used"
MACHINE = "the operating system, the processor, numpy and torch compute what they document"
FLOAT64 = "the processor adds and multiplies float64 numbers as IEEE 754 says, to the last bit"

# What has to be true of an input's owner and of the rows that a system was fitted on.
TRUSTED_DEVICE = "the release runs on a device that the owner of the {input} trusts"
OWNERS_AGREED = "{data} are public, or their owners have agreed{more}"
INTO_THE_BUNDLE = (
    "Anyone who sees the released {values}, the receipt and this whole bundle, with any other "
    "knowledge and any computing power: the server, its operator, an eavesdropper."
)
REFUSED = (
    "that an input holds NaN or infinity: such a request is refused as a whole, before anything is "
    "charged"
)
TWICE = "several answers about one {input} without adding them up: two answers cost twice as much"
ALWAYS_ANSWERED = "No answer is ever withheld."

# What has to be true of private records and their owners.
ONE_RECORD_EACH = "no person owns more than one record; otherwise name the owners in persons"
OBSERVED_CLASSES = (
    "the set of labels that occur is public: it was taken from the records (classes='observed')"
)
UNPREPARED = (
    "whatever was done to the records before fit (scaling, principal components) learned nothing "
    "from them: a scaler fitted on the records voids this statement, PublicRanges does not"
)
SETTINGS = "{settings} were chosen without looking at the private records"
PUBLIC_QUERIES = (
    "the queries are public, and chosen without the private records or from earlier answers only; "
    "{also}"
)
FEATURES = "the feature map ({features}) is {origin}"
HOW_MANY = "how many records or persons there are: neighbours have as many"
REFUSED_RECORD = (
    "that a record holds NaN, infinity or a label that was not named: such a fit is refused as a "
    "whole, before anything is charged"
)
MANY_RECORDS = "what is true of many records together: that is what the answers tell"
SEEN_LABELS = "which labels occur among the records: whoever sees the labels knows"


def rests_on_float64(query: Query) -> bool:
    """Return whether the guarantee of ``query`` needs float64 to be as IEEE 754 says: where it
    rests on a certificate, or on a mechanism that does not count in whole numbers throughout.
    """
    return query.certificate != "none" or query.mechanism.rests_on_float64


def input_card(
    query: Query, *, assumptions: tuple[str, ...], not_protected: tuple[str, ...], **said: Any
) -> GuaranteeCard:
    """Return the card of a query that releases inputs.

    Args:
        query: the fitted query.
        assumptions, not_protected: clauses for this system alone. Those of every release of inputs
            are added.
        said: the other fields of ``GuaranteeCard``, but for the guarantee.
    """
    return GuaranteeCard(
        guarantee=query.mechanism.guarantee,
        assumptions=phrases(
            *assumptions, FRESH_NOISE, UNTIMED, MACHINE, rests_on_float64(query) and FLOAT64
        ),
        not_protected=not_protected,
        **said,
    )


def records_card(
    guarantee: Guarantee,
    *,
    by_person: bool,
    classes_given: bool,
    assumptions: tuple[str, ...],
    not_protected: tuple[str, ...],
    **said: Any,
) -> GuaranteeCard:
    """Return the card of what was computed from private records.

    Args:
        guarantee: guarantee of everything that is released.
        by_person: whether no person can own two of the units that are protected.
        classes_given: whether the labels that occur were named, and not taken from the records.
        assumptions, not_protected: clauses for this system alone. Those of every system of records
            are added. Float64 has to be as IEEE 754 says for all: sums are clipped in it,
            distances compared and totals computed.
        said: the other fields of ``GuaranteeCard``.
    """
    return GuaranteeCard(
        guarantee=guarantee,
        assumptions=phrases(
            *assumptions,
            not by_person and ONE_RECORD_EACH,
            not classes_given and OBSERVED_CLASSES,
            UNPREPARED,
            FRESH_NOISE,
            UNTIMED,
            MACHINE,
            FLOAT64,
        ),
        not_protected=phrases(
            MANY_RECORDS,
            isinstance(guarantee.adjacency, Replace) and HOW_MANY,
            REFUSED_RECORD,
            *not_protected,
            same_records_again(_of_data_sets(guarantee.adjacency)),
            not classes_given and SEEN_LABELS,
        ),
        **said,
    )


def _of_data_sets(adjacency: Adjacency) -> Adjacency:
    assert not isinstance(adjacency, Neighborhood)
    return adjacency


def presence(*, by_person: bool, replaced: bool = False, there: str = "there at all") -> str:
    """Return what nobody can tell of one record, or of one person's records."""
    if by_person:
        change = "are these or any others" if replaced else f"were {there}, labels included"
        return f"Whether all records of one person {change}"
    change = "is this one or any other" if replaced else f"was {there}, label included"
    return f"Whether any one private record {change}"


def odds(guarantee: Guarantee, *, per: str = " per answer", between: str = "") -> str:
    """Return how far an observer's odds may change.

    Args:
        guarantee: epsilon and delta.
        per: unit of the cost, with a space before it, or "" for everything.
        between: "between them ", where two inputs were named.
    """
    factor = f"a factor {factor_words(guarantee.epsilon)}"
    if guarantee.delta:
        comma = "," if per else ""
        return (
            f"the probability of any set of answers changes by at most {factor}, plus "
            f"{guarantee.delta:g}{comma}{per}"
        )
    return f"no observer's odds {between}change by more than {factor}{per}"


def naming_words(guarantee: Guarantee, *, two: str = "two of them", per: str = "answer") -> str:
    """Return how often one of two equally likely inputs, or data sets, is named right.

    Args:
        guarantee: epsilon and delta.
        two: the two.
        per: unit of the cost, or "" for everything.
    """
    cap = share_words(float(which_of_two_cap(guarantee.epsilon, guarantee.delta)))
    after = f" after one {per}" if per else ""
    return (
        f"Who holds {two} to be equally likely names the right one with probability at most "
        f"{cap}{after}."
    )


def factor_words(epsilon: float) -> str:
    """Return e^epsilon as a formula and as a number."""
    return f"e^{epsilon:g} = {_number(math.exp(min(epsilon, 700.0)))}"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100.0 else f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def share_words(cap: float) -> str:
    """Return a probability, rounded up, so that what is written holds as well."""
    return f"{min(math.ceil(cap * 1e4) / 1e4, 1.0):.4g}"


def farther_words(guarantee: Guarantee, inputs: str) -> str:
    """Say what is promised between inputs that are no neighbours.

    Args:
        guarantee: guarantee of one answer.
        inputs: the inputs, in terms of a whole number h.
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    hops = (2, 4, 8)
    caps = which_of_two_cap(*beyond(epsilon=epsilon, delta=delta, hops=hops))
    shown = ", ".join(f"{share_words(cap)} at h = {h}" for h, cap in zip(hops, caps, strict=True))
    more = f", plus {delta:g} (e^({epsilon:g} h) - 1)/(e^{epsilon:g} - 1)" if delta else ""
    return (
        f"{inputs}: no more than a factor e^({epsilon:g} h){more} is promised between them, and "
        f"the cap on naming the right one of two rises to {shown}"
    )
