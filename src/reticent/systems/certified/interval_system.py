"""Certified classifiers that rest on intervals around the weights: one network, or the vote of
several that are trained on disjoint parts of the records.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, counts, one_of, positive, real
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.seeds import training_generator
from reticent.core.settings import Group, a_part, learned, with_settings
from reticent.core.workers import results_of
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.record_keys import record_buckets, record_keys
from reticent.retraining.training import ParameterIntervals, parameter_intervals
from reticent.retraining.training_settings import PROTECTING, Counting, TrainingSettings
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.certified.system import CertifiedSystem

_KEYS_AT_ONCE = 2**13  # a key takes more memory than its record
_TRAINING = ("hidden", "epochs", "learning_rate", "rate_decay", "clip", "input_bound")


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(Group):
    """Settings of a network's training: full-batch gradient descent on clipped gradients.

    Args:
        hidden: widths of the hidden ReLU layers. () is logistic or softmax regression from zero
            weights.
        epochs: number of steps, each over all records, at least 1.
        learning_rate: rate of the first step, above 0.
        rate_decay: decay of at least 0. The rate of step t is learning_rate / (1 + rate_decay t).
        clip: largest absolute value of each entry of a record's gradient, above 0.
        input_bound: public bound above 0. Features are cut to [-input_bound, input_bound].
        random_state: seed of the starting weights of hidden layers, never of noise.
        initial: public starting weights per layer, shape (units, inputs + 1) with the bias last,
            such as the last layer of a public network. None for zeros, or random hidden layers.

    Raises:
        InvalidParameter: a value out of its range.

    Utility:
        Stable distances fall with clip, rate and epochs, and accuracy wants them large
        (docs/certified.md, section 6).

    Example:
        >>> ClippedDescent(hidden=(8,), random_state=0).epochs
        4

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, section 4, the training that is certified.

    See Also:
        reticent.CertifiedClassifier: trains by it.
    """

    hidden: tuple[int, ...] = ()
    epochs: int = 4
    learning_rate: float = 1.0
    rate_decay: float = 0.6
    clip: float = 0.06
    input_bound: float = 16.0
    random_state: int | np.random.RandomState | None = None
    initial: tuple[Array, ...] | None = None

    def __post_init__(self) -> None:
        counts(self.hidden, name="hidden")
        count(self.epochs, name="epochs")
        positive(self.learning_rate, name="learning_rate")
        positive(self.clip, name="clip")
        positive(self.input_bound, name="input_bound")
        if not 0 <= real(self.rate_decay, name="rate_decay") < math.inf:
            raise InvalidParameter(
                f"rate_decay={self.rate_decay!r}: expected a finite number of at least 0"
            )


@dataclass(frozen=True, eq=False)
class _Share:
    """The records of one member, and the start of its training. Private, and never stored.

    Attributes:
        points, labels: all records, as ``fit`` was given them: no copy.
        rows: the member's own, or None for all.
        initial: starting weights per layer.
    """

    points: Array
    labels: Integers
    rows: npt.NDArray[np.int32] | None
    initial: list[Array]

    @property
    def records(self) -> tuple[Array, Integers]:
        """The member's own records, copied where there are others."""
        own = slice(None) if self.rows is None else self.rows
        return self.points[own], self.labels[own]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send a worker in another process no other member's records."""
        return _Share, (*self.records, None, self.initial)

    def intervals(
        self,
        training: TrainingSettings,
        k_max: int,
        n_jobs: int | None = 1,
    ) -> ParameterIntervals:
        """The certificate of this member."""
        return parameter_intervals(
            *self.records,
            training,
            k_max=k_max,
            initial=self.initial,
            n_jobs=n_jobs,
        )


def _drawn_members(
    points: Array, labels: Integers, names: Sequence[bytes] | None, members: int
) -> Integers:
    """Return the member of each record, shape (n,), by its name, or by its content."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(points), _KEYS_AT_ONCE):
        part = slice(start, start + _KEYS_AT_ONCE)
        keys = record_keys(points[part], labels[part]) if names is None else names[part]
        found.append(record_buckets(keys, buckets=members, purpose="ensemble member"))
    return np.concatenate(found)


@with_settings
class IntervalSystem(CertifiedSystem):
    """A certified classifier of one or several networks, for ``CertifiedClassifier`` and
    ``CertifiedEnsemble``.
    """

    k_max: int
    training: ClippedDescent | None = None

    members_: tuple[ParameterIntervals, ...] = learned()

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """Return for each row how many training records could be taken away at least.

        Whichever they are, training on the rest, from the same start and with the same settings,
        would still give the label of ``exact_predict``. This is a deterministic statement about the
        fitted system, for the owner of the records. No noise is involved, and the numbers are as
        private as the records. The first call trains intervals for removals alone, which takes as
        long as ``fit``.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.

        Returns:
            Shape (n,), int64, 0 to ``k_max`` for each member together. Private.

        Raises:
            NotFittedYet: before ``fit``.
            InvalidInput: the system was loaded or unpickled, and has no records, or the arrays that
                ``fit`` was given were changed in place: it has no copy of them.

        References:
            Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning
            in gradient-based training", arXiv:2406.05670, section 3.
        """
        return self._survived(X, "remove")

    def poisoning(
        self, X: npt.ArrayLike, *, change: Literal["insert", "replace"] = "insert"
    ) -> Integers:
        """Return for each row how many records would have to be slipped in or exchanged, less 1.

        That is the least number to get another label than that of ``exact_predict``. It is as
        ``unlearning``, for changes of another kind.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.
            change: "insert": any records come to those there are. "replace": any of those there are
                become any other ones. Inserted and exchanged records keep to the public bounds as
                all do, since these are part of training.

        Returns:
            Shape (n,), int64. Private.

        Raises:
            NotFittedYet, InvalidInput: the errors of ``unlearning``, or "replace" for several
                members, since one exchanged record can change two of them.
        """
        one_of(change, ("insert", "replace"), name="change")
        if change == "replace" and len(self._fitted().members) > 1:
            raise InvalidInput(
                "change='replace': an exchanged record can change two members; expected insert"
            )
        return self._survived(X, change)

    def _survived(self, X: npt.ArrayLike, counting: Counting) -> Integers:
        inputs, query = self.checked(X), self.query_
        kept: list[_Share] | None = getattr(self, "_shares", None)
        if kept is None:
            raise InvalidInput(
                "unlearning, poisoning: expected a system that holds the records it was fitted "
                "on; one that was loaded or unpickled does not: fit again"
            )
        if counting not in self._views:
            settings = replace(self.members_[0].settings, counting=counting)
            trained = self._intervals(kept, settings)
            # T_0 is the trained model, whatever the kind of change.
            for one, other in zip(trained, self.members_, strict=True):
                for ends in zip(one.lower + one.upper, other.lower + other.upper, strict=True):
                    if not np.array_equal(*(end[0] for end in ends)):
                        raise InvalidInput(
                            "unlearning, poisoning: the records that fit was given were changed "
                            "in place since; fit again"
                        )
            self._views[counting] = replace(query, members=trained)
        return self._views[counting].stable_distances(inputs)[1]

    @override
    def trained(
        self,
        points: Array,
        labels: Integers,
        classes: npt.NDArray[Any],
        identities: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> tuple[ParameterIntervals, ...]:
        members = self._member_count()
        count(self.k_max, name="k_max", minimum=0)
        chosen = a_part(self.training, ClippedDescent, name="training")
        random = training_generator(chosen.random_state)
        one_of(self.counting, PROTECTING, name="counting")
        weights = weights_of_prevalence(self.prevalence, classes)
        training = TrainingSettings(
            features=points.shape[1],
            classes=len(classes),
            class_weights=None if self.prevalence is None else weights,
            counting=self.counting,
            **{name: getattr(chosen, name) for name in _TRAINING},
        )
        names = None if identities is None else record_keys(points, labels, identities)
        own: list[npt.NDArray[np.int32] | None] = [None]
        if members > 1:
            member = _drawn_members(points, labels, names, members)
            own = [np.flatnonzero(member == index).astype(np.int32) for index in range(members)]
        seeds = [int(random.randint(2**31 - 1)) for _ in own]
        shares = [
            _Share(
                points,
                labels,
                rows,
                training.initial(seed if training.hidden else None)
                if chosen.initial is None
                else list(chosen.initial),
            )
            for rows, seed in zip(own, seeds, strict=True)
        ]
        found = self._intervals(shares, training)
        self._shares: list[_Share] | None = shares
        self._views: dict[str, CertifiedQuery] = {}
        return found

    def _intervals(
        self, shares: list[_Share], training: TrainingSettings
    ) -> tuple[ParameterIntervals, ...]:
        """Return the members in order, shared among workers. One alone has its distances shared."""
        if len(shares) == 1:
            return (shares[0].intervals(training, self.k_max, n_jobs=None),)
        calls = ((share.intervals, training, self.k_max) for share in shares)
        return tuple(results_of(calls, n_jobs=None))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the records: a pickle holds what was learnt from them, as a
        bundle does.
        """
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_shares", "_views")}

    @override
    def _cut(self, features: Array) -> int:
        return int((~(np.abs(features) <= self.members_[0].settings.input_bound)).sum())

    @override
    def _cut_words(self, features: Array) -> str:
        bound = self.members_[0].settings.input_bound
        if not self.clipped_:
            return ""
        return (
            f"{self.clipped_} of {features.size} feature values lie beyond input_bound={bound:g} "
            "and"
        )

    @abstractmethod
    def _member_count(self) -> int:
        """The number of models."""

    @classmethod
    @override
    def _check_members(cls, query: CertifiedQuery, weights: tuple[float, ...]) -> None:
        for member in query.members:
            if not isinstance(member, ParameterIntervals) or weights != (
                member.settings.class_weights or (1.0,) * member.settings.classes
            ):
                raise CorruptBundle("bundle: a certificate that is none of this system's")

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        [first, *_] = query.members
        assert isinstance(first, ParameterIntervals)
        settings = first.settings
        return {
            "k_max": first.k_max,
            "training": ClippedDescent(**{name: getattr(settings, name) for name in _TRAINING}),
        }


@with_settings
class CertifiedClassifier(IntervalSystem):
    """Release labels of one classifier, (epsilon, delta) for each label, for the records that it
    was trained on.

    Training proves how far the weights could have moved if k records had come or gone, for every k
    up to ``k_max``. A query's label survives as many changes as all those weights agree on it, and
    the more it survives the less it has to be randomised.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). ``card()`` says what is
        assumed and docs/certified.md has the proofs. ``exact_predict`` is the noise-free label and
        is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon: epsilon of one answer, above 0. See ``calibrate`` for a total over many.
        delta: delta of one answer, in [0, 1), for the mechanism "signed-distance".
        mechanism: "stability" (calibrated randomised response), "signed-distance" (Gaussian noise
            on the signed distance, for many answers).
            "auto" is "stability" where delta is 0 and "signed-distance" where it is not.
            ``calibrate`` then takes whichever the number of answers asks for.
        k_max: largest number of changed records that is certified. Training takes k_max + 1 times
            as long.
        training: settings of the network's training, or None for ``ClippedDescent()``, logistic or
            softmax regression.
        counting: "add-remove" or "replace".
        prevalence: share of each label, by label, known from elsewhere, which makes every label
            count alike in training. None for records that count alike.
        features: meaning of a record's columns (schema), and your own torch module from inputs
            to features, trained on public data only (map). None for ``Features()``.
        classes: the labels that there are, a public list, or "observed" to take those that occur
            among the records. That publishes them: the card then says that they are not protected.
        data_set: the owner's name for the records. It stays the same whenever they are the
            same, since a ledger charges every fit on them to it. None books in no ledger.

    Attributes:
        members_: the certified parameter intervals, one entry, as private as the records.
        public_check_: private comparison of the model with a constant on the public rows that
            ``fit`` was given, or None.
        clipped_: private number of feature values of the records that were cut to the training's
            ``input_bound``, or were not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> classifier = CertifiedClassifier(epsilon=0.5, classes=[0, 1], k_max=30).fit(X, y)
        >>> labels, distances = classifier.stable_distances([[2.0, 2.0], [0.1, -0.1]])
        >>> labels.tolist(), distances.tolist()
        ([1, 1], [30, 0])
        >>> len(classifier.release([[2.0, 2.0]]))
        1

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433.
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670, intervals around trained parameters.

    See Also:
        reticent.CertifiedEnsemble: votes of several, for more records and answers.
        reticent.PrivateKNNClassifier: records that vote, no training.
        reticent.retraining.parameter_intervals: the certificate.
        reticent.mechanisms.StabilityResponse: the default mechanism.
    """

    k_max: int = 50
    counting: Counting = "add-remove"

    @override
    def _member_count(self) -> int:
        return 1

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        return {**super()._arguments(query), "counting": query.members[0].settings.counting}


@with_settings
class CertifiedEnsemble(IntervalSystem):
    """Release the label that most members vote for, (epsilon, delta) for each label, for all
    training records together.

    Every record is in one member, drawn from its key. To change the vote, enough members that vote
    for the winner must each lose more records than their label survives. The least total is the
    distance that the answer's noise is calibrated to.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more.
        ``card()`` says what is assumed and docs/certified.md has the proofs. ``exact_predict`` is
        the noise-free vote and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, k_max, training, prevalence, features, classes, data_set:
            arguments of ``CertifiedClassifier``, with k_max for each member.
        members: number of classifiers, at least 1.

    Attributes:
        members_: the certified parameter intervals of each member, as private as the records.
        public_check_: private comparison of the model with a constant on the public rows that
            ``fit`` was given, or None.
        clipped_: private number of feature values of the records that were cut to the training's
            ``input_bound``, or were not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> ensemble = CertifiedEnsemble(epsilon=0.5, classes=[0, 1], members=5, k_max=10).fit(X, y)
        >>> labels, distances = ensemble.stable_distances([[2.0, 2.0]])
        >>> labels.tolist(), distances.tolist()  # three of five votes, 11 records each, less one
        ([1], [32])

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, section 5.2 and theorem 5.3.
        - Levine and Feizi (2021), "Deep partition aggregation: provable defenses against general
          poisoning attacks", arXiv:2006.14768, votes of models on disjoint parts.
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803, sample and aggregate.

    See Also:
        reticent.CertifiedClassifier: one model.
        reticent.retraining.vote_distances: the distance of a vote.
    """

    members: int = 10
    k_max: int = 20
    counting = "add-remove"  # a replaced record can change two members

    @override
    def _member_count(self) -> int:
        return count(self.members, name="members")

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        return {**super()._arguments(query), "members": len(query.members)}
