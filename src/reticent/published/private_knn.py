"""Private-kNN as printed, its asymptotic theorem, and a diagnostic for whoever may see the private
data: the cost that the votes that really occurred would have had. It is private itself, so no
guarantee, card, event or ledger takes it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from secrets import token_hex
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import ClassifierMixin
from typing_extensions import override

from reticent.accounting import PrivateKnnSteps, private_knn_total
from reticent.accounting.screening import ScreeningDpEvent, largest_divergence, screening_pairs
from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Adjacency
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler
from reticent.published.research import Account, Answers, PublishedSystem, WorstPair
from reticent.release.bundle import Bundle
from reticent.systems.features import Features
from reticent.systems.private_knn.classifier import PrivateKNNClassifier
from reticent.systems.private_knn.plan import KnnNoise, Neighbours
from reticent.systems.record_labels import Classes


def data_dependent_label_rdp(
    votes: npt.ArrayLike, orders: npt.ArrayLike, *, sigma: float, private: bool
) -> Array:
    """Return the Rényi divergence of a noisy label at these very votes, without sampling. *Private:
    never to be published.*

    Args:
        votes: the votes of one query, shape (classes,), not negative.
        orders: shape (k,), each above 1.
        sigma: Gaussian noise of every vote.
        private: True, by which the caller states that the result stays with those who may see the
            data.

    Returns:
        Shape (k,), never above the cost orders / sigma**2 that holds for all data.

    Raises:
        InvalidParameter: ``private`` is not True, or another parameter is out of its range.
        InvalidInput: votes of another shape or negative.

    Edge cases: it is not offered on a subsample. The divergence at the sample that happened to be
    drawn is not the one at other samples.

    Example:
        >>> cost = data_dependent_label_rdp([280, 10, 5, 3, 2], [2.0], sigma=40.0, private=True)
        >>> bool(cost[0] < 2.0 / 40.0**2)
        True

    References:
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908, theorem 6
          with the orders of proposition 10.

    See Also:
        reticent.accounting.private_knn_total: the total that holds for all data.
    """
    counts = _votes(votes, private)
    sigma = positive(sigma, name="sigma")
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    cost = alphas / sigma**2
    # A bound on the probability that noise makes another class win than the one with most votes.
    ranked = np.sort(counts)
    losses = special.log_ndtr(-(ranked[-1] - ranked[:-1]) / (math.sqrt(2) * sigma))
    log_q = float(min(special.logsumexp(losses), math.log1p(-1 / counts.size)))
    second = sigma * math.sqrt(-log_q)
    if second <= 1:
        return cost
    first = second + 1
    room = (second - 1) * second / sigma**2 - second * (
        math.log1p(1 / (first - 1)) + math.log1p(1 / (second - 1))
    )
    if log_q > room or -log_q <= second / sigma**2:
        return cost
    log_right = math.log(-math.expm1(log_q))
    usual = log_right - math.log(-math.expm1((log_q + second / sigma**2) * (1 - 1 / second)))
    unusual = first / sigma**2 - log_q / (first - 1)
    better = np.logaddexp(log_right + (alphas - 1) * usual, log_q + (alphas - 1) * unusual) / (
        alphas - 1
    )
    return np.where(alphas < first, np.minimum(cost, better), cost)


def data_dependent_screening_rdp(
    votes: npt.ArrayLike, orders: npt.ArrayLike, *, threshold: float, sigma: float, private: bool
) -> Array:
    """Return the Rényi divergence of a screening bit at these very votes, without sampling.
    *Private: never to be published.*

    Args:
        votes, orders, private: as for ``data_dependent_label_rdp``, with whole votes. Errors too.
        threshold: votes that the noisy largest vote must reach.
        sigma: Gaussian noise of the largest vote.

    Returns:
        Shape (k,), the larger divergence of the bit from that at a largest vote of one more or one
        less.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, appendix E.
    """
    most = round(float(_votes(votes, private).max()))
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    costs = []
    for lower in range(max(most - 1, 0), most + 1):
        # The pairs of two neighbouring counts are (lower, higher) and then (higher, lower).
        event = ScreeningDpEvent(lower, lower + 1, threshold, sigma)
        base, other = screening_pairs(event, sampling_probability=1.0)
        kept = slice(1) if lower == most else slice(1, 2)
        costs.append(largest_divergence(base[:, kept], other[:, kept], alphas))
    return np.asarray(np.max(costs, axis=0))


def _votes(votes: npt.ArrayLike, private: bool) -> Array:
    if private is not True:
        raise InvalidParameter(
            f"private={private!r}: expected True, by which you state that this number, which "
            "depends on private data, is not published, booked or put on a card"
        )
    counts = finite_array(votes, name="votes", ndim=1)
    if counts.size < 2 or counts.min() < 0:
        raise InvalidInput("votes: expected at least two classes and no negative number")
    return counts


@dataclass(frozen=True, kw_only=True)
class AsymptoticTotal:
    """The total of the supplement's theorem 2.

    Attributes:
        epsilon: 20 gamma sqrt(log(1 / delta)) (sqrt(m) / sigma_1 + sqrt(answered) / sigma_2).
        exact: the sum that its proof bounds by this, before the last step.
        failing: conditions of the theorem that do not hold, as text.
    """

    epsilon: float
    exact: float
    failing: tuple[str, ...]

    @property
    def applies(self) -> bool:
        """True if all conditions of the theorem hold."""
        return not self.failing


def asymptotic_total(steps: PrivateKnnSteps, *, delta: float) -> AsymptoticTotal:
    """Return the total that the supplement's asymptotic theorem states.

    Args:
        steps: the steps, with screening.
        delta: of the total, in (0, 1).

    Raises:
        InvalidParameter: there is no screening, or ``delta`` is out of its range.

    Example:
        >>> steps = PrivateKnnSteps(
        ...     queries=1000, answers=735, neighbours=300, sampling_probability=0.05,
        ...     sigma_votes=25.0, threshold=180.0, sigma_screening=75.0,
        ... )
        >>> found = asymptotic_total(steps, delta=1e-5)
        >>> round(found.epsilon, 2), round(found.exact, 2), found.applies
        (5.11, 1.36, False)

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, theorem 8 (supplement, theorem 2).
    """
    probability(delta, name="delta", allow_zero=False)
    if steps.sigma_screening is None:
        raise InvalidParameter("steps: expected screening, which the theorem is about")
    rate, first, second = steps.sampling_probability, steps.sigma_screening, steps.sigma_votes
    asked, answered, log = steps.queries, steps.answers, math.log(1.0 / delta)
    spent = 6.0 * rate**2 * asked / first**2 + 12.0 * rate**2 * answered / second**2
    room = min(first, second) ** 2 * math.log(1.0 / rate) ** 2 - 2.0
    reach = math.sqrt(asked) / first + math.sqrt(answered) / second
    least = 4.0 * log * first**2 / (rate**2 * room) if room > 0 else math.inf
    conditions = {
        "gamma < 0.1": rate < 0.1,
        "sigma_1 >= sqrt(5)": first >= math.sqrt(5.0),
        "sigma_2 >= 2 sqrt(5)": second >= 2.0 * math.sqrt(5.0),
        f"queries >= {least:.4g}": asked >= least,
        "queries <= sigma_1^2 log(1/delta) / (3 gamma^2)": asked <= first**2 * log / (3 * rate**2),
        "answers <= sigma_2^2 log(1/delta) / (6 gamma^2)": answered
        <= second**2 * log / (6 * rate**2),
    }
    return AsymptoticTotal(
        epsilon=20.0 * rate * math.sqrt(log) * reach,
        exact=spent + 2.0 * math.sqrt(log * spent),
        failing=tuple(text for text, holds in conditions.items() if not holds),
    )


class _Voting(PrivateKNNClassifier):
    """The votes of given steps, whatever they cost."""

    steps: PrivateKnnSteps

    @override
    def _settle(self, classes: int, adjacency: AddRemove) -> None:
        self.plan_ = KnnNoise(self.steps, self.delta, classes, adjacency)


@with_settings
class PublishedPrivateKNN(ClassifierMixin, PublishedSystem):
    """Labels by screened noisy votes of the nearest private records, at the paper's settings.

    Guarantee:
        None: ``guarantee.kind`` is "no differential privacy". As printed, screening and vote of a
        query see one subsample, and each is booked as if it drew its own. ``spent()`` books what
        is run.

    Args:
        steps: neighbours, sampling, noise, threshold and numbers of queries and answers.
            ``shared_subsample=True`` is the paper's algorithm, False repairs it.
        delta: of the total, in (0, 1).
        classes: the labels that there are, or "observed".
        features: what the columns are, and the range that neighbours are compared on.

    Attributes:
        classes_: the labels, sorted.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> found = PublishedPrivateKNN(
        ...     steps=PrivateKnnSteps(
        ...         queries=100, answers=100, neighbours=50, sampling_probability=0.15,
        ...         sigma_votes=12.0, threshold=30.0, sigma_screening=25.0, shared_subsample=True,
        ...     ),
        ...     delta=1e-5, classes=range(10), features=Features(range=(0, 16)),
        ... ).fit(X[:1500], y[:1500])
        >>> round(found.guarantee.epsilon, 2), round(found.spent().epsilon, 2)
        (0.59, 0.62)

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, algorithm 1 and theorems 6 and 7.

    See Also:
        reticent.PrivateKNNClassifier: with a proof.
        reticent.accounting.private_knn_total: the sound account.
    """

    steps: PrivateKnnSteps
    delta: float
    classes: Classes
    features: Features | None = None

    voting_: PrivateKNNClassifier = learned()

    stated_adjacency: ClassVar[Adjacency] = AddRemove(1)

    name: ClassVar[str] = "Private-kNN, as published"
    source: ClassVar[str] = "Zhu, Yu, Chandraker and Wang (2020), CVPR"

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Keep the private records.

        Args:
            X: shape (n, features) or (n, height, width), private.
            y: shape (n,), labels.

        Raises:
            InvalidInput, InvalidParameter: nothing is kept.
        """
        probability(self.delta, name="delta", allow_zero=False)
        if not isinstance(self.steps, PrivateKnnSteps):
            raise InvalidParameter(
                f"steps: expected PrivateKnnSteps, got {type(self.steps).__name__}"
            )
        voting = _Voting(
            epsilon=1.0,  # of no use: the steps are given
            delta=self.delta,
            queries=self.steps.queries,
            classes=self.classes,
            neighbours=Neighbours(
                number=self.steps.neighbours,
                sampling_probability=self.steps.sampling_probability,
                threshold=self.steps.threshold,
            ),
            features=self.features,
        )
        voting.steps = self.steps
        voting.fit(X, y)
        self.voting_, self.classes_ = voting, voting.classes_
        self.n_features_in_ = voting.n_features_in_
        self._records = np.asarray(X), np.asarray(y)
        self.serial_ = token_hex(16)
        return self

    @override
    def stated(self) -> Account:
        steps = self.steps
        printed = private_knn_total(replace(steps, shared_subsample=False), delta=self.delta)
        asked = f"{steps.queries} queries and {steps.answers} answers"
        words = f"For {asked} together, each step amplified by itself."
        if steps.sigma_screening is not None:
            limit = asymptotic_total(steps, delta=self.delta)
            holds = "holds" if limit.applies else f"does not apply ({', '.join(limit.failing)})"
            words += f" Its asymptotic theorem states {limit.epsilon:.4g}, and {holds}."
        return Account(epsilon=printed.epsilon, delta=self.delta, reason=words)

    @override
    def spent(self) -> Account:
        total = private_knn_total(self.steps, delta=self.delta)
        which = "one subsample" if self.steps.shared_subsample else "a subsample for each step"
        return Account(
            epsilon=total.epsilon, delta=total.delta, reason=f"{total.bound}, with {which}."
        )

    @override
    def worst_pair(self) -> WorstPair:
        """Return records that all have one label, beside the same with one record more of another
        label, the nearest of all to the query.
        """
        return WorstPair(
            description=f"At least k = {self.steps.neighbours} records of one label, and one "
            "record of another label more, which is the nearest to the query.",
            loss=_loss_of_one_more(self.steps),
        )

    @override
    def checked(self, X: npt.ArrayLike) -> Points:
        """Return queries as points of the records' grid."""
        self._check_fitted()
        return self.voting_.checked(X)

    @override
    def answer(self, X: npt.ArrayLike, *, sampler: Sampler) -> Answers:
        points, most = self.checked(X), self.steps.queries
        if len(points) > most:
            raise InvalidInput(f"X: expected at most {most} queries, got {len(points)}")
        drawn = self.voting_.draw(points, sampler)
        late = np.cumsum(~drawn.withheld) > self.steps.answers
        values = np.asarray(drawn.values).copy()
        values[late] = None if values.dtype == object else -1
        return Answers(values, drawn.withheld | late)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return labels without noise. Private."""
        self._check_fitted()
        return self.voting_.exact_predict(X)

    @override
    def _content(self) -> tuple[dict[str, Any], Arrays]:
        given = a_part(self.features, Features, name="features").only("range", of=self)
        ends = given.range
        if ends is not None and not isinstance(ends, tuple | list):
            raise InvalidInput("save: expected a range of (lower, upper), or none")
        codes = np.searchsorted(self.classes_, self._records[1])
        settings = {
            "steps": asdict(self.steps),
            "delta": self.delta,
            "range": None if ends is None else [np.asarray(end).tolist() for end in ends],
        }
        return settings, {"rows": self._records[0], "codes": codes}

    @classmethod
    @override
    def _restored(cls, bundle: Bundle, labels: npt.NDArray[Any]) -> Self:
        stored, ends = bundle.settings, bundle.settings["range"]
        return cls(
            steps=PrivateKnnSteps(**stored["steps"]),
            delta=stored["delta"],
            classes=labels.tolist(),
            features=None if ends is None else Features(range=tuple(ends)),
        ).fit(bundle.arrays["rows"], labels[bundle.arrays["codes"]])


def _loss_of_one_more(steps: PrivateKnnSteps) -> float:
    """Return the largest log ratio of one answer's probabilities, with k records of label 1 and
    with one of label 0 among them wherever the sample includes it.
    """
    most, rate = steps.neighbours, steps.sampling_probability
    without, with_one = _outcomes(steps, 0, most), _outcomes(steps, 1, most - 1)
    if steps.sigma_screening is None or steps.shared_subsample:
        mixed = (1 - rate) * without + rate * with_one
    else:
        passed, other = without[:2].sum(), with_one[:2].sum()
        pass_mixed = (1 - rate) * passed + rate * other
        labels = (1 - rate) * without[:2] / passed + rate * with_one[:2] / other
        mixed = np.array([*(pass_mixed * labels), 1 - pass_mixed])
    seen = (without > 0) & (mixed > 0)
    return float(np.abs(np.log(mixed[seen] / without[seen])).max())


def _outcomes(steps: PrivateKnnSteps, first: int, second: int) -> Array:
    """Return the probabilities of label 0, label 1 and no answer at two counts of votes."""
    values, noise = _law(steps.sigma_votes)
    differences = np.convolve(noise, noise)  # of two noises, from twice the lowest
    lead = np.arange(2 * values[0], 2 * values[-1] + 1) + first - second
    label = np.array([differences[lead >= 0].sum(), differences[lead < 0].sum()])
    passes = 1.0
    if steps.sigma_screening is not None and steps.threshold is not None:
        values, noise = _law(steps.sigma_screening)
        passes = float(noise[max(first, second) + values >= steps.threshold].sum())
    return np.array([*(passes * label), 1 - passes])


def _law(sigma: float) -> tuple[Integers, Array]:
    """Return the values of discrete Gaussian noise, and their probabilities."""
    values = np.arange(-math.ceil(14 * sigma), math.ceil(14 * sigma) + 1)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    return values, weights / weights.sum()
