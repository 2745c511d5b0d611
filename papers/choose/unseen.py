"""The start from public models on tables that no setting was chosen on: ``python -m
papers.choose.unseen FOLDER``.

FOLDER holds CSV files whose last column is the label; ``papers.choose.export_tables`` writes it and
says which tables are in it. Of each table up to 3,000 rows are scored; of the rest a twenty-first
is public with labels, at least 300 rows, and the others, up to 10,000, are private. The start
has its default settings. Rivals have those of their grids that did best on public rows at a total
of 1, as in ``papers.choose.public_start``, and explainable boosting
(``papers.choose.boosting``, where it is installed) its defaults. Scores are means of two draws of
the noise. Regret is the best score among all methods, on the scored rows, less the start's: the
largest of many noisy scores, so not all of it is regret. Balanced accuracy is that of
probabilities over public shares. Results of each table and method
are kept in FOLDER/results, so that a run that was interrupted, or stopped after ``--seconds``, goes
on where it was.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from papers.choose.boosting import BOOSTING, THERE, boosted
from papers.choose.public_start import ALONE, DELTA, START, candidates, chosen
from papers.result_files import cached_result
from reticent.core.arrays import Integers

Array = npt.NDArray[np.float64]

EPSILONS = (0.1, 0.5, 1.0, 2.0)
SEEDS = (0, 1)
PUBLIC = "public models alone"
LEAST_PRIVATE, MOST_PRIVATE, LEAST_PUBLIC, MOST_SCORED = 5000, 10_000, 300, 3000
_MOST_WORDS = 30
_SCORES = ("accuracy", "AUC", "balanced accuracy")


def numbers(table: pd.DataFrame, public: Integers) -> Array:
    """Return a table as numbers: an indicator for each word that public rows have, where there are
    at most 30, and their median for missing numbers.
    """
    found = []
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.astype(float).replace([np.inf, -np.inf], np.nan)
            known = values.iloc[public].dropna()
            found.append(values.fillna(known.median() if len(known) else 0.0).to_numpy())
            continue
        words = column.astype(object).where(column.notna(), "").map(str)
        known_words = sorted(words.iloc[public].unique())
        if 2 <= len(known_words) <= _MOST_WORDS:
            found += [(words == word).to_numpy(dtype=np.float64) for word in known_words]
    return np.column_stack(found)


def run(path: Path, kept: Path) -> dict[str, Any] | None:
    """Return all scores on one table, or None for one that is too small.

    Args:
        path: of the table.
        kept: folder in which each method's scores are kept.
    """
    table = pd.read_csv(path, low_memory=False)
    labels, codes = np.unique(table.iloc[:, -1].astype(str), return_inverse=True)
    order = np.random.default_rng([1, 77]).permutation(len(table))
    scored = min(MOST_SCORED, len(table) // 4)
    rest = min(len(table) - scored, MOST_PRIVATE + MOST_PRIVATE // 20)
    public = max(LEAST_PUBLIC, rest // 21)
    if rest - public < LEAST_PRIVATE:
        return None
    test, told, private = np.split(order[: scored + rest], [scored, scored + public])
    rows = numbers(table.iloc[:, :-1], told)
    shares: Array = np.bincount(codes[told], minlength=len(labels)).astype(np.float64) + 0.5
    total = {"epsilon": 1.0, "delta": DELTA, "classes": tuple(range(len(labels)))}

    def of_method(makers: list[Any], labelled: bool, name: str) -> dict[str, Any]:
        model = chosen(makers, rows[told], codes[told], labelled=labelled, records=len(private))
        given: dict[str, Any] = {"public_y": codes[told]} if labelled else {}
        if ALONE not in name:
            given["public_X"] = rows[told]
        fits = model.simulate_fits(
            rows[private],
            codes[private],
            totals=[(epsilon, DELTA) for epsilon in EPSILONS],
            seeds=SEEDS,
            **given,
        )
        scores: dict[float, list[Array]] = {}
        for fit in fits:
            chances = np.log(np.maximum(fit.predict_proba(rows[test]), 1e-300))
            scores.setdefault(fit.epsilon, []).append(_scores(chances, codes[test], shares))
        found = {name: {f"{e:g}": np.mean(each, axis=0).tolist() for e, each in scores.items()}}
        if name == START:
            start: Any = fit.space_
            offsets = start.pools[0].offsets(start.row_details.scaled(rows[test]))
            alone = _scores(offsets, codes[test], shares).tolist()
            found[PUBLIC] = {f"{e:g}": alone for e in EPSILONS}
        return found

    found: dict[str, dict[str, list[float]]] = {}
    lower, upper = rows[told].min(axis=0), rows[told].max(axis=0)
    ends = lower, np.where(upper > lower, upper, lower + 1.0)
    methods = candidates(total, rows="table", ends=ends)
    for name, (makers, labelled) in methods.items():
        place = kept / path.stem / f"{name}.json"
        found |= cached_result(place, partial(of_method, makers, labelled, name))
    if THERE and len(labels) == 2:
        raw = table.iloc[:, :-1].astype(object).where(table.iloc[:, :-1].notna(), None).to_numpy()

        def of_rival() -> dict[str, Any]:
            scores = {}
            for epsilon in EPSILONS:
                draws = boosted(
                    raw[told],
                    raw[private],
                    codes[private],
                    raw[test],
                    epsilon=epsilon,
                    delta=DELTA,
                    seeds=SEEDS,
                )
                logs = [np.log(np.maximum(one, 1e-300)) for one in draws]
                each = [_scores(one, codes[test], shares) for one in logs]
                scores[f"{epsilon:g}"] = np.mean(each, axis=0).tolist()
            return {BOOSTING: scores}

        found |= cached_result(kept / path.stem / f"{BOOSTING}.json", of_rival)
    constant = _scores(np.tile(np.log(shares), (len(test), 1)), codes[test], shares).tolist()
    found["constant"] = {f"{e:g}": constant for e in EPSILONS}
    counts = [len(private), len(told), len(test), rows.shape[1], len(labels)]
    return {"sizes": counts, "scores": found}


def _scores(chances: Array, truth: Integers, shares: Array) -> Array:
    """Return accuracy, AUC (of two labels) and balanced accuracy, in points."""
    right = float((chances.argmax(axis=1) == truth).mean())
    area = 0.0
    if chances.shape[1] == 2:
        area = float(roc_auc_score(truth, chances[:, 1] - chances[:, 0]))
    balanced = (chances - np.log(shares)).argmax(axis=1)
    return 100.0 * np.array([right, area, balanced_accuracy_score(truth, balanced)])


def table_of(runs: dict[str, dict[str, Any]]) -> list[str]:
    """Return the page's lines: each table, then regrets over all cases."""
    lines = ["| table | sizes | epsilon | start | public alone | best | regret | AUC regret |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    regrets: dict[str, list[float]] = {name: [] for name in _SCORES}
    below: list[float] = []
    for name, found in runs.items():
        sizes = " ".join(str(size) for size in found["sizes"])
        for epsilon in (f"{e:g}" for e in EPSILONS):
            scores = {method: each[epsilon] for method, each in found["scores"].items()}
            lost = [
                max(each[at] for each in scores.values()) - scores[START][at] for at in (0, 1, 2)
            ]
            for at, kind in enumerate(_SCORES):
                if at != 1 or found["sizes"][-1] == 2:
                    regrets[kind].append(lost[at])
            below.append(scores[PUBLIC][0] - scores[START][0])
            best = max(scores, key=lambda method: scores[method][0])
            cells = [f"{scores[one][0]:.2f}" for one in (START, PUBLIC)]
            lines.append(
                f"| {name} | {sizes} | {epsilon} | {' | '.join(cells)} | "
                f"{scores[best][0]:.2f} {best} | {lost[0]:.2f} | {lost[1]:.2f} |"
            )
    for kind, values in regrets.items():
        each = np.array(values)
        error = each.std(ddof=1) / len(each) ** 0.5
        lines.append(
            f"{kind}: mean regret {each.mean():.2f} +- {error:.2f}, worst {each.max():.2f}, "
            f"above 2 in {(each > 2).mean():.1%} of {len(each)} cases"
        )
    lines.append(f"largest loss against public models alone: {max(below):.2f}")
    return lines


def main() -> None:
    """Run what is not kept, and print the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=np.inf, help="no table begins after these")
    given = parser.parse_args()
    runs: dict[str, dict[str, Any]] = {}
    begun, kept = time.process_time(), given.folder / "results"
    for path in sorted(given.folder.glob("*.csv"), key=lambda each: each.stat().st_size):
        place = kept / f"{path.stem}.json"
        if not place.is_file() and time.process_time() - begun > given.seconds:
            print(path.stem, "not run", flush=True)
            continue
        found = cached_result(place, lambda path=path: run(path, kept) or {})  # type: ignore[misc]
        if found:
            runs[path.stem] = found
        print(path.stem, "" if found else "too small", flush=True)
    print("\n".join(table_of(runs)))


if __name__ == "__main__":
    main()
