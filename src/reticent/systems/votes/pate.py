"""``PateClassifier`` and ``PateRegressor``: noisy votes and means of teachers of any kind."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import a_part, learned, with_settings
from reticent.mechanisms import NoisySums, SumBlock
from reticent.neighbours.records import key_bytes
from reticent.noise import Sampler
from reticent.release.paying import Drawn
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.outputs import TARGET_STEPS, Columns, RangeOutput, range_columns
from reticent.systems.votes.query_votes import QueryAnswers, QueryVotes
from reticent.systems.votes.released_regressor import range_outputs
from reticent.systems.votes.responses import MarginResponse, Response
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.teachers import Teachers, answers_of
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import RowMap

_TARGETS_TRIED = 5


class RowsAsTheyAre:
    """The space of teachers: a record's row itself, which only its own teacher sees."""

    def __init__(self, features: int) -> None:
        self.features = self.dimension = features

    def points(self, features: Array) -> Array:
        """Return ``features``."""
        return features


@with_settings
class Taught(QueryAnswers):
    """What the two share: teachers in place of records."""

    teachers: Teachers

    _owners: list[bytes] | None = learned()
    _taught: list[Any] = learned()

    _shapes = ("schema", "map")
    _scale: ClassVar[float] = 1.0
    """Grid steps in one unit of a target."""

    @property
    @abstractmethod
    def _tried(self) -> npt.NDArray[Any]:
        """Targets on which an estimator that cannot be fitted is found out."""

    @override
    def check_settings(self) -> None:
        self._teaching  # noqa: B018  (refuses what is none)

    @override
    def prepare(self, public: PublicRows | None) -> None:
        self._teaching.check(self.space_.dimension, self._tried)

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
    def _prepare(
        self,
        X: Any,
        y: npt.ArrayLike | None,
        public_X: npt.ArrayLike | None,
        public_y: npt.ArrayLike | None,
        persons: Sequence[Any] | None,
    ) -> tuple[Voters | ShardedVoters, PublicRows | None]:
        voters, public = super()._prepare(X, y, public_X, public_y, persons)
        self._owners = None
        if persons is not None:
            # In the order of ``voters_of``, which brings records of a person together.
            names = [key_bytes(person) for person in persons]
            numbers: dict[bytes, int] = {}
            order = np.argsort([numbers.setdefault(n, len(numbers)) for n in names], kind="stable")
            self._owners = [names[place] for place in order]
        return voters, public

    @override
    def _keep(self, voters: Voters | ShardedVoters) -> None:
        blocks = list(voters.blocks())
        rows = np.concatenate([block.points for block in blocks])
        codes = np.concatenate([block.codes for block in blocks])
        targets = codes if self._scale == 1 else codes / self._scale
        self._taught = self._teaching.trained(rows, targets, self._owners)
        self._owners = None


@with_settings
class PateClassifier(Taught, QueryVotes):
    """The label that most teachers vote for, by noisy votes; teachers are classifiers of any kind.

    The records are split among teachers by a keyed hash. Each is a classifier of scikit-learn that
    is fitted on its own part. One record more or less changes one teacher, so one vote goes from a
    label to another: votes move by sqrt(2) in l2, and the margin of two labels by 2.

    Args:
        epsilon, delta, classes, answers, response, counting, data_set: see ``QueryVotes``.
        features: a feature map, in ``Features(map=)``, whose features teachers get; None for rows
            as they are.
        teachers: the classifier, their number and the seed of the split.

    Runtime:
        That of fitting the classifier on each part, and of asking each of them.

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
        reticent.PateRegressor: noisy means in place of votes.
        reticent.CertifiedEnsemble: members whose own labels are certified.
        reticent.LinearVoteClassifier: records vote themselves.
    """

    @property
    @override
    def _tried(self) -> npt.NDArray[Any]:
        return np.arange(len(self.classes_))

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


@with_settings
class PateRegressor(RegressorMixin, Taught):
    """The noisy mean of what teachers predict, cut to a public range.

    The records are split among teachers by a keyed hash. Each is a regressor of scikit-learn that
    is fitted on its own part, with targets in halves of the public range. Its prediction is cut to
    the range. One record more or less changes one teacher, so the sum moves by at most the range.

    Guarantee:
        All numbers that one fitted regressor ever releases, at most ``answers``, are (epsilon,
        delta)-differentially private together. Queries are public, and may be chosen from earlier
        answers. Neighbours are as in ``ReleasedModel``. ``exact_predict`` is the owner's own answer
        and is *not* private, nor is ``simulate``.

    Args:
        epsilon, delta, data_set: of the total of all answers; see ``ReleasedModel``.
        target_range: public (lower, upper) ends of the targets.
        answers: how many numbers will ever be released.
        features: a feature map, in ``Features(map=)``, whose features teachers get; None for rows
            as they are.
        counting: see ``ReleasedModel``.
        teachers: the regressor, their number and the seed of the split.

    Attributes:
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from reticent.systems import Teachers
        >>> X, y = load_diabetes(return_X_y=True)
        >>> pate = PateRegressor(
        ...     epsilon=4.0,
        ...     delta=1e-5,
        ...     target_range=(0, 400),
        ...     answers=5,
        ...     teachers=Teachers(estimator=Ridge(0.01), number=20),
        ... )
        >>> pate.fit(X[:400], y[:400]).release(X[400:405]).values.shape
        (5,)

    References:
        - Papernot et al. (2017), "Semi-supervised knowledge transfer for deep learning from private
          training data", arXiv:1610.05755.
        - Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates",
          doi:10.1145/1993636.1993743 (means of clipped estimates on disjoint parts).

    See Also:
        reticent.PateClassifier: votes in place of means.
        reticent.NoisyGradientRegressor: a model to publish.
    """

    target_range: Any

    response_: NoisySums = learned()

    _title = "Predictions for public queries, by noisy means of private teachers"
    _scale = TARGET_STEPS
    _added = 2.0 * VOTE

    @override
    def _read(self, y: npt.ArrayLike | None, rows: int) -> tuple[Columns, Integers]:
        columns, codes = range_columns(y, rows, self.target_range)
        if columns.several:
            raise InvalidInput("y: expected one target per record, got several columns")
        return columns, codes

    @property
    @override
    def _tried(self) -> npt.NDArray[Any]:
        return np.linspace(-1.0, 1.0, _TARGETS_TRIED)

    @override
    def _answering(self, epsilon: float, delta: float, answers: int) -> NoisySums:
        return NoisySums(
            blocks=(SumBlock(1, 2.0 * VOTE),),
            sums=answers,
            epsilon=epsilon,
            delta=delta,
            adjacency=self._adjacency,
        )

    @override
    def draw(self, inputs: Array, sampler: Sampler, *, noise_scale: float = 1.0) -> Drawn:
        """Return a number for each of the checked queries, which must be paid for."""
        noisy = self.response_.noisy_rows(
            self._sums(inputs), sampler=sampler, noise_scale=noise_scale
        )
        means = np.asarray(noisy, dtype=np.float64)[:, 0] / (VOTE * len(self._taught))
        return Drawn(self._output.targets(means), np.zeros(len(inputs), dtype=np.bool_))

    def exact_predict(self, X: npt.ArrayLike) -> Array:
        """Return the mean of teachers, without noise. Private: for the owner of the records."""
        means = self._sums(self.checked(X))[:, 0] / (VOTE * len(self._taught))
        return self._output.targets(means)

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        noise = self.response_.sigmas[0] / VOTE / len(self._taught) * self._output.half
        return (("noise", f"{noise:.4g} in every mean"),)

    @property
    def _output(self) -> RangeOutput:
        [output] = range_outputs(self._columns)
        return output

    def _sums(self, points: Array) -> Array:
        """Return sums of predictions, shape (n, 1), whole numbers of ``VOTE``. Private."""
        total = np.zeros((len(points), 1))
        for teacher in self._taught:
            found = np.clip(np.nan_to_num(answers_of(teacher, points)), -1.0, 1.0)
            total[:, 0] += np.rint(found * VOTE)
        return total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # at the sizes of scikit-learn's checks
        return tags
