"""Models that learnt from released values, stored as plain arrays: what a server answers released
values with. No torch once they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, one_of, words
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.guarantees import Guarantee
from reticent.networks import Network, affine_chain
from reticent.networks.serial import describe, rebuild
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.loading import VALUE_MODEL
from reticent.systems.power.servers import train_server
from reticent.systems.record_labels import restored_labels
from reticent.training.public_models import (
    BoostedTrees,
    LinearModel,
    PublicModel,
    model_from,
)

KINDS = ("boosted", "linear", "network", "channel")
"""Kinds of models that can be stored; "network" takes torch to train, and none takes it to serve.
"""

_LARGEST_VALUE = 1e30


@dataclass(frozen=True, eq=False)
class ValueModel:
    """A classifier of released values.

    Its predictions are post-processing: they cost nothing, whoever asks and however often. Of the
    inputs that it learnt from it knows their released values only.

    Attributes:
        kind: one of ``KINDS``.
        model: trees or weights, a network, or for "channel" the table of probabilities of labels
            given each output, shape (outputs, labels).
        classes: shape (labels,), in rising order.
        width: number of numbers in one released value.
        bundle: identity of the bundle whose released values it takes.
        guarantee: guarantee of one of them, as its receipts state.
        rows: number of values that it learnt from.

    Example:
        >>> from reticent.core import Replace
        >>> one_hot = np.eye(2)[[0, 0, 0, 1, 1, 1]]
        >>> model = train_value_model(
        ...     "linear", one_hot, list("nnyyyy"), seed=0, bundle="ab" * 32,
        ...     guarantee=Guarantee(1.0, 0.0, Replace(1)),
        ... )
        >>> model.predict([[1.0, 0.0], None]).tolist()
        ['n', None]

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, servers with any model.
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), a server that sees released values alone.

    See Also:
        reticent.systems.value_models.train_value_model: makes one.
        reticent.client.Device: sends it released values.
    """

    kind: str
    model: PublicModel | Network | Array
    classes: npt.NDArray[Any]
    width: int
    bundle: str
    guarantee: Guarantee
    rows: int

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, name="kind")
        count(self.width, name="width")
        count(self.rows, name="rows")
        if len(self.bundle) != 64 or set(self.bundle) - set("0123456789abcdef"):
            raise InvalidInput("bundle: expected the identity of a bundle, 64 hexadecimal digits")
        if self._sizes() != (self.width, len(self.classes)):
            raise CorruptBundle(
                f"model: takes {self._sizes()[0]} values to {self._sizes()[1]} labels, expected "
                f"{self.width} and {len(self.classes)}; fetch or train it again"
            )
        if isinstance(self.model, np.ndarray):
            table = self.model
            if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0, atol=1e-9)):
                raise CorruptBundle("model: expected probabilities of labels that sum to 1")
        self._scores(np.eye(1, self.width))  # so that what cannot answer fails when it is loaded

    @property
    def identity(self) -> str:
        """The SHA-256 of settings and weights, which a client asks for."""
        return self.stored().identity

    @property
    def released_by_(self) -> str:
        """Identity of the bundle whose released values it takes."""
        return self.bundle

    @property
    def n_features_in_(self) -> int:
        """Numbers in one released value."""
        return self.width

    def predict(self, values: Any) -> npt.NDArray[Any]:
        """Return one label for each released value, shape (n,), None where it was withheld.

        Args:
            values: released values as JSON has them, a list of ``width`` numbers for each row, or
                None. Or an array of shape (n, width), NaN where withheld.

        Raises:
            InvalidInput: anything else, such as rows of another width.
        """
        matrix, known = self._checked(values)
        if known.all():
            return np.asarray(self.classes[self._scores(matrix).argmax(axis=1)])
        labels = np.full(len(known), None, dtype=object)
        if known.any():
            labels[known] = self.classes[self._scores(matrix).argmax(axis=1)].tolist()
        return labels

    def predict_proba(self, values: Any) -> Array:
        """Return the probability of each of ``classes``, shape (n, labels), NaN where withheld."""
        matrix, known = self._checked(values)
        found = np.full((len(known), len(self.classes)), np.nan)
        if known.any():
            found[known] = _probabilities(self._scores(matrix), table=self.kind == "channel")
        return found

    def card(self) -> str:
        """Say what it is, what it takes and what its predictions cost, as Markdown."""
        return "\n".join(
            (
                "# Predictions for released values",
                "",
                (
                    f"**Takes:** values that the bundle {self.bundle[:16]} released, {self.width} "
                    "number(s) each. Rows themselves are refused."
                ),
                "",
                (
                    f"**Learnt from:** {self.rows} released values, one for each row, and their "
                    "labels, which are public."
                ),
                "",
                (
                    "**Costs:** nothing. A prediction is computed from a released value alone, and "
                    "tells no more about the input than that value did. The value itself has cost "
                    f"{self.guarantee.describe()}."
                ),
                "",
                f"**Model:** {self.kind}, {len(self.classes)} labels.",
                "",
            )
        )

    def stored(self) -> Bundle:
        """The model as the files of a bundle."""
        settings: dict[str, Any] = {
            "kind": self.kind,
            "labels": self.classes.tolist(),
            "width": self.width,
            "bundle": self.bundle,
            "guarantee": self.guarantee.to_dict(),
            "rows": self.rows,
        }
        arrays: Arrays
        if isinstance(self.model, np.ndarray):
            arrays = {"table": self.model}
        elif isinstance(self.model, Network):
            settings["network"], weights = describe(self.model, "model")
            arrays = dict(weights)
        else:
            arrays = self.model.describe()
        return Bundle(VALUE_MODEL, settings, arrays, self.card())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the model, whole or not at all, by ``Bundle.write``."""
        return self.stored().write(folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path, *, trusted_key: str | Path | None = None) -> ValueModel:
        """Return a model that is ready to predict, from what ``save`` wrote.

        Args:
            folder: folder of the model.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: no such folder, or one of something else.
            CorruptBundle: the folder is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        stored = Bundle.read(folder, system=VALUE_MODEL, trusted_key=trusted_key)
        with rebuilding():
            settings, arrays = stored.settings, stored.arrays
            kind = one_of(settings["kind"], KINDS, name="kind")
            width = count(settings["width"], name="width")
            model: PublicModel | Network | Array
            if kind == "channel":
                model = np.asarray(arrays["table"], dtype=np.float64)
            elif kind == "network":
                model = rebuild(settings["network"], arrays, "model")
            else:
                model = model_from(kind, arrays, dimension=width)
            found = cls(
                kind,
                model,
                restored_labels(settings["labels"]),
                width,
                words(settings["bundle"], name="bundle"),
                Guarantee.from_dict(settings["guarantee"]),
                count(settings["rows"], name="rows"),
            )
            check_rebuilt(stored, found.stored())
        return found

    def _sizes(self) -> tuple[int, int]:
        """Numbers of a released value, and labels."""
        if isinstance(self.model, np.ndarray):
            if self.model.ndim != 2:
                raise CorruptBundle("model: expected a table of outputs and labels")
            return int(self.model.shape[0]), int(self.model.shape[1])
        if isinstance(self.model, Network):
            return self.model.input_dimension, self.model.output_dimension
        return self.model.dimension, self.model.classes

    def _scores(self, values: Array) -> Array:
        """Return what decides between labels, the largest best, shape (n, labels)."""
        if isinstance(self.model, np.ndarray):
            return np.asarray(self.model[values.argmax(axis=1)])
        if isinstance(self.model, Network):
            return self.model.forward(values)
        scores = self.model.scores(CodedRows.of(values))
        return scores if scores.shape[1] > 1 else np.hstack([np.zeros_like(scores), scores])

    def _checked(self, values: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        """The released values that were not withheld, shape (m, width), and which those are."""
        rows = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(rows, Sequence) or isinstance(rows, str | bytes) or len(rows) == 0:
            raise InvalidInput("values: expected a list with one released value a row")
        present = [row is not None and not _withheld(row) for row in rows]
        given = [row for row, there in zip(rows, present, strict=True) if there]
        for row in given:
            if not isinstance(row, Sequence) or len(row) != self.width:
                raise InvalidInput(
                    f"values: expected {self.width} number(s) a row, as the bundle "
                    f"{self.bundle[:16]} releases them; rows themselves are not taken"
                )
            if any(type(number) not in (int, float) for number in row):
                raise InvalidInput("values: expected numbers, or null for a withheld row")
            if any(not -_LARGEST_VALUE <= number <= _LARGEST_VALUE for number in row):
                raise InvalidInput("values: expected finite numbers of a released value")
        matrix = np.array(given, dtype=np.float64).reshape(len(given), self.width)
        if self.kind == "channel" and not (
            np.isin(matrix, (0.0, 1.0)).all() and (matrix.sum(axis=1) == 1.0).all()
        ):
            raise InvalidInput("values: expected one 1 a row, and 0 elsewhere, as it is released")
        return matrix, np.array(present, dtype=np.bool_)


def train_value_model(
    kind: str,
    released: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    seed: int,
    bundle: str,
    guarantee: Guarantee,
    channel: npt.ArrayLike | None = None,
) -> ValueModel:
    """Train a model of released values that can be stored and served. Withheld rows (NaN) are left
    out.

    Args:
        kind: one of ``KINDS``: boosted trees, logistic regression, a network with two hidden
            layers, or the posterior under a known channel.
        released: shape (n, m), released values.
        labels: shape (n,), public labels: whole numbers, words or truth values.
        seed: seed of the model.
        bundle: identity of the bundle that released the values.
        guarantee: guarantee of one of them.
        channel: the channel of ``train_server``, for "channel" alone.

    Raises:
        UnknownName: no such kind.
        InvalidInput, InvalidParameter: values and labels that do not fit, one class only, or a
            channel for another kind.
        MissingExtra: "network", and torch is not installed.

    See Also:
        reticent.systems.train_server: models that stay in memory.
    """
    one_of(kind, KINDS, name="kind")
    values = np.asarray(released, dtype=np.float64)
    model: PublicModel | Network | Array
    if kind == "linear":
        classes, rows, model = _linear(values, labels, channel, seed)
    else:
        server = train_server(kind, values, labels, seed=seed, channel=channel)
        classes, rows = server.classes, int(np.isfinite(values).all(axis=1).sum())
        if len(classes) < 2:
            raise InvalidInput("labels: expected at least two classes among released rows")
        if kind == "boosted":
            model = BoostedTrees.from_sklearn(server.model)
        elif kind == "network":
            model = plain_network(server.model.head)
        else:
            model = np.ascontiguousarray(server.model.posterior)
    return ValueModel(kind, model, classes, values.shape[1], bundle, guarantee, rows)


def _linear(
    values: Array, labels: npt.ArrayLike, channel: Any, seed: int
) -> tuple[npt.NDArray[Any], int, LinearModel]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    targets = np.asarray(labels)
    if channel is not None:
        raise InvalidInput("channel: expected for kind='channel', and for no other")
    if values.ndim != 2 or targets.shape != values.shape[:1]:
        raise InvalidInput(
            f"released: expected shape ({len(targets)}, m) as there are labels, got "
            f"shape={values.shape}"
        )
    known = np.isfinite(values).all(axis=1)
    classes = np.unique(targets[known])
    if len(classes) < 2:
        raise InvalidInput("labels: expected at least two classes among released rows")
    scaler = StandardScaler().fit(values[known])
    fitted = LogisticRegression(max_iter=1000, random_state=seed)
    fitted.fit(scaler.transform(values[known]), targets[known])
    weight = fitted.coef_ / scaler.scale_
    start = fitted.intercept_ - weight @ scaler.mean_
    return classes, int(known.sum()), LinearModel(np.ascontiguousarray(weight.T), start)


def plain_network(head: Any) -> Network:
    """Return a head of torch as float64 layers, with its scaling of inputs in the first of them."""
    layers = [part for part in head.network if hasattr(part, "weight")]
    weights = [layer.weight.detach().double().numpy() for layer in layers]
    biases = [layer.bias.detach().double().numpy() for layer in layers]
    center, spread = head.center.double().numpy(), head.spread.double().numpy()
    weights[0] = weights[0] / spread
    biases[0] = biases[0] - weights[0] @ center
    return affine_chain(weights, biases)


def _probabilities(scores: Array, *, table: bool) -> Array:
    if table:
        return scores
    top = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def _withheld(row: Any) -> bool:
    """Return whether a row of an array is all NaN, which stands for None."""
    return (
        isinstance(row, list)
        and len(row) > 0
        and all(isinstance(number, float) and number != number for number in row)
    )
