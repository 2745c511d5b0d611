"""The card of a code: what is protected, from whom, and what it is worth for whom."""

from __future__ import annotations

from reticent.core.guarantees import GuaranteeCard
from reticent.mechanisms import AnyTwo
from reticent.systems import clauses as say
from reticent.systems.power.code_inputs import EmbeddedPoints
from reticent.systems.power.code_query import CROWD, CodeQuery, CodeTarget
from reticent.systems.power.code_targets import NearRows
from reticent.systems.scores import channel_scores


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
