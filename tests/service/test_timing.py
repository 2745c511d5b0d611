"""How long an answer takes, and how long it is, tells nothing about the row: two samples of times,
for two rows that are answered differently, have one distribution.

A busy machine adds noise to both alike, so both are called in pairs, in changing order, and what
is compared are ranks of the differences within pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import wilcoxon

from tests.service.conftest import Place, ask
from tests.service.servers import running

INSIDE, EDGE = [0.6, 0.6], [1e-9, -1e-9]
"""Rows far from the classifier's boundary, and on it."""

FALSE_ALARM = 1e-4
"""Share of runs in which equal distributions are told apart."""


def times(place: Place, folder: Path, calls: int) -> SimpleNamespace:
    """Times of both bodies in turn, as a client sees them, how far they differ, and lengths."""
    rows = [[INSIDE] * 4, [EDGE] * 4]
    lengths: list[set[int]] = [set(), set()]
    seconds: list[list[float]] = [[], []]
    with running(place.settings(), folder / "log") as server:
        client = server.client(place.secret)
        for number in range(2 * calls):
            pair, second = divmod(number, 2)
            which = (pair + second) % 2
            told = ask(client, f"timing-{number}", {"rows": rows[which]})
            assert told.status_code == 200, told.text
            lengths[which].add(len(told.content))
            seconds[which].append(told.elapsed.total_seconds())
    medians = [float(np.median(part)) for part in seconds]
    # the chance that pairs of times of one distribution differ as much as these
    chance = float(wilcoxon(np.subtract(seconds[1], seconds[0])).pvalue)
    return SimpleNamespace(p=chance, lengths=lengths, medians=medians)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calls", [60, pytest.param(50_000, marks=[pytest.mark.soak, pytest.mark.timeout(4 * 3600)])]
)
def test_time_and_size_are_those_of_the_number_of_rows(
    make_place: Callable[..., Place], tmp_path: Path, calls: int
) -> None:
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e9)
    found = times(place, tmp_path, calls)
    assert found.lengths[0] == found.lengths[1]
    assert found.p > FALSE_ALARM, found
