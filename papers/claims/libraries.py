"""The table of stated guarantees: one command makes the environments, draws, and writes the table.

``python -m papers.claims.libraries --output docs/results/claims/libraries.md`` makes one virtual
environment for each library under ``--cache``, with the versions pinned here. No library's code is
part of this repository. ``--draws`` bounds the draws of all rows.

Each row's result is kept as a JSON file under ``--results``, so that a run that was stopped goes on
where it ended. A file counts only for the row, the requirements, the code of answers and of bets,
and the draws that it was made with. An installation that takes longer than ``--install`` seconds
is a result too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from papers.claims import answers
from papers.claims.ours import OURS, our_row
from papers.claims.power import code_of
from reticent.accounting.exact_gaussian import gaussian_epsilon
from reticent.audit import ClaimAudit, CommandSubject, beliefs, claim, sequential
from reticent.core.errors import InvalidInput

ALPHA = 0.001


@dataclass(frozen=True, kw_only=True)
class Row:
    """One stated guarantee.

    Attributes:
        name: of the function in ``answers``.
        library: the environment.
        what: the setting in words.
        source: where the claim is said, and what it says, in our words.
        pair: two neighbours.
        epsilon, delta, mu, noise: the claim, as for ``reticent.audit.claim``.
        exact: the exact epsilon at delta where the law is known, or None.
        note: what is ambiguous.
        draws: the most draws.
    """

    name: str
    library: str
    what: str
    source: str
    pair: tuple[Any, Any]
    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    noise: tuple[str, float] | None = None
    exact: float | None = None
    note: str = ""
    draws: int = 4000


_ALONE = "--no-deps "
"""Before what is installed without all that it asks for: the rest of the list is what a row uses.
"""

REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2"),
    "opendp": ("opendp==0.16.0",),
    "pydp": ("python-dp==1.1.5",),
    "flwr": ("flwr==1.42.0",),
    "opacus": ("torch==2.13.0", "opacus==1.6.0"),
    "jaxprivacy": ("jax-privacy==2.0.0",),
    "interpret": ("interpret-core==0.7.8", "scikit-learn==1.9.1"),
    "datasynthesizer": ("DataSynthesizer==0.1.13",),
    "tmlt": ("tmlt-core==0.20.0",),
    "recipes": ("xgboost-cpu==3.0.2", "scikit-learn==1.5.2"),
    "smartnoise": (
        _ALONE + "smartnoise-synth==1.0.8",
        "smartnoise-sql==1.0.10",
        "Faker==37.0.0",
        "scipy==1.15.3",
    ),
    "tfprivacy": (
        _ALONE + "tensorflow-privacy==0.9.0",
        "tensorflow-cpu==2.15.1",
        "tensorflow-probability==0.22.1",
        "dp-accounting==0.4.3",
        "scikit-learn==1.5.2",
        "numpy==1.26.4",
    ),
}

_FLOWER = (
    "LocalDpMod, class documentation: epsilon is the privacy budget, delta the probability that "
    "the mechanism fails, sensitivity that of the client model"
)
_FLOWER_NOTE = (
    "ambiguous: the documentation does not say which updates are neighbours. Tried: any two "
    "updates of norm 1 after clipping at 1, with sensitivity set to that norm"
)


def flower_exact(epsilon: float) -> float:
    """Return the exact epsilon at 1e-5 of noise for sensitivity 1 between updates 2 apart."""
    import math

    sigma = math.sqrt(2.0 * math.log(1.25 / 1e-5)) / epsilon
    return gaussian_epsilon(noise_multiplier=sigma / 2.0, delta=1e-5)


ROWS: tuple[Row, ...] = (
    Row(
        name="diffprivlib_laplace",
        library="diffprivlib",
        what="mechanisms.Laplace, epsilon 1, sensitivity 1",
        source="class documentation: the classical mechanism, drawn from four uniform numbers "
        "against reconstruction by limited precision",
        pair=(0.0, 1.0),
        epsilon=1.0,
        delta=0.0,
        exact=1.0,
    ),
    Row(
        name="diffprivlib_mean",
        library="diffprivlib",
        what="tools.mean, epsilon 1, bounds (0, 1)",
        source="function documentation: a private arithmetic mean, epsilon is the parameter",
        pair=([0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        epsilon=1.0,
        delta=0.0,
        note="neighbours: one value replaced",
    ),
    Row(
        name="diffprivlib_histogram",
        library="diffprivlib",
        what="tools.histogram, epsilon 1, range given",
        source="function documentation: a private histogram, range to be given for privacy",
        pair=([0.1, 0.9, 0.9], [0.1, 0.9]),
        epsilon=1.0,
        delta=0.0,
        note="neighbours: one value more",
    ),
    Row(
        name="diffprivlib_logistic",
        library="diffprivlib",
        what="models.LogisticRegression, epsilon 1, data_norm 1",
        source="class documentation: a private model, data_norm bounds the rows",
        pair=(
            {"X": [[1.0], [0.5], [-1.0], [-0.5]], "y": [1, 1, 0, 0]},
            {"X": [[1.0], [0.5], [-1.0], [1.0]], "y": [1, 1, 0, 0]},
        ),
        epsilon=1.0,
        delta=0.0,
        note="neighbours: one record replaced; coefficients and intercept are shown",
        draws=1000,
    ),
    Row(
        name="opendp_laplace",
        library="opendp",
        what="m.make_laplace, scale 1",
        source="map of the measurement: epsilon 1 at distance 1",
        pair=(0.0, 1.0),
        epsilon=1.0,
        delta=0.0,
        exact=1.0,
    ),
    Row(
        name="opendp_gaussian",
        library="opendp",
        what="m.make_gaussian, scale 1",
        source="map of the measurement: rho .5 at distance 1, the noise of mu 1",
        pair=(0.0, 1.0),
        mu=1.0,
        note="tested as mu 1, which the law that the documentation names has",
    ),
    Row(
        name="tmlt_laplace",
        library="tmlt",
        what="AddLaplaceNoise, scale 1",
        source="privacy_function of the measurement: epsilon 1 at distance 1",
        pair=(0.0, 1.0),
        epsilon=1.0,
        delta=0.0,
        exact=1.0,
    ),
    Row(
        name="pydp_count",
        library="pydp",
        what="laplacian.Count, epsilon 1",
        source="class documentation: a count, in a differentially private manner",
        pair=([1.0, 1.0, 1.0], [1.0, 1.0]),
        epsilon=1.0,
        delta=0.0,
    ),
    Row(
        name="pydp_sum",
        library="pydp",
        what="laplacian.BoundedSum, epsilon 1, bounds 0 and 1",
        source="class documentation: a differentially private sum, clamped between the bounds",
        pair=([1.0, 1.0, 1.0], [1.0, 1.0]),
        epsilon=1.0,
        delta=0.0,
    ),
    Row(
        name="pydp_mean",
        library="pydp",
        what="laplacian.BoundedMean, epsilon 1, bounds 0 and 1",
        source="class documentation: a mean, in a differentially private manner",
        pair=([1.0, 1.0, 0.0], [1.0, 1.0]),
        epsilon=1.0,
        delta=0.0,
    ),
    Row(
        name="flower_local",
        library="flwr",
        what="local mod, epsilon 1, delta 1e-5, clipping norm 1, sensitivity 1",
        source=_FLOWER,
        pair=([1.0, 0.0], [-1.0, 0.0]),
        epsilon=1.0,
        delta=1e-5,
        exact=flower_exact(1.0),
        note=_FLOWER_NOTE,
        draws=10**6,
    ),
    Row(
        name="flower_local_2",
        library="flwr",
        what="the same, epsilon 2",
        source=_FLOWER,
        pair=([1.0, 0.0], [-1.0, 0.0]),
        epsilon=2.0,
        delta=1e-5,
        exact=flower_exact(2.0),
        note=_FLOWER_NOTE,
        draws=10**6,
    ),
    Row(
        name="flower_local_8",
        library="flwr",
        what="the same, epsilon 8",
        source=_FLOWER,
        pair=([1.0, 0.0], [-1.0, 0.0]),
        epsilon=8.0,
        delta=1e-5,
        exact=flower_exact(8.0),
        note=_FLOWER_NOTE,
        draws=10**6,
    ),
    Row(
        name="opacus_step",
        library="opacus",
        what="DPOptimizer, one step, noise multiplier 1, norm 1",
        source="class documentation: gradients are clipped to the norm, and noise of multiplier "
        "times norm is added",
        pair=([1.0], [0.0]),
        mu=1.0,
        noise=("gaussian", 1.0),
        note="stated noise, mu 1 for a gradient of norm 1 or none",
        draws=1500,
    ),
    Row(
        name="jax_privacy_noise",
        library="jaxprivacy",
        what="noise_addition.gaussian_privatizer, stddev 1",
        source="module documentation: fresh Gaussian noise of this deviation at each update",
        pair=(1.0, 0.0),
        mu=1.0,
        noise=("gaussian", 1.0),
        note="stated noise, mu 1 for a clipped gradient of norm 1 or none",
        draws=1500,
    ),
    Row(
        name="tf_privacy_sum",
        library="tfprivacy",
        what="GaussianSumQuery, the sum of DP-SGD, l2_norm_clip 1, stddev 1",
        source="class documentation: clips records to bound the norm, then adds Gaussian noise of "
        "this deviation to the sum",
        pair=([3.0, 1.0], [1.0]),
        mu=1.0,
        noise=("gaussian", 1.0),
        note="stated noise, mu 1 for one record more",
        draws=1500,
    ),
    Row(
        name="interpret_boosting",
        library="interpret",
        what="DPExplainableBoostingClassifier, epsilon 1, delta 1e-5, bounds given, 5 rounds",
        source="class documentation: epsilon is the total privacy budget that is spent",
        pair=(
            {"X": [[i / 300] for i in range(300)], "y": [int(i > 149) for i in range(300)]},
            {"X": [[i / 300] for i in range(299)], "y": [int(i > 149) for i in range(299)]},
        ),
        epsilon=1.0,
        delta=1e-5,
        draws=200,
    ),
    Row(
        name="datasynthesizer_histogram",
        library="datasynthesizer",
        what="DataDescriber, independent mode, epsilon 1, seed as by default",
        source="documentation of the correlated mode: epsilon is a parameter in differential "
        "privacy, and 0 turns noise off",
        pair=([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8]),
        epsilon=1.0,
        delta=0.0,
        note="the method's default is seed=0, so the same noise is drawn each time; a caller may "
        "give another seed",
        draws=400,
    ),
    Row(
        name="smartnoise_mwem",
        library="smartnoise",
        what="MWEMSynthesizer, epsilon 1, two columns of two values, no privacy spent on ranges",
        source="class documentation: a synthesizer of the given total epsilon",
        pair=([[0, 0], [0, 1], [1, 1], [1, 1]], [[0, 0], [0, 1], [1, 1]]),
        epsilon=1.0,
        delta=0.0,
        note="neighbours: one record more; shown are counts of 200 synthetic rows",
        draws=300,
    ),
    Row(
        name="recipe_coefficients",
        library="recipes",
        what="scikit-learn regression, Laplace noise of scale 1 on coefficients",
        source="a recipe, claimed by no library: noise of scale 1 / epsilon on what is fitted",
        pair=(
            {"X": [[0.0], [1.0], [0.5]], "y": [0.0, 1.0, 0.5]},
            {"X": [[0.0], [1.0], [0.5]], "y": [0.0, 9.0, 0.5]},
        ),
        epsilon=1.0,
        delta=0.0,
        note="no bound on rows or targets is part of the recipe",
        draws=2000,
    ),
    Row(
        name="recipe_boosted",
        library="recipes",
        what="xgboost regression, Laplace noise of scale 1 on one prediction",
        source="a recipe, claimed by no library: noise of scale 1 / epsilon on an answer",
        pair=(
            {"X": [[0.0], [1.0], [0.5]], "y": [0.0, 1.0, 0.5]},
            {"X": [[0.0], [1.0], [0.5]], "y": [0.0, 9.0, 0.5]},
        ),
        epsilon=1.0,
        delta=0.0,
        note="no bound on targets is part of the recipe",
        draws=1000,
    ),
)


def environment(library: str, cache: Path, seconds: float) -> Path:
    """Return the Python of a library's environment, which is made if it is not there."""
    folder = cache / library
    python = folder / "bin" / "python"
    marker = folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[library]) + "\n"
    if marker.exists() and marker.read_text() == wanted:
        return python
    venv.create(folder, with_pip=True, clear=True)
    until = time.monotonic() + seconds
    alone = [one.removeprefix(_ALONE) for one in REQUIREMENTS[library] if one.startswith(_ALONE)]
    whole = [one for one in REQUIREMENTS[library] if not one.startswith(_ALONE)]
    for step in (whole, ["--no-deps", *alone]):
        if step != ["--no-deps"]:
            install = [str(python), "-m", "pip", "install", "-q", "--no-compile", *step]
            subprocess.run(install, check=True, timeout=max(1.0, until - time.monotonic()))
    marker.write_text(wanted)
    return python


def audited(row: Row, python: Path, draws: int, seconds: float) -> ClaimAudit:
    """Return the audit of one row."""
    with CommandSubject([str(python), str(answers.__file__), row.name], seconds=120.0) as subject:
        return claim(
            subject,
            neighbours=[row.pair],
            epsilon=row.epsilon,
            delta=row.delta,
            mu=row.mu,
            noise=row.noise,
            alpha=ALPHA,
            draws=min(draws, row.draws),
            seconds=seconds,
            source=row.source,
        )


def line(row: Row, found: ClaimAudit, seconds: float) -> str:
    """Return a row of the table."""
    version = _versions(row.library)
    exact = "not known" if row.exact is None else f"{row.exact:.3g}"
    few = found.draws < found.pairs[0].least_draws
    verdict = "**refuted**" if found.refuted else "too few draws" if few else "not refuted"
    odd = "; ".join(one.event for one in found.findings)
    by = found.noise if found.noise_refuted else found.pairs[0].event if found.refuted else ""
    note = ". ".join(part for part in (row.note, odd, f"By {by}" if by else "") if part)
    return (
        f"| {version}: {row.what} | {row.source} | {found.claim_words} | {found.excluded:.3g} | "
        f"{exact} | {verdict} | {found.draws} | {seconds:.0f} | {note} |"
    )


def _versions(library: str) -> str:
    return ", ".join(one.removeprefix(_ALONE) for one in REQUIREMENTS[library][:2])


HEAD = (
    "| what | source of the claim, in our words | claim | excluded epsilon | exact epsilon | "
    "verdict | draws | seconds | note |\n|---|---|---|---|---|---|---|---|---|"
)


def kept(name: str, made_with: dict[str, Any], results: Path, make: Callable[[], str]) -> str:
    """Return a row of the table: a result that is there for the same settings, or a new one."""
    file = results / f"{name}.json"
    if file.exists():
        found = json.loads(file.read_text())
        if found["made_with"] == made_with:
            return str(found["line"])
    text = make()
    results.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"made_with": made_with, "line": text}, indent=1) + "\n")
    return text


def made_by_row(row: Row, given: argparse.Namespace) -> str:
    """Return the row of a library, tested in its own environment, or why it was not run."""
    start = time.monotonic()
    try:
        python = environment(row.library, given.cache.resolve(), given.install)
        found = audited(row, python, given.draws, given.seconds)
        return line(row, found, time.monotonic() - start)
    except subprocess.TimeoutExpired:
        why = f"not installed within {given.install:.0f} seconds"
    except subprocess.CalledProcessError:
        why = "pip could not install these versions"
    except InvalidInput as error:
        why = str(error)
    version = _versions(row.library)
    return f"| {version}: {row.what} | {row.source} | | | | not run | | | {why} |"


def lines_of(given: argparse.Namespace) -> Iterator[str]:
    """Yield all rows of the table."""
    code, bets = code_of(answers), code_of(sequential, beliefs)
    for row in ROWS:
        made_with = {
            "row": repr(row),
            "requirements": list(REQUIREMENTS[row.library]),
            "answers": code,
            "bets": bets,
            "draws": given.draws,
        }
        yield kept(row.name, made_with, given.results, partial(made_by_row, row, given))
    draws = min(given.draws, 20_000)
    for name in OURS:
        made_with = {"ours": name, "bets": bets, "draws": draws}
        file = "ours_" + re.sub(r"\W+", "_", name)
        yield kept(file, made_with, given.results, partial(our_row, name, draws=draws, alpha=ALPHA))


NOTES = Path(__file__).with_name("libraries_notes.md")


def main() -> None:
    """Make the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path(".cache/claims"), help="Environments.")
    parser.add_argument(
        "--results", type=Path, default=Path(".cache/claims/results"), help="A file for each row."
    )
    parser.add_argument("--draws", type=int, default=10**6, help="Most draws of a row.")
    parser.add_argument("--seconds", type=float, default=600.0, help="Time limit of a row.")
    parser.add_argument("--install", type=float, default=300.0, help="Limit of an installation.")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write.")
    given = parser.parse_args()
    print(HEAD, flush=True)
    lines = []
    for text in lines_of(given):
        lines.append(text)
        print(text, flush=True)
    if given.output is not None:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(
            "# Stated guarantees, tested\n\nMade by `python -m papers.claims.libraries` on Python "
            f"{sys.version_info.major}.{sys.version_info.minor}, at level {ALPHA:g} a row.\n"
            "A row ends with its draws, or with the `--seconds` of the run that made it.\n"
            "A row that is not refuted is not shown to hold: this pair and this many draws did not "
            "contradict it.\n\n" + HEAD + "\n" + "\n".join(lines) + "\n\n" + NOTES.read_text()
        )


if __name__ == "__main__":
    main()
