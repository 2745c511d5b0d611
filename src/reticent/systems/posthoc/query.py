"""A fitted release: picture -> embedding -> released function -> certificate -> mechanism, one
array per stage.

Both estimators of posthoc release hold one of these; it is what a bundle stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.grids.shares import WHOLE
from reticent.lipschitz import LevelTest, LipschitzBound, snap
from reticent.mechanisms import AnyTwo, FiniteChannel, HopRelease, ProposeTestRelease
from reticent.mechanisms.finite_channel import draw
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems.embedding import Arrays, Embedding, restore
from reticent.systems.posthoc.certificates import bound_of, stored_certificate
from reticent.systems.posthoc.plans import (
    CODE,
    LABEL_RULES,
    LabelRelease,
    LabelRule,
    Mechanism,
    PosthocSetting,
    Requirement,
    checked_cost,
    level_test,
    output_of,
    plan_mechanism,
)

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class PrivateQuery:
    """Everything that answering takes, and nothing that looks at the data it was fitted on.

    Attributes:
        embedding: from inputs to embeddings.
        network: the released function, on embeddings.
        bound: its certificate; where there is a rule, only its box counts.
        requirement: the total that every answer costs.
        plan: path, mechanism, proposal and split.
        rule: the mechanism itself where it needs no Lipschitz constant (table, hop, response,
            code); of ``bound`` only the box counts then.
        means: of a code, the embeddings that codes stand for, shape (codes, d). Public.
    """

    embedding: Embedding
    network: Network
    bound: LipschitzBound
    requirement: Requirement
    plan: PosthocSetting
    rule: LabelRule | None = None
    means: Array | None = None

    def __post_init__(self) -> None:
        mechanism = self.plan.mechanism
        if (self.rule is not None) != (mechanism in (*LABEL_RULES, CODE)):
            raise InvalidParameter(
                f"plan: mechanism={mechanism!r} with{'' if self.rule else 'out'} a rule"
            )
        if (self.means is not None) != (mechanism == CODE):
            raise InvalidParameter(
                f"plan: mechanism={mechanism!r} with{'out' if self.means is None else ''} means"
            )

    @property
    def any_two_points(self) -> bool:
        """Whether the radius covers the whole public box."""
        adjacency = self.requirement.adjacency
        return adjacency.radius >= self.bound.domain.diameter(adjacency.metric)

    @property
    def outputs(self) -> int:
        """Released values per row; of a label, the labels."""
        return self.network.output_dimension if self.means is None else self.means.shape[1]

    @property
    def certificate(self) -> str:
        """Kind of the bound that answers rest on; "none" for a rule, which uses its box alone."""
        return self.bound.kind if self.rule is None else "none"

    @cached_property
    def mechanism(self) -> Mechanism | LabelRule:
        """The mechanism that answers."""
        if self.rule is not None:
            return checked_cost(self.rule, self.requirement)
        return plan_mechanism(self.network, self.bound, self.plan, self.requirement)

    def label_chances(self, inputs: Array) -> Array:
        """Probability of every label for each row of checked ``inputs``, given that it is not
        withheld, shape (n, classes). Private.

        Raises:
            InvalidParameter: vectors are released.
        """
        if self.rule is None or self.means is not None:
            return self.label_mechanism.probabilities(self.exact(inputs))
        points = self._clipped(inputs)
        return np.asarray(self.rule.at(points, self.network.forward_each(points)).T / WHOLE)

    @property
    def label_mechanism(self) -> LabelRelease:
        """The mechanism of released labels, where it is one of logits alone.

        Raises:
            InvalidParameter: vectors are released.
        """
        inner = (
            self.mechanism.inner
            if isinstance(self.mechanism, ProposeTestRelease)
            else self.mechanism
        )
        if not isinstance(inner, LabelRelease):
            raise InvalidParameter(
                f"mechanism={self.plan.mechanism!r}: expected one of logits alone"
            )
        return inner

    @cached_property
    def test(self) -> LevelTest | None:
        """The test's view of points; None on the global path."""
        return (
            level_test(self.bound, self.plan, self.requirement)
            if self.plan.path == "local"
            else None
        )

    def exact(self, inputs: Array) -> Array:
        """What would be released without noise, shape (n, outputs); of a code, what is released in
        the mean. Private.
        """
        if self.means is None:
            return self.network.forward_each(self.points(inputs))
        assert self.rule is not None
        points = self._clipped(inputs)
        shares = self.rule.at(points, self.network.forward_each(points))
        return np.asarray(shares.T / WHOLE @ self.means)

    def points(self, inputs: Array) -> Array:
        """Embeddings, clipped to the public domain and moved to its grid, shape (n, d). Private."""
        return self._steps(inputs) * self.bound.input_step

    def _clipped(self, inputs: Array) -> Array:
        """Embeddings, clipped to the public domain: a rule has a grid of its own."""
        return self.bound.domain.clip(self.embedding.embed(inputs))

    def _steps(self, inputs: Array) -> Array:
        """The same points in whole steps of the grid."""
        return snap(self.bound, self.embedding.embed(inputs))

    def answer(
        self, inputs: Array, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """One answer for each row of checked ``inputs``, and which of them are withheld.

        Every finite row is answered, by a distribution that depends on that row alone.

        Args:
            inputs: shape (n, features), finite.
            sampler: source of randomness.
        """
        if self.rule is not None:
            return self._ruled(self._clipped(inputs), sampler)
        return self._released(self._steps(inputs), sampler)

    def rehearse(self) -> None:
        """Answers about the middle of the public box, with a seed, and forgets it: what cannot
        answer fails before any charge.

        Raises:
            ReticentError: the mechanism's noise is beyond what the grid or the sampler holds, or
                its cost has no event.
        """
        _ = self.mechanism.event
        if self.rule is not None:
            self._ruled(self.bound.domain.center[None, :], SeededSampler(0))
            return
        self._released(snap(self.bound, self.bound.domain.center[None, :]), SeededSampler(0))

    def _ruled(
        self, points: Array, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        assert self.rule is not None
        answers = draw(self.rule.at(points, self.network.forward_each(points)), sampler)
        withheld = np.zeros(len(answers), dtype=bool)
        return answers if self.means is None else self.means[answers], withheld

    def _released(
        self, steps: Array, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        values = self.network.forward_each(steps * self.bound.input_step)
        if self.test is None:
            assert not isinstance(self.mechanism, ProposeTestRelease | LabelRule)
            return self.mechanism.release(values, sampler=sampler), np.zeros(
                len(values), dtype=bool
            )
        assert isinstance(self.mechanism, ProposeTestRelease)
        return self.mechanism.release(values, self.test.levels_on_grid(steps), sampler=sampler)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        embedding, arrays = self.embedding.describe()
        structure, weights = describe(self.network, "released")
        domain = {"domain.lower": self.bound.domain.lower, "domain.upper": self.bound.domain.upper}
        adjacency = self.requirement.adjacency
        settings = {
            "embedding": embedding,
            "network": structure,
            "certificate": self.bound.kind,
            "input_norm": self.bound.input_norm.value,
            "requirement": {
                "epsilon": self.requirement.epsilon,
                "delta": self.requirement.delta,
                "radius": adjacency.radius,
                "space": adjacency.space,
                "identity": adjacency.identity,
            },
            "plan": self.plan.to_dict(),
        }
        if self.rule is None:
            return settings, {**arrays, **weights, **domain}
        settings["rule"], table = self.rule.describe()
        if self.means is not None:
            table = {**table, "code.means": self.means}
        return settings, {**arrays, **weights, **domain, **table}

    @classmethod
    def from_description(
        cls,
        settings: dict[str, Any],
        arrays: Arrays,
        embedder: nn.Module | None,
        *,
        certificate: type[LipschitzBound] | None = None,
    ) -> PrivateQuery:
        """The query that ``describe`` took apart.

        Args:
            settings, arrays: its two results.
            embedder: the user's own module, or None.
            certificate: the class of the user's own bound, or None.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together; a space that is
                not that of the embedder.
            InvalidInput: the bundle needs the user's own embedder or bound, or another one.
        """
        with rebuilding():
            described, kind = settings["embedding"], settings["certificate"]
        proof = stored_certificate(kind, certificate)
        embedding = restore(described, arrays, embedder)
        with rebuilding():
            network = rebuild(settings["network"], arrays, "released")
            norm = Norm.parse(settings["input_norm"])
            total, domain = (
                settings["requirement"],
                Box(arrays["domain.lower"], arrays["domain.upper"]),
            )
            adjacency = Neighborhood(
                norm, total["radius"], embedding.space, embedding.identity(domain)
            )
            if (total["space"], total["identity"]) != (adjacency.space, adjacency.identity):
                raise CorruptBundle(
                    "bundle: states another space than that of its embedder and box; fetch or "
                    "fit it again"
                )
            plan = PosthocSetting(**settings["plan"])
            requirement = Requirement(
                epsilon=total["epsilon"], delta=total["delta"], adjacency=adjacency
            )
            bound = bound_of(
                proof,
                network,
                domain=domain,
                input_norm=norm,
                output=output_of(plan.mechanism),
            )
            rule, means = None, arrays["code.means"] if plan.mechanism == CODE else None
            if plan.mechanism in (*LABEL_RULES, CODE):
                kind = HopRelease if plan.mechanism == "hop" else FiniteChannel
                rule = kind.from_description(
                    settings["rule"], arrays, epsilon=plan.epsilon_release, adjacency=adjacency
                )
                _check_fits(rule, plan, network, domain, means)
            query = cls(embedding, network, bound, requirement, plan, rule, means)
            _ = query.mechanism, query.test
        return query


def _check_fits(
    rule: LabelRule, plan: PosthocSetting, network: Network, domain: Box, means: Array | None
) -> None:
    """Raises ``CorruptBundle`` unless the nodes are those of the plan, for these embeddings."""
    nodes = rule.lattice if isinstance(rule, HopRelease) else rule.nodes
    any_two = plan.mechanism in ("response", CODE)
    size = nodes.size if isinstance(nodes, AnyTwo) else nodes.dimension
    wanted = network.output_dimension if any_two else domain.dimension
    if means is None:
        fits = rule.classes == network.output_dimension
    else:
        fits = means.shape == (rule.classes, domain.dimension) and bool(np.isfinite(means).all())
    if not fits or isinstance(nodes, AnyTwo) != any_two or size != wanted:
        raise CorruptBundle(
            f"bundle: its table has {rule.classes} answers and takes {size} coordinates or nodes, "
            f"its network {network.output_dimension} and {domain.dimension}; fetch or fit it again"
        )
