"""``Features``: how rows become the vectors that records vote and are summed with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reticent.core.checks import count
from reticent.core.settings import Group
from reticent.training.public_space import reach_of, whitening_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Features(Group):
    """How a row becomes a vector, by public things alone.

    Args:
        map: from inputs to features, the same for everybody: None for the inputs themselves,
            ``PatchFeatures``, ``PublicPCA``, any other ``FeatureMap``, or your own torch module
            that was trained on public data only.
        range: public (lower, upper) ends of the features, numbers or one for each; needed where
            ``fit`` gets no public rows.
        components: principal components of the public rows that are kept; None for all.
        whitening: exponent w in [0, 1]: a component is divided by its standard deviation over
            public rows to the power w.
        reach: of linear regression: the length to which vectors, with their constant column, are
            cut, in root mean square lengths of public rows; from 0.1 to 16, None for 2. Elsewhere
            all vectors have one length, and it is None.

    Raises:
        InvalidParameter: a value out of its range.

    Example:
        >>> Features(range=(0, 16), whitening=0.0).get_params()["range"]
        (0, 16)

    References:
        - Coates, Ng and Lee (2011), "An analysis of single-layer networks in unsupervised feature
          learning", International Conference on Artificial Intelligence and Statistics (AISTATS),
          PMLR 15, the triangle-like encoding and the pooling.
        - docs/votes.md, section 2, the sensitivity of vectors of one length.

    See Also:
        reticent.MomentClassifier: an estimator that takes it.
        reticent.training.public_features: feature maps.
    """

    map: Any = None
    range: Any = None
    components: int | None = None
    whitening: float = 0.5
    reach: float | None = None

    def __post_init__(self) -> None:
        if self.components is not None:
            count(self.components, name="components")
        whitening_of(self.whitening)
        if self.reach is not None:
            reach_of(self.reach)
