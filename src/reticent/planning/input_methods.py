"""The releases of a private input that ``reticent.plan_inputs`` compares.

They are estimators of this package and simple baselines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.core.arrays import Array, Integers
from reticent.noise import SeededSampler
from reticent.planning.tasks import Task
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.query import PROTECTED
from reticent.systems.power.servers import Server, train_server
from reticent.training.staircases import response_on

_DRAWS = 4


@dataclass(frozen=True, eq=False)
class Thirds:
    """Public rows in three parts, of which each plays one role.

    Attributes:
        learned, released, scored: tables. A release is learned from the first, a server learns
            from releases of the second, and predicts labels from releases of the third.
        learned_y, released_y, scored_y: labels, 0 to classes - 1.
        prepared: results that were computed from ``learned`` already.
    """

    learned: npt.NDArray[Any]
    learned_y: Integers
    released: npt.NDArray[Any]
    released_y: Integers
    scored: npt.NDArray[Any]
    scored_y: Integers
    prepared: dict[str, Any] = field(default_factory=dict)


class InputMethod(ABC):
    """A way to release something about a private input.

    Attributes:
        name: name in a few words.
        line: line on what leaves.
        slow: whether it is tried after the others.
    """

    name: str
    line: str
    slow: bool = False

    def fits(self, task: Task) -> bool:
        """Return whether the method exists at this guarantee, as any does that hides all inputs."""
        return True

    @abstractmethod
    def answers(self, task: Task, parts: Thirds, classes: int) -> list[Array]:
        """Return a server's label probabilities for ``parts.scored``, for several draws of noise.

        Each array has shape (q, classes).
        """

    def settings(self, task: Task) -> dict[str, Any]:
        """Return the estimator's settings, or none if there is no estimator."""
        return {}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted estimator, or None if the package has only a baseline."""
        return None


@dataclass(frozen=True)
class Majority(InputMethod):
    """The label shares of public rows, whatever the input. It releases nothing."""

    name: str = "majority"
    line: str = "nothing leaves; every answer is that of the public label shares"

    def answers(self, task: Task, parts: Thirds, classes: int) -> list[Array]:
        """See ``InputMethod``."""
        shares = (np.bincount(parts.learned_y, minlength=classes) + 1.0 / classes) / (
            len(parts.learned_y) + 1.0
        )
        return [np.tile(shares, (len(parts.scored), 1))]


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

    def answers(self, task: Task, parts: Thirds, classes: int) -> list[Array]:
        """See ``InputMethod``."""
        if "booster" not in parts.prepared:
            model = HistGradientBoostingClassifier(random_state=task.wanted.seed)
            model.fit(task.wanted.schema.encode(parts.learned), parts.learned_y)
            shares = np.bincount(parts.learned_y, minlength=classes) / len(parts.learned_y)
            parts.prepared["booster"] = (
                [
                    _columns(
                        model.predict_proba(task.wanted.schema.encode(rows)),
                        model.classes_,
                        classes,
                    )
                    for rows in (parts.released, parts.scored)
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
                parts.released_y,
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

    def fits(self, task: Task) -> bool:
        """Return whether it exists: a mechanism that reads unprotected attributes needs some."""
        return self.mechanism not in PROTECTED or task.wanted.radius is not None

    def answers(self, task: Task, parts: Thirds, classes: int) -> list[Array]:
        """See ``InputMethod``."""
        encoder = self.estimator(task).fit(parts.learned, parts.learned_y)
        codes = isinstance(encoder.query_, CodeQuery)
        answers = []
        for draw in range(_DRAWS if codes else 1):
            released, scored = (
                np.asarray(
                    encoder.simulate(rows, seed=_DRAWS * task.wanted.seed + 2 * draw + side).values
                )
                for side, rows in enumerate((parts.released, parts.scored))
            )
            server = train_server(
                "channel" if codes else "boosted",
                released,
                parts.released_y,
                seed=task.wanted.seed,
                channel=encoder.channel_ if codes else None,
            )
            answers.append(_served(server, scored, classes))
        return answers

    def settings(self, task: Task) -> dict[str, Any]:
        """Return settings of ``PowerEncoder``, beside guarantee and schema."""
        return {"mechanism": self.mechanism, "scoring": task.wanted.chosen_by}

    def estimator(self, task: Task) -> Any:
        """Return the unfitted ``PowerEncoder``."""
        return PowerEncoder(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            radius=task.wanted.radius,
            schema=task.wanted.schema,
            random_state=task.wanted.seed,
            **self.settings(task),
        )


METHODS: tuple[InputMethod, ...] = (
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
