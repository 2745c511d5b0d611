"""Guarantee cards of Private-kNN releases, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.neighbours import WEIGHT_STEPS
from reticent.systems import clauses as say
from reticent.systems.private_knn.individual_session import IndividualNoise
from reticent.systems.private_knn.plan import KnnNoise
from reticent.training.features import Origin


@dataclass(frozen=True)
class KnnCircumstances:
    """What a card says beyond its plan.

    Attributes:
        features: name of the feature map.
        origin: source of the feature map.
        by_person: whether all records of one person are protected together.
        classes_given: whether the labels were named, and not taken from the records.
    """

    features: str
    origin: Origin
    by_person: bool
    classes_given: bool


def knn_card(plan: KnnNoise, circumstances: KnnCircumstances) -> GuaranteeCard:
    """Return the card of ``plan``: what is protected, from whom, and what is assumed."""
    steps, screening = plan.steps, plan.screening
    return _card(
        plan.guarantee,
        circumstances,
        title="Labels of public queries from private records",
        there="there at all",
        over="over all answers of the plan together",
        costs=" A withheld answer costs as much as its screening.",
        from_whom="Anyone who sees all labels and which queries were withheld",
        assumptions=say.phrases(
            say.PUBLIC_QUERIES.format(also="so are all rows that a student learns from"),
            "the range of the features was public before the records were seen",
            say.SETTINGS.format(settings="the settings (neighbours, sampling, threshold, noise)"),
            "one fitted object answers, in the process that fitted it; forked children and copies "
            "have no queries left, unless one ledger counts them all together, and what the object "
            "holds in memory is not copied behind its back",
        ),
        details=(
            ("queries, labels at most", f"{steps.queries}, {steps.answers}"),
            ("neighbours that vote", str(steps.neighbours)),
            ("sampling probability", f"{steps.sampling_probability:g}"),
            (
                "sample of screening and vote",
                "shared" if steps.shared_subsample else "fresh for each",
            ),
            (
                "screening",
                "none"
                if screening is None
                else f"threshold {screening.threshold:g}, sigma {screening.sigma:.4g} votes",
            ),
            ("sigma of the votes", f"{steps.sigma_votes:.4g} votes"),
        ),
        bound=plan.total.bound,
    )


def individual_card(plan: IndividualNoise, circumstances: KnnCircumstances) -> GuaranteeCard:
    """Return the card of a classifier whose records have a budget each."""
    return _card(
        plan.guarantee,
        circumstances,
        title="Labels of public queries from private records with a budget each",
        there="ever there",
        over="over all answers together, however many there are and however records come and go",
        from_whom="Anyone who sees all labels",
        assumptions=say.phrases(
            say.PUBLIC_QUERIES.format(
                also="so is when records of others are inserted and forgotten"
            ),
            "the public rows, the range of the features and the settings (radius, votes, looks) "
            "were chosen without the private records",
            "one fitted object answers, in the process that fitted it: what records have spent is "
            "counted in its memory, and that is not copied behind its back",
        ),
        not_protected=say.phrases(
            "what a record has spent, from whoever can read the process's memory: it tells which "
            "queries lay near",
        ),
        details=(
            ("queries", "any number"),
            ("whole votes of a record in its life", f"{plan.weight_cap / _whole(plan):.6g}"),
            ("sigma of a class's votes, all looks", f"{plan.sigma_votes:.4g} votes"),
            ("looks at a query", ", ".join(str(look) for look in plan.looks)),
            ("answers that one record takes part in, at most", str(plan.budget.most_answers)),
        ),
        bound="individual filter, exact Gaussian composition",
    )


def _card(
    guarantee: Guarantee,
    circumstances: KnnCircumstances,
    *,
    title: str,
    there: str,
    over: str,
    from_whom: str,
    assumptions: tuple[str, ...],
    details: tuple[tuple[str, str], ...],
    bound: str,
    costs: str = "",
    not_protected: tuple[str, ...] = (),
) -> GuaranteeCard:
    features, origin = circumstances.features, circumstances.origin.value
    change = say.presence(by_person=circumstances.by_person, there=there)
    naming = say.naming_words(guarantee, two="both", per="")
    return say.records_card(
        guarantee,
        by_person=circumstances.by_person,
        classes_given=circumstances.classes_given,
        title=title,
        protected=f"{change}: {over}, {say.odds(guarantee, per='')}. {naming}{costs}",
        from_whom=f"{from_whom}, with any other knowledge and any computing power; so also anyone "
        "who sees a model that was trained on them.",
        assumptions=say.phrases(
            *assumptions, say.FEATURES.format(features=features, origin=origin)
        ),
        not_protected=("the queries themselves", *not_protected),
        details=(
            *details,
            ("feature map", f"{features}; {origin}"),
            ("bound that proves the total", bound),
        ),
    )


def _whole(plan: IndividualNoise) -> int:
    """Return what a whole vote at all looks of a query takes of a record's cap."""
    return sum(plan.looks) * WEIGHT_STEPS**2
