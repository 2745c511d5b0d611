"""Guarantee cards of noisy sums over records, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reticent.core.guarantees import Guarantee, GuaranteeCard, Replace
from reticent.systems import clauses as say
from reticent.systems.record_labels import is_observed
from reticent.systems.votes.outputs import is_several

if TYPE_CHECKING:
    from reticent.systems.votes.query_votes import QueryVotes
    from reticent.systems.votes.released_model import ReleasedModel

_SEEDED = "seeded: not private"


def released_model_card(
    model: ReleasedModel, details: tuple[tuple[str, str], ...]
) -> GuaranteeCard:
    """Return the card of a fitted model: what is protected, from whom, and what is assumed."""
    # A loaded model was fitted by another process, and a simulated one costs nothing.
    use = None if model.simulated_ else getattr(model, "_data_use", None)
    together = "" if use is None else use.card_line()
    return _card(
        model,
        model.guarantee,
        title=f"A {model._kind} made of noisy sums over private records",
        seeded=model.simulated_,
        from_whom="Anyone who has the model or its answers, however many, with any other knowledge "
        "and any computing power.",
        details=(
            *details,
            ("released as", model.receipt_.mechanism),
            *((("fits on the same records", together),) if together else ()),
        ),
    )


def query_votes_card(system: QueryVotes, details: tuple[tuple[str, str], ...]) -> GuaranteeCard:
    """Return the card of what answers each public query by votes of its own."""
    return _card(
        system,
        system.guarantee,
        title="Labels of public queries, by noisy votes of private records",
        seeded=False,
        from_whom="Anyone who sees all answers, with any other knowledge and any computing power. "
        "Not from anyone who has the fitted object: it holds the records.",
        details=details,
    )


def _card(
    system: Any,
    guarantee: Guarantee,
    *,
    title: str,
    seeded: bool,
    from_whom: str,
    details: tuple[tuple[str, str], ...],
) -> GuaranteeCard:
    replaced = isinstance(guarantee.adjacency, Replace)
    change = say.presence(by_person=system.by_person_, replaced=replaced)
    naming = say.naming_words(guarantee, two="both", per="")
    protected = f"{change}: {say.odds(guarantee, per='')}. {naming}"
    if seeded:
        title = f"{title} ({_SEEDED})"
        protected = (
            f"Nothing. The noise came from a seed ({_SEEDED}); with fresh noise this would hold. "
            + protected
        )
    targets = hasattr(system, "target_range")
    row_map = "none" if system.map_ is None else system.map_.name
    return say.records_card(
        guarantee,
        by_person=system.by_person_,
        classes_given=targets or is_several(system.classes) or not is_observed(system.classes),
        title=title,
        protected=protected,
        from_whom="Nobody." if seeded else from_whom,
        assumptions=say.phrases(
            "the public rows, their labels and the range of the features are public: none of them "
            "is, or was computed from, a protected record",
            targets and "the range of the targets is public: it was not taken from the records",
            say.SETTINGS.format(settings="all settings"),
            f"there are at most {system.most_records_:,} records, in every data set that is "
            "compared",
            say.FEATURES.format(
                features=row_map,
                origin="made without the private records, and gives a record the same features "
                "whichever others there are",
            ),
        ),
        not_protected=("the queries and the public rows",),
        details=(
            *details,
            ("public rows, labelled ones", f"{system.public_rows_}, {system.public_labels_}"),
            ("counted as", str(system.counting)),
            ("feature map", row_map),
        ),
    )
