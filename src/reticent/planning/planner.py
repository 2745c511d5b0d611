"""``reticent.plan``: which method to use for labels or a model from private records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import check_jobs, count, finite_array, one_of, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee, Replace
from reticent.core.seeds import training_seed
from reticent.planning.candidates import Candidate, PublicUse, all_candidates
from reticent.planning.plans import Plan, PlanRow, Point, uses_private
from reticent.planning.prior import Prior, mixed, shipped_prior
from reticent.planning.pseudo_labels import checked_prevalence, pseudo_labels
from reticent.planning.survey import Report, Survey, Trials
from reticent.planning.tasks import Task
from reticent.systems.scores import DEFAULT, Criterion, criterion_of
from reticent.tables.frames import named_rows
from reticent.tables.schema import TabularSchema

SECONDS = 300.0

_CURVE = (0.1, 0.3, 3.0)
_ANSWERS = (1, 10, 100, 1000, 10_000, 100_000)
_LEAST_ROWS = 20
_ADJACENCIES: dict[str, Callable[[], AddRemove | Replace]] = {
    "add-remove": AddRemove,
    "replace": Replace,
}


def plan(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    n_private: int,
    epsilon: float,
    delta: float,
    adjacency: str = "add-remove",
    answers: int | None = None,
    classes: Sequence[Any] | None = None,
    scoring: str = DEFAULT,
    prevalence: npt.ArrayLike | None = None,
    schema: TabularSchema | None = None,
    epsilons: Sequence[float] | None = None,
    candidates: Sequence[Candidate] | None = None,
    prior: Prior | None = None,
    seconds: float = SECONDS,
    random_state: Any = None,
    report: Report | None = None,
    n_jobs: int | None = None,
) -> Plan:
    """The methods that fit at a guarantee, tried on public stand-ins, and the one to take.

    Folds of the public rows play the private records. Noise is scaled by the number of stand-ins
    over ``n_private``, so that it has the effect that it will have; what is lost by learning from
    fewer rows is measured at two sizes and extrapolated. Private records are not asked for, so a
    plan costs nothing.

    Guarantee:
        None is needed: everything follows from public rows, ``n_private`` and the other arguments,
        all of which count as public. The winner states its own guarantee once it is fitted.

    Args:
        X: shape (m, features), *public* rows; numbers, or rows as ``schema`` describes them. An
            array, or a data frame of pandas, polars or pyarrow.
        y: shape (m,), their labels, numbers or words; None where they have none. Then clusters of
            the rows stand for labels, and the plan ranks methods and cannot say what accuracy to
            expect.
        n_private: number of private records, at least 1; counts as public.
        epsilon: of everything that is released, above 0.
        delta: of everything that is released, in [0, 1).
        adjacency: "add-remove" or "replace": what neighbouring data sets are.
        answers: how many labels will ever be asked for; None for any number, which leaves out
            methods that pay for each answer.
        classes: the labels that there are, a public list; None for those in ``y``. Needed without
            ``y``.
        scoring: "log_loss", "brier", "information" (proper scores), "accuracy",
            "balanced_accuracy" or "roc_auc".
        prevalence: shape (classes,), shares of the classes where ``y`` is None; None for equal.
        schema: what the columns are, where they are not all numbers. The estimator then takes
            ``schema.encode`` of the private records, as it was tried on that of the public rows.
        epsilons: further totals for the page's curve; None for a tenth to ten times ``epsilon``.
        candidates: methods to try; None for all that are registered.
        prior: what methods lost on other data sets; None for the measurements that come with the
            package. It counts by its precision: less, the more public rows there are.
        seconds: time limit, above 0. What is not finished then is named in ``left_out``. One
            method that has begun is waited for.
        random_state: seed of splits and noise; None for the operating system. Two plans of one seed
            are equal as long as neither runs into the time limit.
        report: told after every trial.
        n_jobs: workers that try settings, as of ``joblib.Parallel``; None for one, or for those of
            ``joblib.parallel_config``. The plan is the same, but for the last digits of sums.

    Returns:
        A ``Plan``: rows with joint standard errors, warnings, and ``estimator``, the winner.

    Raises:
        InvalidInput, InvalidParameter, UnknownName: arguments that do not fit; nothing is tried.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from reticent.planning.public_rows import PublicRows
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> found = plan(
        ...     X, y, n_private=5000, epsilon=1.0, delta=1e-6, scoring="accuracy", random_state=0,
        ...     candidates=[PublicRows()],
        ... )
        >>> found.winner.utility > 0.9, found.estimator.fit(X, y).score(X, y) > 0.9
        (True, True)

    References:
        - Liu and Talwar (2019), "Private selection from private candidates", arXiv:1811.07971,
          selection on the private records, which this replaces.

    See Also:
        reticent.planning.Candidate: what a method of your own has to have.
    """
    check_jobs(n_jobs)
    rows = _numbers(X, schema)
    if len(rows) < _LEAST_ROWS:
        raise InvalidInput(f"X: expected at least {_LEAST_ROWS} public rows, got {len(rows)}")
    criterion = criterion_of(scoring)
    make = _ADJACENCIES[one_of(adjacency, _ADJACENCIES, name="adjacency")]
    guarantee = Guarantee(
        positive(epsilon, name="epsilon"), probability(delta, name="delta"), make()
    )
    seed = training_seed(random_state)
    labels, shares, known = _labels(y, len(rows), classes, prevalence)
    task = Task(
        guarantee,
        count(n_private, name="n_private"),
        len(rows),
        len(shares),
        rows.shape[1],
        answers,
        tuple(rows.min(axis=0).tolist()),
        tuple(rows.max(axis=0).tolist()),
    )
    labelled = labels is not None
    found = pseudo_labels(rows, shares, seed=seed) if labels is None else labels
    curve = [positive(value, name="epsilons") for value in epsilons or ()] or [
        factor * task.guarantee.epsilon for factor in _CURVE
    ]
    tasks = _tasks(task, curve)
    trials = Trials(
        rows=rows,
        labels=found,
        labelled=labelled,
        tasks=tasks,
        scoring=criterion,
        seed=seed,
        seconds=positive(seconds, name="seconds"),
        report=report if report is not None else _silent,
        n_jobs=n_jobs,
    )
    survey = trials.run(all_candidates() if candidates is None else candidates)
    return planned(survey, criterion, labelled=labelled, prior=prior, labels=known)


def planned(
    survey: Survey,
    scoring: Criterion,
    *,
    labelled: bool,
    prior: Prior | None,
    task: int = 0,
    labels: tuple[Any, ...] = (),
) -> Plan:
    """What a survey says about one of its tasks.

    Args:
        survey: measurements.
        scoring: the criterion that they were made by.
        labelled: whether the labels were true ones.
        prior: None for the one that comes with the package.
        task: place of the task among ``survey.tasks``.
        labels: as private records have them; empty for their numbers.
    """
    wanted = survey.tasks[task]
    aim = replace(wanted, labels=labels)
    few = wanted.n_public < wanted.enough_public
    cases = prior if prior is not None else shipped_prior()
    ranked = _ranked(survey, task, scoring, cases if labelled else Prior(()))
    rows = tuple(_rows(survey, ranked, aim, labelled))
    limits = [
        point
        for at, other in enumerate(survey.tasks)
        if other.guarantee == wanted.guarantee and other.answers is not None
        for point in _points(survey, at, scoring, float(other.answers))
    ]
    curve = [
        point
        for at, other in enumerate(survey.tasks)
        if other.answers == wanted.answers
        for point in _points(survey, at, scoring, other.guarantee.epsilon)
    ]
    most = most_answers(survey, wanted, scoring)
    return Plan(
        task=aim,
        scoring=scoring.name,
        labelled=labelled,
        rows=rows,
        curve=tuple(sorted(set(curve), key=lambda point: (point.method, point.at))),
        by_answers=tuple(sorted(set(limits), key=lambda point: (point.method, point.at))),
        most_answers=most,
        warnings=tuple(_warnings(rows, wanted, labelled=labelled, few=few, prior=ranked.mixed)),
        left_out=survey.left_out,
        close=ranked.close,
        prior_used=ranked.mixed,
        seconds=survey.seconds,
    )


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Means of one task, shape (entries,) each; ``order`` is best first, ``close`` the joint
    standard error of two good settings.
    """

    utility: Array
    error: Array
    behind: Array
    behind_error: Array
    score: Array
    order: Integers
    close: float
    mixed: bool


def _ranked(survey: Survey, task: int, scoring: Criterion, prior: Prior) -> _Ranked:
    table = survey.utilities[:, task, :]
    splits = (~np.isnan(table)).sum(axis=1)
    # Settings that were dropped after the screening splits are compared on those alone.
    full = np.where(splits == splits.max(), np.nanmean(table, axis=1), -np.inf)
    leader = table[full.argmax()]
    utility = np.nanmean(leader) - np.nanmean(leader - table, axis=1)
    joint = standard_errors(leader - table)
    regrets = prior.regrets(
        survey.entries,
        survey.tasks[task],
        scoring="log_loss" if scoring.proper else "accuracy",
    )
    close = joint[np.argsort(-utility)][: max(2, len(utility) // 2)]
    error = float(np.median(close))
    score = mixed(
        utility,
        regrets,
        methods=[entry.candidate.name for entry in survey.entries],
        error=error,
        extrapolated=_extrapolated(survey, task, utility),
    )
    order = np.argsort(-score, kind="stable")
    return _Ranked(
        utility,
        standard_errors(table),
        utility[order[0]] - utility,
        standard_errors(table[order[0]] - table),
        score,
        order,
        error,
        bool((score != utility).any()),
    )


def _extrapolated(survey: Survey, task: int, utility: Array) -> float:
    """How much of the utility of a good setting is extrapolated: the median of the better half."""
    gains = np.nanmean(np.abs(survey.utilities[:, task, :] - survey.measured[:, task, :]), axis=1)
    better = np.argsort(-utility)[: max(2, len(utility) // 2)]
    return float(np.median(gains[better]))


def standard_errors(table: Array) -> Array:
    """Standard errors of the means over the splits of a cross-validation.

    Folds share most of the rows that they train on, so their scores are not independent: the
    variance of their mean is (1/J + held out/trained on) times that of one score, for J of them.

    Args:
        table: shape (entries, folds), NaN where an entry was not tried.

    Returns:
        Shape (entries,).

    References:
        - Nadeau and Bengio (2003), "Inference for the generalization error",
          doi:10.1023/A:1024068626366, equation 9 (corrected resampled variance).

    Example:
        >>> standard_errors(np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])).round(4)
        array([1.0607])
    """
    splits = (~np.isnan(table)).sum(axis=1)
    if table.shape[1] < 2 or splits.min() < 2:
        return np.zeros(len(table))
    spread = np.nanstd(table, axis=1, ddof=1)
    return np.asarray(spread * np.sqrt(1.0 / splits + 1.0 / (table.shape[1] - 1)))


def _rows(survey: Survey, ranked: _Ranked, task: Task, labelled: bool) -> list[PlanRow]:
    splits = (~np.isnan(survey.utilities[:, 0, :])).sum(axis=1)
    rows = []
    for place, at in enumerate(ranked.order):
        entry = survey.entries[at]
        candidate = entry.candidate
        rows.append(
            PlanRow(
                method=candidate.name,
                line=candidate.line,
                settings=entry.settings,
                utility=float(ranked.utility[at]) if labelled else math.nan,
                error=float(ranked.error[at]) if labelled else math.nan,
                behind=float(ranked.behind[at]) if labelled else math.nan,
                behind_error=float(ranked.behind_error[at]) if labelled else math.nan,
                score=float(ranked.score[at]) if labelled else float(-place),
                splits=int(splits[at]),
                answers=task.answers if candidate.requirements.limited else None,
                protects=candidate.protects,
                uses=candidate.requirements.public,
                make=partial(candidate.estimator, entry.settings, task),
            )
        )
    return rows


def _points(survey: Survey, task: int, scoring: Criterion, at: float) -> list[Point]:
    ranked = _ranked(survey, task, scoring, Prior(()))
    found: dict[str, Point] = {}
    for place in ranked.order:
        method = survey.entries[place].candidate.name
        found.setdefault(
            method,
            Point(at, method, float(ranked.utility[place]), float(ranked.error[place])),
        )
    return list(found.values())


def most_answers(survey: Survey, task: Task, scoring: Criterion) -> int | None:
    """Q*: up to how many answers the best private prediction is worth more than the best private
    training, at ``task``'s total.

    Between two numbers that were tried, the difference is read off a straight line over the
    logarithm. Where prediction is ahead at the largest number tried, that number comes out.

    Returns:
        A number of answers; 0 where prediction is never ahead; None where either was not tried.
    """
    kinds = np.array(
        [
            uses_private(needed.public) * (2 if needed.limited else 1)
            for needed in (entry.candidate.requirements for entry in survey.entries)
        ]
    )
    if not ((kinds == 1).any() and (kinds == 2).any()):
        return None
    found: dict[float, float] = {}
    for at, other in enumerate(survey.tasks):
        if other.answers is None or other.guarantee != task.guarantee:
            continue
        utility = _ranked(survey, at, scoring, Prior(())).utility
        found[other.answers] = float(utility[kinds == 2].max() - utility[kinds == 1].max())
    leads = sorted(found.items())
    ahead = [place for place, (_, lead) in enumerate(leads) if lead >= 0]
    if not ahead:
        return 0
    last = ahead[-1]
    answers, lead = leads[last]
    if last + 1 == len(leads):
        return int(answers)
    following, lag = leads[last + 1]
    share = lead / (lead - lag)
    return int(answers * math.exp(share * math.log(following / answers)) + 1e-9)


def _tasks(task: Task, curve: Sequence[float]) -> tuple[Task, ...]:
    """The task first, then other totals, then other numbers of answers."""
    others = [task.at(epsilon=epsilon) for epsilon in curve]
    if task.answers is not None:
        others += [task.at(answers=answers) for answers in _ANSWERS]
    return tuple(dict.fromkeys([task, *others]))


def _numbers(X: Any, schema: TabularSchema | None) -> Array:
    """Public rows as numbers, shape (m, features)."""
    if schema is not None:
        return finite_array(schema.encode(X), name="X", ndim=2)
    values, _ = named_rows(X)
    if np.asarray(values).dtype.kind in "OSU":
        raise InvalidInput(
            "X: expected numbers, got columns of words or dates; pass schema=, which "
            "TabularSchema.from_frame drafts from public rows"
        )
    return finite_array(values, name="X", ndim=2)


def _labels(
    y: npt.ArrayLike | None,
    rows: int,
    classes: Sequence[Any] | None,
    prevalence: npt.ArrayLike | None,
) -> tuple[Integers | None, Array, tuple[Any, ...]]:
    """Public labels as numbers, or None; the shares of the classes; and the classes."""
    if y is None:
        if classes is None:
            raise InvalidParameter(
                "classes: expected the labels that there are, since there is no y to find them in"
            )
        known = list(dict.fromkeys(classes))
        if len(known) < 2:
            raise InvalidParameter(f"classes: expected at least two, got {len(known)}")
        return None, checked_prevalence(prevalence, len(known)), tuple(known)
    if prevalence is not None:
        raise InvalidParameter("prevalence: expected only without y, whose own shares are used")
    from reticent.systems.record_labels import record_labels

    found, codes = record_labels(y, rows, "observed" if classes is None else classes)
    return codes, np.bincount(codes, minlength=len(found)) / rows, tuple(found.tolist())


def _warnings(
    rows: Sequence[PlanRow], task: Task, *, labelled: bool, few: bool, prior: bool
) -> list[str]:
    found = []
    if not labelled:
        found.append(
            "public rows without labels: clusters stood for labels. The order of methods means "
            "something, their scores do not, and what accuracy to expect cannot be said"
        )
    if labelled and few:
        more = "; what methods lost on other data sets was mixed in" if prior else ""
        found.append(
            f"{task.n_public} labelled public rows: with fewer than {task.enough_public} the order "
            f"of close methods is uncertain{more}"
        )
    if task.guarantee.delta * task.n_private >= 1:
        found.append(
            f"delta={task.guarantee.delta:g} is at least 1 / n_private: a method may give whole "
            "records away with such a chance"
        )
    best = rows[0]
    if labelled:
        found += _comparisons(rows)
    if not best.estimator_there:
        found.append(
            f"{best.name} scored best, and this package has it only to compare with; the winner "
            "named here is the best method with an estimator"
        )
    return found


def _comparisons(rows: Sequence[PlanRow]) -> list[str]:
    found = []
    best = rows[0]
    constants = [row for row in rows if row.uses is PublicUse.NOTHING]
    if constants and (best in constants or constants[0].as_good):
        found.append("no method here beats the constant by more than two standard errors")
    alone = [row for row in rows if row.uses is PublicUse.LABELS_ALONE]
    if not alone or not any(row.private for row in rows):
        return found
    if best in alone:
        found.append(
            f"public rows alone train as good a model ({best.name}): nothing private is needed, "
            "and nothing has to be protected"
        )
    elif alone[0].as_good:
        found.append(
            f"public rows alone may train as good a model ({alone[0].name}), within two joint "
            "standard errors of the best: where they do, nothing private is needed"
        )
    return found


def _silent(stage: str, done: int, total: int, loss: float) -> None:
    """Reports nothing."""
