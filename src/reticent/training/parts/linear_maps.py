"""Public linear maps of embeddings as parts: the coordinates that vary, principal components, and
the directions that tell classes apart.

The certificate charges a released map its operator norm in the neighbours' own metric, so each of
these is private for the *original* embedding. Nothing is trained through noise here. All learning
is from the public rows of ``fit``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, counts, finite_array, probability
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.settings import with_settings
from reticent.networks import Affine, Network
from reticent.training.parts.contract import Part

_SHRINKAGE = 0.05


class LinearMap(Part):
    """A part that releases W (x - c) of an embedding x, with W and c from public rows.

    Attributes:
        weight_: W, shape (outputs, d).
        center_: c, shape (d,).
    """

    weight_: Array
    center_: Array

    @abstractmethod
    def fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Learn weight and center.

        Args:
            X: public embeddings, shape (n, d).
            y: shape (n,), classes, or None for a map that needs none.
        """

    def network(self) -> Network:
        """Return one affine layer, from embeddings to released values."""
        if not hasattr(self, "weight_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")
        layer = Affine(self.weight_, -self.weight_ @ self.center_)
        return Network((layer,), (len(self.center_),))


@with_settings
class LiveCoordinates(LinearMap):
    """The embedding without the coordinates that hardly vary over public rows.

    A beta-VAE leaves most latents at a constant. Each would be given as much noise as one that
    varies, and K-norm noise grows with the number of coordinates.

    Args:
        least_share: the least standard deviation of a coordinate that is kept, as a share of the
            largest one, in [0, 1].

    Attributes:
        weight_: rows of the identity, shape (kept, d).

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 0.01, 2.0]
        >>> LiveCoordinates().fit(rows).network().forward([[5.0, 6.0, 7.0]]).tolist()
        [[5.0, 7.0]]

    See Also:
        Identity: all coordinates.
        PublicPCA: directions of largest variance.
    """

    least_share: float = 0.05

    @override
    def check(self) -> None:
        probability(self.least_share, name="least_share")

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn which coordinates vary.

        Args:
            X: public embeddings, shape (n, d).
            y: not used.
        """
        rows = finite_array(X, name="X", ndim=2)
        spread = rows.std(axis=0)
        live = spread >= self.least_share * spread.max()
        self.weight_, self.center_ = np.eye(len(spread))[live], np.zeros(len(spread))
        return self


@with_settings
class PublicPCA(LinearMap):
    """The first principal components of public rows.

    Args:
        outputs: components, at most as many as embeddings have coordinates (more count as all). A
            tuple is tried out on calibration data.

    Attributes:
        weight_: orthonormal rows, shape (outputs, d): constant 1 in l2.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 0.1, 9.0]
        >>> np.abs(PublicPCA(outputs=1).fit(rows).weight_).round(1).tolist()
        [[0.0, 0.0, 1.0]]

    See Also:
        PublicDiscriminants: directions that tell classes apart.
    """

    outputs: int | tuple[int, ...] = (2, 4, 8, 16, 32)

    @override
    def check(self) -> None:
        if not self._sizes():
            raise InvalidParameter("outputs: expected at least one number of released values")

    @override
    def variants(self) -> list[Part]:
        """Return one part for each number of outputs."""
        return [type(self)(outputs=size) for size in self._sizes()]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn mean and components.

        Args:
            X: public embeddings, shape (n, d).
            y: not used.

        Raises:
            InvalidParameter: there are several numbers of outputs.
        """
        sizes = self._sizes()
        if len(sizes) != 1:
            raise InvalidParameter(
                f"outputs={sizes}: fit makes one map; expected one number, or an estimator that "
                "tries each"
            )
        rows = finite_array(X, name="X", ndim=2)
        self.center_ = rows.mean(axis=0)
        centered = rows - self.center_
        _, axes = np.linalg.eigh(centered.T @ centered)
        self.weight_ = np.ascontiguousarray(axes[:, ::-1][:, : sizes[0]].T)
        return self

    def _sizes(self) -> tuple[int, ...]:
        given = self.outputs
        return counts(given if isinstance(given, tuple | list) else (given,), name="outputs")


@with_settings
class PublicDiscriminants(LinearMap):
    """The directions that tell the classes of public rows apart, one fewer than there are classes.

    These are Fisher's discriminants, made orthonormal. The covariance within classes is shrunk
    towards a multiple of the identity, so that few rows of many coordinates do.

    Args:
        shrinkage: share of that multiple, in (0, 1). Near 1 these are the directions in which the
            classes' means differ most. They are worth more where the noise is as wide as the rows
            vary (docs/results/posthoc-linkage-cifar10.md).

    Attributes:
        weight_: orthonormal rows, shape (at most classes - 1, d): constant 1 in l2.

    Example:
        >>> labels = np.arange(400) % 2
        >>> rows = np.random.default_rng(0).normal(size=(400, 3)) + 3 * labels[:, None] * [1, 0, 0]
        >>> np.abs(PublicDiscriminants().fit(rows, labels).weight_).round(0).tolist()
        [[1.0, 0.0, 0.0]]

    References:
        - Fisher (1936), "The use of multiple measurements in taxonomic problems", Annals of
          Eugenics, doi:10.1111/j.1469-1809.1936.tb02137.x.

    See Also:
        PublicPCA: without labels, any size.
        NoiseAware: trained through the noise.
    """

    needs_labels: ClassVar[bool] = True

    shrinkage: float = _SHRINKAGE

    @override
    def check(self) -> None:
        probability(self.shrinkage, name="shrinkage", allow_zero=False)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn the directions.

        Args:
            X: public embeddings, shape (n, d).
            y: shape (n,), classes 0, 1, ...

        Raises:
            InvalidInput: there are fewer than two classes, or all classes have one mean.
        """
        rows = finite_array(X, name="X", ndim=2)
        labels = np.asarray(y)
        classes, codes = np.unique(labels, return_inverse=True)
        if labels.shape != (len(rows),) or len(classes) < 2:
            raise InvalidInput(
                f"y: expected {len(rows)} labels of at least two classes, got shape={labels.shape}"
            )
        means = np.stack([rows[codes == index].mean(axis=0) for index in range(len(classes))])
        self.center_ = rows.mean(axis=0)
        within = rows - means[codes]
        covariance = within.T @ within / len(rows)
        level = float(np.trace(covariance)) / rows.shape[1]
        covariance *= 1.0 - self.shrinkage
        covariance[np.diag_indices_from(covariance)] += self.shrinkage * level or 1.0
        directions = np.linalg.solve(covariance, (means - self.center_).T)
        axes, sizes, _ = np.linalg.svd(directions, full_matrices=False)
        kept = sizes[: count(len(classes) - 1, name="classes")] > 1e-9 * sizes[0]
        if not kept.any() or sizes[0] == 0.0:
            raise InvalidInput("y: all classes have one mean; expected rows that differ by class")
        self.weight_ = np.ascontiguousarray(axes[:, : len(kept)][:, kept].T)
        return self
