"""Guarantee cards of Private-kNN releases, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from reticent.core.guarantees import GuaranteeCard
from reticent.neighbours import WEIGHT_STEPS
from reticent.release.paying import same_records_again
from reticent.systems.private_knn.individual_session import IndividualPlan
from reticent.systems.private_knn.plan import KnnPlan
from reticent.training.features import FeatureMap, Origin


@dataclass(frozen=True)
class KnnCircumstances:
    """What a card says beyond its plan; it is stored with a bundle, where the feature map itself is
    not.

    Attributes:
        features: name of the feature map (of the first round, if there are several).
        origin: what it was made from.
        by_person: whether all records of one person are protected together.
        classes_given: whether the labels were named, and not taken from the records.
    """

    features: str
    origin: Origin
    by_person: bool
    classes_given: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``from_dict`` reads them back."""
        return {
            "features": self.features,
            "origin": self.origin.value,
            "by_person": self.by_person,
            "classes_given": self.classes_given,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The circumstances that ``to_dict`` described.

        Raises:
            KeyError, TypeError, ValueError: not such a description.
        """
        by_person, classes_given = values["by_person"], values["classes_given"]
        if not (
            isinstance(values["features"], str)
            and isinstance(by_person, bool)
            and isinstance(classes_given, bool)
        ):
            raise TypeError("expected a name and two truth values")
        return cls(values["features"], Origin(values["origin"]), by_person, classes_given)


def private_knn_card(
    plan: KnnPlan, feature_map: FeatureMap, *, by_person: bool, classes_given: bool
) -> GuaranteeCard:
    """The card of ``plan`` with a feature map: what is protected, from whom, and what is
    assumed.
    """
    return knn_card(
        plan, KnnCircumstances(feature_map.name, feature_map.origin, by_person, classes_given)
    )


def knn_card(plan: KnnPlan, circumstances: KnnCircumstances) -> GuaranteeCard:
    """The card of ``plan``: what is protected, from whom, and what is assumed."""
    features, origin = circumstances.features, circumstances.origin.value
    guarantee, steps = plan.guarantee, plan.steps
    whose = "all records of one person" if circumstances.by_person else "any one private record"
    screening = plan.screening
    assumptions = [
        (
            "the queries are public, and chosen without the private records or from earlier "
            "answers only; so are all rows that a student learns from or is checked on"
        ),
        (
            "whatever was done to the records before fit (scaling, principal components) "
            "learned nothing from them: a scaler "
            "fitted on the records voids this statement, PublicRanges does not"
        ),
        "the range of the features was public before the records were seen",
        f"the feature map ({features}) is {origin}",
        (
            "the settings (neighbours, sampling, threshold, noise) were chosen without looking at "
            "the private records"
        ),
        (
            "one fitted object answers, in the process that fitted it; forked children and "
            "copies have no queries left, unless "
            "one ledger counts them all together, and what the object holds in memory is not "
            "copied behind its back"
        ),
        (
            "noise and samples come from the operating system's random numbers (an answer that was "
            "made with a seed is not private)"
        ),
        "the observer does not see how long an answer took or how much memory it used",
        "the operating system, the processor, numpy and torch compute what they document",
    ]
    if not circumstances.classes_given:
        assumptions.insert(
            1,
            "the set of labels that occur is public: it was taken from the records "
            "(classes='observed')",
        )
    if not circumstances.by_person:
        assumptions.insert(
            1, "no person owns more than one record; otherwise name the owners in persons"
        )
    return GuaranteeCard(
        title="Labels of public queries from private records",
        protected=(
            f"Whether {whose} was there at all, label included: over all answers of the plan "
            "together, the probability of any "
            f"set of answers changes by at most a factor e^{guarantee.epsilon:.4g}, plus "
            f"{guarantee.delta:g}. A withheld answer "
            "costs as much as its screening."
        ),
        from_whom="Anyone who sees all labels and which queries were withheld, with any other "
        "knowledge and any computing power; "
        "so also anyone who sees a model that was trained on them.",
        guarantee=guarantee,
        assumptions=tuple(assumptions),
        not_protected=(
            "what is true of many records together: that is what the labels tell",
            "the queries themselves",
            same_records_again(plan.adjacency),
            *(
                ()
                if circumstances.classes_given
                else ("which labels occur among the records: whoever sees the labels knows",)
            ),
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
            ("feature map", f"{features}; {origin}"),
            ("bound that proves the total", plan.total.bound),
        ),
    )


def individual_card(
    plan: IndividualPlan, feature_map: FeatureMap, *, by_person: bool, classes_given: bool
) -> GuaranteeCard:
    """The card of a classifier whose records have a budget each."""
    guarantee, budget = plan.guarantee, plan.budget
    whose = "all records of one person" if by_person else "any one private record"
    conditional = []
    if not by_person:
        conditional.append(
            "no person owns more than one record; otherwise name the owners in persons"
        )
    if not classes_given:
        conditional.append(
            "the set of labels that occur is public: it was taken from the records "
            "(classes='observed')"
        )
    return GuaranteeCard(
        title="Labels of public queries from private records with a budget each",
        protected=(
            f"Whether {whose} was ever there, label included: over all answers together, however "
            "many there are and however records come and go, the probability of any set of "
            f"answers changes by at most a factor e^{guarantee.epsilon:.4g}, plus "
            f"{guarantee.delta:g}."
        ),
        from_whom="Anyone who sees all labels, with any other knowledge and any computing power; "
        "so also anyone who sees a model that was trained on them.",
        guarantee=guarantee,
        assumptions=(
            (
                "the queries are public, and chosen without the private records or from earlier "
                "answers only; so is when records of others are inserted and forgotten"
            ),
            *conditional,
            (
                "whatever was done to the records before fit (scaling, principal components) "
                "learned nothing from them"
            ),
            (
                "the public rows, the range of the features and the settings (radius, votes, "
                "looks) were chosen without the private records"
            ),
            f"the feature map ({feature_map.name}) is {feature_map.origin.value}",
            (
                "one fitted object answers, in the process that fitted it: what records have spent "
                "is counted in its memory, and that is not copied behind its back"
            ),
            (
                "noise comes from the operating system's random numbers (an answer that was made "
                "with a seed is not private)"
            ),
            "the observer does not see how long an answer took or how much memory it used",
            "the operating system, the processor, numpy and torch compute what they document",
        ),
        not_protected=(
            "what is true of many records together: that is what the labels tell",
            "the queries themselves",
            (
                "what a record has spent, from whoever can read the process's memory: it tells "
                "which queries lay near"
            ),
            same_records_again(plan.adjacency),
            *(
                ()
                if classes_given
                else ("which labels occur among the records: whoever sees the labels knows",)
            ),
        ),
        details=(
            ("queries", "any number"),
            ("whole votes of a record in its life", f"{plan.weight_cap / _whole(plan):.6g}"),
            ("sigma of a class's votes, all looks", f"{plan.sigma_votes:.4g} votes"),
            ("looks at a query", ", ".join(str(look) for look in plan.looks)),
            ("answers that one record takes part in, at most", str(budget.most_answers)),
            ("feature map", f"{feature_map.name}; {feature_map.origin.value}"),
            ("bound that proves the total", "individual filter, exact Gaussian composition"),
        ),
    )


def _whole(plan: IndividualPlan) -> int:
    """What a whole vote at all looks of a query takes of a record's cap."""
    return sum(plan.looks) * WEIGHT_STEPS**2
