"""Random interleavings of several handles on one ledger, against a model in plain Python."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded
from reticent.ledger import Ledger, Reservation

NAMES = st.sampled_from(["", "a", "b"])
SUBJECTS, BUNDLES = ["s", "t"], st.sampled_from(["", "m"])
SCOPES = st.builds(Scope, principal=NAMES, subject=st.sampled_from(SUBJECTS), bundle=BUNDLES)
PATTERNS = st.one_of(
    SCOPES, st.builds(Scope, principal=st.sampled_from(["a", "b"]), bundle=BUNDLES)
)
COSTS = st.tuples(st.integers(1, 700_000), st.integers(0, 700_000))
SMALL = st.tuples(st.integers(1, 200_000), st.integers(0, 200_000))


def guarantee(units: tuple[int, int]) -> Guarantee:
    return Guarantee(units[0] / 1e6, units[1] / 1e12, AddRemove())


@cache
def _empty_ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        Ledger.create(path, required=()).close()
        return path.read_bytes()


class LedgerMachine(RuleBasedStateMachine):
    """Every rule uses one of three handles; ``model`` holds what each budget and account must
    say.
    """

    open_reservations: Bundle[tuple[Reservation | None, set[Scope]]] = Bundle("open_reservations")

    @initialize()
    def create(self) -> None:
        self.folder = tempfile.mkdtemp()
        path = Path(self.folder) / "ledger.db"
        path.write_bytes(_empty_ledger())
        self.anchor = (
            Path(self.folder) / "state"
        )  # one empty ledger serves every run: their anchors must not meet
        self.handles = [
            Ledger.open(path, synchronous="NORMAL", anchor=self.anchor) for _ in range(3)
        ]
        self.granted: dict[Scope, tuple[int, int]] = {}
        self.booked: list[tuple[Scope, tuple[int, int]]] = []  # an answer each
        self.reserved: Counter[Scope] = Counter()
        self.committed: Counter[Scope] = Counter()
        self.grants = 0
        for subject in SUBJECTS:  # most requests are covered, and find room
            self.grant(0, Scope(subject=subject), (1_000_000, 1_000_000))

    def spent(self, covered: Callable[[Scope], bool]) -> tuple[int, int]:
        costs = [cost for scope, cost in self.booked if covered(scope)]
        return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)

    def granting(self, scopes: list[Scope], units: tuple[int, int], ask: Callable[[], Any]) -> None:
        refused = any(
            scope not in self.granted and not self.within(self.spent(scope.covers), units)
            for scope in scopes
        )
        with pytest.raises(BudgetExceeded) if refused else nullcontext():
            ask()
        if not refused:
            for scope in set(scopes):
                had = self.granted.get(scope, (0, 0))
                self.granted[scope] = had[0] + units[0], had[1] + units[1]
                self.grants += 1

    @staticmethod
    def within(spent: tuple[int, int], granted: tuple[int, int]) -> bool:
        return spent[0] <= granted[0] and spent[1] <= granted[1]

    def reserving(
        self, scopes: list[Scope], units: tuple[int, int], ask: Callable[[], Reservation]
    ) -> Reservation | None:
        """Asks for an answer to each; all of them are booked, or none."""
        before, self.booked = self.booked, self.booked + [(scope, units) for scope in scopes]
        if all(any(budget.covers(scope) for budget in self.granted) for scope in scopes) and all(
            self.within(self.spent(budget.covers), granted)
            for budget, granted in self.granted.items()
        ):
            self.reserved.update(set(scopes))
            return ask()
        self.booked = before
        with pytest.raises(BudgetExceeded):
            ask()
        return None

    @rule(handle=st.integers(0, 2), scope=PATTERNS, units=COSTS)
    def grant(self, handle: int, scope: Scope, units: tuple[int, int]) -> None:
        self.granting([scope], units, lambda: self.handles[handle].grant(scope, guarantee(units)))

    @rule(handle=st.integers(0, 2), scopes=st.lists(PATTERNS, min_size=1, max_size=4), units=COSTS)
    def grant_each(self, handle: int, scopes: list[Scope], units: tuple[int, int]) -> None:
        self.granting(
            scopes, units, lambda: self.handles[handle].grant_each(scopes, guarantee(units))
        )

    @rule(
        target=open_reservations,
        handle=st.integers(0, 2),
        scope=SCOPES,
        units=COSTS,
        answers=st.integers(1, 3),
    )
    def reserve(
        self, handle: int, scope: Scope, units: tuple[int, int], answers: int
    ) -> tuple[Reservation | None, set[Scope]]:
        event, ledger = PrivacyEvent("test", guarantee(units)), self.handles[handle]
        made = self.reserving(
            [scope] * answers, units, lambda: ledger.reserve(scope, event, answers=answers)
        )
        return made, {scope}

    @rule(
        target=open_reservations,
        handle=st.integers(0, 2),
        scopes=st.lists(SCOPES, min_size=1, max_size=5),
        units=SMALL,
    )
    def reserve_each(
        self, handle: int, scopes: list[Scope], units: tuple[int, int]
    ) -> tuple[Reservation | None, set[Scope]]:
        event, ledger = PrivacyEvent("test", guarantee(units)), self.handles[handle]
        return self.reserving(scopes, units, lambda: ledger.reserve_each(scopes, event)), set(
            scopes
        )

    @rule(opened=consumes(open_reservations))
    def commit(self, opened: tuple[Reservation | None, set[Scope]]) -> None:
        reservation, scopes = opened
        if reservation is not None:
            reservation.commit("receipt")
            self.committed.update(scopes)

    @rule(handle=st.integers(0, 2))
    def crash(self, handle: int) -> None:
        """A handle that forgets everything, as a process does that is killed between two calls."""
        url = self.handles[handle].store.url.database
        self.handles[handle].close()
        self.handles[handle] = Ledger.open(str(url), synchronous="NORMAL", anchor=self.anchor)

    @invariant()
    def no_budget_is_below_zero_and_nothing_is_lost(self) -> None:
        if not hasattr(self, "handles"):
            return
        report = self.handles[0].report()
        assert {
            budget.scope: (budget.spent_epsilon, budget.spent_delta) for budget in report.budgets
        } == {budget: self.spent(budget.covers) for budget in self.granted}
        assert all(min(budget.left_epsilon, budget.left_delta) >= 0 for budget in report.budgets)
        answers = Counter(scope for scope, _ in self.booked)
        assert {
            a.scope: (a.spent_epsilon, a.spent_delta, a.answers, a.reservations, a.commits)
            for a in report.accounts
        } == {
            scope: (
                *self.spent(scope.__eq__),
                answers[scope],
                self.reserved[scope],
                self.committed[scope],
            )
            for scope in answers
        }
        assert report.entries == self.grants + self.reserved.total() + self.committed.total()

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            found = self.handles[1].verify()
            for handle in self.handles:
                handle.close()
            shutil.rmtree(self.folder)
            assert found.ok, found.problems


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
