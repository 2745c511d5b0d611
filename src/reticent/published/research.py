"""Algorithms as printed: a type that no release takes, a statement beside what a sound account
gives, and a bundle that is only read for research.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from typing_extensions import override

from reticent.core.arrays import Booleans
from reticent.core.checks import count
from reticent.core.errors import (
    IncompatibleGuarantees,
    InvalidInput,
    InvalidParameter,
    NotFittedYet,
)
from reticent.core.guarantees import Adjacency, Guarantee, GuaranteeCard, GuaranteeKind
from reticent.core.settings import learned, with_settings
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler, SecureSampler, SeededSampler
from reticent.release.bundle import RESEARCH, Bundle, check_rebuilt, rebuilding
from reticent.systems.record_labels import restored_labels


class AsPrinted(Mechanism):
    """An algorithm as its paper prints it, flaws included, for study. It is not private by type.

    A release books an event before it draws. This type has none to book, whatever ``guarantee``
    says, so no estimator can release by it and no ledger can be charged for it.
    """

    @property
    @override
    def event(self) -> NoReturn:
        """No event. Asking for one raises IncompatibleGuarantees."""
        words = "is for study and no release takes it; expected a mechanism of reticent.mechanisms"
        raise IncompatibleGuarantees(f"{self.name}: {words}")


@dataclass(frozen=True, kw_only=True)
class Account:
    """A cost: what a paper states, or what a sound account gives.

    Attributes:
        epsilon: infinite where no finite one holds.
        delta: in [0, 1).
        reason: what it is for or how it is found, in whole sentences.
    """

    epsilon: float
    delta: float = 0.0
    reason: str

    def describe(self) -> str:
        """Return the cost and its reason as text."""
        if math.isinf(self.epsilon):
            return f"no finite epsilon. {self.reason}"
        return f"epsilon {self.epsilon:.4g}, delta {self.delta:g}. {self.reason}"


@dataclass(frozen=True, kw_only=True)
class WorstPair:
    """Two neighbours that the algorithm tells apart, and how well.

    Attributes:
        description: the pair, one sentence.
        loss: the largest log ratio of the probabilities of one answer, exact. Infinite where an
            answer tells them apart with certainty.
    """

    description: str
    loss: float

    def describe(self) -> str:
        """Return the pair and its loss as text."""
        loss = "infinite" if math.isinf(self.loss) else f"{self.loss:.4g}"
        return f"{self.description} Exact loss: {loss}."


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of an algorithm as printed. They have no receipt: nothing was booked.

    Attributes:
        values: shape (n, m) for vectors with NaN in withheld rows, (n,) for labels with -1.
        withheld: shape (n,).
    """

    values: npt.NDArray[Any]
    withheld: Booleans

    def to_columns(self) -> dict[str, Any]:
        """Return the answers as columns by name."""
        rows = self.values.reshape(len(self.values), -1)
        names = ["value"] if rows.shape[1] == 1 else [f"value{n}" for n in range(rows.shape[1])]
        return {**dict(zip(names, rows.T, strict=True)), "withheld": self.withheld}


@with_settings
class PublishedSystem(AsPrinted, BaseEstimator):
    """An estimator that runs a paper's algorithm as printed. *Not private*, by type.

    ``guarantee`` is what the paper states, of kind "no differential privacy". ``spent()`` is what a
    sound account gives, and ``worst_pair()`` two neighbours with their exact loss. No ledger books
    it, and its bundle is read with ``research=True`` only.
    """

    classes_: npt.NDArray[Any] = learned()
    n_features_in_: int = learned()
    serial_: str = learned()

    source: ClassVar[str]
    """The paper, in one line."""

    @abstractmethod
    def stated(self) -> Account:
        """Return what the paper states."""

    @property
    @abstractmethod
    def stated_adjacency(self) -> Adjacency:
        """The neighbours that the paper's statement is about."""

    @abstractmethod
    def spent(self) -> Account:
        """Return what a sound account gives."""

    @abstractmethod
    def worst_pair(self) -> WorstPair:
        """Return two neighbours with the exact loss of one answer."""

    @abstractmethod
    def checked(self, X: Any) -> Any:
        """Return rows as ``answer`` computes on them, or raise InvalidInput."""

    @abstractmethod
    def answer(self, X: Any, *, sampler: Sampler) -> Answers:
        """Return the algorithm's answers about X."""

    @abstractmethod
    def _content(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Settings and arrays of a bundle, beside the labels and the number of columns."""

    @classmethod
    @abstractmethod
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        """What ``_content`` was made of."""

    @property
    @override
    def guarantee(self) -> Guarantee:
        """The paper's numbers, of kind "no differential privacy"."""
        stated = self.stated()
        return Guarantee(
            stated.epsilon, stated.delta, self.stated_adjacency, GuaranteeKind.NO_PRIVACY
        )

    def totals(self) -> str:
        """Return both totals as text: what is stated, and what is sound."""
        return (
            f"Stated by the paper: {self.stated().describe()} A sound account: "
            f"{self.spent().describe()}"
        )

    def release(self, X: Any, *, seed: int | None = None) -> Answers:
        """Return the algorithm's answers about X. *Not private.*

        Args:
            X: rows, in the shape that ``fit`` saw.
            seed: seed of the noise, or None for noise from the operating system.

        Raises:
            NotFittedYet, InvalidInput: not fitted, or rows of another shape.
        """
        sampler = SecureSampler() if seed is None else SeededSampler(seed)
        return self.answer(X, sampler=sampler)

    def card(self) -> GuaranteeCard:
        """Return what is stated, what is spent and a worst pair, in plain words."""
        pair, spent = self.worst_pair(), self.spent()
        return GuaranteeCard(
            title=f"Not private: {self.name}",
            protected="nothing. This is an algorithm as its paper prints it, for study.",
            from_whom="nobody",
            guarantee=self.guarantee,
            assumptions=("nothing: no statement rests on it",),
            not_protected=(f"Worst pair found: {pair.describe()}",),
            details=(
                ("source", self.source),
                ("stated by the paper", self.stated().describe()),
                ("a sound account", spent.describe()),
                ("loss of the worst pair", f"{pair.loss:.4g}"),
            ),
        )

    def bundle(self) -> Bundle:
        """Return everything that ``release`` needs, marked as research."""
        self._check_fitted()
        settings, arrays = self._content()
        known = {"labels": self.classes_.tolist(), "columns": self.n_features_in_, RESEARCH: True}
        card = self.card().to_markdown()
        return Bundle(type(self).__name__, {**settings, **known}, arrays, card, self.serial_)

    def save(self, folder: str | Path, *, research: bool = False, overwrite: bool = False) -> Path:
        """Write the bundle, whole or not at all.

        Args:
            folder: a new folder.
            research: True, by which you say that you know it is not private.
            overwrite: True to replace a bundle.

        Raises:
            InvalidParameter: ``research`` is not True.
            NotFittedYet, InvalidInput, WriteFailed: not fitted, or the folder cannot be written.
        """
        if research is not True:
            raise InvalidParameter(
                f"research={research!r}: {self.name} is not private; expected True"
            )
        return self.bundle().write(folder, overwrite=overwrite)

    @classmethod
    def load(
        cls, folder: str | Path, *, research: bool = False, trusted_key: str | Path | None = None
    ) -> Self:
        """Return what ``save`` wrote, ready to answer.

        Args:
            folder, research: as for ``save``.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: no such folder, another system, or ``research`` is not True.
            CorruptBundle, UntrustedSignature: the bundle is damaged, or not signed by that key.
        """
        stored = Bundle.read(
            folder, system=cls.__name__, trusted_key=trusted_key, research=research
        )
        with rebuilding():
            labels = restored_labels(stored.settings["labels"])
            found = cls._restored(stored, labels)
            found.classes_ = labels
            found.n_features_in_ = count(stored.settings["columns"], name="columns")
            found.serial_ = stored.serial
            check_rebuilt(stored, found.bundle())
        return found

    def _check_fitted(self) -> None:
        if not hasattr(self, "serial_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")


def load_research(folder: str | Path, *, trusted_key: str | Path | None = None) -> Any:
    """Return the fitted algorithm that a research bundle holds, whichever it is. *Not private.*

    Arguments and errors are those of ``PublishedSystem.load``.
    """
    import reticent.published as published

    name = Bundle.read(folder, trusted_key=trusted_key, research=True).system
    kind = getattr(published, name, None) if name in published.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, PublishedSystem)):
        raise InvalidInput(f"folder={str(folder)!r}: holds a {name}, none of reticent.published")
    return kind.load(folder, research=True, trusted_key=trusted_key)
