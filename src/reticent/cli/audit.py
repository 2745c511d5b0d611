"""``reticent audit`` and ``reticent attack``: measured leakage beside the proved bounds."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli import claims
from reticent.cli.bundles import open_bundle, read_inputs, tell_totals
from reticent.cli.options import (
    Alpha,
    ArrayName,
    BundleFolder,
    Columns,
    DrawnSeed,
    Embedder,
    IgnoreColumns,
    InputRows,
    Overwrite,
    Page,
    Research,
    TrustedKey,
    group,
)
from reticent.core.errors import GuaranteeRefuted, InvalidInput

if TYPE_CHECKING:
    from reticent.attacks.fitted import FittedAttack
    from reticent.audit.claims import ClaimAudit

audit_app = group("Measure what a fitted system gives away, against what it claims.")
attack_app = group(
    "Measure what an attacker gets back from a fitted system, beside the proved bounds."
)


audit_app.command(name="function")(claims.function)


@audit_app.command(name="bundle")
def audit_bundle(
    bundle: BundleFolder,
    input_: InputRows,
    page: Page = None,
    draws: Annotated[int, typer.Option(help="Most draws of all pairs.")] = 200_000,
    alpha: Alpha = 0.001,
    seed: DrawnSeed = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    research: Research = False,
    overwrite: Overwrite = False,
) -> None:
    """Test the epsilon that a bundle claims by draws on neighbours around the rows.

    The audit runs the bundle's own mechanism many times, on neighbours around the rows and on the
    worst known pair. It ends as soon as the claim is refuted. The code of the release draws the
    answers, with seeded noise. They are thrown away, so no budget is charged. The output is as
    private as the bundle and the rows.

    With --research the claim is what the paper states. The exit status is 19 if the claim is
    refuted. An audit never proves a claim.
    """
    from reticent.audit.claim_page import claim_page
    from reticent.audit.fitted import audit_fitted, auditable_query
    from reticent.cli.files import check_page, write_page
    from reticent.training.progress import bar

    check_page(page, overwrite=overwrite)
    system = open_bundle(bundle, trusted_key, embedder, research=research)
    auditable_query(system)  # before the rows are read
    rows = read_inputs(input_, system, array, ignore_column)
    with bar() as report:
        found = audit_fitted(
            system, rows.inputs, draws=draws, alpha=alpha, seed=_drawn(seed), report=report
        )
    _print_audit(found)
    words = {
        "protected": found.source,
        "unit": "one input",
        "trust": "the answer is all that leaves; who computes it sees the input",
    }
    write_page(page, lambda: claim_page(found, **words), overwrite=overwrite)
    if found.refuted:
        raise GuaranteeRefuted(f"bundle={str(bundle)!r}: {found.summary}")


@audit_app.command()
def records(
    config: Annotated[
        Path,
        typer.Argument(
            help="TOML file as for fit: estimator, parameters, data. Its bundle is not written."
        ),
    ],
    record: Annotated[
        int | None,
        typer.Option(
            min=0, help="Place of the record that the neighbour lacks. Searched if absent."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Number of fits, search included.")] = 4_000,
    seconds: Annotated[float | None, typer.Option(help="Time limit.")] = 300.0,
    alpha: Alpha = 0.001,
    seed: Annotated[
        int | None, typer.Option(help="Seed of coins and search, never of noise. Drawn if absent.")
    ] = None,
) -> None:
    """Test the claim of a method that protects training records, by many fits on two neighbours.

    One data set has the records of the file. The other lacks one of them or has one more. Both are
    fitted in random order with real noise. A test that may be stopped at any time guesses from each
    release which data set was fitted. No budget is charged. The output is as private as the
    records.

    The exit status is 19 if the claim is refuted. An audit never proves a claim.
    """
    import numpy as np

    from reticent.audit.records import audit_records
    from reticent.cli.fit_config import FitConfig, fitting
    from reticent.training.progress import bar

    system, data = fitting(FitConfig.read(config), bundled=False)
    if data.labels is None:
        raise InvalidInput("data.labels, data.label_column: expected one of them, for an audit")
    unknown = [key for key in data.further if key not in ("public_X", "public_y", "public")]
    if unknown:
        raise InvalidInput(
            f"data.further.{unknown[0]}: an audit takes public_X, public_y and public alone"
        )
    public = data.further.get("public_X", data.further.get("public"))
    with bar() as report:
        found = audit_records(
            system,
            data.inputs,
            data.labels,
            public_X=None if public is None else np.asarray(public),  # as it reads the records
            public_y=data.further.get("public_y"),
            remove=record,
            runs=runs,
            seconds=seconds,
            alpha=alpha,
            seed=seed,
            report=report,
        )
    _print_audit(found)
    if found.refuted:
        raise GuaranteeRefuted(f"estimator={found.subject!r}: claims {found.claim_words}; refuted")


@attack_app.command(name="bundle")
def attack_bundle(
    bundle: BundleFolder,
    input_: InputRows,
    column: Columns = None,
    page: Page = None,
    candidates: Annotated[
        int, typer.Option(help="Number of candidate rows, all known to the attacker.")
    ] = 64,
    trials: Annotated[int, typer.Option(help="Answers of each game.")] = 10_000,
    answers: Annotated[
        list[int] | None,
        typer.Option(help="Number of answers seen about one input. May be repeated."),
    ] = None,
    decoder: Annotated[
        bool, typer.Option(help="Train a network to draw inputs from answers.")
    ] = True,
    critic: Annotated[
        float,
        typer.Option(
            metavar="WEIGHT",
            help="Weight of a critic in the loss of a second decoder for pictures, such as .01.",
        ),
    ] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="Probability that all lower limits hold together.")
    ] = 0.999,
    seed: DrawnSeed = None,
    array: ArrayName = None,
    ignore_column: IgnoreColumns = None,
    trusted_key: TrustedKey = None,
    embedder: Embedder = None,
    research: Research = False,
    overwrite: Overwrite = False,
) -> None:
    """Attack a posthoc or table bundle as someone who knows it and PUBLIC rows.

    The attacker tells two rows apart, finds a row among many after one and several answers, infers
    a column, and reconstructs the row. Each attack uses the exact probabilities of the mechanism
    and is shown beside its proved cap. Answers are thrown away, so no budget is charged. The exit
    status is 19 if a cap is exceeded: then the mechanism is not what the bundle states. With
    --research the caps are those of the paper's statement.
    """
    from reticent.attacks.candidates import attackable_query
    from reticent.attacks.fitted import attack_fitted
    from reticent.attacks.page import attack_page
    from reticent.cli.files import check_page, read_rows, write_page
    from reticent.training.progress import bar

    check_page(page, overwrite=overwrite)
    system = open_bundle(bundle, trusted_key, embedder, research=research)
    attackable_query(system)  # before the rows are read
    rows = read_rows(input_, system=system, array=array, ignore=ignore_column, columns=column)
    with bar() as report:
        found = attack_fitted(
            system,
            rows.inputs,
            columns=rows.columns,
            candidates=candidates,
            trials=trials,
            answers=answers or (1, 4, 16),
            decoder=decoder,
            critic=critic,
            confidence=confidence,
            seed=_drawn(seed),
            report=report,
        )
    _print_attack(found)
    tell_totals(system)
    write_page(page, lambda: attack_page(found), overwrite=overwrite)
    if found.exceeded:
        raise GuaranteeRefuted(f"bundle={str(bundle)!r}: {found.verdict}")


def _drawn(seed: int | None) -> int:
    return secrets.randbelow(2**63) if seed is None else seed


def _print_audit(found: ClaimAudit) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("neighbours", "draws", "largest epsilon excluded", title=found.subject)
    for pair in found.pairs:
        table.add_row(pair.name, f"{pair.draws}", f"{pair.excluded:.4g}")
    Console().print(table)
    typer.echo(f"claim: {found.source}")
    if found.noise is not None:
        typer.echo(f"stated noise: {found.noise}")
    typer.echo(f"no budget was charged; to see it again: {found.replay or 'the same command'}")
    typer.echo(f"not examined: {found.not_examined}")
    typer.echo(found.summary)


def _print_attack(found: FittedAttack) -> None:
    from reticent.attacks.page import tables
    from reticent.cli.files import print_table

    for table in tables(found):
        print_table(table, found.system)
    typer.echo(f"claim: {found.claim_words}")
    typer.echo(
        f"{found.candidates} candidates; seed {found.seed}; no budget was charged; all lower "
        f"limits hold with confidence {found.confidence:g}"
    )
    typer.echo(found.verdict)
