"""``PateClassifier``: noisy votes of teachers of any kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidParameter
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours.records import key_bytes
from reticent.systems.votes.estimator import Given, PublicRows
from reticent.systems.votes.outputs import Columns
from reticent.systems.votes.query_votes import QueryVotes
from reticent.systems.votes.responses import MarginResponse, Response
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.teachers import Teachers, answers_of
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.training.public_space import RowMap


class RowsAsTheyAre:
    """The space of teachers: a record's row itself, which only its own teacher sees."""

    def __init__(self, features: int) -> None:
        self.features = self.dimension = features

    def points(self, features: Array) -> Array:
        """Return ``features``."""
        return features


@with_settings
class PateClassifier(QueryVotes):
    """The label that most teachers vote for, by noisy votes of classifiers of any kind.

    The records are split among teachers by a keyed hash. Each is a classifier of scikit-learn that
    is fitted on its own part. One record more or less changes one teacher, so one vote goes from a
    label to another: votes move by sqrt(2) in l2, and the margin of two labels by 2.

    Args:
        epsilon, delta, classes, answers, response, counting, data_set: arguments of ``QueryVotes``.
        features: a feature map, in ``Features(map=)``, whose features teachers get, or None for
            rows as they are.
        teachers: the classifier, their number and the seed of the split.

    Runtime:
        The time of fitting the classifier on each part, and of asking each of them.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from reticent.systems import Teachers
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> pate = PateClassifier(
        ...     epsilon=2.0,
        ...     delta=1e-5,
        ...     classes=(0, 1),
        ...     answers=10,
        ...     teachers=Teachers(estimator=DecisionTreeClassifier(max_depth=3), number=20),
        ... )
        >>> len(pate.fit(X[:500], y[:500]).release(X[500:510]).values)
        10

    References:
        - Papernot et al. (2017), "Semi-supervised knowledge transfer for deep learning from private
          training data", arXiv:1610.05755.
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908
          (Gaussian noise).
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803 (sample and aggregate).

    Differs from the paper:
        Noise is charged by its exact composition, whatever the votes are, in place of a bound that
        depends on private votes. Parts are by keyed hash in place of position.

    See Also:
        reticent.CertifiedEnsemble: members whose own labels are certified.
        reticent.LinearVoteClassifier: records vote themselves.
    """

    teachers: Teachers

    _owners: list[bytes] | None = learned()
    _taught: list[Any] = learned()

    _shapes = ("schema", "map")

    @override
    def check_settings(self) -> None:
        self._teaching  # noqa: B018  (refuses what is none)

    @override
    def prepare(self, public: PublicRows | None) -> None:
        self._teaching.check(self.space_.dimension, np.arange(len(self.classes_)))

    @property
    def _teaching(self) -> Teachers:
        if self.teachers is None:
            raise InvalidParameter("teachers: expected a Teachers, got None")
        return a_part(self.teachers, Teachers, name="teachers")

    @override
    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[Any, Array | None]:
        width = columns
        if row_map is not None:
            width = row_map.features(np.zeros((1, columns))).shape[1]
        return RowsAsTheyAre(width), public_features

    @override
    def _prepare(self, given: Given) -> tuple[Voters | ReadVoters, PublicRows | None]:
        voters, public = super()._prepare(given)
        self._owners = None
        if given.persons is not None:
            # In the order of ``voters_of``, which brings records of a person together.
            names = [key_bytes(person) for person in given.persons]
            numbers: dict[bytes, int] = {}
            order = np.argsort([numbers.setdefault(n, len(numbers)) for n in names], kind="stable")
            self._owners = [names[place] for place in order]
        return voters, public

    @override
    def _keep(self, voters: Voters | ReadVoters) -> None:
        blocks = list(voters.blocks())
        rows = np.concatenate([block.points for block in blocks])
        codes = np.concatenate([block.codes for block in blocks])
        self._taught = self._teaching.trained(rows, codes, self._owners)
        self._owners = None

    @property
    @override
    def _bound(self) -> float:
        """Return the l2 norm of what one teacher's other vote moves, rounded up."""
        return math.nextafter(VOTE * len(self.classes_) * math.sqrt(2.0), math.inf)

    @override
    def _tables(self, points: Array, response: Response) -> Array:
        labels = len(self.classes_)
        votes = np.zeros((len(points), labels))
        for teacher in self._taught:
            found = np.nan_to_num(answers_of(teacher, points))
            places = np.where((found >= 0) & (found < labels), found, 0.0).astype(np.int64)
            votes[np.arange(len(points)), places] += 1.0
        if isinstance(response, MarginResponse):
            return 0.5 * VOTE * votes  # a margin moves by two votes, which count as one record
        return VOTE * (labels * votes - len(self._taught))

    @override
    def weights(self, voters: Voters, queries: Array) -> Array:
        """Raise: records of teachers have no weights of their own."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # at the sizes of scikit-learn's checks
        return tags
