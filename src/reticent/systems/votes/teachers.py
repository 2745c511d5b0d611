"""``Teachers``: models of any kind on disjoint parts of the records, which vote."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.core.settings import Group

_KEY_BYTES = 16
_LARGEST_SEED = 2**31
_TRIED_ROWS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Teachers(Group):
    """An estimator of scikit-learn, and the number of parts of the records that it is fitted on.

    A teacher is fitted on its own part alone, and whatever it learns there, scalers of a pipeline
    and chosen settings included, counts as one vote.

    Args:
        estimator: a classifier or regressor of scikit-learn or alike, not fitted.
        number: the number of parts, at least 2.
        random_state: public seed of the split and of each teacher, or None for one from the
            operating system in each fit.

    Raises:
        InvalidParameter: something else.

    Example:
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> Teachers(estimator=DecisionTreeClassifier(), number=50).get_params()["number"]
        50

    References:
        - Papernot et al. (2017), "Semi-supervised knowledge transfer for deep learning from private
          training data", arXiv:1610.05755.

    See Also:
        reticent.PateClassifier: an estimator that takes it.
    """

    estimator: Any
    number: int = 100
    random_state: int | None = None

    def __post_init__(self) -> None:
        known = all(hasattr(self.estimator, name) for name in ("fit", "predict", "get_params"))
        if not known or isinstance(self.estimator, type):
            raise InvalidParameter(
                "teachers, estimator: expected an estimator of scikit-learn, not fitted, got "
                f"{type(self.estimator).__name__}"
            )
        count(self.number, name="teachers, number", minimum=2)
        if self.random_state is not None:
            count(self.random_state, name="teachers, random_state", minimum=0)

    def trained(
        self, rows: Array, targets: npt.NDArray[Any], owners: Sequence[bytes] | None
    ) -> list[Any]:
        """Return a fitted model for each part, or what it answers where none can be fitted.

        **Guarantee.** One record more or less, or one person's records, moves one teacher and no
        other. Its part is a keyed hash of the owner or of the record itself, never its place. A
        part is sorted by such hashes, so a teacher depends on the set of its records. It is fitted
        with a seed that is public. A part without records, one with which the estimator fails, or
        one that has a single target gives a constant, which depends on that part alone.

        Args:
            rows: shape (n, d), finite.
            targets: shape (n,), places of labels, or numbers.
            owners: owner of each record, or None where each is its own.
        """
        seeded = self.random_state is not None
        key = _key(self.random_state) if seeded else token_bytes(_KEY_BYTES)
        parts = parts_of(rows, targets, owners, number=self.number, key=key)
        found = []
        for at, part in enumerate(parts):
            seed = int.from_bytes(hashlib.blake2b(b"%d" % at, key=key).digest()[:4], "big")
            found.append(_fitted(self.estimator, rows[part], targets[part], seed % _LARGEST_SEED))
        return found

    def check(self, columns: int, targets: npt.NDArray[Any]) -> None:
        """Refuse an estimator that cannot be fitted on public random rows.

        Args:
            columns: number of columns of a row.
            targets: shape (k,), every target that rows may have, or some.

        Raises:
            InvalidParameter: it fails there. On private records nobody would be told.
        """
        rng = np.random.default_rng(0)
        told = np.repeat(targets, _TRIED_ROWS)
        rows = rng.normal(size=(len(told), columns))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = _seeded(self.estimator, 0).fit(rows, told)
                shape = np.shape(model.predict(rows))
        except Exception as error:
            raise InvalidParameter(
                f"teachers, estimator: expected one that can be fitted on {len(rows)} rows of "
                f"{columns} columns, got {type(error).__name__}: {error}"
            ) from error
        if shape != told.shape:
            raise InvalidParameter(
                f"teachers, estimator: expected one target a row, got shape={shape}"
            )


def parts_of(
    rows: Array,
    targets: npt.NDArray[Any],
    owners: Sequence[bytes] | None,
    *,
    number: int,
    key: bytes,
) -> list[Integers]:
    """Return the places of the records of each part, by keyed hashes.

    Args:
        rows: shape (n, d).
        targets: shape (n,).
        owners: owner of each record, or None.
        number: the number of parts.
        key: key of at most 64 bytes, chosen independently of the records.
    """
    own = [
        hashlib.blake2b(row.tobytes() + target.tobytes(), key=key, digest_size=16).digest()
        for row, target in zip(np.ascontiguousarray(rows + 0.0), targets, strict=True)
    ]
    homes = own
    if owners is not None:
        homes = [hashlib.blake2b(one, key=key, digest_size=16).digest() for one in owners]
    parts: list[list[int]] = [[] for _ in range(number)]
    for place in sorted(range(len(rows)), key=own.__getitem__):
        parts[int.from_bytes(homes[place][:8], "big") % number].append(place)
    return [np.array(part, dtype=np.int64) for part in parts]


def answers_of(teacher: Any, queries: Array) -> Array:
    """Return a teacher's answers, shape (q,), NaN where it gives no finite number. It never
    raises.
    """
    if isinstance(teacher, float):
        return np.full(len(queries), teacher)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(teacher.predict(queries), dtype=np.float64)
    except Exception:  # the answers are paid for, and another record may have made this happen
        return np.full(len(queries), np.nan)
    if found.shape != (len(queries),):
        return np.full(len(queries), np.nan)
    return np.where(np.isfinite(found), found, np.nan)


def _fitted(estimator: Any, rows: Array, targets: npt.NDArray[Any], seed: int) -> Any:
    if not len(targets):
        return float("nan")
    if (targets == targets[0]).all():
        return float(targets[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _seeded(estimator, seed).fit(rows, targets)
    except Exception:  # of this part alone; ``check`` has shown that the estimator works at all
        return float("nan")


def _seeded(estimator: Any, seed: int) -> Any:
    """Return a copy whose every unset seed is ``seed``."""
    made = clone(estimator)
    unset = [
        name
        for name, value in made.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and not isinstance(value, (int, np.integer))
    ]
    return made.set_params(**dict.fromkeys(unset, seed)) if unset else made


def _key(seed: int | None) -> bytes:
    return hashlib.sha256(b"teachers %d" % (seed or 0)).digest()[:_KEY_BYTES]
