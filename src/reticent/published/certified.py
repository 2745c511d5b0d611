"""Certified prediction as printed: Cauchy noise at the smooth sensitivity, then a threshold. Beside
it stand its baseline without certificates, its stable distance of a vote, and the estimators.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import as_array, count, counts, one_of, positive
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import AddRemove, Adjacency, Guarantee, GuaranteeKind, Replace
from reticent.core.settings import learned, with_settings
from reticent.mechanisms.mechanism import Mechanism
from reticent.mechanisms.stability_response import checked_labels
from reticent.noise import Sampler
from reticent.published.research import Account, Answers, AsPrinted, PublishedSystem, WorstPair
from reticent.release.bundle import Bundle
from reticent.systems.certified.interval_system import (
    CertifiedClassifier,
    CertifiedEnsemble,
    ClippedDescent,
)
from reticent.systems.record_labels import Classes

_ARITHMETIC = 2.0**-40
"""Taken off epsilon: more than twice the relative error of arctan and exp in a probability."""


@dataclass(frozen=True, kw_only=True)
class BinaryResponse(Mechanism, ABC):
    """One of two labels, the given one except with a probability that depends on its level.

    Attributes:
        epsilon: at least 1e-6.
        adjacency: the relation of neighbours.
    """

    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if positive(self.epsilon, name="epsilon") < 1e-6:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected at least 1e-6")

    @abstractmethod
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        """Return the probability of the other label at each level (shape (n,), integers of at least
        0).
        """

    def release(
        self, labels: npt.ArrayLike, levels: npt.ArrayLike, *, sampler: Sampler
    ) -> Integers:
        """Return one label per row, each a separate answer.

        Args:
            labels: shape (n,), 0 or 1, never released as they are.
            levels: shape (n,), integers of at least 0.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, 0 or 1.

        Raises:
            InvalidInput: wrong shapes or types, a label or level out of its range. Values are
                never shown.
        """
        given, level = checked_labels(labels, levels, classes=2)
        return np.where(sampler.bernoulli(self.flip_probabilities(level)), 1 - given, given)


@dataclass(frozen=True, kw_only=True)
class SmoothCauchy(AsPrinted, BinaryResponse):
    """A response that is 1 if f + z exceeds 1/2, with z Cauchy of scale 6 exp(-epsilon k / 6) /
    epsilon and f the label 0 or 1.

    **Guarantee.** With every distance certified (``certified_at=()``), or with ``credit="index"``,
    one answer is (epsilon, 0)-private under ``adjacency``, if the label and its stable distance
    have the two properties that ``StabilityResponse`` needs. With a sparse set of distances and
    ``credit="distance"``, as published, there is *no guarantee*. The kind says so and a ledger
    refuses it.

    *Why.* exp(-epsilon k / 6) bounds the smooth sensitivity and changes by at most a factor
    exp(epsilon / 6) between neighbours (Nissim, Raskhodnikova and Smith 2007, Lemma 2.7 with gamma
    = 2). The threshold is post-processing, so the answer is drawn by its own probability, P(wrong)
    = 1/2 - arctan(epsilon exp(epsilon k / 6) / 12) / pi, with an exact coin.

    *Differs from the paper.* The paper certifies a sparse set of distances and takes the largest
    that holds. That bounds the smooth sensitivity, but not smoothly: 20 can stand next to 5. The
    *index* in the set changes by at most 1 between neighbours, and repairs it.

    Attributes:
        certified_at: increasing distances at which stability is looked at, each at least 1. () for
            every one.
        credit: "distance" to count the largest of them that holds by its value, as published, or
            "index" to count it by its place.

    Example:
        >>> from reticent.core import AddRemove
        >>> response = SmoothCauchy(epsilon=1.0, adjacency=AddRemove(1))
        >>> response.flip_probabilities([0, 20, 40]).round(4).tolist()
        [0.4735, 0.1288, 0.0049]

    Utility:
        At epsilon = 1 a label is wrong with probability 0.47, 0.37, 0.13 and 0.005 at stable
        distance 0, 10, 20 and 40. It falls as exp(-epsilon k / 6). For ``StabilityResponse`` it is
        0.27, 1e-5, and less from there, and falls as exp(-epsilon k).

    Runtime:
        O(1) an answer: 0.04 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803, lemma 2.7, with gamma = 2.
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, the response that it publishes.

    See Also:
        reticent.mechanisms.StabilityResponse: the default, with the same premises at a sixth of the
            budget.
        reticent.published.GlobalSensitivityResponse: without certificates.
    """

    certified_at: tuple[int, ...] = ()
    credit: Literal["distance", "index"] = "distance"

    name: ClassVar[str] = "smooth Cauchy response"

    def __post_init__(self) -> None:
        super().__post_init__()
        distances = counts(self.certified_at, name="certified_at")
        if list(distances) != sorted(set(distances)):
            raise InvalidParameter(
                f"certified_at={self.certified_at!r}: expected increasing integers of at least 1"
            )
        one_of(self.credit, ("distance", "index"), name="credit")
        object.__setattr__(self, "certified_at", distances)

    @property
    @override
    def guarantee(self) -> Guarantee:
        """The cost of one answer, of kind "no differential privacy" for a sparse set credited by
        distance.
        """
        every = self.certified_at == tuple(range(1, len(self.certified_at) + 1))
        smooth = every or self.credit == "index"
        kind = GuaranteeKind.DIFFERENTIAL_PRIVACY if smooth else GuaranteeKind.NO_PRIVACY
        return Guarantee(self.epsilon, 0.0, self.adjacency, kind)

    def credited(self, levels: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the distances that stable distances count as, given where stability is looked at.
        Private.
        """
        level = as_array(levels, name="levels").astype(np.int64)
        if not self.certified_at:
            return level
        place = np.searchsorted(self.certified_at, level, side="right")
        counted = [0, *self.certified_at]
        return np.array(range(len(counted)) if self.credit == "index" else counted)[place]

    @override
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        epsilon = self.epsilon - _ARITHMETIC
        reach = np.exp(np.minimum(epsilon * self.credited(levels) / 6.0, 80.0)) * epsilon / 12.0
        # arctan(1/t) in place of pi/2 - arctan(t), so that a small probability keeps its digits.
        return np.asarray(np.arctan2(1.0, reach) / np.pi)


@dataclass(frozen=True, kw_only=True)
class GlobalSensitivityResponse(BinaryResponse):
    """A response that is 1 if f + Laplace(1 / epsilon) exceeds 1/2, with f the label 0 or 1.

    **Guarantee.** One answer is (epsilon, 0)-private under ``adjacency``, for any label, because it
    is the Laplace mechanism at sensitivity 1, post-processed. It is drawn by its own probability,
    P(wrong) = exp(-epsilon / 2) / 2, with an exact coin.

    Levels are accepted and ignored, so that it can stand in for the certified responses.

    Example:
        >>> from reticent.core import AddRemove
        >>> response = GlobalSensitivityResponse(epsilon=2.0, adjacency=AddRemove(1))
        >>> response.flip_probabilities([0, 9]).round(4).tolist()
        [0.1839, 0.1839]

    Utility:
        Wrong with probability 0.30 at epsilon = 1, 0.18 at 2 and 0.04 at 5. For randomised
        response, the least possible without looking at the data, it is 0.27, 0.12 and 0.007.

    Runtime:
        O(1) an answer: 0.03 microseconds on one core (benchmarks/runtimes.py).

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, proposition 1.
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, the baseline of its experiments.

    See Also:
        reticent.mechanisms.StabilityResponse: at level 0 randomised response.
        reticent.published.SmoothCauchy: the published response that uses stable distances.
    """

    name: ClassVar[str] = "global sensitivity response"

    @override
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        return np.full(len(np.asarray(levels)), 0.5 * math.exp(-0.5 * (self.epsilon - _ARITHMETIC)))


def published_vote_distances(labels: npt.ArrayLike, distances: npt.ArrayLike) -> Integers:
    """Return the sum of Theorem 5.3 of the paper as printed: ceil(gap / 2) smallest distances of
    *all* members, plus their number, minus 1.

    **Guarantee.** None. The number is a valid stable distance for a report, but neighbours'
    numbers differ by any amount.

    Args:
        labels: shape (members, n), 0 or 1.
        distances: the same shape, at least 0.

    Returns:
        Shape (n,), int64.

    Example:
        >>> distances = [[100]] * 8 + [[0]]
        >>> [published_vote_distances([[1]] * 8 + [last], distances) for last in ([0], [1])]
        [array([303]), array([404])]

    Runtime:
        O(m log m) a query: 0.4 microseconds for 50 members on one core (benchmarks/runtimes.py).

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorem 5.3.

    See Also:
        reticent.retraining.vote_distances: a stable distance that moves by at most 1.
    """
    votes, costs = np.asarray(labels), np.asarray(distances)
    flipped = np.ceil(np.abs(2 * votes.sum(axis=0) - len(votes)) / 2).astype(np.int64)
    sums = np.concatenate(
        [np.zeros((1, votes.shape[1]), np.int64), np.cumsum(np.sort(costs, axis=0), axis=0)]
    )
    return np.asarray(np.maximum(sums[flipped, np.arange(votes.shape[1])] + flipped - 1, 0))


Side = tuple[int, int]
"""A label, 0 or 1, and the distance that is credited."""


@with_settings
class _PublishedCertified(ClassifierMixin, PublishedSystem):
    """What the two estimators share."""

    epsilon: float
    classes: Classes
    certified_at: tuple[int, ...]
    k_max: int
    credit: Literal["distance", "index"] = "distance"
    training: ClippedDescent | None = None
    counting: Literal["replace", "add-remove"] = "replace"

    system_: CertifiedClassifier | CertifiedEnsemble = learned()

    source: ClassVar[str] = "Wicker et al. (2025), arXiv:2406.13433"

    _kind: ClassVar[type[CertifiedClassifier] | type[CertifiedEnsemble]]
    _own: ClassVar[tuple[str, ...]] = ("certified_at", "credit")
    _shared: ClassVar[tuple[str, ...]] = ("epsilon", "classes", "k_max", "training")

    def _system(self) -> CertifiedClassifier | CertifiedEnsemble:
        """The certified system whose distances are released, not fitted yet."""
        return self._kind(**{name: getattr(self, name) for name in self._shared})

    @abstractmethod
    def _distances(self, inputs: Array) -> tuple[Integers, Integers]:
        """Labels 0 or 1 and the distances that are credited. Private."""

    @abstractmethod
    def _levels(self) -> tuple[int, int]:
        """The largest distance, and how far neighbours' distances lie apart at most."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on private records and certify the training.

        With ``counting="replace"`` a record is known by its place, as in the paper, where a data
        set is a list. So a replaced record stays in its member of an ensemble.

        Args:
            X: shape (n, features), private.
            y: shape (n,), two labels.

        Raises:
            InvalidInput, InvalidParameter: before anything is trained.
        """
        _ = self.mechanism_
        one_of(self.counting, ("replace", "add-remove"), name="counting")
        system = self._system()
        places = range(len(np.asarray(y))) if self.counting == "replace" else None
        system.fit(X, y, places)
        if (labels := len(system.classes_)) != 2:
            raise InvalidParameter(f"classes: expected two, as in the paper, got {labels}")
        self.system_ = system
        self.classes_, self.n_features_in_ = system.classes_, system.n_features_in_
        self.serial_ = system.serial_
        return self

    @property
    def mechanism_(self) -> SmoothCauchy:
        """The response of one answer."""
        return SmoothCauchy(
            epsilon=self.epsilon,
            adjacency=self.stated_adjacency,
            certified_at=self.certified_at,
            credit=self.credit,
        )

    @property
    @override
    def stated_adjacency(self) -> AddRemove | Replace:
        """One record in place of another, or one more or less."""
        return Replace(1) if self.counting == "replace" else AddRemove(1)

    @override
    def stated(self) -> Account:
        return Account(
            epsilon=self.epsilon, reason=f"For one answer, {self.stated_adjacency.describe()}."
        )

    @override
    def spent(self) -> Account:
        most, step = self._levels()
        loss, _ = _largest_loss(self.mechanism_, most=most, step=step)
        return Account(
            epsilon=loss,
            reason=f"The largest loss of one answer, over labels that differ at distance 0 and "
            f"equal labels whose distances lie at most {step} apart. Sound in real numbers.",
        )

    def worst_sides(self) -> tuple[Side, Side]:
        """Return label and distance of two neighbours, whose answers differ most of all known."""
        most, step = self._levels()
        _, where = _largest_loss(self.mechanism_, most=most, step=step)
        return ((0, 0), (1, 0)) if where < 0 else ((0, where), (0, min(where + step, most)))

    @override
    def worst_pair(self) -> WorstPair:
        (_, lower), (label, upper) = self.worst_sides()
        wrong, other = self.mechanism_.flip_probabilities([lower, upper])
        if label:
            words, loss = "Two labels, each at stable distance 0.", np.log((1 - wrong) / wrong)
        else:
            words, loss = self._words(lower, upper), np.log(wrong / other)
        return WorstPair(description=words, loss=float(loss))

    def _words(self, lower: int, upper: int) -> str:
        first, second = self.mechanism_.credited([lower, upper])
        return (
            f"Equal labels at stable distances {lower} and {upper}, credited {first} and {second}."
        )

    @override
    def checked(self, X: npt.ArrayLike) -> Array:
        """Return queries as numbers, shape (n, features)."""
        self._check_fitted()
        found: Array = self.system_.checked(X)
        return found

    @override
    def answer(self, X: npt.ArrayLike, *, sampler: Sampler) -> Answers:
        labels, distances = self._distances(self.checked(X))
        released = self.mechanism_.release(labels, distances, sampler=sampler)
        return Answers(self.classes_[released], np.zeros(len(released), dtype=np.bool_))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return labels without noise. Private."""
        return np.asarray(self.classes_[self._distances(self.checked(X))[0]])

    @override
    def _content(self) -> tuple[dict[str, Any], Arrays]:
        inner = self.system_.bundle()
        own = {name: getattr(self, name) for name in self._own}
        return {"own": own, "system": inner.settings}, inner.arrays

    @classmethod
    @override
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        kind, settings = cls._kind.__name__, bundle.settings
        stored = Bundle(kind, settings["system"], bundle.arrays, "", bundle.serial)
        system = cls._kind._of_bundle(stored)
        shared = {name: getattr(system, name) for name in cls._shared}
        found = cls(**settings["own"], **shared)
        found.system_ = system
        return found


@with_settings
class PublishedCertifiedClassifier(_PublishedCertified):
    """Labels of one certified model, released as the paper prints it: Cauchy noise at a bound on
    the smooth sensitivity, from a sparse set of certified distances.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". With a sparse set credited by
        distance the noise is large enough but not smooth: neighbours at distances 19 and 20 may be
        credited 5 and 20. ``spent()`` is the loss that this has.

    Args:
        epsilon: of one answer, at least 1e-6.
        classes: the two labels, or "observed".
        certified_at: rising distances at which stability is looked at, such as (1, 5, 20). () for
            all, which repairs it.
        k_max: the largest number of changed records that is certified, at least the last of
            ``certified_at``.
        credit: "distance" as printed, or "index", which repairs it.
        training: how the network is trained. None for the usual.
        counting: "replace" for the paper's Hamming distance, or "add-remove".

    Attributes:
        system_: the certified classifier. As private as the records.
        classes_: the labels, sorted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> X[:100] += 3.0
        >>> found = PublishedCertifiedClassifier(
        ...     epsilon=1.0, classes=[0, 1], certified_at=(1, 5, 20), k_max=20
        ... ).fit(X, np.repeat([1, 0], 100))
        >>> round(found.spent().epsilon, 3), found.guarantee.describe()
        (1.228, 'no differential privacy')

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorems 5.1 and 5.2.

    See Also:
        reticent.CertifiedClassifier: with a proof.
        reticent.published.SmoothCauchy: its response.
    """

    name: ClassVar[str] = "certified classifier, as published"

    _kind = CertifiedClassifier
    _shared = (*_PublishedCertified._shared, "counting")

    @override
    def _distances(self, inputs: Array) -> tuple[Integers, Integers]:
        return self.system_.query_.stable_distances(inputs)

    @override
    def _levels(self) -> tuple[int, int]:
        return count(self.k_max, name="k_max", minimum=0), 1


@with_settings
class PublishedCertifiedEnsemble(_PublishedCertified):
    """The vote of certified models, released as the paper prints it, with Theorem 5.3's distance.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". The sum of Theorem 5.3 runs over all
        members, so one record that flips a member at distance 0 moves it by k_max + 1.

    Args:
        epsilon, classes, certified_at, k_max, credit, training, counting: as for
            ``PublishedCertifiedClassifier``. () is no repair here.
        members: number of models, at least 2.
        distance: "printed" for Theorem 5.3, or "repaired" for the least number of records that
            changes the vote.

    Attributes:
        system_: the certified ensemble. As private as the records.
        classes_: the labels, sorted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> X[:100] += 3.0
        >>> found = PublishedCertifiedEnsemble(
        ...     epsilon=1.0, classes=[0, 1], certified_at=(), k_max=10, members=5
        ... ).fit(X, np.repeat([1, 0], 100))
        >>> found.worst_pair().description
        'Equal votes at distances 11 and 22: one of 5 members at distance 0 flips.'

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, theorem 5.3.

    See Also:
        reticent.CertifiedEnsemble: with a proof.
        reticent.published.published_vote_distances: its distance.
    """

    members: int = 10
    distance: Literal["printed", "repaired"] = "printed"

    name: ClassVar[str] = "certified ensemble, as published"

    _kind = CertifiedEnsemble
    _own = (*_PublishedCertified._own, "counting", "distance")
    _shared = (*_PublishedCertified._shared, "members")

    @override
    def _system(self) -> CertifiedClassifier | CertifiedEnsemble:
        one_of(self.distance, ("printed", "repaired"), name="distance")
        count(self.members, name="members", minimum=2)
        found = super()._system()
        found.counting = self.counting  # no argument of the ensemble
        return found

    @override
    def _distances(self, inputs: Array) -> tuple[Integers, Integers]:
        query = self.system_.query_
        if self.distance == "repaired":
            return query.stable_distances(inputs)
        labels, distances = query.member_distances(inputs)
        majority = (2 * labels.sum(axis=0) > len(labels)).astype(np.int64)
        return majority, published_vote_distances(labels, distances)

    @override
    def _levels(self) -> tuple[int, int]:
        # A record changes the distance or the label of one member. A label that flips lies at
        # distance 0 before and after, so one more or one less of the sorted distances is added.
        return self._printed()[0], self.k_max + 1 if self.distance == "printed" else 1

    def _printed(self) -> list[int]:
        """Printed distances of votes that are one at k_max, of the same with the last member at
        distance 0, and of that with its vote flipped.
        """
        votes = np.ones((self.members, 3), dtype=np.int64)
        distances = np.full_like(votes, self.k_max)
        distances[-1, 1:] = votes[-1, 2] = 0
        return [int(each) for each in published_vote_distances(votes, distances)]

    @override
    def worst_sides(self) -> tuple[Side, Side]:
        if self.distance == "repaired":
            return super().worst_sides()
        _, upper, lower = self._printed()
        return (0, lower), (0, upper)

    @override
    def _words(self, lower: int, upper: int) -> str:
        flipped = f": one of {self.members} members at distance 0 flips"
        end = flipped if self.distance == "printed" else ""
        return f"Equal votes at distances {lower} and {upper}{end}."

    @classmethod
    @override
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        found = super()._restored(bundle, labels)
        found.system_.counting = found.counting
        return found


def _largest_loss(mechanism: SmoothCauchy, *, most: int, step: int) -> tuple[float, int]:
    """Return the largest loss of one answer, and the lower of two distances that have it.

    Labels of neighbours differ at distance 0 alone, for which the place is -1. Equal labels have
    distances from 0 to ``most`` that lie at most ``step`` apart. The chance of a wrong label falls
    with the distance, so the farthest two have the largest loss.
    """
    wrong = mechanism.flip_probabilities(np.arange(most + 1))
    lower = np.arange(most)
    higher = np.minimum(lower + step, most)
    losses = np.maximum(
        np.log(wrong[lower] / wrong[higher]), np.log((1 - wrong[higher]) / (1 - wrong[lower]))
    )
    differing = float(np.log((1 - wrong[0]) / wrong[0]))
    if not len(losses) or losses.max() < differing:
        return differing, -1
    return float(losses.max()), int(losses.argmax())
