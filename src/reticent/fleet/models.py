"""A model of a label that learns from public rows and from the counted codes of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array
from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput
from reticent.tables.attributes import Categorical

if TYPE_CHECKING:
    from reticent.core.arrays import Integers
    from reticent.systems.power.code_encoder import CodeEncoder

Kind = Literal["logistic", "boosting"]

_ROUNDS = 4
_WEIGHT = 2.0
"""What the likelier labels of a public row count together, where its own label counts 1."""


class ServerModel:
    """Probabilities of a label that each row of the bundle's schema may hold.

    Nodes of the bundle are kinds of rows together with their labels, so a model of labels says how
    often each code comes. Where codes came more often, the labels that lead to them are likelier
    for each public row than the model says. The model learns again from the public labels and from
    these likelier ones, four times (expectation-maximisation on grouped labels).

    The reports are counted already, so this costs nothing more.

    Args:
        encoder: the bundle. Its schema has the label as a column, and the label is a target.
        counts: shape (outputs,), how often each code was reported.
        target: name of the column of the label.
        model: "logistic" for logistic regression, "boosting" for boosted trees.
        random_state: seed of folds and trees.

    Attributes:
        classes_: labels, in the order of the columns of ``predict_proba``.

    Utility:
        Small where public rows are many: docs/fleet.md has the figures on Adult.

    References:
        - Dempster, Laird and Rubin (1977), "Maximum likelihood from incomplete data via the EM
          algorithm", doi:10.1111/j.2517-6161.1977.tb01600.x.

    See Also:
        reticent.fleet.Counted: the counts.
    """

    def __init__(
        self,
        encoder: CodeEncoder,
        counts: Integers,
        target: str,
        *,
        model: Kind = "logistic",
        random_state: int | None = None,
    ) -> None:
        one_of(model, ("logistic", "boosting"), name="model")
        schema = encoder.query_.schema
        held = () if schema is None else schema.attributes
        known = {part.name: part for part in held if isinstance(part, Categorical)}
        if schema is None or target not in known:
            raise InvalidInput(f"target={target!r}: expected a column of the bundle's schema")
        self._encoder, self._counts, self._schema = encoder, counts, schema
        self._column = list(schema.column_names).index(target)
        groups = zip(schema.attributes, schema.groups, strict=True)
        self._hidden = next(places for part, (_, places, _) in groups if part.name == target)
        self._categories = known[target].categories
        self._kind, self._seed = model, random_state

    def fit(self, X: npt.NDArray[Any]) -> ServerModel:
        """Learn from public rows, shape (n, columns), with the label in its column.

        Raises:
            InvalidInput: rows that the schema refuses, or fewer than two labels.
        """
        rows = np.array(X, dtype=object)
        present = [label for label in self._categories if (rows[:, self._column] == label).any()]
        if len(present) < 2:
            raise InvalidInput("X: expected public rows with two labels at least")
        if not self._counts.sum():
            raise InvalidInput("counts: expected at least one report")
        self.classes_ = np.array(present, dtype=object)
        labels = np.array([present.index(label) for label in rows[:, self._column]])
        features = self._features(rows)
        nodes = np.stack([self._nodes(rows, label) for label in present], axis=1)
        self._model = self._new().fit(features, labels)
        pairs = np.concatenate([features, np.repeat(features, len(present), axis=0)])
        answers = np.concatenate([labels, np.tile(np.arange(len(present)), len(rows))])
        for _ in range(_ROUNDS):
            likelier = self._likelier(nodes, self._model.predict_proba(features))
            weights = np.concatenate([np.ones(len(rows)), _WEIGHT * likelier.ravel()])
            self._model = self._new().fit(pairs, answers, sample_weight=weights)
        return self

    def predict_proba(self, X: npt.NDArray[Any]) -> Array:
        """Return the probability of each label, shape (n, labels), whatever the rows hold of it."""
        rows = np.array(X, dtype=object)
        rows[:, self._column] = self.classes_[0]
        return np.asarray(self._model.predict_proba(self._features(rows)))

    def predict(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the likeliest label of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _likelier(self, nodes: Integers, said: Array) -> Array:
        """Return the probabilities of labels given the reports, shape (n, labels).

        Args:
            nodes: shape (n, labels), the node of each row with each label.
            said: shape (n, labels), what the model says of the labels.
        """
        channel = self._encoder.channel_
        shares = np.bincount(nodes.ravel(), weights=said.ravel(), minlength=len(channel))
        expected = shares / shares.sum() @ channel
        odds = channel @ (self._counts / self._counts.sum() / expected)
        likelier = said * odds[nodes]
        return np.asarray(likelier / likelier.sum(axis=1, keepdims=True))

    def _nodes(self, rows: npt.NDArray[Any], label: Any) -> Integers:
        changed = rows.copy()
        changed[:, self._column] = label
        query = self._encoder.query_
        return query.nodes(self._encoder.checked(changed))

    def _features(self, rows: npt.NDArray[Any]) -> Array:
        return np.delete(np.asarray(self._schema.encode(rows)), self._hidden, axis=1)

    def _new(self) -> Any:
        if self._kind == "boosting":
            return HistGradientBoostingClassifier(
                learning_rate=0.05, max_leaf_nodes=8, random_state=self._seed
            )
        return LogisticRegression(max_iter=1000)
