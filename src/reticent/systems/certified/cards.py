"""Guarantee cards of certified private prediction, in plain words."""

from __future__ import annotations

from reticent.core.guarantees import GuaranteeCard
from reticent.release.paying import same_records_again
from reticent.retraining.convex import ConvexModel
from reticent.systems.certified.query import Certificate, CertifiedQuery

_RESPONSES = {
    "stability": "the label, or another with a probability that falls with the certified distance",
    "signed-distance": "Gaussian noise on how far the label is from changing; what many answers "
    "cost together is the cost of one Gaussian mechanism, their number fixed beforehand",
    "distance": "the label itself where the certified distance passes a test, otherwise withheld",
}


def certified_card(query: CertifiedQuery, *, classes_given: bool) -> GuaranteeCard:
    """The card of ``query``: what is protected, from whom, and what is assumed."""
    guarantee = query.mechanism.guarantee
    training = query.members[0].settings
    what = (
        "of a vote of " + str(len(query.members)) + " classifiers"
        if len(query.members) > 1
        else "of one classifier"
    )
    change = (
        "was there at all, label included"
        if training.counting == "add-remove"
        else "is this one or any other"
    )
    assumptions = [
        (
            "the data sets are of any number of records, none included, with different identities "
            "where identities are given"
        ),
        (
            "the settings of training, k_max and the shares of labels were chosen without looking "
            "at the private records"
        ),
        (
            "the feature map, if there is one, is public: it was not trained on the private "
            "records, and it answers every input"
        ),
        (
            "whatever was done to the records before fit (scaling, principal components) "
            "learned nothing from them: a scaler "
            "fitted on the records voids this statement, PublicRanges does not"
        ),
        (
            "the noise comes from the operating system's random numbers (an answer that was made "
            "with a seed is not private)"
        ),
        "the observer does not see how long an answer took or how much memory it used",
        (
            "the processor adds and multiplies as IEEE 754 says; numpy and torch compute what they "
            "document"
        ),
    ]
    if not classes_given:
        assumptions.insert(
            2,
            "the set of labels that occur is public: it was taken from the records "
            "(classes='observed')",
        )
    factor = f"a factor e^{guarantee.epsilon:.4g}"
    protected = f"Whether any one training record {change}: "
    protected += (
        f"the probability of any set of answers changes by at most {factor}, plus "
        f"{guarantee.delta:g}, per answer."
        if guarantee.delta
        else f"no observer's odds change by more than {factor} per answer."
    )
    return GuaranteeCard(
        title=f"Labels {what}, with a guarantee for its training records",
        protected=protected,
        from_whom="Anyone who sees the released labels and the receipts, with any other "
        "knowledge and any computing power. Not "
        "from anyone who has the bundle: it holds what was learnt from the records, and is as "
        "private as they are.",
        guarantee=guarantee,
        assumptions=tuple(assumptions),
        not_protected=(
            "the queries",
            (
                "several answers without adding them up: two answers cost up to twice as much, see "
                "total(answers=...)"
            ),
            "persons with several records: each record is protected by itself",
            same_records_again(query.adjacency),
            "what is true of many records together: that is what the labels tell",
            (
                "whatever else was computed from the records, such as accuracies used to choose "
                "settings"
            ),
            (
                "answers after another fit on the same records, of this object or another: "
                "they are further answers about the "
                "same records, and only a ledger keeps the sum"
            ),
            *(
                ()
                if classes_given
                else ("which labels occur among the records: whoever sees the labels knows",)
            ),
        ),
        details=(
            ("mechanism", f"{query.choice.name}: {_RESPONSES[query.choice.name]}"),
            *_training_details(query.members[0]),
        ),
    )


def _training_details(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """How the model was trained and what was certified, from public settings alone."""
    training = certificate.settings
    weights = training.class_weights
    labels = (
        ()
        if weights is None or set(weights) == {1.0}
        else (("weights of labels", ", ".join(f"{weight:.4g}" for weight in weights)),)
    )
    if isinstance(certificate, ConvexModel):
        convex = certificate.settings
        return (
            ("certified distances", f"from the curvature at the minimum, {convex.counting}"),
            ("model", f"logistic regression of {convex.features} features"),
            ("regularization", f"{convex.regularization:g}, intercept {convex.intercept:g}"),
            ("records cut to l2 norm", f"{convex.norm_bound:g}"),
            *labels,
        )
    intervals, run = certificate, certificate.settings
    return (
        ("certified distances", f"every k from 0 to {intervals.k_max}, counted as {run.counting}"),
        ("network", " - ".join(str(width) for width in run.widths)),
        (
            "training",
            f"{run.epochs} epochs of {run.batches} batch(es), gradients clipped at {run.clip:g}",
        ),
        ("rate", f"{run.learning_rate:g} / (1 + {run.rate_decay:g} step)"),
        ("momentum, weight decay", f"{run.momentum:g}, {run.weight_decay:g}"),
        ("inputs cut to", f"[-{run.input_bound:g}, {run.input_bound:g}]"),
        *labels,
    )
