"""``CodeEncoder``: one private code of an input that serves several targets at one charge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import as_array, count, one_of, positive, probability
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.extras import require
from reticent.core.guarantees import GuaranteeCard
from reticent.core.seeds import training_seed
from reticent.core.settings import learned, with_settings
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.embedding import IdentityEmbedding, domain_of
from reticent.systems.input_rows import input_rows
from reticent.systems.power.cards import code_card
from reticent.systems.power.code_fitting import (
    LEAST_ROWS,
    NODES,
    PublicRows,
    Wanted,
    best_code,
)
from reticent.systems.power.code_query import (
    CROWD,
    LABEL,
    RECALL,
    CodeQuery,
    EmbeddedPoints,
    SchemaRows,
)
from reticent.systems.power.code_targets import ExplainedVariance, NearRows, Recall, Within
from reticent.systems.power.row_encoder import RowEncoder
from reticent.systems.record_labels import OBSERVED, record_labels
from reticent.systems.releasing_system import inputs_as_fitted
from reticent.systems.scores import SCORINGS
from reticent.tables.attributes import Categorical
from reticent.tables.frames import (
    kept_names,
    named_rows,
    names_of,
    ordered_rows,
    stored_names,
)
from reticent.tables.schema import TabularSchema

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from torch import nn


@with_settings
class CodeEncoder(RowEncoder):
    """Release one code of each private row, embedding or picture, from which a server learns about
    several targets.

    Public models say what each target probably is. Rows that they say alike things of share a node,
    and a channel draws the code by the node. The channel is the best for equal shares: the largest
    s such that every target keeps at least s of what it would have alone at the whole epsilon.

    Guarantee:
        One released row costs (epsilon, 0). With ``neighbours=None`` it does for *any two inputs*
        (local differential privacy of the whole input), whatever the models are. With ``Within`` it
        does for inputs that are near, with ``NearRows`` for inputs whose nearest public rows are
        equal or joined. ``card()`` says what the release is worth for each target, what it tells
        about every other column of categories, and how often an attacker names the right one of 64.

    Args:
        epsilon: epsilon of one answer, above 0.
        schema: public description of the columns of a table, or a pair (lower, upper): one public
            range for numeric columns. None for arrays, whose public box is that of ``fit``'s rows.
        targets: targets to serve: names of columns of the labels that ``fit`` gets, or of columns
            of categories that the row itself holds, ``Recall(k)`` for the nearest public rows,
            ``ExplainedVariance()`` for the encoded row or embedding itself. None for all columns of
            labels, and without labels for ``ExplainedVariance()``.
        weights: weight of each target's worth in a sum that is maximised in place of equal
            shares, or None for equal shares.
        crowd: the largest chance that the best guess names the right one of 64 rows drawn like the
            public ones, above 1/64, or None for what epsilon allows. For any two inputs only.
        neighbours: ``Within(radius, norm)``, ``NearRows(nodes, neighbours)``, or None for any two.
            Within a radius a code that hides any two inputs is taken where it is worth as much.
        embedder: part that makes embeddings of arrays: your own trained torch module, which is
            copied, ``Named``, a part such as ``BetaVAE()``, or None for arrays that are embeddings.
        nodes: most nodes of the public map of any two inputs, 2 to 128, and at most one for
            30 public rows.
        scoring: worth of a code to a label: "information" (nats), "accuracy" or
            "balanced_accuracy", or "auc", for which nats and half the accuracy stand.
        random_state: seed of *fitting*. The randomness of ``release`` never depends on it.

    Attributes:
        query_: the fitted release.
        targets_: names of the targets.
        classes_: labels of each target. For recall they are the numbers of public rows that are
            named, for the vector its mean.
        share_: the least share that a target keeps of its own worth, on public rows that nodes and
            channel were fitted on.
        n_features_in_: number of columns of the table.
        feature_names_in_: their names, where ``fit`` saw a data frame.
        bundle_identity_: SHA-256 of the bundle, in every receipt.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> labels = np.column_stack([y == 0, y == 2])
        >>> encoder = CodeEncoder(epsilon=3.0, schema=(0.0, 8.0), random_state=0).fit(X, labels)
        >>> encoder.posterior("target0").shape[1]
        2
        >>> encoder.release(X[:2]).values.sum(axis=1).tolist()
        [1.0, 1.0]

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best mechanism as a linear program.
        - Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011), "What can we learn
          privately?", doi:10.1137/090756090, local differential privacy.

    See Also:
        reticent.PowerEncoder: one target, or a radius in place of any two records.
        reticent.mechanisms.FiniteChannel: the mechanism.
        reticent.systems.train_server: a model of what was released.
    """

    epsilon: float
    schema: TabularSchema | tuple[float, float] | None = None
    targets: tuple[str | Recall | ExplainedVariance, ...] | None = None
    weights: tuple[float, ...] | None = None
    crowd: float | None = None
    neighbours: Within | NearRows | None = None
    embedder: Any = None
    nodes: int = NODES
    scoring: str = "information"
    random_state: int | np.random.RandomState | None = None

    query_: CodeQuery = learned()

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Make nodes, channel and posterior tables from *public* rows.

        Args:
            X: shape (n, columns), as the schema says, or without one, shape (n, features) or
                (n, height, width), numbers.
            y: a data frame of labels with a column for each target, or shape (n,) or (n, targets),
                whose columns are called "target" or "target0", "target1", ... None where no
                target is one of them.

        Raises:
            InvalidInput, InvalidParameter: refused before anything is trained.
            CalibrationFailed: no channel was found.
        """
        epsilon = positive(self.epsilon, name="epsilon")
        self._check()
        public, names = self.public(X, y)
        query = best_code(
            public,
            self.neighbours,
            most=self.nodes,
            epsilon=epsilon,
            weights=self.weights,
            crowd=self.crowd,
        )
        self._become(query, names)
        return self

    def public(self, X: npt.ArrayLike, y: Any = None) -> tuple[PublicRows, Any]:
        """Return public rows as fitting takes them, and the names of their columns.

        Fits at several epsilons may share them (``reticent.systems.power.code_fitting``).

        Args:
            X, y: arguments of ``fit``.
        """
        seed = training_seed(self.random_state)
        inputs: SchemaRows | EmbeddedPoints
        if self.schema is None:
            rows, names = named_rows(X)
            array, shape = input_rows(rows)
            inputs = self._points(array, shape, seed)
            coded = inputs.encode(array)
        else:
            if self.embedder is not None:
                raise InvalidParameter("embedder: expected None for rows of a schema")
            schema, table, names = self._read(X)
            inputs = SchemaRows(schema)
            coded = inputs.encode(table)
        if len(coded) < LEAST_ROWS:
            raise InvalidInput(
                f"X: n_samples={len(coded)} is too few; expected at least {LEAST_ROWS} public rows"
            )
        wanted, further = self._wanted(y, inputs, len(coded))
        return PublicRows(inputs, coded, wanted, further, seed, self.scoring), names

    def posterior(self, target: str) -> Array:
        """Return what each code says about a target. It is public, from the public rows of ``fit``.

        ``release(X).values @ posterior(target)`` serves it.

        Args:
            target: its name. That of ``Recall(10)`` is "recall@10".

        Returns:
            Probability of each label, shape (outputs, labels). For recall it is the chance that
            each of the public rows ``classes_`` is among the nearest, and for the vector its mean.

        Raises:
            InvalidParameter: no such target or other column of categories.
        """
        found: Array = self._fitted().posterior(target)
        return found

    @property
    def channel_(self) -> Array:
        """The exact probability of each code given the node, shape (nodes, outputs).

        ``train_server("channel", ..., channel=encoder.channel_)`` takes it.
        """
        found: Array = self._fitted().mechanism.matrix
        return found

    @override
    def checked(self, X: npt.ArrayLike) -> CodedRows:
        query = self._fitted()
        if isinstance(query.inputs, SchemaRows):
            return super().checked(X)
        coded: CodedRows = query.encode(inputs_as_fitted(self, X))
        return coded

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words, and what the release is worth for each target."""
        return code_card(self._fitted())

    @override
    def bundle(self) -> Bundle:
        settings, arrays = self._fitted().describe()
        settings["feature_names"] = kept_names(self)
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        embedder: nn.Module | BaseEstimator | None = None,
        trusted_key: str | Path | None = None,
    ) -> Self:
        """Return an encoder that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            embedder: an instance of your own module, if the bundle was fitted with one that could
                not be read (docs/guarantees.md). Any other is built again.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing or
                another one.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        module = None
        if embedder is not None:
            from reticent.training.parts.contract import module_of

            module = module_of(embedder, parameter="embedder")
        query = CodeQuery.from_description(bundle.settings, bundle.arrays, module)
        inputs = query.inputs
        loaded = cls(
            epsilon=query.mechanism.epsilon,
            schema=inputs.schema if isinstance(inputs, SchemaRows) else None,
            targets=tuple(
                t.name
                if t.kind == LABEL
                else Recall(t.size)
                if t.kind == RECALL
                else ExplainedVariance()
                for t in query.served
            ),
            neighbours=query.near,
            embedder=embedder,
        )
        with rebuilding():
            loaded._become(query, stored_names(bundle.settings, query.columns))
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    @override
    def _become(self, query: CodeQuery, names: Any) -> None:
        super()._become(query, names)
        served = query.served
        if isinstance(query.inputs, EmbeddedPoints):
            self.input_shape_ = query.inputs.shape
        self.targets_ = tuple(target.name for target in served)
        self.classes_ = [target.values for target in served]
        self.share_ = min(target.worth.kept for target in served if target.worth)

    def _check(self) -> None:
        """Raise InvalidParameter if a setting cannot be used."""
        one_of(self.scoring, SCORINGS, name="scoring")
        most = count(self.nodes, name="nodes", minimum=2)
        if most > 128:
            raise InvalidParameter(f"nodes={most}: expected at most 128")
        near = self.neighbours
        if near is not None:
            if not isinstance(near, (Within, NearRows)):
                raise InvalidParameter(
                    f"neighbours: expected Within, NearRows or None, got {type(near).__name__}"
                )
            near.check()
        if self.crowd is not None:
            if near is not None:
                raise InvalidParameter("crowd: expected None unless any two inputs are neighbours")
            if not probability(self.crowd, name="crowd") > 1 / CROWD:
                raise InvalidParameter(f"crowd={self.crowd!r}: expected above 1/{CROWD}, or None")

    def _points(self, inputs: Array, shape: tuple[int, ...], seed: int) -> EmbeddedPoints:
        """Return arrays as points of a public box around the public rows."""
        margin = self.neighbours.radius if isinstance(self.neighbours, Within) else 0.0
        if self.embedder is None:
            plain = IdentityEmbedding(inputs.shape[1])
            return EmbeddedPoints(plain, domain_of(inputs, margin=margin), shape)
        from reticent.systems.embedding.fitted import embedding_of
        from reticent.training.parts.contract import fitted, resolved
        from reticent.training.parts.embedders import EMBEDDERS, Named
        from reticent.training.progress import silent

        part, name = self.embedder, ""
        if isinstance(part, Named):
            part.check()
            part, name = part.embedder, part.name
        with require("torch.random", extra="networks").fork_rng(devices=[]):
            made = fitted(
                resolved(part, parameter="embedder", names=EMBEDDERS),
                inputs.reshape(-1, *shape),
                None,
                seed=seed,
                report=silent,
            )
        embedding = embedding_of(made, inputs, shape, name=name)
        points = embedding.compute(np.clip(inputs, embedding.lower, embedding.upper))
        if not np.isfinite(points).all():
            raise InvalidInput(
                "embedder: gives values that are not finite on X; check the module and X"
            )
        return EmbeddedPoints(embedding, domain_of(points, margin=margin), shape)

    def _wanted(
        self, y: Any, inputs: SchemaRows | EmbeddedPoints, rows: int
    ) -> tuple[tuple[Wanted, ...], tuple[Recall | ExplainedVariance, ...]]:
        """The labels by name, each from ``y`` or, where that has no such column, from the row, and
        the targets that are no labels.

        Raises:
            InvalidInput, InvalidParameter: labels that do not fit, or a name that is nowhere.
        """
        columns = {} if y is None else label_columns(y)
        schema = inputs.schema if isinstance(inputs, SchemaRows) else None
        held = {
            part.name: (part, places)
            for part, (_, places, _) in zip(
                () if schema is None else schema.attributes,
                () if schema is None else schema.groups,
                strict=True,
            )
            if isinstance(part, Categorical)
        }
        asked = self.targets
        if asked is None:
            asked = tuple(columns) or (ExplainedVariance(),)
        further = tuple(one for one in asked if isinstance(one, (Recall, ExplainedVariance)))
        names = tuple(one for one in asked if not isinstance(one, (Recall, ExplainedVariance)))
        listed = [*names, *(one.name for one in further)]
        if not listed or len(set(listed)) < len(listed):
            raise InvalidParameter(f"targets={listed!r}: expected different ones, at least one")
        if names + further != tuple(asked):
            raise InvalidParameter("targets: expected labels first, then Recall, ExplainedVariance")
        for one in further:
            one.check()
        if self.weights is not None and len(self.weights) != len(listed):
            raise InvalidParameter(
                f"weights={self.weights!r}: expected a number for each of {len(listed)} targets"
            )
        wanted = []
        for name in names:
            if name in columns:
                labels, numbers = record_labels(columns[name], rows, OBSERVED)
                wanted.append(Wanted(str(name), labels, numbers, None))
            elif name in held:
                part, places = held[name]
                wanted.append(Wanted(name, np.asarray(part.categories), None, places))
            else:
                raise InvalidParameter(
                    f"targets: {name!r} is no column of the labels and no column of categories of "
                    "the schema"
                )
        return tuple(wanted), further


def label_columns(y: Any) -> dict[str, Any]:
    """The columns of labels by name.

    Args:
        y: a data frame, or an array of shape (n,) or (n, targets).
    """
    names = names_of(y)
    if names is not None:
        cells = ordered_rows(y, names.tolist())
        return dict(zip(names.tolist(), cells.T, strict=True))
    labels = as_array(y, name="y")
    if labels.ndim != 2:
        return {"target": labels}
    if labels.shape[1] == 1:
        return {"target": labels[:, 0]}
    return {f"target{place}": column for place, column in enumerate(labels.T)}
