"""The posthoc papers' mechanism as published, for research. It is *not* private as claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans
from reticent.core.checks import count, finite_array, one_of, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency, Guarantee, GuaranteeKind
from reticent.core.settings import Group
from reticent.noise import Grid, Sampler
from reticent.published.research import AsPrinted


@dataclass(frozen=True, kw_only=True)
class Switches(Group):
    """Where the posthoc papers, their code and a proof part ways.

    A default is what is published. With every switch as a proof needs it, the statement is provable
    if the proposal bounds the l-infinity to l1 constant. A constant in another norm is not enough,
    whatever the test says. Here noise is on a grid, but no rounding is charged and no guarantee is
    given.

    Args:
        output_norm: norm in which the proposal bounds the change of outputs: "l1" (text) or "linf"
            (code). A proof needs "l1", because Laplace noise is drawn for each coordinate.
        noise_covers: the change that the vector's noise is calibrated to: "P", or "P R" (code),
            which a proof needs because neighbours are P R apart.
        test_scale: scale of the test's noise, and unit of its threshold: "1 / epsilon" (Algorithm
            1), or "R / epsilon" (text), which a proof needs.
        searched_at: the radius at which the local constant is evaluated during the search: "R",
            where Algorithm 1 never moves, or "midpoint", the radius being searched, for a proof.
        if_unstable: stability reported when the bound fails at R itself: "R / 2", where the search
            starts, or "zero" for a proof.
        stability: the step from a stable radius psi to the tested number: "half" for psi / 2, which
            jumps at psi = R, or "slack" for max(0, psi - R), which is 1-Lipschitz, for a proof.
        answers: "tested" to withhold where the test fails (text), or "all" to run no test (code).
            A proof needs "tested", unless the proposal holds everywhere.

    Example:
        >>> Switches.as_coded().answers, Switches.repaired().stability
        ('all', 'slack')

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), section 4 and algorithm 1. Facts about the code: see
          ``reticent.published.obfuscators``.

    See Also:
        reticent.published.PublishedPosthocEncoder: the estimator that takes it.
    """

    output_norm: Literal["l1", "linf"] = "l1"
    noise_covers: Literal["P", "P R"] = "P"
    test_scale: Literal["1 / epsilon", "R / epsilon"] = "1 / epsilon"
    searched_at: Literal["R", "midpoint"] = "R"
    if_unstable: Literal["R / 2", "zero"] = "R / 2"
    stability: Literal["half", "slack"] = "half"
    answers: Literal["tested", "all"] = "tested"

    def __post_init__(self) -> None:
        for name, choice in get_type_hints(type(self)).items():
            one_of(getattr(self, name), get_args(choice), name=name)

    @classmethod
    def text(cls) -> Switches:
        """Section 4 of the paper: the radius moves, and the test's noise is R / epsilon."""
        return cls(test_scale="R / epsilon", searched_at="midpoint", if_unstable="zero")

    @classmethod
    def as_coded(cls) -> Switches:
        """The authors' code for Table 1: an l-infinity constant, noise of P R / epsilon, no
        test.
        """
        return replace(cls.text(), output_norm="linf", noise_covers="P R", answers="all")

    @classmethod
    def repaired(cls) -> Switches:
        """What a proof needs: the only sound one."""
        return replace(cls.text(), noise_covers="P R", stability="slack")


@dataclass(frozen=True, kw_only=True)
class PublishedPosthoc(AsPrinted):
    """Algorithm 1 of the posthoc papers, flaw by flaw.

    **Guarantee.** None: ``guarantee.kind`` is "no differential privacy", and a ledger refuses it.
    Its numbers are those of the papers' Theorem 4.4. ``stated_epsilon`` is their row label.

    Attributes:
        radius: R, largest distance of two neighbours, above 0.
        maximum_radius: the radius at which the search for a stable neighbourhood ends, above R.
        proposal: P, a bound on the local Lipschitz constant in ``switches.output_norm``.
        stated_epsilon: the papers' epsilon, spent once on the test and once on the vector.
        stated_delta: the papers' delta, in (0, 1).
        dimension: number of coordinates.
        adjacency: the adjacency of neighbours.
        switches: where print, code and proof part ways.

    Utility:
        As printed a coordinate errs by proposal / stated_epsilon on average, and an answer passes
        half of the time where the tested stability is ln(1 / stated_delta) / stated_epsilon. No
        privacy is bought with it.

    Runtime:
        O(m) a row: 0.5 microseconds for 8 coordinates on one core (benchmarks/runtimes.py), without
        the search for psi.

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), algorithm 1 and supplement A (lemmas A.1 and A.2).

    See Also:
        reticent.mechanisms.ProposeTestRelease: the default.
    """

    radius: float
    maximum_radius: float
    proposal: float
    stated_epsilon: float
    stated_delta: float
    dimension: int
    adjacency: Adjacency
    switches: Switches = Switches()

    name: ClassVar[str] = "posthoc release, as published"

    def __post_init__(self) -> None:
        positive(self.radius, name="radius")
        positive(self.proposal, name="proposal")
        positive(self.stated_epsilon, name="stated_epsilon")
        probability(self.stated_delta, name="stated_delta", allow_zero=False)
        count(self.dimension, name="dimension")
        if not positive(self.maximum_radius, name="maximum_radius") > self.radius:
            raise InvalidParameter(
                f"maximum_radius={self.maximum_radius!r}: expected more than radius={self.radius!r}"
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the papers' theorem adds up to, 2 epsilon and delta / 2, of kind "no differential
        privacy".
        """
        claimed = 2.0 * self.stated_epsilon, 0.5 * self.stated_delta
        return Guarantee(*claimed, self.adjacency, GuaranteeKind.NO_PRIVACY)

    @property
    def scale(self) -> float:
        """The scale of the vector's Laplace noise, in output units."""
        covers = self.radius if self.switches.noise_covers == "P R" else 1.0
        return self.proposal * covers / self.stated_epsilon

    @property
    def test_unit(self) -> float:
        """The scale of the test's noise, in units of the radius."""
        covers = self.radius if self.switches.test_scale == "R / epsilon" else 1.0
        return covers / self.stated_epsilon

    def tested_stability(self, radii: npt.ArrayLike) -> Array:
        """Return the search's result for stability radii psi (shape (n,), at least 0), before
        noise. Private.
        """
        psi = finite_array(radii, name="radii", ndim=1, allow_empty=True)
        moves = self.switches.searched_at == "midpoint"
        found = np.minimum(psi if moves else np.inf, self.maximum_radius)
        reached = 0.5 * found if self.switches.stability == "half" else found - self.radius
        unstable = 0.5 * self.radius if self.switches.if_unstable == "R / 2" else 0.0
        return np.where(psi >= self.radius, reached, unstable)

    def pass_probabilities(self, radii: npt.ArrayLike) -> Array:
        """Return the chances to answer at stability radii psi (shape (n,), at least 0), in real
        numbers. Private.
        """
        tested = self.tested_stability(radii)
        if self.switches.answers == "all":
            return np.ones(len(tested))
        away = math.log(1.0 / self.stated_delta) - tested / self.test_unit
        tail = 0.5 * np.exp(-np.abs(away))
        return np.where(away > 0, tail, 1.0 - tail)

    def tested_change(self, *, tolerance: float = 0.0) -> float:
        """Return D, the largest change of the tested number between neighbours.

        Args:
            tolerance: the step of the grid that stability radii are on, in units of the radius.
                Neighbours' radii differ by at most R plus this step.
        """
        if self.switches.answers == "all":
            return 0.0
        unstable = self.tested_stability([0.0])[0]
        far = min(2.0 * self.radius + tolerance, self.maximum_radius)
        near, farthest = self.tested_stability([self.radius, far])
        # A stable radius is at least R, and next to an unstable one it is below 2 R. Between two
        # stable ones the tested number moves as fast as from R to 2 R.
        return float(max(farthest - near, abs(farthest - unstable), abs(near - unstable)))

    def sound_epsilon(self, steepest: float, *, tolerance: float = 0.0) -> float:
        """Return an epsilon that the whole release really has, at delta 0.

        The bit costs D / u, with u the scale of the test's noise. Whatever leaves carries noise of
        scale b in each coordinate, so the vector costs U R / b. Nothing rests on the test's
        verdict. Rounding is not part of it.

        Args:
            steepest: U, a bound on the l-infinity to l1 constant over the whole domain.
            tolerance: as for ``tested_change``.
        """
        positive(steepest, name="steepest")
        change = self.tested_change(tolerance=tolerance)
        return change / self.test_unit + steepest * self.radius / self.scale

    def release(
        self, values: npt.ArrayLike, radii: npt.ArrayLike, *, sampler: Sampler
    ) -> tuple[Array, Booleans]:
        """Return noisy values, shape (n, m), NaN where the test fails, and True there, shape (n,).

        Args:
            values: shape (n, m), finite.
            radii: shape (n,), stability radii psi, at least 0.
            sampler: source of randomness.

        Raises:
            InvalidInput: shapes are wrong, or numbers are not finite. Values are never shown.
        """
        array = finite_array(
            values, name="values", ndim=2, columns=self.dimension, allow_empty=True
        )
        tested = self.tested_stability(radii)
        if len(tested) != len(array):
            raise InvalidInput(
                f"radii: expected one per row, got {len(tested)} for {len(array)} rows"
            )
        withheld = np.zeros(len(tested), dtype=np.bool_)
        if self.switches.answers == "tested":
            unit = self.test_unit
            noisy = tested + _laplace(len(tested), 1, scale=unit, sampler=sampler)[:, 0]
            withheld = noisy < unit * math.log(1.0 / self.stated_delta)
        released = array + _laplace(len(array), self.dimension, scale=self.scale, sampler=sampler)
        return np.where(withheld[:, None], np.nan, released), withheld


def _laplace(rows: int, columns: int, *, scale: float, sampler: Sampler) -> Array:
    """Draw Laplace noise on a grid a million times finer than its scale."""
    grid = Grid.finer_than(scale)
    return grid.values(sampler.discrete_laplace((rows, columns), scale=scale / grid.step))
