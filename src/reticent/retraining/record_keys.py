"""A record's batch and ensemble member, drawn from the record itself and never from its place in a
list.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import count, finite_array, one_each
from reticent.core.errors import InvalidInput


def record_keys(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    identities: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> list[bytes]:
    """Return one key for every record: the caller's own, or the record's content where there is
    none.

    Args:
        X: shape (n, features), finite.
        labels: shape (n,), integers.
        identities: n strings, integers or byte strings that stay with their records (a customer
            number), or None. They must differ: certified training protects records, not persons.

    Raises:
        InvalidInput: another number of identities, identities of another kind, or two records of
            one identity. Identities are never shown.

    Example:
        >>> record_keys([[1.0], [2.0]], [0, 1], identities=["anna", 7])
        [b'anna', b'7']

    Utility:
        A record without a key of its own shares a batch with its duplicates, and only with them for
        certain.

    Runtime:
        O(n features). 0.2 microseconds a record of 10 numbers on one core (benchmarks/runtimes.py).

    References:
        - Levine and Feizi (2021), "Deep partition aggregation: provable defenses against general
          poisoning attacks", arXiv:2006.14768, records assigned by a hash of their content.

    See Also:
        reticent.retraining.record_buckets: what identities are for.
    """
    if identities is None:
        rows = np.ascontiguousarray(
            finite_array(X, name="X", ndim=2, allow_empty=True) + 0.0
        )  # one zero for both signs
        return [
            row.tobytes() + b"%d" % label
            for row, label in zip(rows, np.asarray(labels).tolist(), strict=True)
        ]
    names = [
        _as_bytes(key) for key in one_each(identities, len(np.asarray(labels)), name="identities")
    ]
    if len(set(names)) < len(names):
        raise InvalidInput(
            "identities: expected a different one for every record; certified training protects "
            "records, not persons, and data sets are of records with different identities"
        )
    return names


def record_buckets(identities: Sequence[bytes], *, buckets: int, purpose: str) -> Integers:
    """Return a number in 0 .. ``buckets`` - 1 for every key, the same whatever other records there
    are.

    The hash is keyed with ``purpose``, which is public: batches and members of the same records
    must not be related.

    Args:
        identities: keys from ``record_keys``.
        buckets: number of buckets, at least 1.
        purpose: text of up to 64 characters, for instance "batch".

    Returns:
        Shape (n,), int64. Each bucket's share is 1 / buckets to within 2**-60 for identities chosen
        without knowing the hash. The guarantee holds for any identities.

    Example:
        >>> record_buckets(
        ...     [b"anna", b"ben", b"carol", b"anna"], buckets=4, purpose="batch"
        ... ).tolist()
        [0, 3, 2, 0]

    Utility:
        A bucket has n / buckets records give or take sqrt(n / buckets).

    Runtime:
        O(n). 0.8 microseconds a record on one core (benchmarks/runtimes.py).

    References:
        - Levine and Feizi (2021), "Deep partition aggregation: provable defenses against general
          poisoning attacks", arXiv:2006.14768, partitions by a hash, so that one record moves one
          part.

    See Also:
        reticent.retraining.record_keys: the identities.
        reticent.retraining.parameter_intervals: takes the batches.
    """
    size, secret = count(buckets, name="buckets"), purpose.encode()
    digests = (blake2b(key, key=secret, digest_size=8).digest() for key in identities)
    found = (int.from_bytes(digest) % size for digest in digests)
    return np.fromiter(found, dtype=np.int64, count=len(identities))


def _as_bytes(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        try:
            return str(key).encode()
        except ValueError:  # Python writes no integers of more than 4300 digits
            raise InvalidInput("identities: expected integers of at most 4300 digits") from None
    raise InvalidInput(
        f"identities: expected strings, integers or bytes, got an entry of type "
        f"{type(key).__name__}"
    )
