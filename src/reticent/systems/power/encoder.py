"""``PowerEncoder``: embeddings of table rows for one target, released with a proved guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import one_of, positive, probability
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.extras import require
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.seeds import training_generator
from reticent.core.settings import a_part, learned, with_settings
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.power.cards import code_card, power_card
from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.protection import AttributeRadii, Protection
from reticent.systems.power.query import (
    CHOICES,
    MECHANISMS,
    PROTECTED,
    PowerQuery,
    PowerSetting,
    RowQuery,
    neighbours_within,
)
from reticent.systems.power.row_encoder import RowEncoder
from reticent.systems.power.settings import RowFit, VectorTraining
from reticent.systems.record_labels import OBSERVED, record_labels, restored_labels
from reticent.systems.scores import SCORINGS
from reticent.tables.frames import (
    kept_names,
    stored_names,
)
from reticent.tables.schema import TabularSchema
from reticent.training.progress import progress


@with_settings
class PowerEncoder(RowEncoder):
    """Release embeddings of private table rows to an untrusted server, which may learn from them
    with any model.

    Guarantee:
        One released row costs (epsilon, delta). With ``radius=None`` any two records of the schema
        are neighbours (local differential privacy of the whole record). With a radius, records at
        most that far apart in l2 of the encoded space are neighbours, where a change of any one
        attribute is at most 1. With K-norm noise on vectors (``mechanism="k-norm-l2"``) this is
        (epsilon / radius)-Lipschitz privacy too, up to an offset of about 1e-6 from the grid, which
        the card states. The encoder itself may be known to everybody. ``card()`` says what is
        assumed, and docs/power.md proves it.

    Args:
        epsilon: epsilon of one answer, above 0.
        delta: delta of one answer, in [0, 1). Above 0 allows Gaussian noise.
        radius: l2 radius in the encoded space, or a radius for every attribute, {name: radius} in
            the column's own units (days of a date, ranks of ordered categories, 0: not protected,
            infinity: any value), or None for any two records.
        schema: public description of the columns, or a pair (lower, upper): one public range for
            numeric columns.
        mechanism: "auto" (the best by ``scoring`` on public rows), or one of "k-norm-l2",
            "gaussian", "code", "clear-noise", "clear-code". The code is that of ``CodeEncoder`` for
            one label. It hides any two records from each other whatever the radius, wins where the
            radius is large, and is what "auto" takes with ``radius=None``. It needs no torch. The
            last two read what the radius leaves unprotected as it is (docs/power.md).
        scoring: score that codes are made for and mechanisms are chosen by: "information" (nats
            about the label), "accuracy", "balanced_accuracy" or "auc". Ties are broken by
            information.
        training: settings of the encoders' training and comparison, or None for
            ``VectorTraining()``.
        random_state: seed of *training*. The noise of ``release`` never depends on it.

    Attributes:
        query_: the fitted release.
        considered_: every plan that was scored, best first. The plan of ``query_`` may stand below
            the first, where it is simpler and worth as much up to chance (docs/power.md).
        mechanism_: the mechanism of ``query_``.
        classes_: labels seen in ``fit``.
        n_features_in_: number of columns of the table.
        feature_names_in_: their names, where ``fit`` saw a data frame.
        bundle_identity_: SHA-256 of the bundle, in every receipt.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> encoder = PowerEncoder(
        ...     epsilon=4.0, delta=0.0, radius=None, schema=(0.0, 8.0), random_state=0,
        ...     training=VectorTraining(epochs=3),
        ... ).fit(X, y)
        >>> encoder.release(X[:2]).receipt.guarantee.adjacency.describe()
        'two data sets of one size that differ in 1 record(s)'

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, the setting.
        - Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011), "What can we learn
          privately?", doi:10.1137/090756090, local differential privacy.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of inputs
          within a distance.
        - Hardt and Talwar (2010), "On the geometry of differential privacy", arXiv:0907.3754,
          K-norm noise.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, codes.

    See Also:
        reticent.published.PublishedPowerEncoder: the paper's own release, which protects nobody.
        reticent.CodeEncoder: several labels of a row from one code.
        reticent.PosthocEncoder: pictures and embeddings, within a radius.
        reticent.systems.train_server: a model of what was released.
        reticent.tables.TabularSchema: the public description of a table.
    """

    epsilon: float
    delta: float
    radius: float | Mapping[str, float] | None
    schema: TabularSchema | tuple[float, float]
    mechanism: str = "auto"
    scoring: str = "information"
    training: VectorTraining | None = None
    random_state: int | np.random.RandomState | None = None

    query_: RowQuery | CodeQuery = learned()
    considered_: tuple[PowerSetting, ...] = learned()

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Train and calibrate on rows that are public.

        Args:
            X: shape (n, columns), as the schema says.
            y: shape (n,), labels that embeddings should keep. ``CodeEncoder`` serves several.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: before anything is trained.
            CalibrationFailed: no mechanism meets the requirement.
            MissingExtra: torch, which encoders are trained with, is not installed.
        """
        from reticent.systems.power.mechanism_choice import chosen, compared

        one_of(self.mechanism, ("auto", *MECHANISMS), name="mechanism")
        training = a_part(self.training, VectorTraining, name="training")
        schema, table, names = self._read(X)
        plan = self._required(schema)
        rows = schema.encode(table)
        classes, labels = record_labels(y, len(rows), OBSERVED)
        mechanisms = compared(plan, schema) if self.mechanism == "auto" else (self.mechanism,)
        trained = mechanisms != ("code",)
        if trained:
            require("torch", extra="networks", instead="use mechanism='code'")
        random = training_generator(self.random_state)
        order, seed = random.permutation(len(rows)), int(random.randint(2**31 - 1))
        with (
            _own_generator() if trained else nullcontext(),
            progress(training.verbose) as report,
        ):
            fit = RowFit(schema, plan, rows[order], labels[order], training, seed, report)
            query, self._plan, self.considered_ = chosen(fit, mechanisms)
        self.classes_ = classes
        self._become(query, names)
        return self

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        query = self._fitted()
        return code_card(query) if isinstance(query, CodeQuery) else power_card(query)

    def bundle(self) -> Bundle:
        """Return everything that ``release`` needs, ready to be written."""
        settings, arrays = self._fitted().describe()
        settings["plan"] = self._plan.to_dict()
        settings["labels"] = self.classes_.tolist()
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
        query, plan = stored_query(bundle.settings, bundle.arrays)
        assert query.schema is not None  # a plan has rows of a table
        loaded = cls(
            epsilon=plan.epsilon,
            delta=plan.delta,
            radius=dict(plan.radius.radii)
            if isinstance(plan.radius, AttributeRadii)
            else plan.radius,
            schema=query.schema,
            mechanism=plan.mechanism,
            scoring=plan.scoring,
        )
        loaded.considered_, loaded._plan = (), plan
        with rebuilding():
            loaded.classes_ = restored_labels(bundle.settings["labels"])
            loaded._become(query, stored_names(bundle.settings, query.columns))
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    def _required(self, schema: TabularSchema) -> PowerSetting:
        """Return budget, radius and scoring, checked.

        Its mechanism is the one asked for, or stands for any.
        """
        epsilon = positive(self.epsilon, name="epsilon")
        delta = probability(self.delta, name="delta")
        radius: float | AttributeRadii | None
        if isinstance(self.radius, Mapping):
            radius = AttributeRadii.of(self.radius, schema)
        else:
            radius = None if self.radius is None else positive(self.radius, name="radius")
        scoring = one_of(self.scoring, SCORINGS, name="scoring")
        required = PowerSetting(
            mechanism="code",
            epsilon=epsilon,
            delta=delta,
            radius=radius,
            scoring=scoring,
        )
        if self.mechanism == "clear-code":
            required = replace(required, mechanism=self.mechanism, candidates=2, choice=CHOICES[0])
        elif self.mechanism != "auto":
            required = replace(required, mechanism=self.mechanism)
        if self.mechanism in PROTECTED and radius is not None:
            Protection(schema, radius)
        return required

    @property
    def channel_(self) -> Array:
        """The exact probability of each released code given the node, shape (nodes, outputs).

        ``train_server("channel", ..., channel=encoder.channel_)`` takes it.

        Raises:
            NotFittedYet: before ``fit``.
            InvalidInput: the release has no channel: its mechanism is not "code".
        """
        query = self._fitted()
        if not isinstance(query, CodeQuery):
            raise InvalidInput("channel_: expected a release of codes; fit with mechanism='code'")
        return query.mechanism.matrix

    @property
    def mechanism_(self) -> str:
        """The mechanism that answers, one of those that ``mechanism`` may name.

        Raises:
            NotFittedYet: before ``fit``.
        """
        self._fitted()
        return self._plan.mechanism


def _own_generator() -> AbstractContextManager[None]:
    """Leave torch's generator as it was."""
    torch = require("torch", extra="networks")
    context: AbstractContextManager[None] = torch.random.fork_rng(devices=[])
    return context


def stored_query(
    settings: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
) -> tuple[RowQuery | CodeQuery, PowerSetting]:
    """The query that a bundle describes, and its plan.

    Raises:
        CorruptBundle: fields or arrays that are missing or do not fit together.
    """
    plan = settings.get("plan")
    mechanism = plan.get("mechanism") if isinstance(plan, dict) else None
    if mechanism == "code":
        with rebuilding():
            schema = TabularSchema.from_dict(settings["inputs"]["schema"])
            stated = PowerSetting.from_dict(settings["plan"], schema)
            adjacency = neighbours_within(stated.radius, schema)
            code = CodeQuery.from_description(settings, arrays, adjacency=adjacency)
            if code.mechanism.guarantee != Guarantee(stated.epsilon, stated.delta, adjacency):
                raise CorruptBundle("bundle: its code does not cost what its plan says")
        return code, stated
    kind: type[RowQuery] = PowerQuery
    if mechanism in PROTECTED:
        kind = LikeliestQuery if mechanism == "clear-code" else ProtectedQuery
    query = kind.from_description(settings, arrays)
    return query, query.plan
