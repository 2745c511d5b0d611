"""Certified classifiers that rest on intervals around the weights: training, and what predictions
survive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import check_jobs, count, counts, flag, one_of
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.seeds import training_generator
from reticent.core.settings import learned, with_settings
from reticent.core.workers import results_of
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.record_keys import record_buckets, record_keys
from reticent.retraining.training import ParameterIntervals, parameter_intervals
from reticent.retraining.training_settings import PROTECTING, Counting, TrainingSettings
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.certified.system import CertifiedSystem
from reticent.training.progress import progress

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TRAINING = (
    "hidden",
    "epochs",
    "batches",
    "learning_rate",
    "rate_decay",
    "clip",
    "momentum",
    "weight_decay",
    "input_bound",
    "counting",
)
"""Constructor arguments that go into ``TrainingSettings`` as they are."""


@dataclass(frozen=True, eq=False)
class _Share:
    """The records of one member, and where its training starts; private, and never stored."""

    points: Array
    labels: Integers
    batch: Integers
    initial: list[Array]

    def intervals(
        self,
        training: TrainingSettings,
        k_max: int,
        report: Callable[[int], None] | None = None,
        n_jobs: int | None = 1,
    ) -> ParameterIntervals:
        """The certificate of this member."""
        return parameter_intervals(
            self.points,
            self.labels,
            training,
            k_max=k_max,
            initial=self.initial,
            batch=self.batch,
            report=report,
            n_jobs=n_jobs,
        )


@with_settings
class IntervalSystem(CertifiedSystem):
    """A certified classifier of one or several networks; use ``CertifiedClassifier`` or
    ``CertifiedEnsemble``.
    """

    k_max: int
    hidden: tuple[int, ...] = ()
    epochs: int = 4
    batches: int = 1
    learning_rate: float = 1.0
    rate_decay: float = 0.6
    clip: float = 0.06
    momentum: float = 0.0
    weight_decay: float = 0.0
    input_bound: float = 16.0
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: bool = False

    members_: tuple[ParameterIntervals, ...] = learned()

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """For each row, how many training records at least could be taken away, whichever they are,
        and training on the rest, from the same start and with the same settings, would still give
        the label of ``exact_predict``.

        A deterministic statement about this fitted system, for the owner of the records: no noise
        is involved, and the numbers are as private as the records. The first call trains intervals
        for removals alone, which takes as long as ``fit``.

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
        """For each row, how many records at least somebody would have to slip in among the training
        records, or to exchange, to get another label than that of ``exact_predict``, less 1.

        As ``unlearning``, for changes of another kind.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.
            change: "insert": any records come to those there are. "replace": any of those there are
                become any other ones. Inserted and exchanged records keep to the public bounds as
                all do, since these are part of training.

        Returns:
            Shape (n,), int64. Private.

        Raises:
            NotFittedYet, InvalidInput: as ``unlearning``; for several members "replace", since one
                exchanged record can change two of them.
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
            trained = self._intervals(kept, settings, f"certified training, {counting}")
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
        check_jobs(self.n_jobs)
        count(self.k_max, name="k_max", minimum=0)
        random = training_generator(self.random_state)
        one_of(self.counting, PROTECTING, name="counting")
        fields = {name: getattr(self, name) for name in TRAINING} | {
            "hidden": counts(self.hidden, name="hidden")
        }
        weights = weights_of_prevalence(self.prevalence, classes)
        training = TrainingSettings(
            features=points.shape[1],
            classes=len(classes),
            class_weights=None if self.prevalence is None else weights,
            **fields,
        )
        if members > 1 and training.counting == "replace":
            raise InvalidParameter(
                "counting='replace': a replaced record can change two members; expected add-remove"
            )
        names = record_keys(points, labels, identities)
        member = record_buckets(names, buckets=members, purpose="ensemble member")
        batch = record_buckets(names, buckets=training.batches, purpose="batch")
        seeds = [int(random.randint(2**31 - 1)) for _ in range(members)]
        shares = [
            _Share(
                points[member == index],
                labels[member == index],
                batch[member == index],
                training.initial(seed if training.hidden else None),
            )
            for index, seed in enumerate(seeds)
        ]
        found = self._intervals(shares, training, "certified training")
        self._shares: list[_Share] | None = shares
        self._views: dict[str, CertifiedQuery] = {}
        return found

    def _intervals(
        self, shares: list[_Share], training: TrainingSettings, title: str
    ) -> tuple[ParameterIntervals, ...]:
        """The members in order; one alone has its distances shared among the workers."""
        one = len(shares) == 1
        with progress(flag(self.verbose, name="verbose")) as report:

            def done(count: int) -> None:
                report(title, count, self.k_max + 1 if one else len(shares), float("nan"))

            if one:
                [share] = shares
                return (share.intervals(training, self.k_max, done, self.n_jobs),)
            fitted = []
            calls = ((share.intervals, training, self.k_max) for share in shares)
            for intervals in results_of(calls, n_jobs=self.n_jobs):
                fitted.append(intervals)
                done(len(fitted))
        return tuple(fitted)

    def __getstate__(self) -> dict[str, Any]:
        """Without the records: a pickle holds what was learnt from them, as a bundle does."""
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
        """Number of models."""

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
        fields = {name: getattr(first.settings, name) for name in TRAINING}
        return {**fields, "k_max": first.k_max}
