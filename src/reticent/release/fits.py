"""Fits that cannot be forgotten: each fit on private records that no ledger booked is counted.

A fit whose model leaves is a release, and so is the next fit on the same records: a grid search of
41 fits costs 41 times what each of its models states. An estimator makes two calls.

1. It calls ``use_of`` in ``fit``, before any charge. This raises if scikit-learn's searches,
   cross-validation or ensembles would repeat a fit that no ledger books, or if a pipeline fitted
   one of its transformers on the private rows.
2. It calls ``DataUse.spent`` for each output that costs budget and leaves without a ledger. From
   the second unbooked fit on the same records on, this warns with the sum (``PrivacyWarning``).

Two fits count as fits on the same records if both name one data set, or if any of the 64 rows whose
keyed digests are least is the same. So folds, samples and other labels of the same rows count. The
key comes from the operating system, once for each process. Neither key nor digests are stored.

The count helps careful users, but only a ledger is a defence. The count ends with the process. It
does not see

- rows that were changed before ``fit`` (scaled, cut to other columns) without a ``data_set`` name,
- a scaler, a ``LabelEncoder`` or any other step that was fitted on the private rows by hand,
- a search, or a pipeline, of another library than scikit-learn,
- a copy of the fitted model in another process.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from secrets import token_bytes, token_hex
from threading import Lock
from types import FrameType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array, words
from reticent.core.errors import IncompatibleGuarantees, InvalidInput, PrivacyWarning
from reticent.core.guarantees import AddRemove, Guarantee, GuaranteeKind, Neighborhood, Replace
from reticent.tables.frames import plain_rows
from reticent.tables.shards import Shards

Words = npt.NDArray[np.uint64]
Records = AddRemove | Replace

LEAST_ROWS = 64
"""Number of rows, those with the least digests, that stand for a data set.

A fold of a tenth of the records shares none of them with a chance of .9^64 = .0012.
"""

_RANKED_COLUMNS = 64
"""Number of columns that rank the rows. Other columns are read only for rows that come first."""

_AT_ONCE = 2**16
"""Count of numbers that are turned into doubles at once, which stay in the cache."""

_CALL_FIT_ONCE = frozenset({"base", "utils", "pipeline", "compose", "frozen"})
"""Parts of scikit-learn that may stand on the call stack of a fit that no ledger books.

They call it once, as it was asked for. Every other part fits several times, or fits something else
on the same records. Parts of later versions are refused until they are named here.
"""

_SHAPES = frozenset(
    {"n_features_in_", "feature_names_in_", "n_features_out_", "n_output_features_"}
)
"""Names of fitted attributes that hold no value of a row."""

_not_counted: ContextVar[str] = ContextVar("not_counted", default="")


@dataclass(frozen=True)
class Together:
    """The total cost of unbooked releases from fits on the same records.

    Attributes:
        fits: number of fits that released something, at least 1.
        releases: number of releases, answers of a cost per answer included.
        costs: sum of the epsilons and of the deltas for each kind of neighbours. Costs of
            different neighbours do not add up. Names of data sets are left out.
    """

    fits: int
    releases: int
    costs: tuple[tuple[Records, float, float], ...]

    def words(self) -> str:
        """Return the sum as one phrase."""
        sums = " and ".join(
            f"epsilon={epsilon:.6g}, delta={delta:.6g} for {adjacency.describe()}"
            for adjacency, epsilon, delta in self.costs
        )
        return (
            f"this process released {self.releases} time(s) from {self.fits} fits on the same "
            f"records without a ledger, together {sums} (basic composition)"
        )


class DataUse:
    """One fit's use of private records, as this process counts it. ``use_of`` makes it.

    Attributes:
        counted: whether releases count. Those of a booked fit, a simulated one and one under
            ``not_counted`` do not.
    """

    def __init__(self, data_set: str | None, rows: frozenset[bytes], *, counted: bool) -> None:
        self.counted = counted
        self._data_set = data_set
        self._rows = rows
        self._identifier = token_hex(16)
        self._releases = 0
        self._costs: dict[Records, tuple[float, float]] = {}
        self._warned = False
        self._line = ""
        if counted:
            _known[self._identifier] = self

    def spent(self, guarantee: Guarantee, *, answers: int = 1) -> None:
        """Count a release that no ledger booked, and warn if it is not the only one.

        The warning is a ``PrivacyWarning``, once for each fit, if another fit on the same records
        was released without a ledger too. Nothing happens under ``not_counted``, nor for a fit
        that is not counted.

        Args:
            guarantee: the cost of the release, or of each of its answers.
            answers: the number of answers that cost this much each, at least 1.

        Raises:
            IncompatibleGuarantees: the cost is not one of records or persons.
        """
        if not self.counted or _not_counted.get():
            return
        adjacency = guarantee.adjacency
        if (
            isinstance(adjacency, Neighborhood)
            or guarantee.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY
        ):
            raise IncompatibleGuarantees(
                "only differential privacy for records or persons is a cost of the records, got "
                f"{guarantee.describe()}"
            )
        adjacency = replace(adjacency, data_set="")
        with _lock:
            epsilon, delta = self._costs.get(adjacency, (0.0, 0.0))
            self._costs[adjacency] = (
                epsilon + answers * guarantee.epsilon,
                delta + answers * guarantee.delta,
            )
            self._releases += answers
            _spending[self._identifier] = self
        together = self.together()
        if together is not None and together.fits > 1 and not self._warned:
            self._warned = True
            warnings.warn(
                f"{together.words()}. The guarantee of a model is that of its own release alone. "
                "This count helps the careful and defends nobody: it ends with the process, and "
                "knows only records that come unchanged or under one data_set name. Book fits in "
                "a ledger, and use simulate_ methods for what is not released",
                PrivacyWarning,
                stacklevel=_outside(),
            )

    def together(self, *, named: bool = False) -> Together | None:
        """Return what all fits on the same records cost so far, this one included.

        It is None until something that counts is released from this fit.

        Args:
            named: whether only fits of the same data set's name count. Otherwise the sum is as
                private as the records, since it tells whether another fit had one of them.
        """
        with _lock:
            if not self._costs:
                return None
            sharing = [use for use in _spending.values() if self._shares(use, named=named)]
            sums: dict[Records, list[tuple[float, float]]] = {}
            for use in sharing:
                for adjacency, cost in use._costs.items():
                    sums.setdefault(adjacency, []).append(cost)
            releases = sum(use._releases for use in sharing)
        return Together(
            len(sharing),
            releases,
            tuple(
                (
                    adjacency,
                    math.fsum(epsilon for epsilon, _ in costs),
                    math.fsum(delta for _, delta in costs),
                )
                for adjacency, costs in sums.items()
            ),
        )

    def card_line(self) -> str:
        """Return the sum for a card, or "" if no other fit on a data set of this name was released.

        Cards are published, so fits are found by name, and never by their rows.
        """
        together = self.together(named=True)
        if together is not None and together.fits > 1:
            self._line = f"{together.words()}; only a ledger counts for good"
        return self._line

    def _shares(self, other: DataUse, *, named: bool) -> bool:
        if self is other or (self._data_set is not None and self._data_set == other._data_set):
            return True
        return not named and not self._rows.isdisjoint(other._rows)

    def __copy__(self) -> DataUse:
        """A copied model is the same fit."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DataUse:
        """A copied model is the same fit."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Return a pickle's parts, without digests. In the same process it is the same fit."""
        return (_rejoined, (self._identifier, self._data_set, self.counted, self.card_line()))


_lock = Lock()
_key = token_bytes(32)
_known: WeakValueDictionary[str, DataUse] = WeakValueDictionary()
_spending: dict[str, DataUse] = {}


def _renew_lock() -> None:
    # Another thread of the parent may have held it at the fork.
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew_lock)


def use_of(
    X: npt.ArrayLike | Shards,
    *,
    data_set: str | None,
    estimator: Any,
    booked: bool,
    simulated: bool = False,
) -> DataUse:
    """Return one fit's use of private records, or refuse a fit whose guarantee would be void.

    Call it once in each ``fit``, before anything is charged or drawn.

    Args:
        X: the private records, shape (n, ...), numbers, or a data frame or ``Shards`` of numbers.
            They are read once, and shards block by block, unless the fit is booked or simulated.
        data_set: the owner's name for the records, or None.
        estimator: the estimator whose ``fit`` this is.
        booked: whether a ledger books what is released.
        simulated: whether the noise comes from a seed, so that nothing may be released anyway.

    Raises:
        InvalidInput: ``X`` holds no numbers, or a pipeline on the call stack fitted a transformer
            on the private rows. It is raised too if the fit is not booked and a search, a
            cross-validation, an ensemble or another part of scikit-learn on the call stack fits
            more than this one model. A cross-validation may hide the error, so there is a
            ``PrivacyWarning`` as well.

    Edge cases:
        Booked fits within a search pass with a ``PrivacyWarning``. The ledger counts the fits, but
        nothing counts the scores and choices that the search makes from the private rows. A fit
        without rows shares its records with no other fit, unless by name.

    Example:
        >>> from reticent.core import AddRemove
        >>> rows, cost = np.arange(8.0).reshape(4, 2), Guarantee(1.0, 0.0, AddRemove())
        >>> use = use_of(rows, data_set=None, estimator=None, booked=False)
        >>> use.spent(cost)
        >>> use.together().fits
        1
        >>> again = use_of(rows[1:], data_set=None, estimator=None, booked=False)
        >>> with warnings.catch_warnings(category=PrivacyWarning, action="ignore"):
        ...     again.spent(cost)
        >>> [(epsilon, delta) for _, epsilon, delta in again.together().costs]
        [(2.0, 0.0)]
    """
    if simulated or _not_counted.get():
        return DataUse(data_set, frozenset(), counted=False)
    _check_callers(estimator, booked=booked)
    if booked:
        return DataUse(data_set, frozenset(), counted=False)
    return DataUse(data_set, _least_rows(X), counted=True)


@contextmanager
def not_counted(reason: str) -> Iterator[None]:
    """Neither count nor refuse fits in this block, because none of them is a release.

    Audits, planners and experiments fit on records that are public or made up, and none of their
    models leaves. The block covers this thread only: workers that are started in it count.

    Args:
        reason: the reason why no model that is fitted here is released.
    """
    token = _not_counted.set(words(reason, name="reason", most=1000))
    try:
        yield
    finally:
        _not_counted.reset(token)


def forget_fits() -> None:
    """Forget every fit of this process. For tests: what was released stays released."""
    with _lock:
        _known.clear()
        _spending.clear()


def _rejoined(identifier: str, data_set: str | None, counted: bool, line: str) -> DataUse:
    known = _known.get(identifier)
    if known is not None:
        return known
    use = DataUse(data_set, frozenset(), counted=counted)
    use._line = line
    return use


def _least_rows(X: npt.ArrayLike | Shards) -> frozenset[bytes]:
    """Return keyed digests of the rows that rank first, at most ``LEAST_ROWS`` different ones.

    A row's rank depends on the row and the key alone. So a row that ranks first among all ranks
    first in every part of the records that holds it.
    """
    first: dict[tuple[int, int], bytes] = {}
    for block in _blocks(X):
        last = max(first)[0] if len(first) == LEAST_ROWS else 2**64 - 1
        found = _first_of(block, np.uint64(last))
        if found:
            first |= found
            first = {rank: first[rank] for rank in sorted(first)[:LEAST_ROWS]}
    return frozenset(first.values())


def _blocks(X: npt.ArrayLike | Shards) -> Iterable[npt.NDArray[Any]]:
    if isinstance(X, Shards):
        yield from (block for block in X.blocks() if len(block))
        return
    rows = np.atleast_1d(np.asarray(plain_rows(X)))
    if rows.dtype.kind not in "fiub":
        rows = finite_array(rows, name="X", allow_empty=True)
    rows = rows.reshape(len(rows), -1) if rows.size else rows[:0].reshape(0, 1)
    step = max(1, _AT_ONCE // min(rows.shape[1], _RANKED_COLUMNS))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _first_of(rows: npt.NDArray[Any], last: np.uint64) -> dict[tuple[int, int], bytes]:
    """Return the digests of the first rows of a block by their ranks.

    The rank is a keyed hash of some columns, at most ``last``, then one of all columns for the rows
    that may still be among the first. The second hash decides between rows that agree in the ranked
    columns.
    """
    columns, factors = _ranking(rows.shape[1])
    ranked = rows if len(columns) == rows.shape[1] else rows[:, columns]
    coarse = _hashes(ranked, factors[columns])
    places = np.flatnonzero(coarse <= last)
    if len(places) > LEAST_ROWS:
        places = places[coarse[places] <= _last_of_the_first(coarse[places])]
    if len(columns) == rows.shape[1]:  # then rows of one hash are the same row
        places = places[np.unique(coarse[places], return_index=True)[1]]
    found: dict[tuple[int, int], int] = {}
    step = max(1, _AT_ONCE // rows.shape[1])
    for start in range(0, len(places), step):
        part = places[start : start + step]
        fine = _hashes(rows[part], factors)
        found |= dict(
            zip(zip(coarse[part].tolist(), fine.tolist(), strict=True), part, strict=True)
        )
        found = {rank: found[rank] for rank in sorted(found)[:LEAST_ROWS]}
    return {
        rank: hashlib.blake2b(_canonical(rows[place]).tobytes(), key=_key, digest_size=16).digest()
        for rank, place in found.items()
    }


def _last_of_the_first(hashes: Words) -> np.uint64:
    """Return the greatest of the ``LEAST_ROWS`` least hashes, each counted once."""
    few = 4 * LEAST_ROWS
    if len(hashes) > few:
        different = np.unique(np.partition(hashes, few)[:few])
        if len(different) >= LEAST_ROWS:
            return np.uint64(different[LEAST_ROWS - 1])
    different = np.unique(hashes)
    return np.uint64(different[min(LEAST_ROWS, len(different)) - 1])


@lru_cache(maxsize=64)
def _ranking(width: int) -> tuple[npt.NDArray[np.intp], Words]:
    """Return the columns that rank rows of this width, and an odd factor for each column."""
    drawn = np.frombuffer(hashlib.shake_256(_key).digest(16 * width), dtype=np.uint64)
    columns = np.sort(np.argsort(drawn[width:], kind="stable")[:_RANKED_COLUMNS])
    return columns, drawn[:width] | np.uint64(1)


def _canonical(rows: npt.NDArray[Any]) -> Array:
    """Return the numbers as doubles of their own, in which 0 has one sign."""
    return np.ascontiguousarray(rows, dtype=np.float64) + 0.0


def _hashes(rows: npt.NDArray[Any], factors: Words) -> Words:
    """Return a keyed hash of 64 bits for each row."""
    bits = _canonical(rows).view(np.uint64)
    # The low bits of whole numbers are 0, and an odd factor would keep them so.
    bits ^= bits >> np.uint64(32)
    sums = np.einsum("ij,j->i", bits, factors)
    sums ^= sums >> np.uint64(29)
    return np.asarray(sums * (factors[0] | np.uint64(1)), dtype=np.uint64)


def _outside() -> int:
    """Return the ``stacklevel`` of the innermost caller that is none of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _module(frame).partition(".")[0] == "reticent":
        level, frame = level + 1, frame.f_back
    return level


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return name if isinstance(name, str) else ""


def _check_callers(estimator: Any, *, booked: bool) -> None:
    """Refuse a fit whose callers void its guarantee, with the errors of ``use_of``."""
    name = type(estimator).__name__
    caller: FrameType | None = sys._getframe(1)
    repeated: FrameType | None = None
    voided, hidden = "", False
    while caller is not None:
        module, function = _module(caller), caller.f_code.co_name
        if module.startswith("sklearn.") and module.split(".", 2)[1] not in _CALL_FIT_ONCE:
            # Outermost wins, but a worker's first frames are private functions.
            if repeated is None or not function.startswith(("_", "<")):
                repeated = caller
            # It turns errors into scores of NaN, and validation_curve does not mention them.
            if function == "_fit_and_score":
                hidden = hidden or caller.f_locals.get("error_score") != "raise"
        if function.startswith("fit") and "self" in caller.f_code.co_varnames[:1]:
            voided = voided or _fitted_before(caller.f_locals.get("self"), estimator)
        caller = caller.f_back
    which = "" if repeated is None else _called(repeated)
    message = ""
    if voided:
        message = (
            f"fit: {voided} on the private records, and the guarantee of {name} says nothing of "
            "that. Fit it on public rows and wrap it in sklearn.frozen.FrozenEstimator, or use a "
            "step that learns nothing from rows (reticent.PublicRanges, FunctionTransformer, "
            "Normalizer)"
        )
    elif which and not booked:
        message = (
            f"fit: {which} calls the fit of this {name}, and no ledger books it. Each fit there "
            "is a release of its own, and what else is computed from the private records (scores, "
            "choices, other models) has no guarantee. Choose settings on public rows (reticent "
            f"plan), compare them with the simulate_ methods, or fit this {name} once, by itself"
        )
    if message:
        if hidden:
            warnings.warn(message, PrivacyWarning, stacklevel=_outside())
        raise InvalidInput(message)
    if which:
        warnings.warn(
            f"fit: {which} calls the fit of this {name}. The ledger books each fit, but what "
            f"{which} computes from the private records besides (scores, choices, other models) "
            "is in no guarantee",
            PrivacyWarning,
            stacklevel=_outside(),
        )


def _called(frame: FrameType) -> str:
    package = ".".join(_module(frame).split(".")[:2])
    owner = frame.f_locals.get("self")
    if owner is not None:
        return f"{type(owner).__name__} of {package}"
    name = frame.f_code.co_name
    return package if name.startswith(("_", "<")) else f"{name} of {package}"


def _fitted_before(owner: Any, estimator: Any) -> str:
    """Return a phrase that names the steps that ``owner`` fitted before ``estimator``, or "".

    Only a pipeline or a regressor of transformed targets fits such steps.
    """
    # If nobody has imported its module, it is neither, and the slow import is saved.
    pipelines, targets = sys.modules.get("sklearn.pipeline"), sys.modules.get("sklearn.compose")
    fitted: list[str] = []
    if targets is not None and isinstance(owner, targets.TransformedTargetRegressor):
        fitted = _fitted_on_rows("transformer", getattr(owner, "transformer_", None))
    elif pipelines is not None and isinstance(owner, pipelines.Pipeline):
        for name, step in owner.steps[:-1]:
            if step is estimator:
                break
            fitted += _fitted_on_rows(name, step)
    return f"{type(owner).__name__} fitted {', '.join(fitted)}" if fitted else ""


def _fitted_on_rows(name: str, step: Any) -> list[str]:
    """Return names and types of the transformers in ``step`` that learned in ``fit``."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if step is None or isinstance(step, str):
        return []
    parts: list[tuple[str, Any]] | None = None
    if isinstance(step, Pipeline):
        parts = list(step.steps)
    elif isinstance(step, FeatureUnion):
        parts = list(step.transformer_list)
    elif isinstance(step, ColumnTransformer):
        parts = [part[:2] for part in getattr(step, "transformers_", step.transformers)]
    if parts is not None:
        return [
            found for inner, part in parts for found in _fitted_on_rows(f"{name}.{inner}", part)
        ]
    return [f"{name} ({type(step).__name__})"] if _learns(step) else []


def _learns(step: Any) -> bool:
    """Return whether a fitted transformer holds something that ``fit`` found in rows.

    A ``FrozenEstimator`` does not.
    """
    given = set(step.get_params(deep=False)) if hasattr(step, "get_params") else set()
    held = set(vars(step)) - given - _SHAPES
    held = {name for name in held if not name.startswith("_sklearn_")}
    if type(step).__module__.startswith("sklearn."):
        # scikit-learn's findings end with an underscore. The rest are notes on the settings.
        held = {name for name in held if name.endswith("_") and not name.startswith("_")}
    return bool(held)
