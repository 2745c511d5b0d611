"""``NearestRowClassifier``: the label of a private input, hidden among inputs like the nearest
public row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import as_array, count, flag, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import GuaranteeCard
from reticent.core.seeds import training_seed
from reticent.core.settings import learned, with_settings
from reticent.grids.public_graph import MOST_NODES, PublicGraph
from reticent.mechanisms import FiniteChannel
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.release.paying import Drawn
from reticent.release.system import PredictsByRelease
from reticent.systems.class_labels import class_labels, restored_labels
from reticent.systems.embedding import check_pictures
from reticent.systems.posthoc.nearest_row_query import (
    COUNTERFACTUAL,
    NEAREST,
    NearestRowQuery,
    nearest_row_card,
)
from reticent.systems.releasing_system import ReleasingSystem, class_names
from reticent.tables.frames import kept_names, named_rows, stored_names
from reticent.training.label_tables.graph import exact_graph_table
from reticent.training.progress import progress

Labels = npt.NDArray[np.int64]

_FOLDS = 3
_ITERATIONS = 1000
_CLOSE = 0.002  # to the proved bound, in accuracy: no more iterations are made


@with_settings
class NearestRowClassifier(PredictsByRelease, ClassifierMixin, ReleasingSystem):
    """Releases labels of private inputs: (epsilon, 0) for inputs whose nearest public rows are the
    same or joined.

    Neighbours are decided by public data and not by a radius: ``fit`` joins each public row to the
    rows that are nearest to it, or, where it is given an attribute, to the nearest rows of another
    value, so that the attribute is hidden among counterfactuals that exist. The label is drawn from
    a table with a column for each public row, which is nearly the best for public rows and is
    checked pair by pair.

    Guarantee:
        One released label costs (epsilon, 0) for inputs whose nearest of the ``nodes`` public rows
        (l2, in the units of X) are equal or joined. Every input has a nearest row, and none is
        withheld. docs/label-tables.md has the proof. ``exact_predict`` is the owner's own,
        noise-free prediction and is *not* private.

    Args:
        epsilon: of one label, above 0.
        nodes: how many of the public rows inputs are compared with, drawn at random, 2 to 20,000;
            all where there are fewer. More of them are closer to an input, and hide it among fewer
            different ones.
        neighbours: how many public rows each is joined to at least, from 1. More of them hide more,
            and cost accuracy.
        classifier: scikit-learn's classifier with ``predict_proba``, which tells how likely each
            label is at public rows that it has not seen; None for
            ``HistGradientBoostingClassifier()``. The guarantee takes nothing from it.
        random_state: seed of *fitting*; the randomness of ``release`` never depends on it.
        verbose: whether fitting shows a progress bar on standard error.

    Attributes:
        query_: the fitted release.
        graph_: public rows, and which are joined.
        worth_: expected accuracy of a released label on the public rows, by the classifier's
            probabilities at rows that it has not seen.
        bound_: no table on this graph is worth more on these rows; proved.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = NearestRowClassifier(
        ...     epsilon=2.0, nodes=100, neighbours=5, random_state=0
        ... ).fit(X, y)
        >>> set(classifier.release(X).values) <= {0, 1, 2}
        True
        >>> classifier.worth_ <= classifier.bound_
        True

    References:
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy by any
          public distance.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best mechanism as a linear program.

    See Also:
        reticent.PosthocClassifier: neighbours within a radius of an embedding.
        reticent.PowerEncoder: a radius for every attribute of a table row.
        reticent.mechanisms.FiniteChannel: the mechanism.
    """

    epsilon: float
    nodes: int
    neighbours: int
    classifier: Any = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    classes_: npt.NDArray[Any] = learned()
    query_: NearestRowQuery = learned()

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, *, attribute: npt.ArrayLike | None = None
    ) -> Self:
        """Makes graph and table from *public* rows.

        Args:
            X: shape (n, features) or (n, height, width), where l2 distance says what is alike:
                embeddings, or columns in comparable units.
            y: shape (n,), labels.
            attribute: shape (n,), a value for each row, at least two different ones; rows are then
                joined to the nearest rows of another value only. None joins rows whatever they are.

        Raises:
            InvalidInput, InvalidParameter: before anything is trained.
        """
        epsilon = positive(self.epsilon, name="epsilon")
        most, neighbours = count(self.nodes, name="nodes", minimum=2), self.neighbours
        if most > MOST_NODES:
            raise InvalidParameter(f"nodes={most}: expected at most {MOST_NODES}")
        count(neighbours, name="neighbours")
        model = self._model()
        rows, names = named_rows(X)
        inputs, shape = check_pictures(rows, name="X")
        classes, labels = class_labels(y, len(inputs))
        seed = training_seed(self.random_state)
        with progress(flag(self.verbose, name="verbose")) as report:
            graph = _graph(inputs, attribute, most, neighbours, seed)
            chances = _chances(model, inputs, labels, seed)
            weights = _weights(graph, inputs, chances)
            found = exact_graph_table(
                weights,
                graph=graph,
                epsilon=epsilon,
                iterations=_ITERATIONS,
                close=_CLOSE,
                report=report,
            )
        query = NearestRowQuery(
            FiniteChannel(
                nodes=graph, shares=found.shares, epsilon=epsilon, adjacency=graph.adjacency
            ),
            graph,
            weights.argmax(axis=0).astype(np.int64),
            NEAREST if attribute is None else COUNTERFACTUAL,
            neighbours,
            found.worth,
            found.bound,
        )
        self._become(query, classes)
        self._takes(shape, names)
        self._identity = self.bundle().identity
        return self

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likeliest label of the nearest public row, without noise. Private: for the
        owner of X, never to be sent.
        """
        query, inputs = self._fitted(), self.checked(X)
        return np.asarray(self.classes_[query.labels[query.graph.cells(inputs)]])

    def probabilities(self, X: npt.ArrayLike) -> Array:
        """Probability of every label under the released distribution, shape (n, classes).

        Private: for expected accuracies on public data, never to be sent.
        """
        return self._fitted().mechanism.probabilities(self.checked(X))

    def embed(self, X: npt.ArrayLike) -> Array:
        """Where the guarantee measures distance: edges from the nearest public row to every other,
        shape (n, nodes). Private: never to be sent.
        """
        return self._fitted().graph.hop_counts(self.checked(X))

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        return nearest_row_card(self._fitted())

    @property
    @override
    def bundle_identity_(self) -> str:
        """SHA-256 of the bundle; goes into every receipt."""
        self._fitted()
        return self._identity

    @override
    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written."""
        settings, arrays = self._fitted().describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = self.classes_.tolist()
        settings["feature_names"] = kept_names(self)
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    @classmethod
    def load(cls, folder: str | Path, *, trusted_key: str | Path | None = None) -> Self:
        """A classifier that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, or a bundle of another system.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        stored = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        with rebuilding():
            settings = stored.settings
            query = NearestRowQuery.from_description(settings, stored.arrays)
            loaded = cls(
                epsilon=query.mechanism.epsilon,
                nodes=query.graph.size,
                neighbours=query.neighbours,
            )
            shape = tuple(count(size, name="input_shape") for size in settings["input_shape"])
            if int(np.prod(shape)) != query.graph.dimension:
                raise InvalidInput(
                    f"input_shape={shape}: expected {query.graph.dimension} features"
                )
            labels = restored_labels(settings["labels"], expected=query.mechanism.classes)
            loaded._become(query, labels)
            loaded._takes(shape, stored_names(settings, query.graph.dimension))
            check_rebuilt(stored, loaded.bundle())
        loaded._identity = stored.identity
        return loaded

    def _become(self, query: NearestRowQuery, classes: npt.NDArray[Any]) -> None:
        self.query_, self.classes_ = query, classes
        self.graph_, self.worth_, self.bound_ = query.graph, query.worth, query.bound

    def _model(self) -> Any:
        model = HistGradientBoostingClassifier() if self.classifier is None else self.classifier
        if not all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params")):
            raise InvalidParameter(
                f"classifier={type(model).__name__}: expected an unfitted scikit-learn classifier "
                "with predict_proba, or None"
            )
        return clone(model)

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        return Drawn(class_names(values, self.classes_, withheld=withheld), withheld)

    @override
    def _fitted(self) -> NearestRowQuery:
        if not hasattr(self, "query_"):
            raise self._not_fitted()
        return self.query_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _graph(
    inputs: Array, attribute: npt.ArrayLike | None, most: int, neighbours: int, seed: int
) -> PublicGraph:
    """Public rows drawn at random, no two alike, and joined."""
    values = None
    if attribute is not None:
        values = as_array(attribute, name="attribute")
        if values.shape != (len(inputs),):
            raise InvalidInput(
                f"attribute: expected {len(inputs)} values, one a row, got shape={values.shape}"
            )
    order = np.random.default_rng(seed).permutation(len(inputs))
    _, first = np.unique(inputs[order], axis=0, return_index=True)
    chosen = order[np.sort(first)[:most]]
    if values is None:
        return PublicGraph.nearest(inputs[chosen], neighbours=neighbours)
    return PublicGraph.counterfactual(inputs[chosen], values[chosen], neighbours=neighbours)


def _chances(model: Any, inputs: Array, labels: Labels, seed: int) -> Array:
    """Probabilities of labels at rows that the classifier has not seen, shape (n, classes): what it
    remembers of single rows would be taken for worth.
    """
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    folds = min(_FOLDS, int(np.bincount(labels).min()))
    if folds < 2:
        return np.asarray(model.fit(inputs, labels).predict_proba(inputs))
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(model, inputs, labels, cv=parts, method="predict_proba"))


def _weights(graph: PublicGraph, inputs: Array, chances: Array) -> Array:
    """What each answer is worth at each node, shape (classes, nodes), summing to 1."""
    nodes = graph.cells(inputs)
    summed = [np.bincount(nodes, column, graph.size) for column in chances.T]
    return np.asarray(np.stack(summed) / len(inputs))
