"""Public nodes of embeddings, whose code hides any two inputs from each other: parts of the space,
and signs of its directions.

A node is the largest of a few linear scores. A table says which code a node gives, and the code
stands for the mean of the public rows that it may have come from. No Lipschitz constant has a part
in it, and no radius.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, counts, finite_array
from reticent.core.errors import InvalidParameter, NotFittedYet
from reticent.core.norms import sign_patterns
from reticent.core.settings import with_settings
from reticent.networks import Affine, Network
from reticent.training.parts.contract import Part
from reticent.training.parts.linear_maps import PublicDiscriminants, PublicPCA
from reticent.training.staircases import LARGEST_EPSILON, Variance, best_alone, response_on

ROWS_PER_NODE = 30
_MOST_SIGNS = 8
_SMOOTHING = 0.5


class PublicNodes(Part):
    """A part whose largest output names the node of an embedding.

    Attributes:
        weight_, bias_: of the linear scores, shapes (nodes, d) and (nodes,).
        masses_: shares of the public rows, above 0, shape (nodes,).
        moments_: the mass of a node times its mean less that of all rows, shape (nodes, d).
        center_: the mean of all rows, shape (d,).
    """

    weight_: Array
    bias_: Array
    masses_: Array
    moments_: Array
    center_: Array

    @abstractmethod
    def table(self, epsilon: float) -> Array:
        """Return chances of each code given the node, shape (nodes, codes), no two of a column
        more than e^epsilon apart.

        Args:
            epsilon: above 0.
        """

    def network(self) -> Network:
        """Return one affine layer, from embeddings to scores of nodes."""
        if not hasattr(self, "weight_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")
        return Network((Affine(self.weight_, self.bias_),), (len(self.center_),))

    def means(self, table: Array) -> Array:
        """Return the mean embedding given the code, shape (codes, d).

        Args:
            table: shape (nodes, codes).
        """
        return np.asarray(
            self.center_ + table.T @ self.moments_ / (table.T @ self.masses_)[:, None]
        )

    def _count(self, rows: Array) -> None:
        nodes = self.network().forward(rows).argmax(axis=1)
        size, self.center_ = len(self.weight_), rows.mean(axis=0)
        counts_ = np.bincount(nodes, minlength=size) + _SMOOTHING
        sums = np.zeros((size, rows.shape[1]))
        np.add.at(sums, nodes, rows - self.center_)
        self.masses_, self.moments_ = counts_ / counts_.sum(), sums / counts_.sum()


@with_settings
class PublicParts(PublicNodes):
    """Parts of the space around centres of public rows, with the code that explains most of how
    embeddings vary.

    Args:
        outputs: parts at most, from 2. There are fewer where there are not 30 public rows for each.
        random_state: seed of the clustering.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(600, 3))
        >>> parts = PublicParts(outputs=4).fit(rows)
        >>> parts.network().output_dimension, parts.table(2.0).sum(axis=1).round(6).tolist()
        (4, [1.0, 1.0, 1.0, 1.0])

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best table as a linear program over staircases.

    See Also:
        PublicSigns: knows labels, where there are some.
        reticent.CodeEncoder: codes for labels, recall and several targets at once.
    """

    outputs: int = 48
    random_state: int = 0

    @override
    def check(self) -> None:
        count(self.outputs, name="outputs", minimum=2)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn the parts.

        Args:
            X: public embeddings, shape (n, d).
            y: not used.
        """
        from sklearn.cluster import KMeans

        rows = finite_array(X, name="X", ndim=2)
        most = max(2, min(self.outputs, len(rows) // ROWS_PER_NODE))
        found = KMeans(most, n_init=1, max_iter=30, random_state=self.random_state)
        centres = np.unique(found.fit(rows).cluster_centers_, axis=0)
        self.center_ = rows.mean(axis=0)
        self.weight_ = np.ascontiguousarray(centres)
        self.bias_ = -0.5 * (centres**2).sum(axis=1)
        self._count(rows)
        return self

    @override
    def table(self, epsilon: float) -> Array:
        nodes = len(self.masses_)
        return best_alone(
            Variance(self.moments_ / (math.sqrt((self.moments_**2).sum()) or 1.0), self.masses_),
            nodes=nodes,
            epsilon=epsilon,
            starts=[response_on(np.arange(nodes), epsilon=epsilon)],
        )


@with_settings
class PublicSigns(PublicNodes):
    """Signs of public directions, of which a random few are turned: PrivUnit on the cube.

    The directions are those that tell classes apart, then principal components of what is left.
    A code is drawn from those that agree with the input's signs in at least so many places, or
    from the others, in proportion e^epsilon to 1.

    Args:
        outputs: directions, 1 to 8. A tuple is tried out on calibration data.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(600, 3))
        >>> signs = PublicSigns(outputs=2).fit(rows)
        >>> signs.table(2.0)[0].round(3).tolist()  # nothing is gained by a wider cap here
        [0.711, 0.096, 0.096, 0.096]

    References:
        - Bhowmick, Duchi, Freudiger, Kapoor and Rogers (2018), "Protection against reconstruction
          and its applications in private federated learning", arXiv:1812.00984, section 4.2.

    **Differs from the paper.** Signs of public directions stand in place of randomised rounding,
    and what is released is the mean of public rows given the code.

    See Also:
        PublicParts: nodes where rows lie, without labels.
    """

    outputs: int | tuple[int, ...] = (2, 4, 8)

    @override
    def check(self) -> None:
        if not self._sizes() or max(self._sizes()) > _MOST_SIGNS:
            raise InvalidParameter(f"outputs={self.outputs}: expected 1 to {_MOST_SIGNS}")

    @override
    def variants(self) -> list[Part]:
        """Return one part for each number of directions."""
        return [type(self)(outputs=size) for size in self._sizes()]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn the directions.

        Args:
            X: public embeddings, shape (n, d).
            y: shape (n,), classes, or None.
        """
        (size,) = self._sizes()
        rows = finite_array(X, name="X", ndim=2)
        axes = np.zeros((0, rows.shape[1]))
        if y is not None:
            axes = PublicDiscriminants().fit(rows, y).weight_[:size]
        left = min(size, rows.shape[1]) - len(axes)
        if left > 0:
            further = PublicPCA(outputs=left).fit(rows - rows @ axes.T @ axes).weight_
            axes = np.concatenate([axes, further])
        signs = sign_patterns(len(axes))
        self.center_ = rows.mean(axis=0)
        self.weight_ = np.ascontiguousarray(signs @ axes)
        self.bias_ = -self.weight_ @ self.center_
        self._count(rows)
        return self

    @override
    def table(self, epsilon: float) -> Array:
        signs = sign_patterns(round(math.log2(len(self.masses_))))
        low, apart = math.exp(-min(epsilon, LARGEST_EPSILON)), signs @ signs.T
        tables = []
        for least in np.unique(apart)[1:]:
            raised = np.where(apart >= least, 1.0, low)
            tables.append(raised / raised.sum(axis=1, keepdims=True))
        # By symmetry the mean agreement is that of any node.
        return max(tables, key=lambda table: float(table[0] @ apart[0]))

    def _sizes(self) -> tuple[int, ...]:
        given = self.outputs
        return counts(given if isinstance(given, tuple | list) else (given,), name="outputs")
