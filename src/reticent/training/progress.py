"""The callback by which training tells how far it is, and the progress bar that most callers
want.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Report(Protocol):
    """A callback that is told after each step of a long computation."""

    def __call__(self, stage: str, done: int, total: int, loss: float) -> None:
        """Take note that ``done`` of ``total`` steps of ``stage`` are finished.

        ``loss`` is the latest loss, NaN where there is none.
        """


def silent(stage: str, done: int, total: int, loss: float) -> None:
    """Report nothing."""


@contextmanager
def bar(*, console: Console | None = None) -> Iterator[Report]:
    """Show a progress bar per stage, on standard error unless ``console`` says otherwise.

    Example:
        >>> import io
        >>> from rich.console import Console
        >>> with bar(console=Console(file=io.StringIO())) as report:
        ...     report("embedder", 1, 1, 0.5)
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console if console is not None else Console(stderr=True)
    ) as progress:
        tasks: dict[str, tuple[object, int]] = {}

        def report(stage: str, done: int, total: int, loss: float) -> None:
            known = tasks.get(stage)
            shown = "" if isnan(loss) else f"loss {loss:.4g}"
            if known is None or done <= known[1]:
                task = progress.add_task(stage, total=total, loss=shown)
            else:
                task = known[0]  # type: ignore[assignment]
            tasks[stage] = (task, done)
            progress.update(task, completed=done, total=total, loss=shown)

        yield report


@contextmanager
def progress(verbose: bool) -> Iterator[Report]:
    """Show a progress bar if ``verbose``, or nothing."""
    if not verbose:
        yield silent
        return
    with bar() as report:
        yield report
