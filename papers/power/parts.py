"""One table cut for the Power Mechanism's experiments, and the accuracy of servers on what is
released of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papers.power.settings import PAPER_SERVERS, SERVERS, PowerSettings
from reticent.core.arrays import Integers
from reticent.datasets.table import Table
from reticent.systems.power.servers import train_server
from reticent.tables.schema import TabularSchema

Array = npt.NDArray[np.float64]
Results = dict[str, Any]


def for_tuning(table: Table) -> Table:
    """Return the training part alone, a fifth of it in the place of the held-out part, on which
    nothing is ever tuned.
    """
    rows = len(table.train_rows)
    order = np.random.default_rng(1).permutation(rows)
    train, score = np.split(order, [rows - round(rows * 0.2)])
    return replace(
        table,
        train_rows=table.train_rows[train],
        train_labels=table.train_labels[train],
        test_rows=table.train_rows[score],
        test_labels=table.train_labels[score],
    )


@dataclass(frozen=True, eq=False)
class Parts:
    """One table, cut for the experiments.

    Attributes:
        table: the whole.
        schema: its public schema.
        settings: fixed settings.
        public_rows, private_rows, test_rows: rows as in the table.
        public_labels, private_labels, test_labels: their labels.
        seed: of training, of the cut and of the experiment's noise.
    """

    table: Table
    schema: TabularSchema
    settings: PowerSettings
    public_rows: npt.NDArray[Any]
    private_rows: npt.NDArray[Any]
    test_rows: npt.NDArray[Any]
    public_labels: Integers
    private_labels: Integers
    test_labels: Integers
    seed: int

    @classmethod
    def of(cls, settings: PowerSettings, *, seed: int, tuning: bool) -> Parts:
        """The table of ``settings``; with ``tuning`` a fifth of its training part takes the
        place of the held-out part.
        """
        table = settings.load()
        if tuning:
            table = for_tuning(table)
        order = np.random.default_rng(seed).permutation(len(table.train_rows))
        public = order[: round(settings.public_share * len(order))]
        private = order[len(public) :][: settings.private_rows]
        held = np.random.default_rng(seed).permutation(len(table.test_rows))[: settings.test_rows]
        return cls(
            table,
            settings.schema(table.columns),
            settings,
            table.train_rows[public],
            table.train_rows[private],
            table.test_rows[held],
            table.train_labels[public],
            table.train_labels[private],
            table.test_labels[held],
            seed,
        )

    def standardised(self, *rows: Array) -> list[Array]:
        """Encoded ``rows`` at zero mean and unit variance *of the public rows*, so that nothing
        private enters.
        """
        public = self.schema.encode(self.public_rows)
        center, spread = public.mean(axis=0), np.maximum(public.std(axis=0), 1e-3)
        return [(part - center) / spread for part in rows]


def server_hits(
    released: Array, labels: Integers, tested: Array, wanted: Integers, *, seed: int
) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether each server is right about each test row; a server without two classes to learn
    from never is.
    """
    kept = np.isfinite(released).all(axis=1)
    if len(np.unique(labels[kept])) < 2:
        return {name: np.zeros(len(wanted), dtype=np.bool_) for name in SERVERS}
    right = {
        name: train_server(name, released, labels, seed=seed).predict(tested) == wanted
        for name in PAPER_SERVERS
    }
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    linear.fit(released[kept], labels[kept])
    return {**right, "logistic": linear.predict(tested) == wanted}
