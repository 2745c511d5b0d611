"""One complete setting of a posthoc release, and the mechanism that it stands for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar

from reticent.core.errors import InvalidParameter, UnknownName
from reticent.core.guarantees import Guarantee, Neighborhood
from reticent.core.norms import Norm
from reticent.lipschitz import LevelTest, LipschitzBound, Output, grid_radius
from reticent.mechanisms import (
    AdditiveMechanism,
    FiniteChannel,
    GaussianMechanism,
    HopRelease,
    KNormMechanism,
    LaplaceMechanism,
    NoisyMaxRelease,
    ProposeTestRelease,
    StabilityRelease,
    optimal_test,
)
from reticent.mechanisms.k_norm import MOST_L2_COORDINATES
from reticent.networks import Network

Path = Literal["global", "local"]
LabelRule = FiniteChannel | HopRelease
LabelRelease = NoisyMaxRelease | StabilityRelease
Mechanism = AdditiveMechanism | LabelRelease | ProposeTestRelease


class _HasGuarantee(Protocol):
    @property
    def guarantee(self) -> Guarantee: ...


_Costed = TypeVar("_Costed", bound=_HasGuarantee)

VECTOR_MECHANISMS: dict[str, Norm] = {
    "laplace": Norm.L1,
    "k-norm-linf": Norm.LINF,
    "k-norm-l2": Norm.L2,
    "gaussian": Norm.L2,
}
"""Mechanisms for vectors, and the norm in which the released function must be Lipschitz."""

LABEL_MECHANISMS: dict[str, type[NoisyMaxRelease] | type[StabilityRelease]] = {
    "noisy-max": NoisyMaxRelease,
    "stability": StabilityRelease,
}
"""Mechanisms for labels; differences of two logits must be Lipschitz ("spread")."""

LABEL_RULES = ("table", "hop", "response")
"""Mechanisms for labels that need no Lipschitz constant: a table, a formula, and a response for any
two inputs, on public nodes that the point itself falls into."""


CODE = "code"
"""The mechanism for vectors that needs no Lipschitz constant: the mean of public rows that a code
for any two inputs stands for."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The total that one answer may cost.

    Attributes:
        epsilon: total epsilon, above 0.
        delta: total delta, in [0, 1). 0 allows the global path with a pure mechanism only.
        adjacency: definition of neighbours.
    """

    epsilon: float
    delta: float
    adjacency: Neighborhood


@dataclass(frozen=True, kw_only=True)
class PosthocSetting:
    """One complete setting of a release.

    Attributes:
        path: "global" (bound over the whole public domain, no test) or "local"
            (propose-test-release).
        mechanism: name of the mechanism.
        proposal: P, the Lipschitz constant that the noise covers, 0 for mechanisms without one.
        epsilon_test, delta_test: cost of the test, 0 on the global path.
        epsilon_release, delta_release: cost of the inner mechanism.
        utility: expected utility on calibration data, withheld answers counted as useless.
        released: expected share of answers on calibration data.
        rung: name of the released function, as the part that made it and its number of outputs, or
            "" where nobody said.
    """

    path: Path
    mechanism: str
    proposal: float
    epsilon_test: float
    delta_test: float
    epsilon_release: float
    delta_release: float
    utility: float = 0.0
    released: float = 1.0
    rung: str = ""

    def __post_init__(self) -> None:
        output_of(self.mechanism)
        if self.path not in ("global", "local"):
            raise UnknownName(f"path={self.path!r}: expected global or local")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def rule_plan(mechanism: str, epsilon: float, rung: str = "") -> PosthocSetting:
    """Return the plan of a mechanism that needs no Lipschitz constant: all of epsilon for the
    answer.
    """
    return PosthocSetting(
        path="global",
        mechanism=mechanism,
        proposal=0.0,
        epsilon_test=0.0,
        delta_test=0.0,
        epsilon_release=epsilon,
        delta_release=0.0,
        rung=rung,
    )


def output_of(mechanism: str) -> Output:
    """Return the output measure that ``mechanism`` needs a Lipschitz constant in.

    Raises:
        UnknownName: neither a mechanism for vectors nor one for labels.
    """
    if mechanism in VECTOR_MECHANISMS:
        return VECTOR_MECHANISMS[mechanism]
    if releases_labels(mechanism):
        return "spread"
    if mechanism == CODE:
        return Norm.LINF  # of its bound only the box counts
    raise UnknownName(
        f"mechanism={mechanism!r}: expected one of "
        f"{', '.join([*VECTOR_MECHANISMS, CODE, *LABEL_MECHANISMS, *LABEL_RULES])}"
    )


def releases_labels(mechanism: str) -> bool:
    """Return whether the mechanism of this name answers labels."""
    return mechanism in LABEL_MECHANISMS or mechanism in LABEL_RULES


def serves(mechanism: str, outputs: int, *, delta: float) -> bool:
    """Return whether a mechanism for vectors takes that many values at that delta.

    Example:
        >>> serves("k-norm-l2", 384, delta=0.0), serves("laplace", 384, delta=0.0)
        (False, True)
    """
    if mechanism == "gaussian":
        return delta > 0
    return mechanism != "k-norm-l2" or outputs <= MOST_L2_COORDINATES


def effective_radius(bound: LipschitzBound, radius: float) -> float:
    """Return R plus what moving both points of a pair to the bound's public grid can add."""
    return grid_radius(bound, radius) * bound.input_step


def inner_mechanism(
    network: Network, bound: LipschitzBound, plan: PosthocSetting, requirement: Requirement
) -> AdditiveMechanism | LabelRelease:
    """Return the mechanism that adds the noise of ``plan``.

    Its sensitivity is P times the effective radius, the rounding of f included.

    Raises:
        InvalidParameter: the Gaussian mechanism without a delta, or a parameter out of its
            range.
    """
    sensitivity = plan.proposal * effective_radius(bound, requirement.adjacency.radius)
    epsilon, adjacency = plan.epsilon_release, requirement.adjacency
    size, error = network.output_dimension, network.rounding_error(bound.domain)
    if plan.mechanism in LABEL_MECHANISMS:
        return LABEL_MECHANISMS[plan.mechanism](
            classes=size,
            sensitivity=sensitivity,
            epsilon=epsilon,
            adjacency=adjacency,
            evaluation_error=error,
        )
    shared = {"sensitivity": sensitivity, "epsilon": epsilon, "evaluation_error": error}
    if plan.mechanism == "laplace":
        return LaplaceMechanism(dimension=size, adjacency=adjacency, **shared)
    if plan.mechanism == "gaussian":
        if plan.delta_release == 0:
            raise InvalidParameter(
                "mechanism='gaussian': needs delta above 0; choose another mechanism or a "
                "positive delta"
            )
        return GaussianMechanism(
            dimension=size, adjacency=adjacency, delta=plan.delta_release, **shared
        )
    return KNormMechanism(
        dimension=size, adjacency=adjacency, output_norm=VECTOR_MECHANISMS[plan.mechanism], **shared
    )


def plan_mechanism(
    network: Network, bound: LipschitzBound, plan: PosthocSetting, requirement: Requirement
) -> Mechanism:
    """Return the mechanism of ``plan``.

    It is the inner one alone on the global path, and propose-test-release on the local one. On the
    global path the inner mechanism's sensitivity must be the bound over the whole domain, and is
    checked to be.

    Raises:
        InvalidParameter: a global plan whose proposal is below the global bound, or costs above
            the requirement.
    """
    inner = inner_mechanism(network, bound, plan, requirement)
    mechanism: Mechanism = inner
    if plan.path == "local":
        mechanism = ProposeTestRelease(
            radius=effective_radius(bound, requirement.adjacency.radius),
            proposal=plan.proposal,
            epsilon_test=plan.epsilon_test,
            delta_test=plan.delta_test,
            inner=inner,
        )
    elif plan.proposal < bound.global_bound():
        raise InvalidParameter(
            "plan: on the global path the proposal must be at least the bound over the whole domain"
        )
    return checked_cost(mechanism, requirement)


def checked_cost(mechanism: _Costed, requirement: Requirement) -> _Costed:
    """Return ``mechanism``, if one answer costs no more than is required.

    Raises:
        InvalidParameter: it costs more.
    """
    cost = mechanism.guarantee
    if cost.epsilon > requirement.epsilon * (1 + 2.0**-40) or cost.delta > requirement.delta * (
        1 + 2.0**-40
    ):
        raise InvalidParameter(
            f"plan: costs epsilon={cost.epsilon:g}, delta={cost.delta:g}, more than is required"
        )
    return mechanism


def level_test(bound: LipschitzBound, plan: PosthocSetting, requirement: Requirement) -> LevelTest:
    """Return the test's view of points on the local path.

    Raises:
        InvalidParameter: the plan has no test, or the time of the bound's decisions is not bounded.
    """
    if plan.path != "local":
        raise InvalidParameter("plan: the global path has no test")
    if not bound.cost_is_public:
        raise InvalidParameter(
            f"plan: certificate={bound.kind!r} on the local path; expected one whose cost does "
            "not depend on the point"
        )
    passing, _ = optimal_test(epsilon=plan.epsilon_test, delta=plan.delta_test)
    return LevelTest(bound, plan.proposal, requirement.adjacency.radius, len(passing) - 1)
