"""Guarantee cards of certified private prediction, in plain words."""

from __future__ import annotations

from reticent.core.guarantees import GuaranteeCard
from reticent.retraining.convex import ConvexModel
from reticent.retraining.hidden_layer import HiddenModel
from reticent.retraining.reserves import ReserveModel
from reticent.retraining.training import ParameterIntervals
from reticent.systems import clauses as say
from reticent.systems.certified.query import Certificate, CertifiedQuery
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.public_reference import start_details

_RESPONSES = {
    "stability": "the label, or another with a probability that falls with the certified distance",
    "signed-distance": "Gaussian noise on how far the label is from changing; what many answers "
    "cost together is the cost of one Gaussian mechanism, their number fixed beforehand",
}


def certified_card(query: CertifiedQuery, *, classes_given: bool) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what is assumed."""
    guarantee, members = query.mechanism.guarantee, query.members
    pairs = isinstance(members[0], ReserveModel)
    voting = len(members) > 1 and not pairs
    what = f"a vote of {len(members)} classifiers" if voting else "one classifier"
    start = query.extractor.start if isinstance(query.extractor, PublicStartEmbedding) else None
    change = (
        "was there at all, label included"
        if members[0].settings.counting == "add-remove"
        else "is this one or any other"
    )
    return say.records_card(
        guarantee,
        by_person=True,  # the card says below that each record is protected by itself
        classes_given=classes_given,
        title=f"Labels of {what}, with a guarantee for its training records",
        protected=f"Whether any one training record {change}: {say.odds(guarantee)}. "
        + say.naming_words(guarantee, two="both"),
        from_whom="Anyone who sees the released labels and the receipts, with any other knowledge "
        "and any computing power. Not from anyone who has the bundle: it holds what was learnt "
        "from the records, and is as private as they are.",
        assumptions=say.phrases(
            f"the data sets are of {_number(members[0])}, none included, with different identities "
            "where identities are given",
            say.SETTINGS.format(
                settings="the settings of training, k_max and the shares of labels"
            ),
            "the feature map, if there is one, is public: it was not trained on the private "
            "records, and it answers every input",
            start is not None
            and "the public rows and their labels, of which features and public models are "
            "made, are public: none of them is, or was computed from, a protected record",
        ),
        not_protected=say.phrases(
            "the queries",
            "several answers without adding them up: two answers cost up to twice as much, see "
            "total(answers=...)",
            "persons with several records: each record is protected by itself",
            "whatever else was computed from the records, such as accuracies used to choose "
            "settings",
        ),
        details=(
            ("mechanism", f"{query.choice.name}: {_RESPONSES[query.choice.name]}"),
            *(
                (("labels", f"one model for each of {len(members)} pairs"),)
                if pairs and len(members) > 1
                else ()
            ),
            *_training_details(members[0]),
            *(() if start is None else start_details(start)),
        ),
    )


def _training_details(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Say how the model was trained and what was certified, from public settings alone."""
    training = certificate.settings
    weights = training.class_weights
    labels = (
        ()
        if weights is None or set(weights) == {1.0}
        else (("weights of labels", ", ".join(f"{weight:.4g}" for weight in weights)),)
    )
    if isinstance(certificate, ReserveModel):
        own = certificate.settings
        return (
            *_model_details(certificate),
            *((("log odds cut to", f"{own.offset_bound:g}"),) if own.offset_bound else ()),
            ("records cut to l2 norm", f"{own.norm_bound:g}, intercept {own.intercept:g}"),
            *labels,
        )
    assert isinstance(certificate, ParameterIntervals)
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


def _model_details(certificate: ReserveModel) -> tuple[tuple[str, str], ...]:
    """Say what is special to one kind of model with reserves."""
    counting = certificate.settings.counting
    if isinstance(certificate, HiddenModel):
        own = certificate.settings
        return (
            (
                "certified distances",
                f"from the ball that a record moves the weights in, {counting}",
            ),
            ("radius of the ball", f"{own.radius:.3g}"),
            ("model", f"{own.units} hidden units of {own.features} features"),
            ("most records", f"{own.records}, of any two labels"),
            ("training", f"{own.steps} steps, reach {own.reach:g}, spread {own.spread:g}"),
        )
    assert isinstance(certificate, ConvexModel)
    return (
        ("certified distances", f"from the curvature at the minimum, {counting}"),
        ("model", f"logistic regression of {certificate.settings.features} features"),
        ("regularization", f"{certificate.settings.regularization:g}"),
    )


def _number(certificate: Certificate) -> str:
    """Say in a phrase how many records a data set may have."""
    if isinstance(certificate, HiddenModel):
        return f"at most {certificate.settings.records} records of any two labels"
    return "any number of records"
