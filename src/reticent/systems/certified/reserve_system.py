"""Certified classifiers that rest on reserves: a model for each pair of labels, perhaps beside
public models.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import CorruptBundle
from reticent.core.settings import learned, with_settings
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.record_keys import record_keys
from reticent.retraining.reserves import ReserveModel, ReserveSettings
from reticent.retraining.training_settings import PROTECTING, Counting
from reticent.systems.certified.query import CertifiedQuery, rows_of_pair
from reticent.systems.certified.system import CertifiedSystem
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.public_reference import PublicReference

COMMON = ("norm_bound", "counting")
_FARTHEST = 8.0
"""Log odds of public models are cut there: 1 in 3,000."""

Pair = tuple[Array, Integers, Array | None]
"""Rows of two labels, which of them have the second, and their offsets."""


@with_settings
class ReserveSystem(CertifiedSystem):
    """A certified classifier of one model for each pair of labels; use
    ``ConvexCertifiedClassifier`` or ``CertifiedNetwork``.
    """

    norm_bound: float = 1.0
    counting: Counting = "add-remove"

    members_: tuple[ReserveModel, ...] = learned()

    _corrects: ClassVar[bool] = True
    _model: ClassVar[type[ReserveModel]]
    """The kind of its members."""

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """For each row, how many training records at least could be taken away, whichever they are,
        and training on the rest would still give the label of ``exact_predict``.
        Deterministic, and as private as the records.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.

        Returns:
            Shape (n,), int64. Private.
        """
        return self._survived(X, 1)

    def poisoning(
        self, X: npt.ArrayLike, *, change: Literal["insert", "replace"] = "insert"
    ) -> Integers:
        """For each row, how many records at least somebody would have to slip in among the training
        records, or to exchange, to get another label than that of ``exact_predict``, less 1.
        Training that has a limit of records refuses more than that.

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
    def _trained(
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
        found: list[Pair] = []
        for pair, own in zip(combinations(range(len(classes)), 2), settings, strict=True):
            chosen = (labels == pair[0]) | (labels == pair[1])
            rows, offsets = rows_of_pair(points[chosen], own, pair)
            found.append((rows, (labels[chosen] == pair[1]).astype(np.int64), offsets))
        return self._models(settings, found)

    @abstractmethod
    def _settings(self, **common: Any) -> ReserveSettings:
        """Return the settings of one pair's model."""

    @abstractmethod
    def _models(self, settings: Sequence[Any], pairs: Sequence[Pair]) -> tuple[ReserveModel, ...]:
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


def _weights_of_pairs(weights: tuple[float, ...]) -> Iterator[tuple[float, float]]:
    """Yield weights of the labels of each pair, the larger one 1."""
    for first, second in combinations(weights, 2):
        most = max(first, second)
        yield first / most, second / most
