"""Figures that documents quote: what was measured several times, beside a peer in the same run.

A benchmark calls ``Figure.of(...).keep()``, which prints the figure; where ``python -m benchmarks``
started it, the figure also goes into the file that makes the table.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the papers, which no installation has

FILE = "RETICENT_BENCHMARK_FIGURES"
"""Environment variable with the name of the file, one JSON object a line."""

REPEATS = 1.3
"""Ratios of several runs whose largest is at most so many times the least count as one number."""

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        what: is measured, with its size.
        unit: "s" for processor seconds, "s by the clock", or "a second" for a rate.
        ours: median, least and largest.
        peer: what it is compared with; "" for none.
        theirs: the peer's three numbers, or None.
        ratios: those of several runs of the benchmark; empty for one.
    """

    what: str
    unit: str
    ours: tuple[float, float, float]
    peer: str = ""
    theirs: tuple[float, float, float] | None = None
    ratios: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        what: str,
        ours: Sequence[float],
        *,
        unit: str = "s",
        peer: str = "",
        theirs: Sequence[float] | None = None,
    ) -> Figure:
        """The figure of several runs of each side."""
        return cls(what, unit, _summary(ours), peer, None if theirs is None else _summary(theirs))

    @classmethod
    def merged(cls, runs: Sequence[Figure]) -> Figure:
        """One figure of several runs of its benchmark, with their ratios."""
        ratios = tuple(run.ratio for run in runs if run.ratio is not None)
        theirs = [run.theirs for run in runs if run.theirs is not None]
        return replace(
            runs[0],
            ours=_over_runs([run.ours for run in runs]),
            theirs=_over_runs(theirs) if theirs else None,
            ratios=ratios,
        )

    @property
    def ratio(self) -> float | None:
        """How many times better the medians are than the peer's: less time, or a larger rate."""
        if self.theirs is None:
            return None
        ours, theirs = self.ours[0], self.theirs[0]
        return ours / theirs if self.unit == "a second" else theirs / ours

    def cells(self) -> tuple[str, str, str, str, str]:
        """What, ours, peer, theirs and ratio, as the table shows them."""
        ratio = ""
        if self.ratio is not None:
            ratio = _short(self.ratio)
            if self.ratios and max(self.ratios) > REPEATS * min(self.ratios):
                ratio += f" ({_short(min(self.ratios))} to {_short(max(self.ratios))})"
        theirs = "" if self.theirs is None else self._shown(self.theirs)
        return self.what, self._shown(self.ours), self.peer, theirs, ratio

    def keep(self) -> None:
        """Prints the figure, and appends it to the file that the environment names."""
        what, ours, peer, theirs, ratio = self.cells()
        beside = f"; {peer} {theirs}, {ratio} times" if peer else ""
        print(f"{what}: {ours}{beside}", flush=True)
        if name := os.environ.get(FILE):
            with Path(name).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(self)) + "\n")

    def _shown(self, numbers: tuple[float, float, float]) -> str:
        middle, low, high = numbers
        if self.unit == "a second":
            return f"{middle:,.0f} ({low:,.0f} to {high:,.0f}) a second"
        name, size = next(
            ((name, size) for name, size in _UNITS if middle >= size), ("ns", _UNITS[-1][1])
        )
        clock = " by the clock" if self.unit == "s by the clock" else ""
        shown = [f"{number / size:.3g}" for number in (middle, low, high)]
        return f"{shown[0]} ({shown[1]} to {shown[2]}) {name}{clock}"


def read(path: Path) -> list[Figure]:
    """The figures of a file, in order; none where there is no file."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        theirs, ours = fields.pop("theirs"), tuple(fields.pop("ours"))
        ratios = tuple(fields.pop("ratios"))
        found.append(Figure(ours=ours, theirs=theirs and tuple(theirs), ratios=ratios, **fields))
    return found


def processor_seconds(task: Callable[[], object], *, runs: int = 5, each: int = 1) -> list[float]:
    """Seconds of processor time of ``runs`` calls, over ``each`` answers of a call."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        task()
        found.append((time.process_time() - start) / each)
    return found


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _over_runs(found: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    middle, low, high = zip(*found, strict=True)
    return statistics.median(middle), min(low), max(high)


def _summary(runs: Sequence[float]) -> tuple[float, float, float]:
    return statistics.median(runs), min(runs), max(runs)
