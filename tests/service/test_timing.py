"""How long an answer takes, and how long it is, tells nothing about the row: two samples of times,
for two rows that are answered differently, have one distribution.

A busy machine adds noise to both alike, so the calls alternate, and what is compared are ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from tests.service.conftest import Place
from tests.service.servers import running

INSIDE, EDGE = [0.6, 0.6], [1e-9, -1e-9]
"""Rows far from the classifier's boundary, and on it."""

FALSE_ALARM = 1e-4
"""Share of runs in which equal distributions are told apart."""


def times(place: Place, folder: Path, calls: int, *, slow: float) -> SimpleNamespace:
    """Times of both bodies in turn, as a client sees them, how far they differ, and lengths.

    Args:
        place, folder: of the server.
        calls: of each row.
        slow: rows to add to the second body, as a planted difference.
    """
    rows = [[INSIDE] * 4, [EDGE] * int(4 + slow)]
    lengths: list[set[int]] = [set(), set()]
    seconds: list[list[float]] = [[], []]
    with running(place.settings(), folder / "log") as server:
        client = server.client(place.secret)
        for number in range(2 * calls):
            which = number % 2
            told = client.post(
                "/v1/bundles/labels/answers",
                json={"rows": rows[which]},
                headers={"Idempotency-Key": f"timing-{number}"},
            )
            assert told.status_code == 200, told.text
            lengths[which].add(len(told.content))
            seconds[which].append(told.elapsed.total_seconds())
    found = mannwhitneyu(seconds[0], seconds[1]).pvalue
    medians = [float(np.median(part)) for part in seconds]
    return SimpleNamespace(p=float(found), lengths=lengths, medians=medians)


@pytest.mark.slow
def test_time_and_size_are_those_of_the_number_of_rows(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e6)
    found = times(place, tmp_path, 60, slow=0)
    assert found.lengths[0] == found.lengths[1]
    assert len(found.lengths[0]) == 1
    assert found.p > FALSE_ALARM, found


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_time_of_many_calls_is_that_of_the_number_of_rows(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e9)
    found = times(place, tmp_path, 50_000, slow=0)
    assert found.lengths[0] == found.lengths[1]
    assert found.p > FALSE_ALARM, found


@pytest.mark.slow
def test_the_comparison_sees_a_difference(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """A body with 9,000 more rows, tens of milliseconds, is told apart by as many calls."""
    place = make_place(f"sqlite:///{tmp_path / 'ledger.db'}", epsilon=1e6)
    found = times(place, tmp_path, 30, slow=9000)
    assert found.p < FALSE_ALARM, found
    assert found.lengths[0] != found.lengths[1]
