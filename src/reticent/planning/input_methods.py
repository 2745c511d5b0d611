"""The releases of a private input that ``reticent.plan_inputs`` compares.

They are estimators of this package and simple baselines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.noise import SeededSampler
from reticent.planning.methods import Answers, Limit, PlanMethod, PublicUse, shares_alone
from reticent.planning.tasks import Settings, Task
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.query import PROTECTED
from reticent.systems.power.servers import Server, train_server
from reticent.systems.scores import Predictions
from reticent.training.staircases import response_on

_DRAWS = 4
_SPLITS = 3


Part = tuple[npt.NDArray[Any], Integers]
"""A table and its labels, 0 to classes - 1."""


@dataclass(frozen=True, eq=False)
class Thirds:
    """Public rows in three parts, of which each plays one role.

    Attributes:
        learned, released, scored: a release is learned from the first, a server learns from
            releases of the second, and predicts labels from releases of the third.
        places: places of the scored rows among all.
        prepared: results that were computed from ``learned`` already.
    """

    learned: Part
    released: Part
    scored: Part
    places: Integers
    prepared: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PublicThirds:
    """Labelled public rows, whose thirds take turns.

    Attributes:
        rows: table, shape (m, columns).
        codes: places of labels, shape (m,).
        task: the task.
        limit: the time that there is.
    """

    rows: npt.NDArray[Any]
    codes: Integers
    task: Task
    limit: Limit

    @cached_property
    def folds(self) -> list[Thirds]:
        """Three turns of three parts, each with about its share of every label."""
        order = np.random.default_rng(self.task.wanted.seed).permutation(len(self.codes))
        order = order[np.argsort(self.codes[order], kind="stable")]
        places = [np.sort(order[at::_SPLITS]) for at in range(_SPLITS)]
        parts = [(self.rows[third], self.codes[third]) for third in places]
        found = []
        for turn in range(_SPLITS):
            learned, released, scored = parts[turn:] + parts[:turn]
            found.append(Thirds(learned, released, scored, places[turn - 1]))
        return found


class InputMethod(PlanMethod):
    """A way to release something about a private input."""

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicThirds) -> Answers:
        return [self._predictions(task, parts) for task in tasks]

    def _predictions(self, task: Task, parts: PublicThirds) -> list[Predictions]:
        turns = []
        for thirds in parts.folds:
            parts.limit.check()
            turns.append(self.probabilities(task, thirds))
        found = np.empty((max(map(len, turns)), len(parts.codes), task.classes))
        for thirds, draws in zip(parts.folds, turns, strict=True):
            for place, whole in enumerate(found):
                whole[thirds.places] = draws[place % len(draws)]
        return [Predictions.of(whole) for whole in found]

    @abstractmethod
    def probabilities(self, task: Task, parts: Thirds) -> list[Array]:
        """Return a server's label probabilities for ``parts.scored``, for several draws of noise.

        Each array has shape (q, classes).
        """


@dataclass(frozen=True)
class Majority(PlanMethod):
    """The label shares of public rows, whatever the input. It releases nothing."""

    name: str = "majority"
    line: str = "nothing leaves; every answer is that of the public label shares"
    uses: PublicUse = PublicUse.NOTHING

    @override
    def answers(self, tasks: Sequence[Task], parts: PublicThirds) -> Answers:
        return shares_alone(tasks, parts)


@dataclass(frozen=True)
class LabelResponse(InputMethod):
    """Randomised response on the label that a booster of public rows gives the input.

    It is a baseline: ``PowerEncoder`` has codes instead. Those of ``scoring="balanced_accuracy"``
    are nearest to a label at prevalence.

    Args:
        at_prevalence: whether to use the label whose probability exceeds its share the most, and
            not the likeliest.
    """

    at_prevalence: bool = False
    name: str = "randomised response"
    line: str = "a booster's label, by randomised response"

    @override
    def probabilities(self, task: Task, parts: Thirds) -> list[Array]:
        classes = task.classes
        if "booster" not in parts.prepared:
            model = HistGradientBoostingClassifier(random_state=task.wanted.seed)
            model.fit(task.wanted.schema.encode(parts.learned[0]), parts.learned[1])
            shares = np.bincount(parts.learned[1], minlength=classes) / len(parts.learned[1])
            parts.prepared["booster"] = (
                [
                    _columns(
                        model.predict_proba(task.wanted.schema.encode(rows)),
                        model.classes_,
                        classes,
                    )
                    for rows, _ in (parts.released, parts.scored)
                ],
                shares,
            )
        chances, shares = parts.prepared["booster"]
        weights = 1.0 / np.maximum(shares, 1e-9) if self.at_prevalence else np.ones(classes)
        channel = response_on(np.arange(classes), epsilon=task.guarantee.epsilon)
        released, scored = (channel[(found * weights).argmax(axis=1)] for found in chances)
        outputs, answers = np.eye(classes), []
        for draw in range(_DRAWS):
            sampler = SeededSampler(_DRAWS * task.wanted.seed + draw)
            server = train_server(
                "channel",
                outputs[sampler.categorical(released)],
                parts.released[1],
                seed=task.wanted.seed,
                channel=channel,
            )
            answers.append(_served(server, outputs[sampler.categorical(scored)], classes))
        return answers


@dataclass(frozen=True)
class Encoder(InputMethod):
    """``PowerEncoder`` with one of its mechanisms."""

    mechanism: str
    name: str
    line: str
    slow: bool = False

    @override
    def missing(self, task: Task, *, labelled: bool) -> str:
        if self.mechanism not in PROTECTED or task.wanted.radius is not None:
            return ""
        return "needs a radius that leaves something free"

    @override
    def probabilities(self, task: Task, parts: Thirds) -> list[Array]:
        encoder = self.estimator(task).fit(*parts.learned)
        codes = isinstance(encoder.query_, CodeQuery)
        answers = []
        for draw in range(_DRAWS if codes else 1):
            released, scored = (
                np.asarray(
                    encoder.simulate(rows, seed=_DRAWS * task.wanted.seed + 2 * draw + side).values
                )
                for side, (rows, _) in enumerate((parts.released, parts.scored))
            )
            server = train_server(
                "channel" if codes else "boosted",
                released,
                parts.released[1],
                seed=task.wanted.seed,
                channel=encoder.channel_ if codes else None,
            )
            answers.append(_served(server, scored, task.classes))
        return answers

    @override
    def settings(self, task: Task) -> Settings:
        return {"mechanism": self.mechanism, "scoring": task.wanted.chosen_by}

    @override
    def estimator(self, task: Task) -> Any:
        return PowerEncoder(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            radius=task.wanted.radius,
            schema=task.wanted.schema,
            random_state=task.wanted.seed,
            **self.settings(task),
        )


METHODS: tuple[PlanMethod, ...] = (
    Majority(),
    LabelResponse(),
    LabelResponse(at_prevalence=True, name="randomised response at prevalence"),
    Encoder("code", "code", "one of a few codes, by what a public model says"),
    Encoder("clear-noise", "clear + noise", "unprotected columns, and protected ones with noise"),
    Encoder(
        "clear-code",
        "clear + code",
        "unprotected columns, and one of the labels that they make likeliest",
        slow=True,
    ),
    Encoder("auto", "auto", "whatever PowerEncoder finds best, networks included", slow=True),
)
"""All methods that are tried, quick ones first."""


def _served(server: Server, released: Array, classes: int) -> Array:
    return _columns(server.predict_proba(released), server.classes, classes)


def _columns(found: Array, known: npt.NDArray[Any], classes: int) -> Array:
    """Return probabilities with a column for every label, even those that a model never saw."""
    table = np.zeros((len(found), classes))
    table[:, known.astype(np.int64)] = found
    return table
