"""The Power Mechanism as printed: embeddings of the rows whose density-smoothness score is small.
*Not private.*
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeKind, Replace
from reticent.core.seeds import training_generator
from reticent.core.settings import learned, with_settings
from reticent.published.density import KernelDensity, bandwidth
from reticent.published.power_network import (
    PowerConfig,
    PowerTraining,
    per_sample_epsilon,
    train_power,
)
from reticent.published.printed import AsPrinted
from reticent.systems.class_labels import class_labels
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent


@with_settings
class PublishedPower(AsPrinted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Algorithm 1 of the Power Mechanism paper, whose epsilon is a score of the population's
    density.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". Given x, the release is a single
        point, so two different records are told apart with certainty by anyone who holds the
        encoder (``papers.power.inversion``). The row itself decides whether it is released. The
        training rows, whose density estimate decides the scores, are not protected.

    Args:
        epsilon: the paper's epsilon, above 0. Rows with a larger score are withheld.
        alpha: the paper's delta, one minus the confidence of the density's interval, above 0.
        schema: the public description of rows.
        training: settings of the encoder. None for the paper's.
        bandwidth_factor: multiple of Scott's bandwidth, above 0.
        density_rows: the largest number of training rows that become centers of the density
            estimate, from 2.
        random_state: seed of training.

    Attributes:
        training_: networks and loss curves.
        density_: estimate of the training rows' density.
        classes_: labels seen in ``fit``.
        n_features_in_: columns of the table.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> encoder = PublishedPower(
        ...     epsilon=4.0,
        ...     alpha=0.05,
        ...     schema=TabularSchema.numbers(4, 0.0, 8.0),
        ...     training=PowerConfig(steps=2),
        ...     random_state=0,
        ... ).fit(X, y)
        >>> encoder.transform(X).shape, encoder.guarantee.kind.value
        ((150, 4), 'no differential privacy')

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, algorithm 1.

    See Also:
        reticent.PowerEncoder: embeddings of table rows that are released with a proof.
    """

    epsilon: float
    alpha: float
    schema: TabularSchema
    training: PowerConfig | None = None
    bandwidth_factor: float = 1.0
    density_rows: int = 20_000
    random_state: int | np.random.RandomState | None = None

    training_: PowerTraining = learned()
    density_: KernelDensity = learned()

    name: ClassVar[str] = "power release, as published"

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, report: Report = silent) -> Self:
        """Train on the rows that are to be released, as in the paper.

        Args:
            X: shape (n, columns), as the schema says.
            y: shape (n,), labels that embeddings should keep.
            report: a callback that is told after every step.

        Raises:
            InvalidInput, InvalidParameter: rows or settings do not fit. Nothing is trained then.
        """
        _ = self.guarantee
        factor = positive(self.bandwidth_factor, name="bandwidth_factor")
        most = count(self.density_rows, name="density_rows", minimum=2)
        table = self.schema.rows(X, name="X")
        rows = self.schema.encode(table)
        self.classes_, labels = class_labels(y, len(rows))
        random = training_generator(self.random_state)
        order, seed = random.permutation(len(rows)), int(random.randint(2**31 - 1))
        config = PowerConfig(seed=seed) if self.training is None else self.training
        rows, labels = rows[order], labels[order]
        centers = rows[:most].astype(np.float32)
        self.density_ = KernelDensity(centers, factor * bandwidth(centers, rule="scott"))
        with torch.random.fork_rng(devices=[]):
            self.training_ = train_power(rows, labels, config, density=self.density_, report=report)
        self.n_features_in_ = table.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return embeddings, shape (n, d), with NaN in the rows whose score is above ``epsilon``.

        Nothing about them is random.
        """
        rows = self._rows(X)
        withheld = ~(self._scores(rows) <= self.epsilon)
        return np.where(withheld[:, None], np.nan, self.training_.network.embed(rows))

    def embed(self, X: npt.ArrayLike) -> Array:
        """Return embeddings, shape (n, d), whatever the score of a row."""
        rows = self._rows(X)
        return self.training_.network.embed(rows)

    def scores(self, X: npt.ArrayLike) -> Array:
        """Return the paper's per-sample epsilon, shape (n,)."""
        return self._scores(self._rows(X))

    @property
    @override
    def guarantee(self) -> Guarantee:
        """The paper's numbers, of kind "no differential privacy"."""
        epsilon = positive(self.epsilon, name="epsilon")
        alpha = probability(self.alpha, name="alpha", allow_zero=False)
        return Guarantee(epsilon, alpha, Replace(1), GuaranteeKind.NO_PRIVACY)

    def _rows(self, X: npt.ArrayLike) -> Array:
        if not hasattr(self, "training_"):
            raise NotFittedYet("this PublishedPower is not fitted yet; call fit")
        return self.schema.encode(self.schema.rows(X, name="X"))

    def _scores(self, rows: Array) -> Array:
        return per_sample_epsilon(self.training_.network, self.density_, rows, alpha=self.alpha)

    @property
    def _n_features_out(self) -> int:
        return self.training_.network.dimension

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
