"""Certified classifiers that rest on reserves: a model for each pair of labels, perhaps beside
public models.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.core.seeds import training_generator
from reticent.core.settings import Group, learned, with_settings
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.convex import ConvexModel, ConvexSettings, convex_model
from reticent.retraining.hidden_layer import HiddenModel, HiddenSettings, hidden_model
from reticent.retraining.record_keys import record_keys
from reticent.retraining.reserves import ReserveModel, ReserveSettings
from reticent.retraining.training_settings import PROTECTING, Counting
from reticent.systems.certified.query import CertifiedQuery, rows_of_pair
from reticent.systems.certified.system import CertifiedSystem
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.public_reference import PublicReference

_COMMON = ("norm_bound", "counting")
_TRAINING = ("records", "units", "reach", "steps", "spread")
_FARTHEST = 8.0
"""Log odds of public models are cut there: 1 in 3,000."""

Pair = tuple[Array, npt.NDArray[np.int8], Array | None]
"""Rows of two labels, which of them have the second, and their offsets."""


@with_settings
class ReserveSystem(CertifiedSystem):
    """A certified classifier of one model for each pair of labels, for
    ``ConvexCertifiedClassifier`` and ``CertifiedNetwork``.
    """

    norm_bound: float = 1.0
    counting: Counting = "add-remove"

    members_: tuple[ReserveModel, ...] = learned()

    _corrects: ClassVar[bool] = True
    _model: ClassVar[type[ReserveModel]]
    """The kind of its members."""

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """Return for each row how many training records could be taken away at least.

        Whichever they are, training on the rest would still give the label of ``exact_predict``.
        The number is deterministic, and as private as the records.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.

        Returns:
            Shape (n,), int64. Private.
        """
        return self._survived(X, 1)

    def poisoning(
        self, X: npt.ArrayLike, *, change: Literal["insert", "replace"] = "insert"
    ) -> Integers:
        """Return for each row how many records would have to be slipped in or exchanged, less 1.

        That is the least number to get another label than that of ``exact_predict``. Training
        that has a limit of records refuses more than that.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.
            change: "insert" or "replace".

        Returns:
            Shape (n,), int64. Private.
        """
        one_of(change, ("insert", "replace"), name="change")
        return self._survived(X, 1 if change == "insert" else 2)

    def _survived(self, X: npt.ArrayLike, changed: int) -> Integers:
        _, reserve = self.query_.reserves(self.checked(X))
        worth = changed + 2.0 * self.members_[0].settings.proved_error
        return np.maximum(np.ceil(reserve / worth) - 1.0, 0.0).astype(np.int64)

    @override
    def trained(
        self,
        points: Array,
        labels: Integers,
        classes: npt.NDArray[Any],
        identities: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> tuple[ReserveModel, ...]:
        one_of(self.counting, PROTECTING, name="counting")
        started = isinstance(self.features, PublicReference)
        settings = [
            self._settings(
                features=points.shape[1] - (len(classes) if started else 0),
                norm_bound=self.norm_bound,
                counting=self.counting,
                class_weights=of_pair,
                offset_bound=_FARTHEST if started else 0.0,
            )
            for of_pair in _weights_of_pairs(weights_of_prevalence(self.prevalence, classes))
        ]
        if identities is not None:
            record_keys(points, labels, identities)  # refuses two records of one identity
        return self._models(settings, _pairs(points, labels, settings, len(classes)))

    @abstractmethod
    def _settings(self, **common: Any) -> ReserveSettings:
        """Return the settings of one pair's model."""

    @abstractmethod
    def _models(self, settings: Sequence[Any], pairs: Iterator[Pair]) -> tuple[ReserveModel, ...]:
        """Return the model of each pair, trained on its records."""

    @override
    def _cut(self, features: Array) -> int:
        settings = self.members_[0].settings
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(features[:, : settings.features], axis=1)
        return int((~(lengths <= settings.norm_bound * (1 + 1e-12))).sum())

    @override
    def _cut_words(self, features: Array) -> str:
        bound = self.members_[0].settings.norm_bound
        if isinstance(self.features, PublicReference) or 2 * self.clipped_ <= len(features):
            return ""  # cutting the longest rows is what a bound on the norm is for
        return (
            f"{self.clipped_} of {len(features)} records are longer than norm_bound={bound:g} and"
        )

    @classmethod
    @override
    def _check_members(cls, query: CertifiedQuery, weights: tuple[float, ...]) -> None:
        expected = list(_weights_of_pairs(weights))
        if len(query.members) != len(expected):
            raise CorruptBundle("bundle: expected a model for each pair of labels")
        bound = _FARTHEST if isinstance(query.extractor, PublicStartEmbedding) else 0.0
        for member, of_pair in zip(query.members, expected, strict=True):
            if not isinstance(member, cls._model) or (
                (member.settings.class_weights, member.settings.offset_bound) != (of_pair, bound)
            ):
                raise CorruptBundle("bundle: a certificate that is none of this system's")


def _pairs(
    points: Array, labels: Integers, settings: Sequence[ReserveSettings], classes: int
) -> Iterator[Pair]:
    """Yield the records of each pair of labels, without a copy where there is one pair."""
    for pair, own in zip(combinations(range(classes), 2), settings, strict=True):
        chosen: Any = slice(None)
        if classes > 2:
            chosen = (labels == pair[0]) | (labels == pair[1])
        rows, offsets = rows_of_pair(points[chosen], own, pair)
        yield rows, (labels[chosen] == pair[1]).view(np.int8), offsets


def _weights_of_pairs(weights: tuple[float, ...]) -> Iterator[tuple[float, float]]:
    """Yield weights of the labels of each pair, the larger one 1."""
    for first, second in combinations(weights, 2):
        most = max(first, second)
        yield first / most, second / most


@with_settings
class ConvexCertifiedClassifier(ReserveSystem):
    """Release labels of regularised logistic regressions, (epsilon, delta) for each label, for the
    records that they were trained on.

    Training goes to the minimum, which one record can move only so far: by how far, and hence how
    many records would have to come or go before a label could change, follows from the least
    curvature there. There are no epochs and no ``k_max`` to choose.

    With a ``PublicReference`` the records correct the log odds of public models, by weights of
    public features. ``regularization`` then leads from the private records to the public models,
    whose labels no record can change. Three and more labels are told by one regression for each
    pair, of the records of these two labels.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). *Why.* Let a = |o +
        w.z|/|z|, lambda the regularization, o the public log odds and nu the least eigenvalue of
        the Hessian of the losses at their minimiser w. Then r = nu (1 - e^-a) + lambda a moves by
        at most 1 with one record, and is at most 1 on both sides where the label changes. The
        losses are functions of o + w.z, so that a public o changes nothing of that. The least r of
        a label's pairs, where it wins all, has both properties too. ``card()`` says what is assumed
        and docs/certified.md, section 8, has the proofs. ``exact_predict`` is the noise-free label
        and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, classes, prevalence, data_set: arguments of
            ``CertifiedClassifier``.
        features: argument of ``CertifiedClassifier``, or a ``PublicReference``, for which ``fit``
            needs labelled public rows.
        regularization: lambda, at least 1/16. Distances grow with it, accuracy wants it small.
        norm_bound: public l2 norm above 0, to which rows are cut. With a ``PublicReference`` in
            root mean square lengths of public rows.
        counting: "add-remove", or "replace" for data sets of one size.

    Attributes:
        members_: the certified model of each pair of labels, as private as the records.
        clipped_: private number of records that were longer than ``norm_bound``, or not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> classifier = ConvexCertifiedClassifier(
        ...     epsilon=0.5, classes=[0, 1], norm_bound=6.0
        ... ).fit(X, y)
        >>> labels, distances = classifier.stable_distances([[2.0, 2.0], [0.1, -0.1]])
        >>> labels.tolist()[0], bool(distances[0] > 10), distances.tolist()[1]
        (1, True, 0)

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, labels by stable distances.
        - Bach (2010), "Self-concordant analysis for logistic regression", arXiv:0910.4627,
          proposition 1.
        - Knerr, Personnaz and Dreyfus (1990), "Single-layer learning revisited: a stepwise
          procedure for building and training a neural network",
          doi:10.1007/978-3-642-76153-9_5, one against one.
        - The proofs: docs/certified.md, section 8.

    See Also:
        reticent.PublicReference: what the records correct.
        reticent.LinearVoteClassifier: larger distances, for many answers.
        reticent.CertifiedNetwork: a hidden layer.
        reticent.retraining.convex_model: the trained model.
        reticent.mechanisms.SignedDistanceRelease: the mechanism "signed-distance".
    """

    regularization: float = 10.0

    members_: tuple[ConvexModel, ...] = learned()

    _model: ClassVar[type[ReserveModel]] = ConvexModel

    @override
    def _settings(self, **common: Any) -> ConvexSettings:
        return ConvexSettings(regularization=self.regularization, **common)

    @override
    def _models(self, settings: Sequence[Any], pairs: Iterator[Pair]) -> tuple[ConvexModel, ...]:
        return tuple(
            convex_model(rows, second, own, offsets=offsets)
            for own, (rows, second, offsets) in zip(settings, pairs, strict=True)
        )

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        settings = query.members[0].settings
        return {name: getattr(settings, name) for name in ("regularization", *_COMMON)}


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
    def _models(self, settings: Sequence[Any], pairs: Iterator[Pair]) -> tuple[HiddenModel, ...]:
        random = training_generator(self.training.random_state)
        seeds = [int(random.randint(2**31 - 1)) for _ in settings]
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
            **{name: getattr(settings, name) for name in _COMMON},
        }
