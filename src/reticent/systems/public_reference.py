"""``PublicReference``: public models that private records start from, and features beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, one_of, positive
from reticent.core.errors import InvalidParameter
from reticent.core.settings import Group
from reticent.tables.schema import TabularSchema
from reticent.training.public_pool import ClassColumn, checked_pool, usual_pool
from reticent.training.public_space import whitening_of
from reticent.training.public_start import KINDS, PublicStart


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicReference(Group):
    """Models of labelled public rows, whose log odds private records correct.

    ``fit`` makes them of ``public_X`` and ``public_y``, and never of a private record. Beside the
    log odds a row has features, whose scales, leaves, bins and principal components come from the
    same public rows.

    Args:
        schema: public description of the columns of a table, as in ``Features``.
        models: classifiers of scikit-learn, not fitted, which are pooled, or None for logistic
            regressions, boosted trees and forests. A bundle holds these kinds alone. An empty list
            is the shares of public labels.
        rows: "table" (features of leaves, columns and bins), "embedding" or "picture" (columns).
        components: most principal components of the features that are kept, or None for 150, 400
            or 100, by ``rows``.
        whitening: exponent w in [0, 1]. A component is divided by its standard deviation over
            public rows to the power w.
        weight: factor of the log odds, above 0. More trusts public models more, and
            no record can change what they say alone.
        records: public number, about that of the private records. A vote needs it, and a
            certificate does not use it.

    Raises:
        InvalidParameter, UnknownName: a value out of its range.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> PublicReference(models=[LogisticRegression()], components=20).weight
        1.0

    References:
        - Genest and Zidek (1986), "Combining probability distributions: a critique and an
          annotated bibliography", doi:10.1214/ss/1177013825 (logarithmic pools).

    See Also:
        reticent.ConvexCertifiedClassifier: takes it as its features.
        reticent.LinearVoteClassifier: takes it as its features.
        reticent.PublicStartClassifier: a released model that starts from such a pool.
    """

    schema: TabularSchema | None = None
    models: Sequence[Any] | None = None
    rows: str = "table"
    components: int | None = None
    whitening: float = 0.5
    weight: float = 1.0
    records: int | None = None

    def __post_init__(self) -> None:
        if not (self.schema is None or isinstance(self.schema, TabularSchema)):
            raise InvalidParameter(
                f"schema: expected a TabularSchema or None, got {type(self.schema).__name__}"
            )
        checked_pool(self.models)
        one_of(self.rows, tuple(KINDS), name="rows")
        if self.components is not None:
            count(self.components, name="components")
        whitening_of(self.whitening)
        positive(self.weight, name="weight")
        if self.records is not None:
            count(self.records, name="records")

    def start(self, rows: Array, codes: Integers, classes: int) -> tuple[PublicStart, Array]:
        """Return the start that labelled public rows give, and their log probabilities by models
        that did not see them, shape (n, classes).

        Args:
            rows: shape (n, d), public.
            codes: shape (n,), places of their labels.
            classes: the number of labels.

        Raises:
            InvalidInput: fewer than two rows, or rows that do not differ.
        """
        models = checked_pool(self.models)
        if models is None:
            models = usual_pool(len(rows), classes, table=self.rows == "table")
        return PublicStart.around(
            rows,
            [ClassColumn(codes, classes, models)],
            components=KINDS[self.rows] if self.components is None else self.components,
            whitening=self.whitening,
            table=self.rows == "table",
        )


def start_details(start: PublicStart) -> tuple[tuple[str, str], ...]:
    """Return what a card says of public models: how many, and the trust in them, by column."""
    models = ", ".join(str(len(pool.models)) for pool in start.pools)  # type: ignore[attr-defined]
    trust = ", ".join(f"{pool.alpha:g}" for pool in start.pools)  # type: ignore[attr-defined]
    return (("start", f"{models} models of labelled public rows"), ("trust in them", trust))
