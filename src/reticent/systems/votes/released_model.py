"""``ReleasedModel``: a model that is itself the release, so that it answers for good."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, part_of, under
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Receipt
from reticent.core.scopes import Scope
from reticent.mechanisms import NoisySums, SumBlock, SumSession
from reticent.noise import Sampler, SecureSampler, SeededSampler
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.release.fits import DataUse, use_of
from reticent.release.paying import Price, paid, receipt_of
from reticent.systems.features import numbers_of
from reticent.systems.votes.bundles import common_settings, restore_common
from reticent.systems.votes.cards import released_model_card
from reticent.systems.votes.estimator import Given, PublicRows, VoteEstimator
from reticent.systems.votes.outputs import Columns
from reticent.systems.votes.sums import most_records
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.tables.shards import Shards

if TYPE_CHECKING:
    from reticent.ledger.ledger import Ledger


class ReleasedModel(VoteEstimator):
    """The common part of estimators whose noise is drawn in ``fit``, once, for any number of
    answers.

    Guarantee:
        A fitted model is (epsilon, delta)-differentially private for its private records, and so is
        everything that is computed from it: ``predict`` is for anyone, any number of times. With
        ``counting="add-remove"`` neighbours are two sets of records one of which has one record
        more, with "replace" two sets of one size that differ in one. With ``persons``, "one record"
        reads "all records of one person". ``card()`` says what is assumed, and docs/votes.md has
        the proof. ``simulate_fit`` is *not private*.

    Args:
        epsilon, delta: the total.
        features: meaning of a record's columns, and the map of a row to a vector, or None for
            ``Features()``.
        counting: "add-remove", or "replace" (one record in place of another: twice the noise).
        data_set: the owner's name for the private records. None books in no ledger.

    Attributes:
        schema_: schema that rows are encoded by, or None.
        n_features_in_: number of input features, after encoding.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.
        receipt_: cost of the fit, and where it was booked.
        simulated_: whether the noise came from a seed.
    """

    receipt_: Receipt
    simulated_: bool

    _kind: ClassVar[str]
    _data_use: DataUse | None

    def fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        persons: Sequence[Any] | None = None,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
    ) -> Self:
        """Charge the whole total, then release the model, with noise from the operating system.

        Args:
            X: the private records, shape (n, features) or with more axes for pictures. Or
                ``reticent.tables.Shards``, which hold the labels too and are read block by block.
            y: shape (n,), their labels or targets, or (n, L) for several, or None with shards.
            public_X: public rows, of the same kind. Everything that is learned without paying for
                it (scales, directions, centroids) is learned from these.
            public_y: their labels, or None.
            persons: one name per record, equal for those of one person, who is then protected as a
                whole, or None where no person has two.
            ledger, scope: ledger and scope that the total is booked in, both or neither.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing is charged.
            BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable: the errors of
                ``Ledger.reserve``.
        """
        given = Given(X, y, public_X, public_y, persons)
        return self._fit(given, SecureSampler(), 1.0, ledger, scope)

    def simulate_fit(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        *,
        seed: int,
        noise_scale: float = 1.0,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        persons: Sequence[Any] | None = None,
    ) -> Self:
        """Fit with noise from a seed, times ``noise_scale``.

        It is for experiments, *not private*, and the card and the receipt say so.

        Args:
            X, y, public_X, public_y, persons: arguments of ``fit``.
            seed: seed of the noise, at least 0.
            noise_scale: n_here / n_private, so that noise has the effect that it will have on
                ``n_private`` records. ``records``, where there is one, is to be given for those
                here.
        """
        sampler = SeededSampler(count(seed, name="seed", minimum=0))
        given = Given(X, y, public_X, public_y, persons)
        return self._fit(given, sampler, noise_scale, None, None)

    def simulate_fits(
        self,
        X: npt.ArrayLike | Shards,
        y: npt.ArrayLike | None = None,
        *,
        totals: Sequence[tuple[float, float]],
        seeds: Sequence[int],
        noise_scale: float = 1.0,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
    ) -> Iterator[Self]:
        """Yield models by ``simulate_fit``, for each total and, within it, each seed.

        What public rows decide (directions, centroids, a warm start) is computed once for all of
        them.

        Args:
            X, y, public_X, public_y, noise_scale: arguments of ``simulate_fit``.
            totals: pairs of epsilon and delta, in place of the constructor's.
            seeds: seeds of the noise, each at least 0.
        """
        positive(noise_scale, name="noise_scale")
        for epsilon, delta in totals:
            positive(epsilon, name="epsilon")
            probability(delta, name="delta", allow_zero=False)
        for seed in seeds:
            count(seed, name="seed", minimum=0)
        fresh = copy(self)
        voters, public = fresh._ready(Given(X, y, public_X, public_y))
        for epsilon, delta in totals:
            for seed in seeds:
                one = copy(fresh)  # shallow: what was prepared is read, and never written
                one.epsilon, one.delta = epsilon, delta
                sampler = SeededSampler(seed)
                receipt = receipt_of(one._price(), sampler, None)
                one._release(voters, public, sampler, noise_scale, receipt)
                yield one

    def _drawn_again(self, X: npt.ArrayLike | Shards, y: Any, **given: Any) -> Iterator[Self]:
        """Yield one fit after the other with noise from the operating system, for audits: nothing
        is charged or counted, so no model may leave. Rows are read and prepared once.

        Args:
            X, y, given: arguments of ``fit``, without books.
        """
        fresh = copy(self)
        voters, public = fresh._ready(Given(X, y, **given))
        sampler = SecureSampler()
        receipt = receipt_of(fresh._price(), sampler, None)
        while True:
            one = copy(fresh)  # shallow, as in ``simulate_fits``
            one._release(voters, public, sampler, 1.0, receipt)
            yield one

    @property
    def guarantee(self) -> Guarantee:
        """The cost of the fitted model, and of everything that is computed from it."""
        self._check_fitted()
        return self.receipt_.guarantee

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        self._check_fitted()
        return released_model_card(self, self._card_details())

    def bundle(self) -> Bundle:
        """Return everything that ``predict`` needs, ready to be written.

        It may be published, unless it was simulated.
        """
        self._check_fitted()
        settings, arrays = common_settings(self)
        arrays |= under("model.", self.arrays()) | self._more_arrays()
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the bundle, whole or not at all, by ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

    @classmethod
    def load(
        cls, folder: str | Path, *, feature_map: Any = None, trusted_key: str | Path | None = None
    ) -> Self:
        """Return a model that answers, from what ``save`` wrote.

        Args:
            folder: the bundle.
            feature_map: the map that it was fitted with, where that is neither None,
                ``PatchFeatures`` nor ``PublicPCA``, which the bundle holds itself.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a map that is missing or
                another one.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        loaded = restore_common(cls, bundle, feature_map)
        with rebuilding():
            loaded.restore(part_of(bundle.arrays, "model."))
            loaded._restore_more(bundle.arrays)
            loaded._check_model()
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    def _fit(
        self,
        given: Given,
        sampler: Sampler,
        noise_scale: float,
        ledger: Ledger | None,
        scope: Scope | None,
    ) -> Self:
        positive(noise_scale, name="noise_scale")
        positive(self.epsilon, name="epsilon")
        probability(self.delta, name="delta", allow_zero=False)
        fresh = copy(self)  # a fit that is refused leaves an earlier one, and its card, whole
        voters, public = fresh._ready(given)
        use = None
        if fresh.blocks()[1]:
            booked, name = ledger is not None, self.data_set
            rows = numbers_of(fresh, given.X)
            use = use_of(
                rows, data_set=name, estimator=self, booked=booked, simulated=sampler.seeded
            )
        else:
            ledger = scope = None  # a model of public labels alone costs nothing
        fresh._data_use = use
        price = replace(fresh._price(), use=use)
        with paid(price, sampler=sampler, ledger=ledger, scope=scope) as payment:
            fresh._release(voters, public, sampler, noise_scale, payment.receipt)
            self.__dict__ = fresh.__dict__
        return self

    def _ready(self, given: Given) -> tuple[Voters | ReadVoters, PublicRows | None]:
        """Return records and public rows as points, and settle what public rows decide.

        Refuse what does not fit, before any charge.
        """
        self.check_settings()
        voters, public = self._prepare(given)
        self.prepare(public)
        self.most_records_ = most_records(voters, *(block.bound for block in self.blocks()[0]))
        return voters, public

    def _release(
        self,
        voters: Voters | ReadVoters,
        public: PublicRows | None,
        sampler: Sampler,
        noise_scale: float,
        receipt: Receipt,
    ) -> None:
        """Draw the noise and learn the model. What public rows decide is there already."""
        mechanism = self._mechanism()
        session = SumSession(mechanism, sampler=sampler, noise_scale=noise_scale)
        self.learn(voters, public, session)
        self._finish(public)
        self.simulated_ = sampler.seeded
        self.mechanism_ = mechanism
        self.receipt_ = receipt

    def _price(self) -> Price:
        """Return the cost of the whole model: that of one answer."""
        mechanism = self._mechanism()
        words = f"{type(self).__name__}, {mechanism.sums} noisy sum(s)"
        return Price(mechanism.event, 1, words)

    def _mechanism(self) -> NoisySums:
        blocks, sums = self.blocks()
        return NoisySums(
            blocks=blocks,
            sums=max(1, sums),  # a model of public labels alone draws none, and is not charged
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self._adjacency,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "receipt_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")

    @abstractmethod
    def check_settings(self) -> None:
        """Refuse constructor arguments out of their range. Nothing is charged yet.

        Raises:
            InvalidParameter: a setting that cannot be used.
        """

    @abstractmethod
    def prepare(self, public: PublicRows | None) -> None:
        """Settle what follows from public rows alone, before any charge. ``space_.dimension`` is
        the number of coordinates of a point.

        Args:
            public: the public rows as points, or None.
        """

    @abstractmethod
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        """Return the blocks of one sum, and how many sums ``learn`` will release.

        A block's ``bound`` is what one unit (record or person) adds to it at most, in l2, in grid
        steps, after every rounding. Nobody checks it at run time: the noise is made for it.
        """

    @abstractmethod
    def learn(
        self, voters: Voters | ReadVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        """Release the sums by ``session.release``, and make the model of what it returns.

        What a unit adds is whole numbers that depend on that unit, on public things and on sums
        released before alone, and never on how many records there are. The cost is paid when this
        begins, so it is total: it never raises, whatever the records are, none included.

        Args:
            voters: the records, ``points`` of shape (n, space_.dimension) and ``codes`` of labels.
            public: the public rows as points, as ``prepare`` gets them.
            session: session that draws the noise of each sum, and counts them.
        """

    @abstractmethod
    def scores(self, points: Array) -> Array:
        """Return what answers are made of, from released arrays alone.

        Args:
            points: shape (n, space_.dimension).

        Returns:
            Shape (n, width), finite: a number for every label, of which the largest is predicted.
        """

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return the released arrays, by name. A bundle and an audit read nothing else."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array]) -> None:
        """Become the model of such arrays.

        Raises:
            InvalidInput: arrays that are none of this model's.
        """

    def _finish(self, public: PublicRows | None) -> None:
        """Do the post-processing of a model that was just released."""

    def _more_arrays(self) -> dict[str, Array]:
        """Return what ``_finish`` made, for a bundle."""
        return {}

    def _restore_more(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Read from a bundle's arrays what ``_more_arrays`` gave."""

    @abstractmethod
    def _label_settings(self) -> dict[str, Any]:
        """Return what a bundle says of the columns of labels."""

    @classmethod
    @abstractmethod
    def _restored_labels(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Columns]:
        """Return constructor arguments and columns of such settings."""

    def _check_model(self) -> None:
        """Refuse arrays that do not answer."""
        scores = self.scores(np.zeros((1, self.space_.dimension)))
        if scores.shape != (1, self._columns.width) or not bool(np.isfinite(scores).all()):
            raise InvalidInput("model: expected finite scores for every label")

    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return ()
