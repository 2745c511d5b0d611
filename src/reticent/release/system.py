"""The release of a system: three methods, and the one function that calls them.

A system has a check of its inputs (``checked``), their cost (``price``) and their answers
(``draw``). ``release`` calls the three in that order and pays between the second and the third.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs

from reticent.core.checks import count
from reticent.core.errors import InvalidInput
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.core.signatures import check_signing_key
from reticent.noise import Sampler, SecureSampler, SeededSampler
from reticent.release.parts import Parts, opened, release_parts
from reticent.release.paying import Books, Drawn, Price, Scopes, check_both_or_neither, paid
from reticent.tables.batches import LARGEST_BATCH, Batch, read_batches
from reticent.tables.frames import framed, kept_names
from reticent.tables.schema import TabularSchema

Answers = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]

_LEAST_ROWS = 256
"""Fewest rows for a worker: to send fewer takes longer than to answer them."""


class System(Protocol):
    """A fitted system that answers inputs.

    ``reticent.testing.check_system`` tests the promises of the three methods.
    """

    def checked(self, X: Any) -> Any:
        """Return the inputs as ``price`` and ``draw`` take them, with a length.

        Nothing is spent yet, so this is the place to refuse. If the inputs are protected, it reads
        public facts alone: shapes, names, kinds and whether numbers are finite.

        Raises:
            NotFittedYet, InvalidInput: inputs that the system does not answer.
        """

    def price(self, inputs: Any) -> Price:
        """Return the cost of answers for ``inputs``. It depends on their number alone."""

    def draw(self, inputs: Any, sampler: Sampler) -> Drawn:
        """Return one answer for each of ``inputs``, with noise from ``sampler``.

        The answer is paid for, so this never raises, whatever the rows and the records are. No
        private row decides how long it takes by more than its guarantee allows.
        """


def release(
    system: System,
    X: Any,
    *,
    sampler: Sampler | None = None,
    ledger: Books | None = None,
    scope: Scopes | None = None,
    **options: Any,
) -> Release:
    """Return one answer for each row of ``X``, charged durably before it is drawn.

    Args:
        system: the fitted system that answers.
        X: the rows to answer.
        sampler: the source of noise, or None for the operating system.
        ledger: the ledger or its leases, or None for a receipt that says that nothing was booked.
        scope: the scope that is charged, given with ``ledger`` or not at all. If X is protected, a
            sequence charges each row to a scope of its own.
        options: further arguments of ``system.draw``.

    Raises:
        NotFittedYet, InvalidInput, BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable:
            errors of the check or of the charge. Nothing is drawn.
    """
    inputs = system.checked(X)
    source = SecureSampler() if sampler is None else sampler
    price = system.price(inputs)
    with paid(price, sampler=source, ledger=ledger, scope=scope) as payment:
        drawn = payment.kept(system.draw(inputs, source, **options))
    found = Release(drawn.values, drawn.withheld, payment.receipt)
    return framed(found, X, drawn.columns)


class Releasing(ABC):
    """Mixin of a fitted system with ``release``, ``simulate`` and ``release_stream``.

    They call its ``checked``, ``price`` and ``draw``, the methods of ``System``.
    """

    @abstractmethod
    def checked(self, X: npt.ArrayLike) -> Any:
        """Return X as the fitted system takes it, like ``System``. It is as private as X.

        Raises:
            NotFittedYet, InvalidInput: the errors of ``release``.
        """

    @abstractmethod
    def price(self, inputs: Any) -> Price:
        """Return the cost of answers for checked inputs, like ``System``."""

    @abstractmethod
    def draw(self, inputs: Any, sampler: Sampler) -> Drawn:
        """Return one answer for each of the checked inputs, like ``System``. Pay for them first."""

    def __getstate__(self) -> dict[str, Any]:
        """Return a state that cannot spend prepaid answers again, except through their ledger."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        prepaid = state.get("_prepaid")
        return state if prepaid is None else {**state, "_prepaid": copy(prepaid)}

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Books | None = None,
        scope: Scopes | None = None,
    ) -> Release:
        """Return one answer for each row of X, charged before it is drawn.

        Noise comes from the operating system.

        Args:
            X: rows of shape (n, n_features_in_), or with the input shape seen in ``fit``. The
                protected data are X or the records seen in ``fit``, as ``guarantee`` says.
            ledger: the ledger or its leases, or None for a receipt that says that nothing was
                booked. Answers that are paid for together are booked from the first call on, or
                never.
            scope: the scope that is charged, given with ``ledger`` or not at all. If X is
                protected, a sequence charges each row to a scope of its own, all or none.

        Rows that are answered one by one are shared among the workers that
        ``joblib.parallel_config`` sets, which may be a Dask cluster (docs/size.md). Without it
        there is one worker. All rows are charged before any worker starts.

        Returns:
            ``values`` (vectors with NaN, or labels with -1 or None, where withheld), ``withheld``
            and ``receipt``.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable:
                errors of the check or of the charge. Nothing is answered.
        """
        return release(self, X, ledger=ledger, scope=scope)

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """Return answers like those of ``release``, with noise from a seed.

        They are for experiments, *not private* and not counted, as the receipt says.

        Args:
            X: the rows, an argument of ``release``.
            seed: seed, at least 0.
        """
        return release(self, X, sampler=SeededSampler(count(seed, name="seed", minimum=0)))

    def release_stream(
        self,
        source: str | Path | Iterable[Any],
        output: str | Path,
        *,
        rows: int = LARGEST_BATCH,
        format: str = "parquet",
        ledger: Books | None = None,
        scope: Scope | None = None,
        ignore: Sequence[str] = (),
        subject_column: str | None = None,
        key: str | Path | None = None,
        report: Callable[[int], None] = lambda rows: None,
    ) -> Iterator[Release]:
        """Answer every row, part by part, into a folder. An interrupted run can go on.

        A part is charged once, before it is answered, and stands in the folder whole or not at all.
        Repeat the same call after an interruption: parts that are there are neither charged nor
        answered again. Answers that a killed run had charged and not written are lost, and their
        rows are charged again.

        Args:
            source: a CSV, Parquet or Arrow IPC file, with columns found by name, or an iterable of
                data frames or arrays, each of them a part. Repeated calls need the same ones.
            output: folder for ``part-000000.parquet``, ... and a receipt for each.
            rows: number of rows of a part if ``source`` is a file, 1 to 100,000. Memory grows with
                it.
            format: format of the parts: "parquet", "csv" or "arrow".
            ledger, scope: ledger and scope of each part's charge, both or neither.
            ignore: columns of the file that are not read. Each must be there.
            subject_column: a column of the file that names whose privacy each row spends.
            key: private key file that signs every receipt.
            report: function that is called with the number of rows after each part.

        Returns:
            An iterator over the answers of every part that this run writes, each once it is on the
            disk. Nothing is answered before it is asked for: iterate, or call ``list``.

        Raises:
            NotFittedYet, UnknownName, MissingExtra: nothing is answered.
            InvalidInput: rows that do not fit, or a folder of something else. Parts written before
                stay, as for every error.
            BudgetExceeded, LedgerUnavailable, WriteFailed: the errors of ``release`` and of files.
        """
        check_both_or_neither(ledger, scope)
        if subject_column is not None and ledger is None:
            raise InvalidInput("subject_column: expected together with ledger and scope")
        if key is not None:
            check_signing_key(Path(key))
        path = Path(source) if isinstance(source, str | Path) else None
        columns = None if path is None else columns_of(self)
        bundle = str(getattr(self, "bundle_identity_", ""))
        identity = {"bundle": bundle, "source": _identity(path)}
        parts = Parts(Path(output), format, rows, identity)

        def answers() -> Iterator[Release]:
            with opened(parts) as start:
                if path is None or columns is None:
                    batches = _frames(source, start)  # type: ignore[arg-type]
                else:
                    batches = read_batches(
                        path,
                        columns,
                        rows=rows,
                        ignore=ignore,
                        subject_column=subject_column,
                        skip=start * rows,
                        name="source",
                    )
                yield from release_parts(
                    self,  # type: ignore[arg-type]
                    batches,
                    parts,
                    start=start,
                    ledger=ledger,
                    scope=scope,
                    key=None if key is None else Path(key),
                    report=report,
                )

        return answers()


class PredictsByRelease(Releasing):
    """Mixin of a classifier whose ``predict`` is a release: charged and counted as ``release`` is.

    ``score`` and all other callers of ``predict`` spend the same. The owner's own answer, without
    noise, has another name: ``exact_predict``.
    """

    @property
    def _withholds(self) -> bool:
        """Return whether the fitted system may withhold an answer, or raise ``NotFittedYet``."""
        return False

    def predict(
        self, X: npt.ArrayLike, *, ledger: Books | None = None, scope: Scopes | None = None
    ) -> npt.NDArray[Any]:
        """Return the labels of ``release(X)``, which may leave: with noise, charged and counted.

        Args:
            X: the rows, an argument of ``release``.
            ledger: the ledger or its leases, an argument of ``release``.
            scope: the scope that is charged, an argument of ``release``.

        Returns:
            Labels, shape (n,). A withheld answer is the constructor's ``fallback`` if there is one.

        Raises:
            InvalidInput: answers may be withheld, and ``fallback`` is none of ``classes_``. Nothing
                is charged.
            NotFittedYet, BudgetExceeded, IncompatibleGuarantees, LedgerUnavailable: the errors of
                ``release``.
        """
        fallback = _fallback(self) if self._withholds else None
        found = self.release(X, ledger=ledger, scope=scope)
        values: npt.NDArray[Any] = found.values
        if fallback is not None:
            values = np.where(found.withheld, fallback, values)
        return values.astype(np.asarray(getattr(self, "classes_", values)).dtype)


def _fallback(system: Any) -> Any:
    """Return the label that stands for a withheld answer, in its form among the classes.

    Raises:
        InvalidInput: it is none of the classes. Another value may not fit among released labels,
            and this would show only after the charge.
    """
    label = getattr(system, "fallback", None)
    found = [] if label is None else [known for known in system.classes_ if known == label]
    if len(found) != 1:
        raise InvalidInput(
            f"fallback={label!r}: expected one of the labels, which predict gives where an answer "
            f"is withheld; call release of this {type(system).__name__}, which says what is "
            "withheld, or set it where it is a setting"
        )
    return found[0]


def answers_in_parallel(query: Any, inputs: Any, *, sampler: Sampler) -> Answers:
    """Return one answer for each row of checked ``inputs``, in their order.

    They are computed by the workers that ``joblib.parallel_config`` sets, or by one.

    *Independent noise.* A worker is given the kind of sampler and never a state. Each of its words
    is read from the operating system, so two workers cannot draw the same ones, however they were
    started. Seeded answers are computed here, one after the other: a seed has one order.

    Args:
        query: a query that answers rows, each by itself.
        inputs: n rows as the query takes them.
        sampler: a sampler of the kind that the workers use.

    Returns:
        Values and flags of withheld ones, as ``query.answer`` gives them.
    """
    many = type(sampler) is SecureSampler
    parts = len(inputs) // _LEAST_ROWS if many else 1
    if parts > 1:
        parts = min(effective_n_jobs(None), parts)
    if parts <= 1:
        values, withheld = query.answer(inputs, sampler=sampler)
        return values, withheld
    ends = np.linspace(0, len(inputs), parts + 1).astype(int).tolist()
    # Rows are private: without a limit joblib would put large ones into files.
    found = Parallel(max_nbytes=None)(
        delayed(_answer)(query, _part(inputs, slice(start, stop)), type(sampler))
        for start, stop in pairwise(ends)
    )
    return (
        np.concatenate([values for values, _ in found]),
        np.concatenate([withheld for _, withheld in found]),
    )


def _answer(query: Any, inputs: Any, kind: type[Any]) -> Answers:
    values, withheld = query.answer(inputs, sampler=kind())
    return values, withheld


def together(parts: Sequence[Any]) -> Any:
    """Return checked inputs of one system, one after the other, as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return first.together(parts) if hasattr(first, "together") else np.concatenate(parts)


def _part(inputs: Any, rows: slice) -> Any:
    return inputs.part(rows) if hasattr(inputs, "part") else inputs[rows]


def columns_of(system: Any, *, name: str = "source") -> TabularSchema | list[str]:
    """Return a fitted system's schema, or the names of the columns that it reads from a file.

    Raises:
        InvalidInput: it was fitted on an array, so that nothing in a file can be found by name.
    """
    schema = getattr(getattr(system, "query_", None), "schema", None)
    if isinstance(schema, TabularSchema):
        return schema
    names = kept_names(system)
    if names is None:
        raise InvalidInput(
            f"{name}: this {type(system).__name__} was fitted on an array, without column names; "
            "fit it on a data frame, or pass arrays"
        )
    return names


def _identity(path: Path | None) -> dict[str, Any]:
    """Return facts that identify a file, never its content or its length, which are private."""
    if path is None:
        return {"kind": "frames"}
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidInput(f"source={str(path)!r}: cannot be read ({error.strerror})") from error
    return {"kind": "file", "changed": changed}


def _frames(source: Iterable[Any], start: int) -> Iterator[Batch]:
    for number, rows in enumerate(source):
        if number >= start:
            yield Batch(rows, None)
