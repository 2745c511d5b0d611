"""Checks of paying: threads, forks, pickles, copies, refusals, and what comes after a charge."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from reticent.audit.records import Records
from reticent.core.errors import BudgetExceeded, ReticentError
from reticent.core.guarantees import Guarantee
from reticent.release.fits import not_counted
from reticent.release.paying import Price
from reticent.testing.cases import SCOPE, Case, CheckFailed, Rows, expect, spent

_THREADS = 8


def check_threads(case: Case, seconds: float) -> None:
    """Check first releases of eight threads at once: none is lost, and the cost is what was
    charged.
    """
    if case.kind == "model":
        _many_fits(case)
        return
    fitted = case.fitted()
    rows = _first(case)
    with case.ledger(fitted.guarantee) as ledger:
        calls = _calls(fitted, rows)

        def ask(_: int) -> Any:
            return fitted.release(rows, ledger=ledger, scope=SCOPE)

        with ThreadPoolExecutor(_THREADS) as threads:
            waiting = [threads.submit(ask, number) for number in range(calls)]
            failed = [one.exception() for one in waiting if one.exception() is not None]
        expect(
            not failed, "threads", f"{len(failed)} of {calls} paid answers were lost: {failed[:1]}"
        )
        receipts = [one.result().receipt for one in waiting]
        expect(
            len({receipt.identifier for receipt in receipts}) == calls,
            "threads",
            "two answers have one receipt",
        )
        once = fitted.price(fitted.checked(rows)).prepaid is not None
        charged, entries, commits = spent(ledger)
        if not once:  # uses of what is prepaid stand in the ledger too, at no cost
            expect(
                entries == commits == calls,
                "threads",
                f"{entries} charges and {commits} commits for {calls} answers",
            )
        least = fitted.guarantee.epsilon * (1 if once else calls * len(rows))
        expect(
            least * 1e6 * (1 - 1e-9) <= charged <= least * 1e6 + calls * len(rows),
            "threads",
            f"charged {charged / 1e6:g}, expected {least:g}",
        )
        problems = ledger.verify().problems
        expect(not problems, "threads", f"the ledger's chain is broken: {problems}")


def _many_fits(case: Case) -> None:
    with case.ledger(case.fitted().guarantee) as ledger:

        def fit(_: int) -> Any:
            return case.fitted(ledger=ledger, scope=SCOPE)

        with ThreadPoolExecutor(_THREADS) as threads:
            models = list(threads.map(fit, range(_THREADS)))
        expect(
            len({model.receipt_.identifier for model in models}) == _THREADS,
            "threads",
            "two models have one receipt",
        )
        _, entries, commits = spent(ledger)
        expect(
            entries == commits == _THREADS,
            "threads",
            f"{entries} charges and {commits} commits for {_THREADS} models",
        )


def check_copies(case: Case, seconds: float) -> None:
    """Check that copies of a system whose answers are counted have none.

    Copies are a forked child, a pickle and a copy. They may also go on in the ledger that counts
    the answers.
    """
    if case.kind == "model" or _prepaid(case, case.fitted()) is None:
        return
    fitted, rows = case.fitted(), _first(case)
    fitted.release(rows)
    for way, twin in (
        ("a pickle", pickle.loads(pickle.dumps(fitted))),
        ("a copy", copy.copy(fitted)),
        ("a deep copy", copy.deepcopy(fitted)),
    ):
        try:
            twin.release(rows)
        except BudgetExceeded:
            continue
        expect(False, "copies", f"{way} answers by a count of its own")
    expect(
        _in_child(lambda: _answers(fitted, rows)) == 0,
        "copies",
        "a forked child answers by a count of its own",
    )


def check_forks(case: Case, seconds: float) -> None:
    """Check that two children of one process draw different noise."""

    def words() -> bytes:
        if case.kind == "model":
            return _released(case.fitted())
        fitted = case.fitted()
        inputs = fitted.checked(np.repeat(_first(case), 64, axis=0))
        from reticent.noise import SecureSampler

        return np.asarray(fitted.draw(inputs, SecureSampler()).values).astype(str).tobytes()

    found = [_in_child(words) for _ in range(4)]
    # Labels of one sure answer may all be alike. Noise that is read off may not.
    if case.kind == "model" or len(set(found)) > 1:
        expect(len(set(found)) > 1, "forks", "children of one process drew the same noise")


def check_refusals(case: Case, seconds: float) -> None:
    """Check that whatever is refused is refused before anything is charged."""
    fitted = case.fitted()
    with case.ledger(fitted.guarantee) as ledger:
        wrong: list[Any]
        if case.kind == "model":
            wrong = [
                lambda: case.fitted(
                    replace(case.records, X=_with_nan(case.X)), ledger=ledger, scope=SCOPE
                ),
                lambda: case.fitted(
                    replace(case.records, y=case.y[1:]), ledger=ledger, scope=SCOPE
                ),
                lambda: case.fitted(
                    replace(case.records, X=case.X[:, :0]), ledger=ledger, scope=SCOPE
                ),
                lambda: case.fitted(ledger=ledger, scope="somebody"),
                lambda: case.fitted(scope=SCOPE),
            ]
        else:
            rows = _first(case)
            wrong = [
                lambda: fitted.release(_with_nan(rows), ledger=ledger, scope=SCOPE),
                lambda: fitted.release(rows[:, :0], ledger=ledger, scope=SCOPE),
                lambda: fitted.release(rows, ledger=ledger, scope="somebody"),
                lambda: fitted.release(rows, scope=SCOPE),
                lambda: case.fresh().release(rows, ledger=ledger, scope=SCOPE),
            ]
        for number, ask in enumerate(wrong):
            try:
                ask()
            except ReticentError:
                pass
            else:
                expect(False, "refusals", f"wrong call number {number} was answered")
            expect(spent(ledger)[1] == 0, "refusals", f"wrong call number {number} was charged")


def check_totality(case: Case, seconds: float) -> None:
    """Check that after a charge nothing depends on a row: no finite row and no record makes it
    fail.
    """
    for number, records in enumerate(_awkward(case)):
        with case.ledger(case.fitted().guarantee) as ledger:
            try:
                if case.kind == "model":
                    case.fitted(records, ledger=ledger, scope=SCOPE)
                elif case.kind == "answerer":
                    fitted = case.fitted(records)
                    fitted.release(_first(case), ledger=ledger, scope=SCOPE)
                else:
                    fitted = case.fitted()
                    fitted.release(records.X, ledger=ledger, scope=SCOPE)
            except Exception as error:
                charged = "after the charge" if spent(ledger)[1] else "by what the rows are"
                expect(
                    False,
                    "totality",
                    f"finite rows number {number} were refused {charged}: {type(error).__name__}",
                )


def check_price(case: Case, seconds: float) -> None:
    """Check that the price is known from the number of inputs, and is what the guarantee says."""
    if case.kind == "model":
        return
    fitted, rows = case.fitted(), _first(case)
    price: Price = fitted.price(fitted.checked(rows))
    expect(price.answers == len(rows), "price", f"of {price.answers} answers for {len(rows)} rows")
    stated: Guarantee = fitted.guarantee
    expect(price.event.guarantee == stated, "price", "differs from the guarantee that is stated")


def _awkward(case: Case) -> list[Records]:
    """Return finite rows that break what was not thought of: enormous, tiny, all alike, one
    label.
    """
    X, y = np.asarray(case.X, dtype=np.float64), case.y
    largest = np.full_like(X, 1e300)
    rows = [
        largest,
        -largest,
        np.where(np.arange(X.size).reshape(X.shape) % 2, largest, -largest),
        np.zeros_like(X),
        np.full_like(X, 5e-324),
        np.repeat(X[:1], len(X), axis=0),
    ]
    found = [replace(case.records, X=one) for one in rows]
    return [*found, replace(case.records, y=np.repeat(y[:1], len(y), axis=0))]


def _with_nan(rows: Rows) -> Rows:
    changed = np.array(rows, dtype=np.float64)
    changed.reshape(len(changed), -1)[0, 0] = np.nan
    return changed


def _first(case: Case) -> Rows:
    return case.asking[:1]


def _prepaid(case: Case, fitted: Any) -> Any:
    return fitted.price(fitted.checked(_first(case))).prepaid


def _calls(fitted: Any, rows: Rows) -> int:
    """Return as many calls as may be answered, at most eight for each thread."""
    prepaid = fitted.price(fitted.checked(rows)).prepaid
    most = _THREADS * 8
    if prepaid is None or prepaid.queries is None:
        return most
    return int(min(most, prepaid.queries // len(rows)))


def _answers(fitted: Any, rows: Rows) -> int:
    try:
        return len(fitted.release(rows))
    except BudgetExceeded:
        return 0


def _released(model: Any) -> bytes:
    return b"".join(np.asarray(array).tobytes() for array in model.arrays().values())


def _in_child(work: Any) -> Any:
    """Return what ``work`` returns in a forked child."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def run() -> None:
        try:
            with not_counted("a check of the estimator: nothing leaves"):
                results.put(work())
        except BaseException as error:  # told to the parent, which waits for something
            results.put(CheckFailed(f"forks: a child failed with {type(error).__name__}"))

    child = context.Process(target=run)
    child.start()
    found = results.get()
    child.join()
    if isinstance(found, CheckFailed):
        raise found
    return found
