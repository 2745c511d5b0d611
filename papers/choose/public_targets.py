"""A start from public regressors beside public rows alone and noisy descent: ``python -m
papers.choose.public_targets``.

A twentieth as many rows as there are private records, up to 10,000, are public with targets. Their
quantiles at .005 and .995 are the range. *Public rows alone* are a booster or ridge regression,
whichever predicts left-out public rows better. *Descent* is the best in hindsight of
``NoisyGradientRegressor`` with residuals cut at .25, .5 and 1.
Scores are R^2 on held-out rows of training parts, means of two draws of the noise.
Standard errors are over splits.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import r2_score

from papers.choose.regression import DATA, DELTA, public_alone
from papers.choose.regression import Parts as Split
from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
from reticent.systems.votes.public_start_regressor import PublicStartRegressor

Array = npt.NDArray[np.float64]

EPSILONS = (0.1, 1.0)
SEEDS = (0, 1)
MOST_PRIVATE, MOST_SCORED = 10_000, 3000


def split_of(data: str, seed: int) -> Split:
    """Return private, public and scored rows of one draw."""
    rows, targets = DATA[data]()
    order = np.random.default_rng([seed, 77]).permutation(len(targets))
    private = min(MOST_PRIVATE, int(0.7 * len(targets)))
    public = max(20, private // 20)
    ends = np.cumsum([private, public, min(MOST_SCORED, len(targets) - private - public)])
    places = np.split(order, ends)[:3]
    parts = [each for part in places for each in (rows[part], targets[part])]
    return Split(*parts)


def run(data: str, seed: int) -> dict[str, Array]:
    """Return each method's R^2 at every epsilon."""
    split = split_of(data, seed)
    total: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "target_range": split.ends}
    known = len(split.private)

    def scores(model: Any, **given: Any) -> Array:
        found: dict[float, list[float]] = {}
        fits = model.simulate_fits(
            split.private,
            split.private_y,
            public_X=split.public,
            totals=[(epsilon, DELTA) for epsilon in EPSILONS],
            seeds=SEEDS,
            **given,
        )
        for fit in fits:
            score = float(r2_score(split.scored_y, fit.predict(split.scored)))
            found.setdefault(fit.epsilon, []).append(score)
        return np.array([np.mean(each) for each in found.values()])

    told: dict[str, Any] = {"public_y": split.public_y}
    found = {"start": scores(PublicStartRegressor(**total, records=known), **told)}
    alone = public_alone(split, seed=seed).predict(split.scored)
    found["public rows alone"] = np.full(len(EPSILONS), r2_score(split.scored_y, alone))
    every = [
        scores(NoisyGradientRegressor(**total, residual=residual)) for residual in (0.25, 0.5, 1.0)
    ]
    found["descent"] = np.max(every, axis=0)
    for name in ("public rows alone", "descent"):
        found[f"start less {name}"] = found["start"] - found[name]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3)
    splits = parser.parse_args().splits
    print("| data | method | R^2 at .1 | standard error | R^2 at 1 | standard error |")
    print("|---|---|---|---|---|---|")
    for data in DATA:
        runs = [run(data, seed) for seed in range(splits)]
        for name in runs[0]:
            each = np.array([found[name] for found in runs])
            errors = each.std(axis=0, ddof=1) / len(each) ** 0.5
            cells = [f"{m:.4f} | {e:.4f}" for m, e in zip(each.mean(axis=0), errors, strict=True)]
            print(f"| {data} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
