"""Certified classifiers that rest on intervals around the weights: training, and what predictions
survive.
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
    """The records of one member, and the start of its training. Private, and never stored."""

    points: Array
    labels: Integers
    initial: list[Array]

    def intervals(
        self,
        training: TrainingSettings,
        k_max: int,
        n_jobs: int | None = 1,
    ) -> ParameterIntervals:
        """The certificate of this member."""
        return parameter_intervals(
            self.points,
            self.labels,
            training,
            k_max=k_max,
            initial=self.initial,
            n_jobs=n_jobs,
        )


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
            InvalidInput: the system was loaded or unpickled, and has no records.

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
            self._views[counting] = replace(query, members=trained)
        # The middle of T_0 is the trained model, whatever the kind of change.
        return self._views[counting].stable_distances(inputs)[1]

    @override
    def _trained(
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
        member = np.zeros(len(points), dtype=np.int64)
        if members > 1 or identities is not None:  # a key takes more memory than its record
            names = record_keys(points, labels, identities)
            member = record_buckets(names, buckets=members, purpose="ensemble member")
        seeds = [int(random.randint(2**31 - 1)) for _ in range(members)]
        shares = [
            _Share(
                points[member == index],
                labels[member == index],
                training.initial(seed if training.hidden else None)
                if chosen.initial is None
                else list(chosen.initial),
            )
            for index, seed in enumerate(seeds)
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
