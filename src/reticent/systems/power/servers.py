"""The server's side: models that learn from released values, and the boosted trees that are an
extra.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.extras import require

if TYPE_CHECKING:
    from reticent.training.heads import Head


_LEAVES = (10, 100, 1000)  # least rows in a forest's leaf
_STEPS = 2000  # of the channel's shares of bins
_CONVERGED = 1e-10

SERVERS = ("network", "forest", "boosted", "xgboost", "channel")
"""``boosted`` is scikit-learn's histogram gradient boosting with XGBoost's default shape;
``xgboost`` needs that package, ``network`` torch. ``channel`` reads outputs of a known channel.
"""


@dataclass(frozen=True, eq=False)
class Server:
    """A model of released values.

    Attributes:
        name: one of ``SERVERS``.
        model: the fitted classifier, of places in ``classes``.
        classes: shape (labels,), the labels it learnt, in rising order.
        shares: shape (labels,), how frequent each was.

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, servers with any model.

    See Also:
        reticent.systems.train_server: makes them.
    """

    name: str
    model: Any
    classes: npt.NDArray[Any]
    shares: Array

    def predict(self, released: npt.ArrayLike, *, balanced: bool = False) -> npt.NDArray[Any]:
        """Return labels, shape (n,), of released values (shape (n, m)).

        A withheld row (NaN) gets what no accuracy counts as right: -1, an empty word, or None where
        labels are truth values.

        Args:
            released: shape (n, m).
            balanced: False for the likeliest label. True for the label whose probability exceeds
                its share of the training labels by the largest factor, which serves rare labels.
        """
        values, known = _rows(released)
        places = np.zeros(len(values), dtype=np.int64)
        if known.any():
            found = self._probabilities(values[known])
            places[known] = (found / self.shares if balanced else found).argmax(axis=1)
        labels = self.classes[places]
        if not known.all():
            kind = labels.dtype.kind
            labels = labels.astype(
                np.int64 if kind == "u" else object if kind == "b" else labels.dtype
            )
            labels[~known] = {"U": "", "S": b"", "b": None, "O": ""}.get(kind, -1)
        return np.asarray(labels)

    def predict_proba(self, released: npt.ArrayLike) -> Array:
        """Return the probability of each of ``classes``, shape (n, labels), for a withheld row
        their shares.

        Those of the server "channel" are calibrated by what they are, those of others as far as
        their model is.
        """
        values, known = _rows(released)
        found = np.tile(self.shares, (len(values), 1))
        if known.any():
            found[known] = self._probabilities(values[known])
        return found

    def _probabilities(self, values: Array) -> Array:
        return np.asarray(self.model.predict_proba(values), dtype=np.float64)


def train_server(
    name: str,
    released: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    seed: int,
    channel: npt.ArrayLike | None = None,
) -> Server:
    """Return a model trained on released values as they are. Withheld rows (NaN) are left out.

    Args:
        name: one of ``SERVERS``.
        released: shape (n, m).
        labels: shape (n,), whole numbers, words or truth values.
        seed: seed of the model.
        channel: for the server "channel", and no other: shape (bins, m), probability of each
            released output given the bin, such as ``PowerEncoder.channel_``.

    Raises:
        UnknownName: no such server.
        MissingExtra: a package that the server is made with is not installed.
        InvalidParameter: a channel for another server, or none for "channel".
        InvalidInput: shapes that do not fit, or fewer than two released rows.

    Example:
        >>> one_hot = np.eye(2)[[0, 0, 0, 1, 1, 1]]
        >>> server = train_server(
        ...     "channel", one_hot, list("nnyyyy"), seed=0, channel=[[0.9, 0.1], [0.1, 0.9]]
        ... )
        >>> server.predict(np.eye(2)).tolist()
        ['n', 'y']

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, servers with any model.

    See Also:
        reticent.PowerEncoder: releases the rows.
        reticent.systems.Server: the result.
    """
    if name not in SERVERS:
        raise UnknownName(f"server={name!r}: expected one of {', '.join(SERVERS)}")
    if (channel is not None) != (name == "channel"):
        raise InvalidParameter(
            f"channel: expected for the server 'channel', and for no other, got server={name!r} "
            f"{'without' if channel is None else 'with'} one"
        )
    targets = as_array(labels, name="labels")
    values = np.asarray(released, dtype=np.float64)
    if values.ndim != 2 or targets.shape != values.shape[:1]:
        raise InvalidInput(
            f"released: expected shape ({len(targets)}, m) as there are labels, got "
            f"shape={values.shape}"
        )
    known = np.isfinite(values).all(axis=1)
    if known.sum() < 2:
        raise InvalidInput("released: expected at least two released rows")
    classes, places, counts = np.unique(targets[known], return_inverse=True, return_counts=True)
    if channel is not None:
        model: Any = ChannelServer.fitted(channel, values[known], places)
    else:
        model = _TRAINED[name](values[known], places, seed)
    return Server(name, model, classes, np.asarray(counts / counts.sum()))


def _rows(released: npt.ArrayLike) -> tuple[Array, npt.NDArray[np.bool_]]:
    values = np.asarray(released, dtype=np.float64)
    return values, np.asarray(np.isfinite(values).all(axis=1))


@dataclass(frozen=True, eq=False)
class _Network:
    """The project's own head, under scikit-learn's verb."""

    head: Head

    def predict_proba(self, released: Array) -> Array:
        torch = require("torch", extra="networks")
        self.head.eval()
        with torch.no_grad():
            logits = self.head(torch.from_numpy(released.astype(np.float32)))
        return np.asarray(torch.softmax(logits.double(), dim=1).numpy())


def _network(released: Array, labels: Integers, seed: int) -> _Network:
    torch = require("torch", extra="networks", instead="use server='boosted'")
    from reticent.training.heads import HeadConfig, train_head

    config = HeadConfig(hidden=(64, 64), epochs=15, seed=seed)
    with torch.random.fork_rng(devices=[]):
        return _Network(train_head(released, labels, config, noise=None))


def _forest(released: Array, labels: Integers, seed: int) -> RandomForestClassifier:
    """Return a random forest whose leaves are as large as the noise asks for: the size with the
    best out-of-bag accuracy.
    """
    forests = [
        RandomForestClassifier(
            100,
            min_samples_leaf=size,
            max_features="sqrt",
            max_samples=0.5,
            oob_score=True,
            random_state=seed,
        )
        for size in _LEAVES
        if size == _LEAVES[0] or 10 * size <= len(released)
    ]
    with warnings.catch_warnings():
        # a few rows in tiny tables
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        return max(
            (forest.fit(released, labels) for forest in forests),
            key=lambda forest: float(forest.oob_score_),
        )


def _boosted(released: Array, labels: Integers, seed: int) -> HistGradientBoostingClassifier:
    model = HistGradientBoostingClassifier(
        learning_rate=0.3,
        max_depth=6,
        max_leaf_nodes=64,
        l2_regularization=1.0,  # without it, rare classes can make boosting stop at once
        early_stopping=True,
        n_iter_no_change=5,
        random_state=seed,
    )
    return model.fit(released, labels)


def _xgboost(released: Array, labels: Integers, seed: int) -> Any:
    """Return XGBoost with its own defaults, stopped when a tenth of the rows that it does not learn
    from stops to gain.
    """
    xgboost = require("xgboost", extra="xgboost", instead="use server='boosted'")
    order = np.random.default_rng(seed).permutation(len(released))
    held = order[: max(1, len(order) // 10)]
    learnt = np.setdiff1d(order, held)
    if len(np.unique(labels[learnt])) < len(np.unique(labels)):
        held = learnt = order  # a class of one row: nothing can be held out
    model = xgboost.XGBClassifier(random_state=seed, tree_method="hist", early_stopping_rounds=5)
    return model.fit(
        released[learnt], labels[learnt], eval_set=[(released[held], labels[held])], verbose=False
    )


_TRAINED: dict[str, Callable[[Array, Integers, int], Any]] = {
    "network": _network,
    "forest": _forest,
    "boosted": _boosted,
    "xgboost": _xgboost,
}


@dataclass(frozen=True, eq=False)
class ChannelServer:
    """Probabilities of labels given outputs, by maximum likelihood under the known channel.

    For each label the shares of bins are estimated from the outputs of the rows that have it
    (expectation-maximisation). Outputs have then the probabilities that the channel gives them for
    those shares, which no noise can push beyond what the channel allows. With the shares of labels
    they give each label's probability.

    Attributes:
        posterior: probabilities of labels given each output, shape (outputs, labels).

    References:
        - Dempster, Laird and Rubin (1977), "Maximum likelihood from incomplete data via the EM
          algorithm", doi:10.1111/j.2517-6161.1977.tb01600.x.

    See Also:
        reticent.systems.train_server: makes it.
    """

    posterior: Array

    @classmethod
    def fitted(cls, channel: npt.ArrayLike, released: Array, labels: Integers) -> ChannelServer:
        """Return what is learnt from one-hot outputs, shape (n, outputs), and labels from 0 without
        gaps.

        Args:
            channel: shape (bins, outputs), probabilities of outputs given the bin.
            released, labels: outputs and labels of rows.
        """
        matrix = finite_array(channel, name="channel", ndim=2)
        if (
            min(matrix.shape) < 2
            or (matrix <= 0).any()
            or not np.allclose(matrix.sum(axis=1), 1.0, rtol=0.0, atol=1e-6)
        ):
            raise InvalidInput(
                "channel: expected probabilities above 0 of shape (bins, outputs) whose rows sum "
                f"to 1, such as PowerEncoder.channel_, got shape={matrix.shape}"
            )
        counts = np.zeros((int(labels.max()) + 1, matrix.shape[1]))
        np.add.at(counts, (labels, _outputs(released, matrix.shape[1])), 1.0)
        together = np.array([row.sum() * (bin_shares(row, matrix) @ matrix) for row in counts])
        return cls(np.asarray((together / together.sum(axis=0)).T))

    def predict_proba(self, released: Array) -> Array:
        """Return the probability of each label, shape (n, labels)."""
        return np.asarray(self.posterior[_outputs(released, len(self.posterior))])


def _outputs(released: Array, outputs: int) -> Integers:
    if released.shape[1:] != (outputs,) or not (
        np.isin(released, (0.0, 1.0)).all() and (released.sum(axis=1) == 1.0).all()
    ):
        raise InvalidInput(
            f"released: expected one-hot rows of {outputs} outputs, as the channel has, got "
            f"shape={released.shape}"
        )
    return np.asarray(released.argmax(axis=1), dtype=np.int64)


def bin_shares(counts: Array, channel: Array) -> Array:
    """Return shares of bins that make counted outputs likeliest, shape (bins,).

    Args:
        counts: shape (outputs,), at least one of them above 0.
        channel: shape (bins, outputs), above 0.

    Example:
        >>> bin_shares(np.array([70.0, 30.0]), np.array([[0.8, 0.2], [0.3, 0.7]])).round(3).tolist()
        [0.8, 0.2]
    """
    observed = counts / counts.sum()
    shares = np.full(len(channel), 1.0 / len(channel))
    for _ in range(_STEPS):
        ratio = channel @ (observed / (shares @ channel))
        shares = shares * ratio
        # At the maximum no ratio is above 1; the largest bounds what likelihood is left to gain.
        if np.log(ratio.max()) < _CONVERGED:
            break
    return np.asarray(shares / shares.sum())
