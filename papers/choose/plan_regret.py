"""What is lost by following ``reticent.plan``: ``python -m papers.choose.plan_regret``.

Each case is a data set, a split and a number of public rows. The plan sees the public rows alone.
Then every setting is fitted on all private records at every total and scored on other rows: that
is the truth. Regret is what the plan's choice is worth less than the best setting in hindsight,
which is chosen on some draws of the noise and scored, as the plan's choice is, on others.
Everything comes from training parts; official held-out parts are not read.

Cases are kept in ``--cache``, so that an interrupted run goes on where it was. ``--write-prior``
writes ``src/reticent/planning/prior.json`` from them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.result_files import write_result
from reticent.core.arrays import Integers
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.datasets import (
    Dataset,
    Table,
    load,
    load_adult,
    load_atlas,
    load_covertype,
    load_higgs,
    load_imdb,
)
from reticent.planning.candidates import Candidate, PublicUse
from reticent.planning.constant import Constant
from reticent.planning.planner import planned
from reticent.planning.prior import Case, Prior, noise_level, prior_content
from reticent.planning.public_rows import PublicRows
from reticent.planning.released_models import released_models
from reticent.planning.survey import Entry, Survey, Trials
from reticent.planning.tasks import StandIns, Task
from reticent.systems.scores import criterion_of
from reticent.tables import (
    TabularSchema,
    adult_schema,
    atlas_schema,
    covertype_schema,
    higgs_schema,
)

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

EPSILONS = (0.1, 1.0)
DELTA = 1e-5
DRAWS = 4
"""Draws of the noise by which settings are fitted in truth; half to choose, half to score."""
PUBLIC = 2000
FEW = 0.05
MOST_PRIVATE = 10_000
MOST_SCORED = 3000
SCORINGS = ("accuracy", "log_loss")
FOLDER = Path("docs/results/choose")
PRIOR = Path("src/reticent/planning/prior.json")


@dataclass(frozen=True, eq=False)
class Source:
    """Training rows as they were published, their labels, and the public map to numbers."""

    rows: npt.NDArray[Any]
    labels: Integers
    numbers: Callable[[npt.NDArray[Any]], Array]


def _table(table: Table, schema: TabularSchema) -> Source:
    return Source(table.train_rows, table.train_labels, schema.encode)


def _embedded(table: Table) -> Source:
    return Source(table.train_rows, table.train_labels, lambda rows: rows.astype(np.float64))


def _pictures(pictures: Dataset) -> Source:
    """Pictures of half the height and width, each pixel the mean of four."""

    def pooled(images: npt.NDArray[Any]) -> Array:
        rows, height, width = images.shape
        blocks = images.astype(np.float64).reshape(rows, height // 2, 2, width // 2, 2)
        return np.asarray(blocks.mean(axis=(2, 4)).reshape(rows, -1))

    return Source(pictures.train_images, pictures.train_labels, pooled)


def _named(table: Table, schema_of: Callable[[tuple[str, ...]], TabularSchema]) -> Source:
    return _table(table, schema_of(table.columns))


DATA: dict[str, Callable[[], Source]] = {
    "adult": lambda: _table(load_adult(), adult_schema()),
    "covertype": lambda: _table(load_covertype(), covertype_schema()),
    "higgs": lambda: _named(load_higgs(), higgs_schema),
    "atlas": lambda: _named(load_atlas(), atlas_schema),
    "imdb": lambda: _embedded(load_imdb()),
    "pneumonia": lambda: _pictures(load("pneumonia")),
    "fashion": lambda: _pictures(load("fashion")),
}
SIZES = ("enough", "few")
"""2,000 public rows, at least a fifth of the private records; or a twentieth of them."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One split of one data set."""

    public: Array
    public_labels: Integers
    private: Array
    private_labels: Integers
    scored: Array
    scored_labels: Integers


def rows_of(data: str, *, size: str, split: int) -> Rows:
    """Public rows, private records and rows to score on, drawn from the training part."""
    source = DATA[data]()
    order = np.random.default_rng([split, 11]).permutation(len(source.rows))
    order = order[: MOST_PRIVATE + PUBLIC + MOST_SCORED]
    scored = order[: min(MOST_SCORED, len(order) // 5)]
    rest = order[len(scored) :]
    private, others = np.split(rest, [min(MOST_PRIVATE, len(rest) - PUBLIC)])
    public = others[: PUBLIC if size == "enough" else max(100, round(FEW * len(private)))]
    table = {
        name: source.numbers(source.rows[places])
        for name, places in (("public", public), ("private", private), ("scored", scored))
    }
    labels = source.labels
    return Rows(
        table["public"],
        labels[public],
        table["private"],
        labels[private],
        table["scored"],
        labels[scored],
    )


def candidates() -> list[Candidate]:
    """Methods that release a model, and those that use no private record."""
    return [Constant(), PublicRows(), *released_models()]


def tasks_of(rows: Rows) -> tuple[Task, ...]:
    """One task for each total."""
    classes = int(max(rows.private_labels.max(), rows.public_labels.max())) + 1
    return tuple(
        Task(
            Guarantee(epsilon, DELTA, AddRemove()),
            len(rows.private),
            len(rows.public),
            classes,
            rows.public.shape[1],
        )
        for epsilon in EPSILONS
    )


def surveyed(rows: Rows, *, seed: int) -> Survey:
    """What the planner measures on the public rows."""
    return Trials(
        rows=rows.public,
        labels=rows.public_labels,
        labelled=True,
        tasks=tasks_of(rows),
        scoring=criterion_of("accuracy"),
        seed=seed,
        seconds=math.inf,
        report=lambda stage, done, total, loss: None,
    ).run(candidates())


def truth_of(rows: Rows, *, seed: int) -> dict[str, dict[str, list[list[float]]]]:
    """By criterion and setting: utilities on all private records, one list of draws a total."""
    tasks = tasks_of(rows)
    found: dict[str, dict[str, list[list[float]]]] = {scoring: {} for scoring in SCORINGS}
    seeds = [7_000_000 + 1000 * seed + draw for draw in range(DRAWS)]
    places: dict[PublicUse, StandIns] = {
        use: StandIns(
            rows.public,
            rows.public_labels if use is not PublicUse.ROWS else None,
            rows.private,
            rows.private_labels,
        )
        for use in PublicUse
    }
    for candidate in candidates():
        for settings in candidate.settings(tasks[0]):
            predictions = candidate.evaluate(
                settings,
                tasks,
                places[candidate.requirements.public],
                rows.scored,
                noise_scale=1.0,
                seeds=seeds,
            )
            for name in SCORINGS:
                scoring = criterion_of(name)
                found[name][Entry(candidate, settings).name] = [
                    [
                        scoring.of(draw, rows.scored_labels, classes=tasks[0].classes)
                        for draw in draws
                    ]
                    for draws in predictions
                ]
    return found


def case_of(data: str, *, size: str, split: int, cache: Path) -> Results:
    """One case, from the cache or computed."""
    path = cache / f"{data}-{size}-{split}.json"
    if path.is_file():
        stored: Results = json.loads(path.read_text(encoding="utf-8"))
        return stored
    rows = rows_of(data, size=size, split=split)
    survey = surveyed(rows, seed=split)
    case: Results = {
        "data": data,
        "size": size,
        "split": split,
        "n_private": len(rows.private),
        "n_public": len(rows.public),
        "features": rows.public.shape[1],
        "classes": tasks_of(rows)[0].classes,
        "entries": [entry.name for entry in survey.entries],
        "measured": _rounded(survey.measured),
        "halves": _rounded(survey.halves),
        "counts": survey.counts.tolist(),
        "seconds": round(survey.seconds, 1),
        "truth": truth_of(rows, seed=split),
    }
    write_result(path, json.dumps(case))
    return case


def survey_of(case: Results) -> Survey:
    """The survey of a stored case."""
    tasks = tuple(
        Task(
            Guarantee(epsilon, DELTA, AddRemove()),
            case["n_private"],
            case["n_public"],
            case["classes"],
            case["features"],
        )
        for epsilon in EPSILONS
    )
    known = {
        entry.name: entry
        for candidate in candidates()
        for entry in (Entry(candidate, settings) for settings in candidate.settings(tasks[0]))
    }
    return Survey(
        tasks,
        tuple(known[name] for name in case["entries"]),
        np.array(case["measured"], dtype=np.float64),
        np.array(case["halves"], dtype=np.float64),
        np.array(case["counts"], dtype=np.float64),
        1.0,
        (),
        case["seconds"],
    )


def hindsight(case: Results, place: int) -> tuple[str, dict[str, float]]:
    """The setting that is best on one half of the draws at a total, and what every setting is worth
    on the other half.
    """
    truth = {name: np.array(draws)[place] for name, draws in case["truth"]["accuracy"].items()}
    half = DRAWS // 2
    best = max(truth, key=lambda name: float(truth[name][:half].mean()))
    return best, {name: float(draws[half:].mean()) for name, draws in truth.items()}


def oracle_regrets(cases: Sequence[Results]) -> list[Results]:
    """For each case and total: the regret of the setting that is best on all *other* splits of the
    same data set, where it was fitted on all private records. It knows everything but which rows
    this split drew, so no rule that chooses from public rows should be expected to do better.
    """
    found = []
    for case in cases:
        others = [
            other
            for other in cases
            if (other["data"], other["size"]) == (case["data"], case["size"])
            and other["split"] != case["split"]
        ]
        if not others:
            continue
        for place in range(len(EPSILONS)):
            best, worth = hindsight(case, place)
            known = sorted(
                set.intersection(*(set(one["truth"]["accuracy"]) for one in [case, *others]))
            )
            means = [
                np.mean([one["truth"]["accuracy"][name][place] for one in others]) for name in known
            ]
            taken = known[int(np.argmax(means))]
            regret = 100 * (worth[best] - worth[taken])
            found.append({"data": case["data"], "size": case["size"], "regret": regret})
    return found


def regrets_of(case: Results, prior: Prior) -> list[Results]:
    """For each total: what the plan took, what it is worth, and what the best in hindsight is."""
    survey = survey_of(case)
    found = []
    for place, epsilon in enumerate(EPSILONS):
        chosen = planned(
            survey,
            criterion_of("accuracy"),
            labelled=True,
            prior=prior.without(case["data"]),
            task=place,
        )
        taken = chosen.winner.name
        best, worth = hindsight(case, place)
        found.append(
            {
                "data": case["data"],
                "size": case["size"],
                "split": case["split"],
                "epsilon": epsilon,
                "taken": taken,
                "best": best,
                "regret": 100 * (worth[best] - worth[taken]),
                "expected": 100 * chosen.winner.utility,
                "worth": 100 * worth[taken],
                "public": 100
                * max(worth[name] for name in worth if name.startswith("public rows alone")),
            }
        )
    return found


def prior_from(cases: Sequence[Results]) -> Prior:
    """The measured regrets of all cases, averaged over splits."""
    groups: dict[tuple[str, str, int], list[Results]] = {}
    for case in cases:
        for place in range(len(EPSILONS)):
            groups.setdefault((case["data"], case["size"], place), []).append(case)
    found = []
    for (data, _, place), own in groups.items():
        task = survey_of(own[0]).tasks[place]
        regrets: dict[str, dict[str, float]] = {}
        for scoring in SCORINGS:
            names = set.intersection(*(set(case["truth"][scoring]) for case in own))
            means = {
                name: float(np.mean([case["truth"][scoring][name][place] for case in own]))
                for name in sorted(names)
            }
            best = max(means.values())
            regrets[scoring] = {name: best - mean for name, mean in means.items()}
        found.append(Case(data, task.n_public / task.n_private, noise_level(task), regrets))
    return Prior(tuple(found))


def summary(regrets: Sequence[Results]) -> Results:
    """Means, shares and the largest regret by number of public rows."""
    found: Results = {}
    for size in SIZES:
        own = np.array([one["regret"] for one in regrets if one["size"] == size])
        if not len(own):
            continue
        sets = sorted({one["data"] for one in regrets if one["size"] == size})
        means = [
            np.mean(
                [one["regret"] for one in regrets if (one["size"], one["data"]) == (size, data)]
            )
            for data in sets
        ]
        found[size] = {
            "cases": len(own),
            "data sets": len(sets),
            "mean": float(own.mean()),
            "error": float(np.std(means, ddof=1) / math.sqrt(len(sets))) if len(sets) > 1 else None,
            "within .5": float((own <= 0.5).mean()),
            "largest": float(own.max()),
        }
    return found


def markdown(results: Results) -> str:
    """The summary and every case as Markdown."""
    splits = len({one["split"] for one in results["cases"]})
    lines = [
        "# What is lost by following a plan",
        "",
        (
            f"Written by `python -m papers.choose.plan_regret --splits {splits}`. Points of "
            "accuracy by which the "
            "setting that a plan takes, on public rows alone, is worth less than the best one in "
            "hindsight; both are fitted on all private records and scored on other rows, and the "
            "best one is chosen on other draws of the noise than it is scored on, so a regret can "
            "be below 0. Where there are few public rows the plan mixes in what methods lost on "
            "the *other* data sets. Methods that release a model, and public rows alone; delta = "
            f"{DELTA:g}; standard errors over data sets. The oracle takes the setting that is best "
            "on the other splits of the same data set, with all private records: it knows "
            "everything but which rows this split drew."
        ),
        "",
        "| public rows | who chooses | cases | mean regret | within .5 points | largest |",
        "|---|---|---|---|---|---|",
    ]
    heads = {
        "enough": "2,000, at least a fifth of the private records",
        "few": "a twentieth of the private records",
    }
    for size in results["summary"]:
        for who, rows in (("the plan", results["summary"]), ("an oracle", results["oracle"])):
            if size not in rows:
                continue
            row = rows[size]
            error = "" if row["error"] is None else f" ± {row['error']:.2f}"
            lines.append(
                f"| {heads[size]} | {who} | {row['cases']} | {row['mean']:.2f}{error} | "
                f"{100 * row['within .5']:.0f} % | {row['largest']:.2f} |"
            )
    lines += [
        "",
        (
            "| data | public rows | epsilon | regret by split | expected | worth | best public | "
            "taken (first split) | best in hindsight (first split) |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, float], list[Results]] = {}
    for one in results["cases"]:
        groups.setdefault((one["data"], one["size"], one["epsilon"]), []).append(one)
    for (data, size, epsilon), own in groups.items():
        means = {
            name: float(np.mean([one[name] for one in own]))
            for name in ("expected", "worth", "public")
        }
        by_split = ", ".join(f"{one['regret']:.2f}" for one in own)
        lines.append(
            f"| {data} | {size} | {epsilon:g} | {by_split} | {means['expected']:.1f} | "
            f"{means['worth']:.1f} | {means['public']:.1f} | {own[0]['taken']} | "
            f"{own[0]['best']} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, compute what is missing, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", choices=sorted(DATA), nargs="+", default=list(DATA))
    parser.add_argument("--sizes", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path("runs/choose/cache"))
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--write-prior", action="store_true")
    chosen = parser.parse_args(arguments)
    cases = []
    for split in range(chosen.splits):
        for size in chosen.sizes:
            for data in chosen.data:
                cases.append(case_of(data, size=size, split=split, cache=chosen.cache))
                print(f"{data}, {size}, split {split}: {cases[-1]['seconds']} s", flush=True)
    prior = prior_from(cases)
    regrets = [one for case in cases for one in regrets_of(case, prior)]
    results = {
        "summary": summary(regrets),
        "oracle": summary(oracle_regrets(cases)),
        "cases": regrets,
    }
    write_result(chosen.out / "plan_regret.json", json.dumps(results, indent=1))
    write_result(chosen.out / "plan_regret.md", markdown(results))
    if chosen.write_prior:
        write_result(PRIOR, prior_content(prior))
    print(json.dumps(results["summary"], indent=1))


def _rounded(table: Array) -> list[Any]:
    found: list[Any] = np.round(table, 5).tolist()
    return found


if __name__ == "__main__":
    main()
