"""Regression and several labels from private records: ``python -m papers.choose.regression``.

A twentieth of the records is public, targets included; the rest is private but for held-out rows
that only score. All rows come from training parts; official held-out parts are not read. Public
targets set the range of targets (their quantiles at .005 and .995), and every method's settings are
chosen on public rows alone: a third of them plays the public rows, a third the private records,
with noise scaled to the effect that it will have, and a third scores; all three turns. Public
rows alone are a booster or ridge regression, whichever predicts left-out public rows better.

The rivals are written out, in the same public space of the same features, and tuned in the same
way: the functional mechanism, as ``diffprivlib.models.LinearRegression`` has it (which does not
import with current versions of scikit-learn), with the l1 sensitivity that features of a bounded
length have; and sufficient statistics, first and second moments of the private records with
Gaussian noise of one joint total. Runs are kept in the folder, so that an interrupted command goes
on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papers.datasets import covertype_schema, load_adult, load_covertype
from papers.result_files import cached_result, write_result
from papers.seeds import combined
from papers.settings_grids import target_descent_settings
from reticent.datasets import Table
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.public_start_regressor import PublicStartRegressor
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.tables import TabularSchema, adult_schema
from reticent.training.public_space import LENGTH, PublicSpace, cut_directions

Array = npt.NDArray[np.float64]
Settings = dict[str, Any]

EPSILONS = (0.1, 1.0)
DELTA = 1e-6
SEEDS = (1, 2, 3)
START, POOL = "start from public regressors", "its public regressors alone"

_MOST = 60_000
_SCORED = 5000
_PUBLIC_SHARE = 0.05
_QUANTILES = (0.005, 0.995)
_REACHES = (1.5, 3.0)


@dataclass(frozen=True, eq=False)
class Parts:
    """One split of one data set.

    Attributes:
        private, public, scored: shape (n, features).
        private_y, public_y, scored_y: shape (n,) or (n, L).
    """

    private: Array
    private_y: Array
    public: Array
    public_y: Array
    scored: Array
    scored_y: Array

    @property
    def ends(self) -> tuple[Any, Any]:
        """A range of targets, from public ones alone."""
        lower, upper = np.quantile(self.public_y, _QUANTILES, axis=0)
        return lower.tolist(), np.maximum(upper, lower + 1e-6).tolist()


def _without(schema: TabularSchema, table: Table, columns: Sequence[str]) -> tuple[Array, Array]:
    """Encoded rows without some columns, and those columns."""
    kept = TabularSchema(tuple(a for a in schema.attributes if a.name not in columns))
    places = [table.columns.index(name) for name in columns]
    rows = np.delete(table.train_rows, places, axis=1)
    return kept.encode(rows), table.train_rows[:, places].astype(np.float64)


def _adult_hours() -> tuple[Array, Array]:
    rows, hours = _without(adult_schema(), load_adult(), ["hours-per-week"])
    return rows, hours[:, 0]


def _elevation() -> tuple[Array, Array]:
    rows, metres = _without(covertype_schema(), load_covertype(), ["Elevation"])
    return rows, metres[:, 0]


def _diabetes() -> tuple[Array, Array]:
    rows, progress = load_diabetes(return_X_y=True)
    return rows, progress


_TERRAIN = ("Elevation", "Aspect", "Slope", "Hillshade_Noon")


def _terrain() -> tuple[Array, Array]:
    return _without(covertype_schema(), load_covertype(), _TERRAIN)


DATA: dict[str, Callable[[], tuple[Array, Array]]] = {
    "adult hours": _adult_hours,
    "forest elevation": _elevation,
    "diabetes": _diabetes,
}


def parts_of(rows: Array, targets: Array, *, seed: int) -> Parts:
    """A split; of many rows some are left out."""
    order = np.random.default_rng([seed, len(rows)]).permutation(len(rows))[:_MOST]
    scored = min(_SCORED, len(order) // 4)
    public = scored + round(_PUBLIC_SHARE * (len(order) - scored))
    cuts = [order[public:], order[scored:public], order[:scored]]
    return Parts(*(part[cut] for cut in cuts for part in (rows, targets)))


class Predictor:
    """What a rival fitted: weights of directions in a public space."""

    def __init__(self, space: PublicSpace, reach: float, weights: Array, ends: Any) -> None:
        self._space, self._reach, self._weights, self._ends = space, reach, weights, ends

    def predict(self, rows: Array) -> Array:
        """Targets within their range."""
        directions = cut_directions(self._space.points(rows), intercept=1.0, reach=self._reach)
        lower, upper = self._ends
        shares = directions / LENGTH @ self._weights
        found = 0.5 * (lower + upper) + 0.5 * (upper - lower) * shares
        return np.asarray(np.clip(found, lower, upper))


def sufficient_statistics(
    parts: Parts, settings: Settings, *, epsilon: float, scale: float, seed: int
) -> Predictor:
    """Ridge regression from noisy second and first moments of the private records.

    One record adds phi phi^T and t phi; with phi of length 1 and |t| at most 1 the upper triangle,
    off-diagonal entries counted sqrt(2), and the second vector times ``share`` are
    sqrt(1 + share^2) long together. Those of public rows are added exactly, with
    the weight ``added`` of all private records together.
    """
    space, unit, targets = _private_directions(parts, settings)
    rng, width = np.random.default_rng([seed, 1]), unit.shape[1]
    share = settings["share"]
    sigma = scale * analytic_sigma(
        sensitivity=float(np.hypot(1.0, share)), epsilon=epsilon, delta=DELTA
    )
    noise = rng.normal(size=(width, width)) * sigma
    moments = unit.T @ unit + (np.triu(noise) + np.triu(noise, 1).T) / np.where(
        np.eye(width) == 1, 1.0, np.sqrt(2.0)
    )
    first = unit.T @ targets + rng.normal(size=width) * sigma / share
    known, known_targets = _directions(parts, space, settings, parts.public, parts.public_y)
    weight = settings["added"] * len(unit) / len(known)
    moments += weight * known.T @ known
    first += weight * known.T @ known_targets
    weights = _ridge(moments, first, settings["ridge"] * sigma * np.sqrt(width))
    return Predictor(space, settings["reach"], weights, parts.ends)


def functional_mechanism(
    parts: Parts, settings: Settings, *, epsilon: float, scale: float, seed: int
) -> Predictor:
    """The same by Laplace noise on the coefficients of the squared loss, without delta.

    In l1 the coefficients move by at most sqrt(m) for t phi, and by (m + 1) / 2 for the upper
    triangle of phi phi^T: half of (sum |phi|)^2 + |phi|^2.
    """
    space, unit, targets = _private_directions(parts, settings)
    rng, width = np.random.default_rng([seed, 2]), unit.shape[1]
    width_noise = scale * (np.sqrt(width) + 0.5 * (width + 1)) / epsilon
    noise = rng.laplace(size=(width, width)) * width_noise
    moments = unit.T @ unit + np.triu(noise) + np.triu(noise, 1).T
    first = unit.T @ targets + rng.laplace(size=width) * width_noise
    weights = _ridge(moments, first, settings["ridge"] * width_noise * np.sqrt(width))
    return Predictor(space, settings["reach"], weights, parts.ends)


def _private_directions(parts: Parts, settings: Settings) -> tuple[PublicSpace, Array, Array]:
    space = PublicSpace.around(
        parts.public,
        components=settings["components"],
        whitening=0.5,
        lower_upper=None,
        alike=False,
    )
    return space, *_directions(parts, space, settings, parts.private, parts.private_y)


def _directions(
    parts: Parts, space: PublicSpace, settings: Settings, rows: Array, targets: Array
) -> tuple[Array, Array]:
    """Directions of a length of at most 1, and targets in [-1, 1]."""
    unit = cut_directions(space.points(rows), intercept=1.0, reach=settings["reach"])
    lower, upper = parts.ends
    shares = (targets - 0.5 * (lower + upper)) / (0.5 * (upper - lower))
    return unit / LENGTH, np.clip(shares, -1.0, 1.0)


def _ridge(moments: Array, first: Array, least: float) -> Array:
    """Weights, from moments whose eigenvalues are raised to ``least``."""
    values, directions = np.linalg.eigh(moments)
    return np.asarray(directions @ (directions.T @ first / np.maximum(values, max(least, 1e-9))))


def ours(kind: type[ReleasedRegressor]) -> Callable[..., Any]:
    """How one of our estimators is fitted."""

    def fit(parts: Parts, settings: Settings, *, epsilon: float, scale: float, seed: int) -> Any:
        model = kind(epsilon=epsilon, delta=DELTA, target_range=parts.ends, **settings)
        public: Settings = {"public_X": parts.public}
        if kind is PublicStartRegressor:
            public["public_y"] = parts.public_y
        return model.simulate_fit(
            parts.private, parts.private_y, seed=seed, noise_scale=scale, **public
        )

    return fit


def _grids(features: int, n_private: int) -> dict[str, list[Any]]:
    """Candidates of every method: about a dozen each."""
    steps = target_descent_settings(features)
    dimensions = sorted({min(features, size) for size in (5, 20, 60)})
    rival = [
        {"components": kept, "reach": reach, "ridge": ridge}
        for kept in dimensions
        for reach in _REACHES
        for ridge in (0.3, 1.0, 3.0)
    ]
    return {
        "noisy gradient descent": [
            _reaching(settings, reach) for settings in steps for reach in _REACHES
        ],
        START: [{"records": n_private}],
        "sufficient statistics": [
            {**settings, "share": share, "added": 0.0} for settings in rival for share in (1.0, 3.0)
        ],
        "the same, public rows added": [
            {**settings, "share": share, "added": added}
            for settings in rival
            for share in (1.0, 3.0)
            for added in (0.05, 0.3, 1.0)
        ],
        "functional mechanism": rival,
    }


def _reaching(settings: Settings, reach: float) -> Settings:
    return {**settings, "features": replace(settings["features"], reach=reach)}


FITS: dict[str, Callable[..., Any]] = {
    "noisy gradient descent": ours(NoisyGradientRegressor),
    START: ours(PublicStartRegressor),
    "sufficient statistics": sufficient_statistics,
    "the same, public rows added": sufficient_statistics,
    "functional mechanism": functional_mechanism,
}


def chosen(name: str, parts: Parts, settings: list[Settings], *, epsilon: float) -> Settings:
    """The settings that predict left-out public rows best, over three turns."""
    if len(settings) == 1:
        return settings[0]
    order = np.random.default_rng(0).permutation(len(parts.public))
    thirds = np.array_split(order, 3)
    losses = np.zeros(len(settings))
    for turn in range(3):
        public, private, scored = (thirds[(turn + at) % 3] for at in range(3))
        trial = Parts(
            *(
                part[rows]
                for rows in (private, public, scored)
                for part in (parts.public, parts.public_y)
            )
        )
        scale = len(private) / len(parts.private)
        for at, candidate in enumerate(settings):
            model = FITS[name](trial, candidate, epsilon=epsilon, scale=scale, seed=turn)
            losses[at] += np.square(model.predict(trial.scored) - trial.scored_y).mean()
    return settings[int(losses.argmin())]


def public_alone(parts: Parts, *, seed: int) -> Any:
    """A booster or ridge regression on public rows, whichever predicts left-out ones better."""
    models = (
        HistGradientBoostingRegressor(random_state=seed),
        make_pipeline(StandardScaler(), RidgeCV(10.0 ** np.arange(-2, 5))),
    )
    scores = [cross_val_score(model, parts.public, parts.public_y, cv=3).mean() for model in models]
    return models[int(np.argmax(scores))].fit(parts.public, parts.public_y)


def scores(predicted: Array, truth: Array) -> dict[str, float]:
    """R^2 and root mean square error."""
    error = float(np.sqrt(np.square(predicted - truth).mean()))
    return {"r2": float(r2_score(truth, predicted)), "rmse": error}


def regression_run(data: str, seed: int) -> dict[str, Any]:
    """All methods on one split, at all totals."""
    parts = parts_of(*DATA[data](), seed=seed)
    constant = np.full(len(parts.scored), parts.public_y.mean())
    found: dict[str, Any] = {
        "constant": scores(constant, parts.scored_y),
        "public rows alone": scores(
            public_alone(parts, seed=seed).predict(parts.scored), parts.scored_y
        ),
        POOL: {},  # read off the start
    }
    for epsilon in EPSILONS:
        grids = _grids(parts.public.shape[1], len(parts.private))
        for name, grid in grids.items():
            best = chosen(name, parts, grid, epsilon=epsilon)
            model = FITS[name](parts, best, epsilon=epsilon, scale=1.0, seed=100 + seed)
            found[f"{name} at {epsilon:g}"] = scores(model.predict(parts.scored), parts.scored_y)
            if name == START:
                model.weights_ = np.zeros_like(model.weights_)
                found[POOL] = scores(model.predict(parts.scored), parts.scored_y)
    return found


def several_run(seed: int) -> dict[str, Any]:
    """Several columns in one release, and one release for each at its part of the total."""
    found: dict[str, Any] = {}
    terrain = parts_of(*_terrain(), seed=seed)
    columns = terrain.public_y.shape[1]
    rows, words = load_adult().train_rows, load_adult().columns
    labels = np.column_stack(
        [
            load_adult().train_labels,
            rows[:, words.index("sex")] == "Male",
            rows[:, words.index("marital-status")] == "Married-civ-spouse",
        ]
    ).astype(np.float64)
    kept = [name for name in words if name not in ("sex", "marital-status", "relationship")]
    places = [words.index(name) for name in kept]
    schema = TabularSchema(tuple(a for a in adult_schema().attributes if a.name in kept))
    people = parts_of(schema.encode(rows[:, places]), labels, seed=seed)
    for epsilon in EPSILONS:
        name = f"terrain, 4 targets, at {epsilon:g}"
        for way, total in (("joint", 1), ("split", columns)):
            given: Settings = {"epsilon": epsilon / total, "delta": DELTA / total}
            noise: Settings = {"public_X": terrain.public, "seed": seed}
            if total == 1:
                model = NoisyGradientRegressor(target_range=terrain.ends, **given)
                predicted = model.simulate_fit(terrain.private, terrain.private_y, **noise).predict(
                    terrain.scored
                )
            else:
                ends = np.array(terrain.ends)
                predicted = np.column_stack(
                    [
                        NoisyGradientRegressor(target_range=tuple(ends[:, at]), **given)
                        .simulate_fit(
                            terrain.private,
                            terrain.private_y[:, at],
                            public_X=terrain.public,
                            seed=10 * seed + at,
                        )
                        .predict(terrain.scored)
                        for at in range(columns)
                    ]
                )
            found.setdefault(name, {})[way] = float(r2_score(terrain.scored_y, predicted))
        name = f"people, 3 labels, at {epsilon:g}"
        truth = people.scored_y.astype(int)
        several = NoisyGradientClassifier(epsilon=epsilon, delta=DELTA, classes=[(0, 1)] * 3)
        several.simulate_fit(
            people.private, people.private_y.astype(int), public_X=people.public, seed=seed
        )
        apart = [
            NoisyGradientClassifier(epsilon=epsilon / 3, delta=DELTA / 3, classes=(0, 1))
            .simulate_fit(
                people.private,
                people.private_y[:, at].astype(int),
                public_X=people.public,
                seed=10 * seed + at,
            )
            .predict(people.scored)
            for at in range(3)
        ]
        found[name] = {
            "joint": float((several.predict(people.scored) == truth).mean()),
            "split": float((np.column_stack(apart) == truth).mean()),
        }
    return found


_INTRODUCTION = f"""# Regression and several labels from private records

`python -m papers.choose.regression`, delta = 1e-6, one record more or less. A twentieth of the
records is public, targets included; settings of every method are chosen on public rows, which every
method may use. {len(SEEDS)} splits, each with noise of its own; standard errors are over splits.
*Start*: `PublicStartRegressor` as it is by default; *its public regressors alone*: the pool it
starts from, no private record. *Public rows added*: their exact sums are added to the noisy ones,
with a weight. [How it works](../../votes.md)."""

_SEVERAL = """
## Several columns: one release, or one for each

`NoisyGradientRegressor` and `NoisyGradientClassifier` as they are by default: R² of four targets of
forest cells, and accuracy of three labels of people (income, sex, marriage). *Split*: one release a
column, at its part of epsilon and delta.

| columns | joint | split |
|---|---|---|"""


def table(runs: dict[str, list[dict[str, Any]]], several: list[dict[str, Any]]) -> str:
    """The results page."""
    lines = [_INTRODUCTION]
    for data, found in runs.items():
        means, errors = combined(found)
        lines += ["", f"## {data.capitalize()}", ""]
        lines += ["| method | epsilon | R² | root mean square error |", "|---|---|---|---|"]
        for name, mean in means.items():
            method, _, epsilon = name.partition(" at ")
            error = errors[name]
            lines.append(
                f"| {method} | {epsilon or '-'} | {mean['r2']:.3f} ± {error['r2']:.3f} | "
                f"{mean['rmse']:.4g} ± {error['rmse']:.2g} |"
            )
    means, errors = combined(several)
    lines.append(_SEVERAL)
    for name, mean in means.items():
        cells = [f"{mean[way]:.3f} ± {errors[name][way]:.3f}" for way in ("joint", "split")]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Runs what is not kept, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=Path, default=Path(".cache/regression"))
    parser.add_argument("--output", type=Path, default=Path("docs/results/choose/regression.md"))
    given = parser.parse_args(arguments)
    runs = {
        data: [
            cached_result(
                given.folder / f"{data.replace(' ', '-')}-{seed}.json",
                lambda data=data, seed=seed: regression_run(data, seed),  # type: ignore[misc]
            )
            for seed in SEEDS
        ]
        for data in DATA
    }
    several = [
        cached_result(
            given.folder / f"several-{seed}.json",
            lambda seed=seed: several_run(seed),  # type: ignore[misc]
        )
        for seed in SEEDS
    ]
    page = table(runs, several)
    write_result(given.output, page)
    print(page)


if __name__ == "__main__":
    main()
