"""``CodeEncoder``: one private code of a table row that serves several targets at one charge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, count, positive, probability
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import GuaranteeCard, Replace
from reticent.core.seeds import training_seed
from reticent.core.settings import learned, with_settings
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.class_labels import class_labels
from reticent.systems.power.channels import whole_shares
from reticent.systems.power.code_query import (
    CROWD,
    MOST_OUTPUTS,
    CodeQuery,
    TargetSource,
    TargetWorth,
    code_card,
    nearest_nodes,
)
from reticent.systems.power.row_encoder import RowEncoder
from reticent.systems.scores import channel_scores
from reticent.tables.attributes import Categorical
from reticent.tables.frames import (
    keep_names,
    kept_names,
    names_of,
    ordered_rows,
    plain_rows,
    stored_names,
)
from reticent.tables.schema import TabularSchema, as_table
from reticent.training.public_models import BoostedTrees, label_shares
from reticent.training.staircases import (
    Crowd,
    Information,
    best_alone,
    best_channel,
    cluster,
    codebook,
    response_on,
)

ROWS_PER_NODE = 30
"""Public rows for each node, at least: of fewer, a channel fits what is chance."""

_NODES = 48
_FOLDS = 3
_SMOOTHING = 0.5
_CODES = (2, 4, 8, 16, 32)
_BOOSTER: dict[str, Any] = {"learning_rate": 0.2, "max_leaf_nodes": 8, "max_iter": 40}
_COMMONEST = 0.99  # share of rows that one value of a coordinate may have for trees to look at it


@with_settings
class CodeEncoder(RowEncoder):
    """Releases one code of each private table row, from which a server learns about several
    targets.

    Public models say what each target probably is. Rows that they say alike things of share a node,
    and a channel draws the code by the node. The channel is the best for equal shares: the largest
    s such that every target keeps at least s of the information that it would have alone at the
    whole epsilon.

    Guarantee:
        One released row costs (epsilon, 0) for *any two records* of the schema (local differential
        privacy of the whole record), whatever the models are. ``card()`` says what the release is
        worth for each target, what it tells about every other column of categories, and how often
        an attacker names the right one of 64.

    Args:
        epsilon: of one answer, above 0.
        schema: public description of the columns, or a pair (lower, upper): one public range for
            numeric columns.
        targets: names of the columns to serve: columns of the labels that ``fit`` gets, or columns
            of categories that the row itself holds; None for all columns of labels.
        weights: what a nat about each target counts in a sum that is maximised in place of equal
            shares; None for equal shares.
        crowd: the largest chance that the best guess names the right one of 64 rows drawn like the
            public ones, above 1/64; None for what epsilon allows.
        nodes: how many the public map has at most, 2 to 128, and at most one for 30 public rows.
        random_state: seed of *fitting*; the randomness of ``release`` never depends on it.

    Attributes:
        query_: the fitted release.
        targets_: names of the targets.
        classes_: labels of each target.
        share_: the least share that a target keeps of its own information, on public rows.
        n_features_in_: columns of the table.
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
    schema: TabularSchema | tuple[float, float]
    targets: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None
    crowd: float | None = None
    nodes: int = _NODES
    random_state: int | np.random.RandomState | None = None

    query_: CodeQuery = learned()

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Makes nodes, channel and posterior tables from *public* rows.

        Args:
            X: shape (n, columns), as the schema says.
            y: a data frame of labels with a column for each target; or shape (n,) or (n, targets),
                whose columns are called "target" or "target0", "target1", ...

        Raises:
            InvalidInput, InvalidParameter: before anything is trained.
            CalibrationFailed: no channel was found.
        """
        epsilon = positive(self.epsilon, name="epsilon")
        most = self._most_nodes()
        names = names_of(X)
        table = (
            self.schema.rows(X, name="X")
            if isinstance(self.schema, TabularSchema)
            else as_table(plain_rows(X), name="X")
        )
        schema = self._schema(table, names)
        rows = schema.code(table)
        if len(rows) < 2 * ROWS_PER_NODE:
            raise InvalidInput(
                f"X: n_samples={len(rows)} is too few; expected at least {2 * ROWS_PER_NODE} "
                f"public rows, {ROWS_PER_NODE} for each of two nodes"
            )
        seed = training_seed(self.random_state)
        wanted = self._wanted(y, schema, len(rows))
        fitted = [_fitted_target(target, rows, seed) for target in wanted]
        logs, joints = _nodes(fitted, rows, schema, min(most, len(rows) // ROWS_PER_NODE), seed)
        table_, worths = self._best(fitted, joints, epsilon, seed)
        channel = FiniteChannel(
            nodes=AnyTwo(len(logs)),
            shares=whole_shares(table_, epsilon=epsilon),
            epsilon=epsilon,
            adjacency=Replace(1),
        )
        sources = tuple(target.source for target in fitted)
        self.query_ = CodeQuery(schema, sources, logs, channel, joints, worths)
        kept = schema.column_names if isinstance(self.schema, TabularSchema) else names
        keep_names(self, None if names is None else kept)
        self._become()
        return self

    def posterior(self, target: str) -> Array:
        """Probability of each label of a target given the code, shape (outputs, labels): public,
        from the public rows of ``fit``. ``release(X).values @ posterior(target)`` serves it.

        Raises:
            InvalidParameter: no such target or other column of categories.
        """
        query = self._fitted()
        if target not in query.joints:
            raise InvalidParameter(
                f"target={target!r}: expected one of {', '.join(map(repr, query.joints))}"
            )
        return query.posterior(target)  # type: ignore[no-any-return]

    @property
    def channel_(self) -> Array:
        """Probability of each code given the node, shape (nodes, outputs), exact: what
        ``train_server("channel", ..., channel=encoder.channel_)`` takes.
        """
        return self._fitted().mechanism.matrix  # type: ignore[no-any-return]

    def exact(self, X: npt.ArrayLike) -> Array:
        """The mean of what is released about each row, shape (n, outputs). Private: never to be
        sent.
        """
        query = self._fitted()
        return np.asarray(query.mechanism.matrix[query.nodes(self.checked(X))])

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words, and what the release is worth for each target."""
        return code_card(self._fitted())

    @override
    def bundle(self) -> Bundle:
        settings, arrays = self._fitted().describe()
        settings["feature_names"] = kept_names(self)
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    @classmethod
    def load(cls, folder: str | Path, *, trusted_key: str | Path | None = None) -> Self:
        """An encoder that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: no such folder, or a bundle of another system.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        query = CodeQuery.from_description(bundle.settings, bundle.arrays)
        loaded = cls(
            epsilon=query.mechanism.epsilon,
            schema=query.schema,
            targets=tuple(source.name for source in query.sources),
        )
        loaded.query_ = query
        with rebuilding():
            keep_names(loaded, stored_names(bundle.settings, query.schema.columns))
            loaded._become()
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    @override
    def _become(self) -> None:
        super()._become()
        self.targets_ = tuple(source.name for source in self.query_.sources)
        self.classes_ = [source.labels for source in self.query_.sources]
        self.share_ = min(worth.kept for worth in self.query_.worths)

    def _most_nodes(self) -> int:
        most = count(self.nodes, name="nodes", minimum=2)
        if most > 128:
            raise InvalidParameter(f"nodes={most}: expected at most 128")
        if self.crowd is not None and not probability(self.crowd, name="crowd") > 1 / CROWD:
            raise InvalidParameter(f"crowd={self.crowd!r}: expected above 1/{CROWD}, or None")
        return most

    def _wanted(self, y: Any, schema: TabularSchema, rows: int) -> list[_Wanted]:
        """The targets by name, each from the labels or, where these have no such column, from the
        row.

        Raises:
            InvalidInput, InvalidParameter: labels that do not fit, or a name that is nowhere.
        """
        columns = label_columns(y)
        held = {
            part.name: (part, places)
            for part, (_, places, _) in zip(schema.attributes, schema.groups, strict=True)
            if isinstance(part, Categorical)
        }
        names = tuple(columns) if self.targets is None else tuple(self.targets)
        if not names or len(set(names)) < len(names):
            raise InvalidParameter(f"targets={names!r}: expected different names, at least one")
        if self.weights is not None and len(self.weights) != len(names):
            raise InvalidParameter(
                f"weights={self.weights!r}: expected a number for each of {len(names)} targets"
            )
        wanted = []
        for name in names:
            if name in columns:
                labels, numbers = class_labels(columns[name], rows)
                wanted.append(_Wanted(name, labels, numbers, None))
            elif name in held:
                part, places = held[name]
                wanted.append(_Wanted(name, np.asarray(part.categories), None, places))
            else:
                raise InvalidParameter(
                    f"targets: {name!r} is no column of the labels and no column of categories of "
                    "the schema"
                )
        return wanted

    def _best(
        self, fitted: list[_Fitted], joints: dict[str, Array], epsilon: float, seed: int
    ) -> tuple[Array, tuple[TargetWorth, ...]]:
        """The channel, and what each target keeps."""
        own = [joints[target.source.name] for target in fitted]
        tasks, nodes = [Information(joint) for joint in own], len(own[0])
        masses = own[0].sum(axis=1)
        tables = [joint / joint.sum(axis=1, keepdims=True) for joint in own]
        starts = [
            response_on(codebook(tables, masses, codes=codes, seed=seed), epsilon=epsilon)
            for codes in _CODES
            if codes < nodes
        ]

        def alone(place: int, spent: float) -> Array:
            return best_alone(tasks[place], nodes=nodes, epsilon=spent, seed=seed)

        singles = [alone(place, epsilon) for place in range(len(tasks))]
        whole = [_nats(table, joint) for table, joint in zip(singles, own, strict=True)]
        crowd = None if self.crowd is None else Crowd(masses, self.crowd, CROWD)
        found = best_channel(
            tasks,
            nodes=nodes,
            epsilon=epsilon,
            weights=self.weights,
            whole=[max(nats, 1e-6) for nats in whole] if self.weights is None else None,
            crowd=crowd,
            starts=[*starts, *singles],
            seed=seed,
        ).table
        used = np.argsort(-found.max(axis=0), kind="stable")[:MOST_OUTPUTS]
        table = found[:, np.sort(used)] / found[:, used].sum(axis=1, keepdims=True)
        part = epsilon / len(tasks)
        worths = [
            TargetWorth(
                kept=_nats(table, joint) / max(whole[place], 1e-6),
                alone=whole[place],
                split=_nats(alone(place, part), joint) if len(tasks) > 1 else whole[place],
            )
            for place, joint in enumerate(own)
        ]
        return table, tuple(worths)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A target that was asked for: its labels, and their numbers or the row's own column."""

    name: str
    labels: npt.NDArray[Any]
    numbers: Integers | None
    column: slice | None


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A target's source, and what is said of public rows by models that have not seen them."""

    source: TargetSource
    shares: Array
    numbers: Integers


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


def _fitted_target(target: _Wanted, rows: CodedRows, seed: int) -> _Fitted:
    if target.numbers is None:
        source = TargetSource(target.name, target.labels, None, target.column)
        shares = source.shares(rows)
        return _Fitted(source, shares, np.asarray(shares.argmax(axis=1)))
    dense, numbers = rows.dense(), target.numbers
    used = _varying(dense)
    booster = HistGradientBoostingClassifier(
        **_BOOSTER, l2_regularization=1.0, early_stopping=False, random_state=seed
    )
    folds = min(_FOLDS, int(np.bincount(numbers).min()))
    if folds < 2:
        raise InvalidInput(f"y: target {target.name!r} has a label of one row; expected two each")

    def learnt(places: Integers) -> BoostedTrees:
        fitted = booster.fit(dense[places][:, used], numbers[places])
        return BoostedTrees.from_sklearn(fitted).among(used, dimension=dense.shape[1])

    shares = np.empty((len(dense), len(target.labels)))
    for places, held in StratifiedKFold(folds, shuffle=True, random_state=seed).split(
        dense, numbers
    ):
        shares[held] = label_shares(learnt(places).scores(CodedRows.of(dense[held])))
    model = learnt(np.arange(len(dense)))
    return _Fitted(TargetSource(target.name, target.labels, model, None), shares, numbers)


def _varying(dense: Array) -> Integers:
    """Coordinates whose commonest value leaves one row in a hundred, or all of them."""
    often = [np.unique(column, return_counts=True)[1].max() for column in dense.T]
    used = np.flatnonzero(np.array(often) < _COMMONEST * len(dense))
    return used if len(used) else np.arange(dense.shape[1])


def _nodes(
    fitted: Sequence[_Fitted], rows: CodedRows, schema: TabularSchema, most: int, seed: int
) -> tuple[Array, dict[str, Array]]:
    """Prototypes of the nodes, and node and label together for each target and other column."""
    shares = [target.shares for target in fitted]
    logs, _ = cluster(shares, clusters=most, seed=seed)
    if len(logs) < 2:
        raise InvalidInput("y: public models say the same of every row; nothing can be told")
    members = nearest_nodes(shares, logs)
    joints = {
        target.source.name: _joint(members, target.numbers, len(logs), len(target.source.labels))
        for target in fitted
    }
    dense = rows.dense()
    for name, places, one_hot in schema.groups:
        if one_hot and name not in joints:
            values = np.asarray(dense[:, places].argmax(axis=1))
            joints[name] = _joint(members, values, len(logs), places.stop - places.start)
    return logs, joints


def _joint(members: Integers, numbers: Integers, nodes: int, labels: int) -> Array:
    """Shares of rows in each node with each label, smoothed by half a row that is spread as the
    label shares are.
    """
    counts = np.zeros((nodes, labels))
    np.add.at(counts, (members, numbers), 1.0)
    prior = (counts.sum(axis=0) + _SMOOTHING) / (counts.sum() + _SMOOTHING * labels)
    counts += _SMOOTHING * prior
    return np.asarray(counts / counts.sum())


def _nats(table: Array, joint: Array) -> float:
    return channel_scores(table.T @ joint).information
