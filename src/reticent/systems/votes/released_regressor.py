"""``ReleasedRegressor``: what released models of targets share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.settings import with_settings
from reticent.systems.votes.outputs import Columns, RangeOutput, range_columns
from reticent.systems.votes.released_model import ReleasedModel


@with_settings
class ReleasedRegressor(RegressorMixin, ReleasedModel):
    """What the regressors share whose noise is drawn in ``fit``, once, for any number of answers.

    Guarantee:
        See ``ReleasedModel``; a target is cut to its public range, and counts by how far it is from
        the middle, in halves of the range: a number of at most 1. Several targets of a record are
        one release, whose sums are apart by the square root of the sum of squares of what each is
        apart by.

    Args:
        target_range: public (lower, upper) ends of the targets, numbers, or one for each column of
            ``y``; never from the private records. Targets beyond it count as its ends, and no
            prediction leaves it.

    References:
        - Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private
          data analysis", doi:10.1007/11681878_14, sensitivity.
        - docs/write-your-own.md, the hooks of a model of your own.

    See Also:
        reticent.NoisyGradientRegressor: a model of this kind.
        reticent.testing.check_system: what tests one.
    """

    target_range: Any

    _kind = "regression model"

    def predict(self, X: npt.ArrayLike) -> Array:
        """Targets, shape (n,), or (n, L) for several; for anyone, any number of times."""
        points = self._points(X)
        self._check_fitted()
        shares = self.scores(points)
        found = [
            output.targets(shares[:, at]) for at, output in enumerate(range_outputs(self._columns))
        ]
        return np.column_stack(found) if self._columns.several else found[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # at the sizes of scikit-learn's checks
        return tags

    @override
    def _read(self, y: npt.ArrayLike | None, rows: int) -> tuple[Columns, Integers]:
        return range_columns(y, rows, self.target_range)

    @override
    def _label_settings(self) -> dict[str, Any]:
        outputs = range_outputs(self._columns)
        return {
            "lower": [output.lower for output in outputs],
            "upper": [output.upper for output in outputs],
            "several": self._columns.several,
        }

    @classmethod
    @override
    def _restored_labels(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Columns]:
        lower, upper, several = (settings[name] for name in ("lower", "upper", "several"))
        blank = np.zeros((1, len(lower))) if several is True else np.zeros(1)
        columns, _ = range_columns(blank, 1, (lower, upper))
        return {"target_range": (lower, upper)}, columns


def range_outputs(columns: Columns) -> list[RangeOutput]:
    """The columns of a regressor."""
    found = [output for output in columns.outputs if isinstance(output, RangeOutput)]
    assert len(found) == len(columns.outputs)
    return found
