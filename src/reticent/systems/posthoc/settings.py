"""Checked settings of a posthoc system, and the measure of utility."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from reticent.core.checks import count, flag, one_of, positive, probability
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.core.settings import with_settings
from reticent.mechanisms import analytic_sigma
from reticent.systems.embedding import Embedding
from reticent.systems.posthoc.certificates import Certificate, check_certificate
from reticent.systems.posthoc.plans import LABEL_RULES, Path, Requirement, output_of
from reticent.training.parts.contract import PlannedRelease, resolved
from reticent.training.parts.embedders import EMBEDDERS, Named

if TYPE_CHECKING:
    from reticent.systems.posthoc.system import PosthocSystem
    from reticent.training.heads import HeadConfig

_PATHS: dict[str, tuple[Path, ...]] = {
    "auto": ("global", "local"),
    "global": ("global",),
    "local": ("local",),
}

_STEPS = 480
"""Of heads. On MNIST's embeddings, from 100 to 8,000 rows, twice as many gain at most .007, and
fewer rank noise on the embedding too low: it is harder to learn from than what was trained.
"""


@with_settings
class Calibration(BaseEstimator):
    """The releases that are tried, and the measure of their utility, on rows that training has not
    seen.

    Args:
        share: share of the fitted rows that utility is measured on, in (0, 1).
        head_epochs: passes of the heads that the utility of released vectors is measured with. None
            for as many as they need to learn: 480 steps, after a first look at every plan with a
            linear reading.
        certificate: "auto", "interval", "layered", "linear" (ReLU networks of any
            number of inputs), "operator-norm" (affine maps and sorted pairs), or your own subclass
            of ``LipschitzBound``, for whose soundness you vouch.
        path: "auto", "global" (bound over the whole domain, nothing withheld) or "local"
            (propose-test-release).
        verbose: whether training shows progress bars on standard error.

    Example:
        >>> Calibration(head_epochs=2)
        Calibration(head_epochs=2)

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), where utility is the accuracy of a server that sees released values
          alone.

    See Also:
        reticent.PosthocEncoder: chooses among what could be released by it.
        reticent.NoiseAware: has sizes to choose among.
    """

    share: float = 0.2
    head_epochs: int | None = None
    certificate: Certificate = "auto"
    path: str = "auto"
    verbose: bool = False

    def held_rows(self, rows: int) -> int:
        """Return on how many of ``rows`` rows utility is measured."""
        return max(1, round(self.share * rows))

    def head(self, seed: int, *, rows: int) -> HeadConfig:
        """Return settings of the heads, which learn from ``rows`` rows."""
        from reticent.training.heads import HeadConfig

        if self.head_epochs is None:
            return _long_enough(seed, rows)
        return HeadConfig(epochs=self.head_epochs, seed=seed)

    def check(self) -> None:
        """Check that the parameters can be used.

        Raises:
            InvalidParameter, UnknownName: they cannot.
        """
        probability(self.share, name="share", allow_zero=False)
        if self.head_epochs is not None:
            count(self.head_epochs, name="head_epochs")
        flag(self.verbose, name="verbose")
        one_of(self.path, _PATHS, name="path")
        check_certificate(self.certificate)


@dataclass(frozen=True, kw_only=True)
class PosthocSettings:
    """The constructor's arguments that both estimators share, checked, and parts resolved.

    Attributes:
        epsilon, delta, radius, input_norm: cost of one answer, and its neighbours. Without a radius
            it is for any two points of the public box.
        embedder: part that makes embeddings, not fitted.
        embedder_name: its owner's name for it, or "".
        released: part that makes the released function, not fitted.
        parameter: the constructor's name of ``released``.
        mechanism: one mechanism, or "auto".
        calibration: choice of the releases that are tried, and of the measure of their utility.
    """

    epsilon: float
    delta: float
    radius: float | None
    input_norm: Norm
    embedder: BaseEstimator
    embedder_name: str
    released: BaseEstimator
    parameter: str
    mechanism: str
    calibration: Calibration

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that may be chosen."""
        return _PATHS[self.calibration.path]

    @classmethod
    def of(cls, estimator: PosthocSystem) -> PosthocSettings:
        """Return the checked settings of an estimator.

        Raises:
            InvalidParameter, UnknownName: an argument that cannot be used.
        """
        parameter, known = estimator._part, ("auto", *estimator._named_mechanisms)
        embedder, name = estimator.embedder, ""
        if isinstance(embedder, Named):
            embedder.check()
            embedder, name = embedder.embedder, embedder.name
        calibration = _calibration(estimator.calibration)
        mechanism = one_of(estimator.mechanism, known, name="mechanism")
        if mechanism in LABEL_RULES and calibration.path == "local":
            raise InvalidParameter(
                f"mechanism={mechanism!r}, path='local': expected path='auto' or "
                "'global'; this mechanism tests and withholds nothing"
            )
        return cls(
            epsilon=positive(estimator.epsilon, name="epsilon"),
            delta=probability(estimator.delta, name="delta"),
            radius=None if estimator.radius is None else positive(estimator.radius, name="radius"),
            input_norm=Norm.parse(estimator.input_norm),
            embedder=resolved(embedder, parameter="embedder", names=EMBEDDERS),
            embedder_name=name,
            released=resolved(
                getattr(estimator, parameter), parameter=parameter, names=estimator._parts
            ),
            parameter=parameter,
            mechanism=mechanism,
            calibration=calibration,
        )

    def requirement(self, embedding: Embedding, domain: Box) -> Requirement:
        """Return the total that one answer must cost.

        It is for neighbours as ``embedding`` measures them, clipped to ``domain``.
        """
        radius = domain.diameter(self.input_norm) if self.radius is None else self.radius
        space = Neighborhood(self.input_norm, radius, embedding.space, embedding.identity(domain))
        return Requirement(epsilon=self.epsilon, delta=self.delta, adjacency=space)

    def release(self, mechanism: str, domain: Box) -> PlannedRelease:
        """Return what a part that trains for its release of points of ``domain`` is told."""
        return PlannedRelease(
            epsilon=self.epsilon,
            delta=self.delta,
            radius=domain.diameter(self.input_norm) if self.radius is None else self.radius,
            input_norm=self.input_norm,
            mechanism=mechanism,
            output=output_of(mechanism),
            unit_sigma=analytic_sigma(sensitivity=1.0, epsilon=self.epsilon, delta=self.delta)
            if mechanism == "gaussian" and self.delta > 0
            else None,
        )


def _long_enough(seed: int, rows: int) -> HeadConfig:
    """Return as many whole passes over ``rows`` rows as are at least ``_STEPS`` steps."""
    from reticent.training.heads import HeadConfig

    usual = HeadConfig(seed=seed)
    return replace(usual, epochs=math.ceil(_STEPS / math.ceil(rows / usual.batch_size)))


def _calibration(given: Any) -> Calibration:
    calibration = Calibration() if given is None else given
    if not isinstance(calibration, Calibration):
        raise InvalidParameter(
            f"calibration: expected a Calibration or None, got {type(given).__name__}"
        )
    calibration.check()
    return calibration
