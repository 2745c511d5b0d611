"""``CertifiedNetwork``: labels of networks with one hidden layer, certified by the ball that one
record can move their weights in, and released with a proved guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.errors import InvalidParameter
from reticent.core.seeds import training_generator
from reticent.core.settings import Group, learned, with_settings
from reticent.retraining.hidden_layer import HiddenModel, HiddenSettings, hidden_model
from reticent.retraining.reserves import ReserveModel
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.certified.reserve_system import COMMON, Pair, ReserveSystem

_TRAINING = ("records", "units", "reach", "steps", "spread")


@dataclass(frozen=True, kw_only=True)
class HiddenLayer(Group):
    """Settings of a ``CertifiedNetwork``'s training: descent on the sum of all losses, at a public
    rate.

    Args:
        records: the public largest number of records of any two labels, 1 to 2^22. ``fit`` refuses
            more, and the guarantee is for data sets within this limit.
        units: number of hidden units, even, up to 16,384.
        reach: rate times steps times ``records``, above 0. Accuracy wants it large for few records.
        steps: number of steps, each over all records, more for a larger reach.
        spread: standard deviation of the starting weights, above 0 and at most 64. Distances fall
            with it. A small spread is a nearly linear network.
        random_state: seed of the starting weights, never of noise.

    Raises:
        InvalidParameter: a value out of its range, or too few steps.

    Utility:
        ``records`` above the true number shortens training as a smaller ``reach`` does. Distances
        stay about the same.

    Example:
        >>> HiddenLayer(records=20_000).units
        128

    References:
        - Hardt, Recht and Singer (2016), "Train faster, generalize better: stability of stochastic
          gradient descent", arXiv:1509.01240, growth of distances under gradient steps.

    See Also:
        reticent.CertifiedNetwork: trains by it.
    """

    records: int
    units: int = 128
    reach: float = 8.0
    steps: int = 4
    spread: float = 0.5
    random_state: int | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        self.settings(features=1)

    def settings(self, **common: Any) -> HiddenSettings:
        """Return the settings of one pair's model."""
        return HiddenSettings(**{name: getattr(self, name) for name in _TRAINING}, **common)


@with_settings
class CertifiedNetwork(ReserveSystem):
    """Release labels of networks with one hidden layer, (epsilon, delta) for each label, for the
    records that they were trained on.

    Training is plain descent, whose rate is public. One record can move the weights only so far,
    whatever the others are. Hence follows how many records would have to come or go before a label
    could change. Certifying takes no time, and there is no ``k_max`` to choose.

    With a ``PublicReference`` the records correct the log odds of public models. Three and more
    labels are told by one network for each pair, of the records of these two labels.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance". The two training sets differ by one record more
        (``counting="replace"``: they are of one size, with one record replaced), and have at most
        ``training.records`` records of any two labels. *Why.* A step of descent stretches the
        distance of two weights by at most 1 + (reach/steps) c/2, with c = .7698/sqrt(units), and
        one record adds at most half the rate. Summed, with all rounding, that is the radius rho. An
        answer f at point z changes by at most |z| rho, so r = |f|/(|z| rho) moves by at most 1 with
        one record, and is at most 1 on both sides where the label changes. ``card()`` says what is
        assumed and docs/certified.md, section 11, has the proof. ``exact_predict`` is the
        noise-free label and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, classes, prevalence, data_set: arguments of
            ``CertifiedClassifier``.
        features: argument of ``CertifiedClassifier``, or a ``PublicReference``, for which ``fit``
            needs labelled public rows.
        training: a ``HiddenLayer``, which says how many records there may be.
        norm_bound: public l2 norm above 0, to which rows are cut. With a ``PublicReference`` in
            root mean square lengths of public rows.
        counting: "add-remove", or "replace" for data sets of one size.
    Attributes:
        members_: the certified model of each pair of labels, as private as the records.
        clipped_: private number of records that were longer than ``norm_bound``, or not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> network = CertifiedNetwork(
        ...     epsilon=0.5, classes=[0, 1], norm_bound=6.0,
        ...     training=HiddenLayer(records=1000, random_state=0),
        ... ).fit(X, y)
        >>> labels, distances = network.stable_distances([[2.0, 2.0], [0.01, -0.01]])
        >>> labels.tolist()[0], bool(distances[0] > 10), bool(distances[1] < 10)
        (1, True, True)

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, labels by stable distances.
        - Hardt, Recht and Singer (2016), "Train faster, generalize better: stability of stochastic
          gradient descent", arXiv:1509.01240, growth of distances under gradient steps.
        - The proof: docs/certified.md, section 11.

    See Also:
        reticent.ConvexCertifiedClassifier: logistic regression, of any number of records.
        reticent.LinearVoteClassifier: larger distances, for many answers.
        reticent.retraining.hidden_model: the trained model.
    """

    training: HiddenLayer

    members_: tuple[HiddenModel, ...] = learned()

    _model: ClassVar[type[ReserveModel]] = HiddenModel

    @override
    def _settings(self, **common: Any) -> HiddenSettings:
        if not isinstance(self.training, HiddenLayer):
            raise InvalidParameter(
                f"training: expected a HiddenLayer, got {type(self.training).__name__}"
            )
        return self.training.settings(**common)

    @override
    def _models(self, settings: Sequence[Any], pairs: Sequence[Pair]) -> tuple[HiddenModel, ...]:
        random = training_generator(self.training.random_state)
        seeds = [int(random.randint(2**31 - 1)) for _ in pairs]
        return tuple(
            hidden_model(rows, second, own, seed=seed, offsets=offsets)
            for own, seed, (rows, second, offsets) in zip(settings, seeds, pairs, strict=True)
        )

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        settings = query.members[0].settings
        return {
            "training": HiddenLayer(**{name: getattr(settings, name) for name in _TRAINING}),
            **{name: getattr(settings, name) for name in COMMON},
        }
