"""What following ``reticent.plan`` costs on tables that had no part in it: ``python -m
papers.choose.left_out --tables FOLDER``.

Of each table at most 5,000 records are private, a twentieth as many rows are public with labels (at
least 60), and at most 3,000 others are scored. Of tables below 1,000 rows a fifth is public, and in
further cases a twentieth (at least 20). A plan sees the public rows alone. Then every method of the
union is fitted on all private records at every total with draws of the noise, and scored on the
others: that is the truth. The union holds our released models, ordinary models of the public rows
one by one, descent without a start, naive Bayes on noisy histograms (a rival of a few lines, with
noise of numpy) and explainable boosting (``papers.choose.boosting``, where it is installed and
labels are two). Query methods are not in it: they are judged by answers until a point is lost.

Regret is the score of the best of the union in hindsight less that of the plan's choice, in
points. The best of many is a little lucky: "fair" regret chooses it on one half of the scored rows
and scores both on the other. Coverage is the share of cases in which the chosen model's true score
is above the lower end of ``expected``. A table counts as one case for each split and total. Means
and standard errors are over tables. Nothing is decided by measurement on small tables, so nothing
is measured beyond their first two splits, which are enough for coverage.

Cases are kept in ``--cache``, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.choose.boosting import BOOSTING, THERE, boosted
from papers.choose.sources import DATA, Source, table_of
from papers.result_files import cached_result, write_result
from reticent.core.arrays import Array, Integers
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.planning.methods import Limit, PublicModels, PublicStart, all_methods
from reticent.planning.parts import PublicParts
from reticent.planning.planner import Comparison
from reticent.planning.rows import kind_of_rows
from reticent.planning.tasks import Task
from reticent.systems.scores import Predictions, lifted, row_scores
from reticent.tables.drafting import schema_for
from reticent.tables.frames import NamedRows
from reticent.training.public_pool import PublicPool

Results = dict[str, Any]

EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTA = 1e-5
DRAWS = (11, 12)
MOST_PRIVATE, MOST_SCORED, LEAST_PUBLIC = 5000, 3000, 60
SMALL = 1000
SCORINGS = ("accuracy", "roc_auc", "balanced_accuracy")
_MEASURED = 2  # splits of a small table
_CLOSE = 0.5  # points
FOLDER = Path("docs/results/choose")


@dataclass(frozen=True, eq=False)
class Rows:
    """One split of one table: encoded rows, raw columns of a frame, and labels."""

    public: Array
    private: Array
    scored: Array
    labels: tuple[Integers, Integers, Integers]
    raw: tuple[Any, Any, Any]
    kind: str
    classes: int


def rows_of(source: Source, split: int, *, few: bool = False) -> Rows:
    """Return public, private and scored rows. The schema is a draft from the public ones.

    Args:
        source: the table.
        split: seed of the draw of rows.
        few: whether a twentieth of a small table is public, and not a fifth.
    """
    order = np.random.default_rng([split, 77]).permutation(len(source.rows))
    scored, rest = np.split(order, [min(MOST_SCORED, len(order) // 4)])
    share = 0.2 if len(order) < SMALL and not few else 0.05
    public = max(20 if few else LEAST_PUBLIC, round(share * min(MOST_PRIVATE, len(rest))))
    parts = (rest[:public], rest[public : public + MOST_PRIVATE], scored)
    frames = [source.frame(part) for part in parts]
    schema = schema_for(None, frames[0])
    encoded = [
        np.asarray(frame, dtype=float) if schema is None else schema.encode(frame)
        for frame in frames
    ]
    raw = [frame.values if isinstance(frame, NamedRows) else frame for frame in frames]
    return Rows(
        encoded[0],
        encoded[1],
        encoded[2],
        (source.labels[parts[0]], source.labels[parts[1]], source.labels[parts[2]]),
        (raw[0], raw[1], raw[2]),
        kind_of_rows(None, encoded[0].shape[1], schema),
        int(source.labels.max()) + 1,
    )


def task_of(rows: Rows, epsilon: float) -> Task:
    """Return what is wanted."""
    return Task(
        Guarantee(epsilon, DELTA, AddRemove()),
        len(rows.private),
        len(rows.public),
        rows.classes,
        rows=rows.kind,
    )


def union_of(rows: Rows) -> Iterator[tuple[str, Callable[[float], list[Array]]]]:
    """Yield the name of each method, and probabilities for scored rows by epsilon and draw."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    counts = np.bincount(rows.labels[0], minlength=rows.classes) + 1.0
    constant = np.tile(counts / counts.sum(), (len(rows.scored), 1))
    yield "constant", lambda epsilon: [constant]
    ordinary = {
        "public logistic regression": make_pipeline(
            StandardScaler(),
            GridSearchCV(LogisticRegression(max_iter=300), {"C": [0.001, 0.01, 0.1, 1.0, 10.0]}),
        ),
        "public boosted trees": HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.07, max_leaf_nodes=8, min_samples_leaf=5, random_state=0
        ),
        "public forest": RandomForestClassifier(100, min_samples_leaf=2, random_state=0),
    }
    for name, model in ordinary.items():
        fitted = model.fit(rows.public, rows.labels[0])
        found = np.full((len(rows.scored), rows.classes), 1e-6)
        found[:, fitted.classes_] = fitted.predict_proba(rows.scored)
        yield name, partial(lambda one, epsilon: [one], found)
    released = {method.name: method.estimator for method in all_methods() if not method.limited}
    del released["constant"]
    for name, estimator in [*released.items(), *_others().items()]:
        yield name, partial(_fitted, rows, estimator)
    if rows.kind == "table":
        yield "naive Bayes", partial(_naive_bayes, rows)
    if rows.kind == "table" and rows.classes == 2 and THERE:
        yield BOOSTING, partial(_boosted, rows)


def _others() -> dict[str, Callable[[Task], Any]]:
    from reticent.planning.methods import total
    from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier

    return {
        "noisy gradient descent": lambda task: NoisyGradientClassifier(
            **total(task), records=task.n_private
        ),
    }


def _fitted(rows: Rows, estimator: Callable[[Task], Any], epsilon: float) -> list[Array]:
    """Return probabilities by fits at all totals once; they are kept for the next total."""
    made = estimator(task_of(rows, epsilon))
    key = (id(rows), estimator)
    if key not in _KNOWN:
        fits = made.simulate_fits(
            rows.private,
            rows.labels[1],
            totals=[(one, DELTA) for one in EPSILONS],
            seeds=DRAWS,
            public_X=rows.public,
            public_y=rows.labels[0],
        )
        _KNOWN[key] = {
            one: [next(fits).predict_proba(rows.scored) for _ in DRAWS] for one in EPSILONS
        }
    return _KNOWN[key][epsilon]


_KNOWN: dict[Any, dict[float, list[Array]]] = {}


def _boosted(rows: Rows, epsilon: float) -> list[Array]:
    public, private, scored = rows.raw
    return boosted(
        public, private, rows.labels[1], scored, epsilon=epsilon, delta=DELTA, seeds=DRAWS
    )


def _naive_bayes(rows: Rows, epsilon: float) -> list[Array]:
    """Noisy counts of octile bins and categories by label, with those of public rows added."""
    codes = [_binned(*(part[:, at] for part in rows.raw)) for at in range(rows.raw[0].shape[1])]
    sigma = analytic_sigma(sensitivity=1.0, epsilon=epsilon, delta=DELTA) * (len(codes) + 1) ** 0.5
    found = []
    for seed in DRAWS:
        noise = np.random.default_rng([seed, round(10 * epsilon)])
        often = np.bincount(rows.labels[1], minlength=rows.classes)
        often = often + sigma * noise.standard_normal(rows.classes)
        logs = np.tile(np.log(np.maximum(often, 1.0)), (len(rows.scored), 1))
        for size, public, private, scored in codes:
            table = np.zeros((size, rows.classes))
            np.add.at(table, (private, rows.labels[1]), 1.0)
            table = np.maximum(table + sigma * noise.standard_normal(table.shape), 0.0) + 1.0
            np.add.at(table, (public, rows.labels[0]), 1.0)
            logs += np.log(table / table.sum(axis=0))[scored]
        logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
        found.append(np.exp(logs))
    return found


def _binned(*columns: npt.NDArray[Any]) -> tuple[int, Integers, Integers, Integers]:
    """Return the number of bins of a column, and bins of its cells; public ones say which."""
    public = columns[0]
    if all(isinstance(cell, int | float | np.number) for cell in public) and (
        len(np.unique(public.astype(float))) > 8
    ):
        ends = np.unique(np.quantile(public.astype(float), np.linspace(0, 1, 9)[1:-1]))
        found = [
            np.searchsorted(
                ends, np.array([np.nan if c is None else c for c in part], dtype=float), "right"
            )
            for part in columns
        ]
        return len(ends) + 1, found[0], found[1], found[2]
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(public.tolist()))}
    found = [np.array([kinds.get(cell, len(kinds)) for cell in part]) for part in columns]
    return len(kinds) + 1, found[0], found[1], found[2]


def truth_of(rows: Rows) -> Results:
    """Return scores by method, total and scoring: of all scored rows, and of each half."""
    shares = np.bincount(rows.labels[0], minlength=rows.classes).astype(np.float64) + 1.0
    truth = rows.labels[2]
    found: Results = {}
    halves = [slice(None), slice(0, None, 2), slice(1, None, 2)]
    for name, probabilities in union_of(rows):
        found[name] = {}
        for epsilon in EPSILONS:
            draws = probabilities(epsilon)
            found[name][f"{epsilon:g}"] = {
                scoring: [
                    float(np.mean([_scored(scoring, one[p], truth[p], shares) for one in draws]))
                    for p in halves
                ]
                for scoring in SCORINGS
            }
    _KNOWN.clear()
    return found


def _scored(scoring: str, found: Array, truth: Integers, shares: Array) -> float:
    labels = lifted(found, shares) if scoring == "balanced_accuracy" else found.argmax(axis=1)
    values = row_scores(scoring, Predictions(labels, found), truth, classes=found.shape[1])
    return float(values.mean())


def plans_of(rows: Rows, *, seed: int, measured: bool) -> Results:
    """Return what a plan takes and measures, by scoring and total.

    Args:
        rows: the split.
        seed: of the noise.
        measured: whether methods are tried, which a plan of a small table needs for ``expected``
            alone.
    """
    tasks = tuple(task_of(rows, epsilon) for epsilon in EPSILONS)
    methods = [one for one in all_methods() if not one.missing(tasks[0], labelled=True)]
    parts = PublicParts(rows.public, rows.labels[0], tasks[1], seed)
    comparison = Comparison(parts, SCORINGS[0], None, tasks)
    comparison.run(methods, Limit(1e9 if measured else 1e-9))
    found: Results = {scoring: {} for scoring in SCORINGS}
    for scoring in SCORINGS:
        comparison.scoring = scoring
        for task in tasks:
            plan = comparison.plan(task, methods)
            assert plan.winner is not None
            found[scoring][f"{task.guarantee.epsilon:g}"] = {
                "winner": plan.winner.method,
                "at_least": plan.expected.at_least,
                "rows": {
                    row.method: [
                        row.utility.value,
                        row.utility.error,
                        row.behind.value,
                        row.behind.error,
                        row.constant,
                    ]
                    for row in plan.rows
                },
            }
    return found


@contextmanager
def _fitted_once() -> Iterator[None]:
    """Public models are fitted once for the plan and for every estimator that starts from them."""
    fitted, known = PublicPool.fitted, {}

    def once(rows: Array, codes: Integers, classes: int, models: Sequence[Any]) -> Any:
        key = (rows.tobytes(), codes.tobytes(), len(models))
        if key not in known:
            known[key] = fitted(rows, codes, classes, models)
        return known[key]

    PublicPool.fitted = once  # type: ignore[method-assign]
    try:
        yield
    finally:
        PublicPool.fitted = fitted  # type: ignore[method-assign]


def case_of(
    name: str, source: Callable[[], Source], split: int, few: bool, measured: bool
) -> Results:
    """Return one case.

    Args:
        name: of the table.
        source: the table.
        split, few: as for ``rows_of``.
        measured: as for ``plans_of``.
    """
    begun = time.process_time()
    rows = rows_of(source(), split, few=few)
    with _fitted_once():
        planned = plans_of(rows, seed=split, measured=measured)
        spent = time.process_time() - begun
        truth = truth_of(rows)
    return {
        "table": name,
        "split": split,
        "n": [len(rows.public), len(rows.private), len(rows.scored)],
        "plan": planned,
        "truth": truth,
        "seconds": [round(spent, 1), round(time.process_time() - begun, 1)],
    }


def regrets_of(case: Results) -> Iterator[Results]:
    """Yield, by scoring and total, what the plan's choice is worth less than the best."""
    for scoring, by_total in case["plan"].items():
        for total, plan in by_total.items():
            scores = {name: truth[total][scoring] for name, truth in case["truth"].items()}
            own = scores[plan["winner"]]
            best = max(scores, key=lambda name: scores[name][0])
            fair = []
            for choosing, scoring_half in ((1, 2), (2, 1)):
                there = max(scores, key=lambda name, at=choosing: scores[name][at])  # type: ignore[misc]
                fair.append(scores[there][scoring_half] - own[scoring_half])
            value, error = plan["rows"].get(plan["winner"], [np.nan, np.nan])[:2]
            yield {
                "table": case["table"],
                "small": _small(case),
                "scoring": scoring,
                "total": float(total),
                "winner": plan["winner"],
                "best": best,
                "score": own[0],
                "constant": scores["constant"][0],
                "pool": scores[PublicModels.name][0],
                "usual": scores[PublicStart.name][0],
                "regret": 100 * (scores[best][0] - own[0]),
                "fair": 100 * float(np.mean(fair)),
                "held": own[0] >= plan["at_least"] if np.isfinite(value) else None,
                "too_high": value - own[0] > 2 * error if np.isfinite(value) else None,
            }


def _small(case: Results) -> bool:
    return bool(min(case["n"][1] / SMALL, case["n"][0] / 100) < 1)


def markdown(cases: Sequence[Results]) -> str:
    """Return the tables."""
    rows = [row for case in cases for row in regrets_of(case)]
    lines = ["# What following a plan costs", ""]
    lines += [f"`python -m papers.choose.left_out`, {len(cases)} splits of tables left out whole."]
    lines += ["", "| group | scoring | tables | cases | regret | worst | fair regret | pool's |"]
    lines[-1] += " held | too high |"
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for group, small in (("enough records and labels", False), ("small", True)):
        for scoring in SCORINGS:
            some = [row for row in rows if row["scoring"] == scoring and row["small"] == small]
            if some:
                lines.append(_summary(group, scoring, some))
    lines += ["", "## By table, accuracy", ""]
    lines += ["| table | public, private | splits | at .5 | best at .5 | regret by total | worst |"]
    lines.append("|---|---|---|---|---|---|---|")
    kinds: dict[tuple[Any, ...], list[Results]] = {}
    for case in cases:
        kinds.setdefault((case["table"], *case["n"][:2]), []).append(case)
    for (table, public, private), some in kinds.items():
        own = [[one for one in regrets_of(case) if one["scoring"] == "accuracy"] for case in some]
        regret = np.array([[one["regret"] for one in each] for each in own])
        best = Counter(each[1]["best"] for each in own).most_common(1)[0][0]
        lines.append(
            f"| {table} | {public}, {private} | {len(some)} | "
            f"{np.mean([each[1]['score'] for each in own]):.4f} | {best} | "
            f"{' '.join(f'{mean:.2f}' for mean in regret.mean(axis=0))} | {regret.max():.2f} |"
        )
    lines += ["", "## How far each method is behind the best of the union, accuracy", ""]
    lines.append(
        "Means are over the splits of a table, then over tables, and small ones count twice."
    )
    lines.append("*Near*: tables on which the mean is within half a point at one of the totals.")
    lines += ["", "| method | mean | small tables | near | least mean |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(name for case in cases for name in case["truth"]):
        means, of_small, near = [], [], set()
        for (table, *_), some in kinds.items():
            if name not in some[0]["truth"]:
                continue
            behind = np.mean([_behind(case, name) for case in some], axis=0)
            means.append(behind)
            of_small += [behind.mean()] if _small(some[0]) else []
            near |= {table} if behind.min() <= _CLOSE else set()
        tables = len({case["table"] for case in cases if name in case["truth"]})
        lines.append(
            f"| {name} | {np.mean(means):.2f} | {np.mean(of_small):.2f} | "
            f"{len(near)} of {tables} | {np.min(means):.2f} |"
        )
    return "\n".join(lines) + "\n"


def _behind(case: Results, name: str) -> list[float]:
    """Return how many points of accuracy a method is behind the best, at each total."""
    found = []
    for total, own in case["truth"][name].items():
        best = max(each[total]["accuracy"][0] for each in case["truth"].values())
        found.append(100 * (best - own["accuracy"][0]))
    return found


def _summary(group: str, scoring: str, rows: Sequence[Results]) -> str:
    tables = sorted({row["table"] for row in rows})

    def mean(key: str) -> str:
        each = [np.mean([row[key] for row in rows if row["table"] == table]) for table in tables]
        error = np.std(each, ddof=1) / len(each) ** 0.5 if len(each) > 1 else np.nan
        return f"{np.mean(each):.2f} ± {error:.2f}"

    best = [row["regret"] + 100 * (row["score"] - row["pool"]) for row in rows]
    worst = max(row["regret"] for row in rows)
    held, high = (
        100 * np.mean([row[key] for row in rows if row[key] is not None])
        for key in ("held", "too_high")
    )
    return (
        f"| {group} | {scoring} | {len(tables)} | {len(rows)} | {mean('regret')} | {worst:.2f} | "
        f"{mean('fair')} | {np.mean(best):.2f} | {held:.0f} % | {high:.0f} % |"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the cases and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, help="folder of export_outcomes")
    parser.add_argument("--data", nargs="*", default=["adult", "covertype", "higgs", "imdb"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--small-splits", type=int, default=2)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of tables")
    parser.add_argument("--seconds", type=float, help="CPU seconds after which no case is begun")
    parser.add_argument("--write", action="store_true", help="write docs/results/choose")
    given = parser.parse_args(arguments)
    sources: dict[str, Callable[[], Source]] = {name: DATA[name] for name in given.data}
    sources["breast cancer"] = DATA["breast cancer"]
    if given.tables is not None:
        for path in sorted(given.tables.glob("*.csv")):
            sources[path.stem] = partial(table_of, path)
    if given.only:
        sources = {name: sources[name] for name in given.only}
    asked = []
    for name, source in sources.items():
        small = len(source().rows) < SMALL
        splits = given.small_splits if small else given.splits
        asked += [
            (split, few, name, small)
            for few in ((0, 1) if small else (0,))
            for split in range(splits)
        ]
    cases = []
    for split, few, name, small in sorted(asked, key=lambda one: one[0]):
        path = given.cache / f"{name}-{split}{'-few' * few}.json"
        if given.seconds is not None and not path.exists() and time.process_time() > given.seconds:
            continue
        made = partial(
            case_of, name, sources[name], split, bool(few), not small or split < _MEASURED
        )
        cases.append(cached_result(path, made))
        print(name, split, few, cases[-1]["seconds"], flush=True)
    page = markdown(cases)
    print(page)
    if given.write:
        write_result(FOLDER / "left_out.md", page)


if __name__ == "__main__":
    main()
