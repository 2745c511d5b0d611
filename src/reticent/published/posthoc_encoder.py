"""The posthoc papers' release end to end: embedder, obfuscator, proposal, test and predictor."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import has_fit_parameter
from torch import nn
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import finite_array, one_of, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.seeds import training_seed
from reticent.core.settings import a_part, learned, with_settings
from reticent.lipschitz import LayeredBound, stability_radius
from reticent.networks import Network, from_torch
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler
from reticent.published.obfuscators import CodedObfuscator, PublishedObfuscator
from reticent.published.posthoc import PublishedPosthoc, Switches
from reticent.published.research import Account, Answers, PublishedSystem, WorstPair
from reticent.release.bundle import Bundle
from reticent.systems.embedding import domain_of
from reticent.systems.embedding.fitted import embedding_of
from reticent.systems.input_rows import input_rows
from reticent.systems.posthoc.calibration import noise_adder
from reticent.systems.power.code_query import EmbeddedPoints, restored_inputs
from reticent.systems.record_labels import OBSERVED, record_labels
from reticent.systems.value_models import plain_network
from reticent.training.embedder import Embedder
from reticent.training.heads import HeadConfig, train_head
from reticent.training.parts.contract import fitted, resolved
from reticent.training.parts.embedders import Identity
from reticent.training.progress import silent

MEAN_AND_DEVIATIONS = "mean + 3 sd"
"""The papers' proposal: mean plus three standard deviations of L(x, R) over training points."""

_STEPS = 16  # of the grid of stability radii, in one radius
_PROPOSING = 2000
_PAIR_POINTS = 500
_MOST_CORNERS = 256


@with_settings
class PublishedPosthocEncoder(ClassifierMixin, PublishedSystem):
    """The posthoc papers' release: noisy outputs of an obfuscator, by the switches.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". ``spent()`` is D / u + U R / b at
        delta 0. D is the largest change of the tested number between neighbours, and u the test's
        unit. U is the l-infinity to l1 constant over the public box, and b the scale of the
        vector's noise. It does not rest on the test, and holds for real-valued noise.

    Args:
        epsilon: the paper's epsilon, above 0. It is spent on the test and again on the vector.
        delta: the paper's delta, in (0, 1).
        radius: R, the largest l-infinity distance of two neighbours in the embedding, above 0.
        maximum_radius: where the search for a stable neighbourhood ends, above R. The papers do not
            say. Their scripts have 2 and 1.4.
        obfuscator: a ``PublishedObfuscator`` or a ``CodedObfuscator``.
        switches: where print, code and proof part ways. None for Algorithm 1 as printed.
        proposal: P, a bound on the local constant above 0, or "mean + 3 sd".
        embedder: "identity", a part such as ``BetaVAE``, or a trained module.
        head: "beside" for the predictor that the obfuscator is trained with, or "at the noise" for
            one that is trained on noisy outputs.
        random_state: seed of training.

    Attributes:
        network_: the obfuscator.
        predictor_: the classifier of its outputs.
        proposal_: P.
        steepest_: U.
        classes_: the labels, sorted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> encoder = PublishedPosthocEncoder(
        ...     epsilon=1.0, delta=0.05, radius=0.1, maximum_radius=2.0,
        ...     obfuscator=PublishedObfuscator(outputs=2, hidden=(4,), epochs=1),
        ...     switches=Switches.as_coded(), random_state=0,
        ... ).fit(X, X[:, 0] > 0)
        >>> encoder.release(X[:3]).values.shape, encoder.guarantee.describe()
        ((3, 2), 'no differential privacy')
        >>> encoder.worst_pair().loss <= encoder.spent().epsilon
        True

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), section 4, algorithm 1 and table 1.

    See Also:
        reticent.PosthocEncoder: with a proof.
        reticent.published.PublishedPosthoc: its mechanism.
    """

    epsilon: float
    delta: float
    radius: float
    maximum_radius: float
    obfuscator: PublishedObfuscator | CodedObfuscator
    switches: Switches | None = None
    proposal: float | str = MEAN_AND_DEVIATIONS
    embedder: Any = "identity"
    head: Literal["beside", "at the noise"] = "beside"
    random_state: int | np.random.RandomState | None = None

    inputs_: EmbeddedPoints = learned()
    network_: Network = learned()
    predictor_: Network = learned()
    proposal_: float = learned()
    steepest_: float = learned()

    name: ClassVar[str] = "posthoc release, as published"
    source: ClassVar[str] = "Singh, Vepakomma, Sharma and Raskar (2023), NeurIPS"

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        pictures: npt.ArrayLike | None = None,
        spread: npt.ArrayLike | None = None,
    ) -> Self:
        """Train embedder and obfuscator on public rows, and set the proposal.

        Args:
            X: shape (n, features) or (n, height, width), public.
            y: shape (n,), labels.
            pictures: what the adversary of a ``CodedObfuscator`` rebuilds, shape (n, ...). None for
                X.
            spread: standard deviations that its embeddings are drawn with, shape (n, d). None for
                those of a beta-VAE, and none of another embedder.

        Raises:
            InvalidInput, InvalidParameter: rows or settings do not fit. Nothing is trained then.
        """
        self._check_settings()
        inputs, shape = input_rows(X)
        classes, codes = record_labels(y, len(inputs), OBSERVED)
        seed = training_seed(self.random_state)
        with torch.random.fork_rng(devices=[]):
            part = resolved(self.embedder, parameter="embedder", names={"identity": Identity})
            rows = inputs.reshape(-1, *shape)
            made: Any = fitted(part, rows, codes, seed=seed, report=silent)
            embedding = embedding_of(made, inputs, shape, name="")
            points = embedding.compute(np.clip(inputs, embedding.lower, embedding.upper))
            self.inputs_ = EmbeddedPoints(embedding, domain_of(points, margin=self.radius), shape)
            points = self.inputs_.clip(points)
            trained = clone(self.obfuscator)
            if trained.random_state is None:
                trained.set_params(random_state=seed)
            more: dict[str, Any] = {}
            if has_fit_parameter(trained, "pictures"):
                seen = inputs if pictures is None else pictures
                widths = _spread(made, rows) if spread is None else spread
                more = {"pictures": seen, "spread": widths}
            trained.fit(points, codes, **more)
        self.classes_, self.n_features_in_, self.serial_ = classes, inputs.shape[1], ""
        self.network_ = _network(trained.network(), points.shape[1])
        self._beside = _network(trained.predictor_, self.network_.output_dimension)
        self._points, self._codes = points, codes
        return self.settle()

    def settle(self) -> Self:
        """Set proposal, noise and head anew for the settings as they are now, without training the
        obfuscator again.

        Raises:
            NotFittedYet, InvalidInput: not fitted, or loaded, which leaves the training rows out.
        """
        self._check_fitted()
        self._check_settings()
        if not hasattr(self, "_points"):
            raise InvalidInput("settle: expected an encoder with its training rows; fit again")
        if isinstance(self.proposal, str):
            local = self.bound_.bound(self._points[:_PROPOSING], self.radius)
            self.proposal_ = float(local.mean() + 3.0 * local.std())
        else:
            self.proposal_ = float(self.proposal)
        self._pair = self._steepest_pair()
        self.steepest_ = self._steepest()
        self.predictor_ = self._beside
        if self.head == "at the noise":
            self.predictor_ = self._noisy_head()
        return self

    @property
    def mechanism_(self) -> PublishedPosthoc:
        """The release of one vector."""
        self._check_fitted()
        size = self.network_.output_dimension
        return self._mechanism(self.proposal_, size, self.stated_adjacency)

    @property
    @override
    def stated_adjacency(self) -> Neighborhood:
        """Points within the radius of each other, in the embedding."""
        return self.inputs_.within(Norm.LINF, self.radius)

    within = stated_adjacency

    @property
    def input_shape_(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.inputs_.shape

    @override
    def stated(self) -> Account:
        found = self.mechanism_.guarantee
        words = (
            f"For l-infinity distance {self.radius:g} of the embedding, by theorem 4.4. The tables "
            f"name it epsilon {self.epsilon:g}."
        )
        return Account(epsilon=found.epsilon, delta=found.delta, reason=words)

    @override
    def spent(self) -> Account:
        found = self.mechanism_
        step = self.radius / _STEPS + self.bound_.input_step
        total = found.sound_epsilon(self.steepest_, tolerance=step)
        change = found.tested_change(tolerance=step) / found.test_unit
        return Account(
            epsilon=total,
            reason=f"D / u + U R / b: {change:.4g} for the test and {total - change:.4g} for the "
            "vector, in real numbers.",
        )

    @override
    def worst_pair(self) -> WorstPair:
        self._check_fitted()
        change = np.abs(self._pair)
        return WorstPair(
            description="A training point and a corner of its neighbourhood, whose outputs are "
            f"{change.sum():.4g} apart in l1, by one vector.",
            loss=float(change.sum() / self.mechanism_.scale),
        )

    def radii(self, X: npt.ArrayLike) -> Array:
        """Return the stability radius of each row, shape (n,). As private as the row."""
        return self.before_noise(self.embed(X))[1]

    @override
    def answer(self, X: npt.ArrayLike, *, sampler: Sampler) -> Answers:
        return Answers(*self.mechanism_.release(*self.before_noise(self.embed(X)), sampler=sampler))

    def before_noise(self, points: Array) -> tuple[Array, Array]:
        """Return outputs, shape (n, m), and stability radii, shape (n,), of points. Private."""
        radii = np.zeros(len(points))
        if self._switches.answers == "tested":
            radii = stability_radius(
                self.bound_,
                points,
                proposal=self.proposal_,
                max_radius=self.maximum_radius,
                tolerance=self.radius / _STEPS,
            )
        return self.network_.forward(points), radii

    def predict_released(self, answers: Answers) -> npt.NDArray[Any]:
        """Return the label of each answer, shape (n,). A withheld one gets the first label."""
        self._check_fitted()
        return self._labels(np.nan_to_num(answers.values))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return labels without noise. Private."""
        return self._labels(self.network_.forward(self.embed(X)))

    def _labels(self, values: Array) -> npt.NDArray[Any]:
        return np.asarray(self.classes_[self.predictor_.forward(values).argmax(axis=1)])

    def accuracy(self, X: npt.ArrayLike, y: npt.ArrayLike, *, seed: int) -> tuple[float, float]:
        """Return the share of right labels among all answers, and the share that is withheld."""
        found = self.release(X, seed=seed)
        right = (self.predict_released(found) == np.asarray(y)) & ~found.withheld
        return float(right.mean()), float(found.withheld.mean())

    @property
    def _switches(self) -> Switches:
        return a_part(self.switches, Switches, name="switches")

    def _check_settings(self) -> None:
        if not isinstance(self.obfuscator, PublishedObfuscator | CodedObfuscator):
            given = type(self.obfuscator).__name__
            raise InvalidParameter(f"obfuscator: expected one of reticent.published, got {given}")
        self.obfuscator.check()
        one_of(self.head, ("beside", "at the noise"), name="head")
        proposal = self.proposal
        if isinstance(proposal, str):
            one_of(proposal, (MEAN_AND_DEVIATIONS,), name="proposal")
            proposal = 1.0
        near = Neighborhood(Norm.LINF, positive(self.radius, name="radius"), "embedding")
        self._mechanism(proposal, 1, near)

    def _mechanism(self, proposal: float, dimension: int, near: Neighborhood) -> PublishedPosthoc:
        return PublishedPosthoc(
            radius=self.radius,
            maximum_radius=self.maximum_radius,
            proposal=proposal,
            stated_epsilon=self.epsilon,
            stated_delta=self.delta,
            dimension=dimension,
            adjacency=near,
            switches=self._switches,
        )

    @property
    def bound_(self) -> LayeredBound:
        """The bound on the local constant, in the switches' output norm."""
        self._check_fitted()
        return self._bound(Norm(self._switches.output_norm))

    def _bound(self, output: Norm) -> LayeredBound:
        box = self.inputs_.box
        return LayeredBound(self.network_, domain=box, input_norm=Norm.LINF, output=output)

    def _steepest(self) -> float:
        return float(self._bound(Norm.L1).global_bound())

    def embed(self, X: npt.ArrayLike) -> Array:
        """Return the points, shape (n, d), between which the radius is measured. Private."""
        return self.points(self.checked(X))

    @override
    def checked(self, X: npt.ArrayLike) -> Array:
        """Return rows as numbers, shape (n, features)."""
        self._check_fitted()
        inputs, _ = input_rows(X)
        if inputs.shape[1] != self.n_features_in_:
            raise InvalidInput(f"X: expected {self.n_features_in_} features, got {inputs.shape[1]}")
        return inputs

    def points(self, inputs: Array) -> Array:
        """Return the points of checked rows, shape (n, d), in the public box. Private."""
        return self.inputs_.clip(self.inputs_.embedding.embed(inputs))

    def _steepest_pair(self) -> Array:
        """Return the change of outputs, shape (m,), at the steepest corner step that was found."""
        points = self._points[:_PAIR_POINTS]
        dimension = points.shape[1]
        if 2**dimension <= _MOST_CORNERS:
            signs = np.array(list(product((-1.0, 1.0), repeat=dimension)))
        else:
            signs = np.sign(np.random.default_rng(0).normal(size=(_MOST_CORNERS, dimension)))
        start, found = self.network_.forward(points), []
        for sign in signs:
            moved = self.inputs_.clip(points + self.radius * sign)
            change = self.network_.forward(moved) - start
            found.append(change[np.abs(change).sum(axis=1).argmax()])
        return max(found, key=lambda each: float(np.abs(each).sum()))

    def _noisy_head(self) -> Network:
        config = HeadConfig(
            epochs=5, batch_size=1000, hidden=(64, 64), seed=training_seed(self.random_state)
        )
        noise = noise_adder("laplace", self.mechanism_.scale)
        values = self.network_.forward(self._points)
        with torch.random.fork_rng(devices=[]):
            return plain_network(train_head(values, self._codes, config, noise=noise))

    @override
    def _content(self) -> tuple[dict[str, Any], Arrays]:
        inputs, arrays = self.inputs_.describe()
        network, weights = describe(self.network_, "released")
        predictor, more = describe(self.predictor_, "predictor")
        settings = {
            **{name: getattr(self, name) for name in _NUMBERS},
            "switches": asdict(self._switches),
            "proposal": self.proposal_,
            "inputs": inputs,
            "network": network,
            "predictor": predictor,
        }
        return settings, {**arrays, **weights, **more, "pair": self._pair}

    @classmethod
    @override
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        stored, arrays = bundle.settings, bundle.arrays
        found = cls(
            **{name: stored[name] for name in _NUMBERS},
            obfuscator=PublishedObfuscator(),
            switches=Switches(**stored["switches"]),
            proposal=stored["proposal"],
        )
        inputs = restored_inputs(stored["inputs"], arrays, None)
        if not isinstance(inputs, EmbeddedPoints):
            raise InvalidInput("inputs: expected those of arrays")
        found.inputs_ = inputs
        found.network_ = rebuild(stored["network"], arrays, "released")
        found.predictor_ = rebuild(stored["predictor"], arrays, "predictor")
        if len(labels) != found.predictor_.output_dimension:
            raise InvalidInput("labels: expected one for each output of the predictor")
        found.proposal_ = positive(stored["proposal"], name="proposal")
        found._pair = finite_array(arrays["pair"], name="pair", ndim=1)
        found.steepest_ = found._steepest()
        return found


_NUMBERS = ("epsilon", "delta", "radius", "maximum_radius")


def _network(found: nn.Module | Network, inputs: int) -> Network:
    return found if isinstance(found, Network) else from_torch(found, (inputs,))


def _spread(part: Any, rows: Array) -> Array | None:
    """Return the standard deviations of a beta-VAE's posterior, or None for another embedder."""
    module = part.network() if callable(getattr(part, "network", None)) else None
    if not isinstance(module, Embedder):
        return None
    with torch.no_grad():
        _, logs = module.posterior(torch.as_tensor(rows, dtype=torch.float32))
    return np.exp(0.5 * logs.double().numpy())
