"""Random interleavings of several handles on one ledger, against a model in plain Python."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded
from reticent.ledger import Ledger, Reservation

NAMES = st.sampled_from(["", "a", "b"])
SCOPES = st.builds(
    Scope, principal=NAMES, subject=st.sampled_from(["s", "t"]), bundle=st.sampled_from(["", "m"])
)
UNITS = st.integers(1, 700_000)


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

    open_reservations: Bundle[Reservation] = Bundle("open_reservations")

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
        self.granted: dict[Scope, int] = {}
        self.booked: list[tuple[Scope, int]] = []
        self.commits = 0

    def spent(self, budget: Scope) -> int:
        return sum(units for scope, units in self.booked if budget.covers(scope))

    @rule(handle=st.integers(0, 2), scope=SCOPES, units=UNITS)
    def grant(self, handle: int, scope: Scope, units: int) -> None:
        refused = False
        try:
            self.handles[handle].grant(scope, Guarantee(units / 1e6, 0.0, AddRemove()))
        except BudgetExceeded:
            refused = True
        assert refused == (scope not in self.granted and self.spent(scope) > units)
        if not refused:
            self.granted[scope] = self.granted.get(scope, 0) + units

    @rule(
        target=open_reservations,
        handle=st.integers(0, 2),
        scope=SCOPES,
        units=UNITS,
        answers=st.integers(1, 3),
    )
    def reserve(self, handle: int, scope: Scope, units: int, answers: int) -> Reservation | None:
        event = PrivacyEvent("test", Guarantee(units / 1e6, 0.0, AddRemove()))
        covering = [budget for budget in self.granted if budget.covers(scope)]
        fits = bool(covering) and all(
            self.spent(budget) + answers * units <= self.granted[budget] for budget in covering
        )
        try:
            reservation = self.handles[handle].reserve(scope, event, answers=answers)
        except BudgetExceeded:
            assert not fits
            return None
        assert fits
        self.booked.append((scope, answers * units))
        return reservation

    @rule(reservation=consumes(open_reservations))
    def commit(self, reservation: Reservation | None) -> None:
        if reservation is not None:
            reservation.commit("receipt")
            self.commits += reservation.scopes

    @rule(
        target=open_reservations,
        handle=st.integers(0, 2),
        scopes=st.lists(SCOPES, min_size=1, max_size=5),
        units=st.integers(1, 200_000),
    )
    def reserve_each(self, handle: int, scopes: list[Scope], units: int) -> Reservation | None:
        event = PrivacyEvent("test", Guarantee(units / 1e6, 0.0, AddRemove()))
        fits = all(
            any(budget.covers(scope) for budget in self.granted) for scope in scopes
        ) and all(
            self.spent(budget) + units * sum(map(budget.covers, scopes)) <= granted
            for budget, granted in self.granted.items()
        )
        try:
            reservation = self.handles[handle].reserve_each(scopes, event)
        except BudgetExceeded:
            assert not fits
            return None
        assert fits
        self.booked += [(scope, units) for scope in scopes]
        return reservation

    @rule(handle=st.integers(0, 2), scopes=st.lists(SCOPES, min_size=1, max_size=4), units=UNITS)
    def grant_each(self, handle: int, scopes: list[Scope], units: int) -> None:
        refused = False
        try:
            self.handles[handle].grant_each(scopes, Guarantee(units / 1e6, 0.0, AddRemove()))
        except BudgetExceeded:
            refused = True
        assert refused == any(
            scope not in self.granted and self.spent(scope) > units for scope in scopes
        )
        if not refused:
            for scope in set(scopes):
                self.granted[scope] = self.granted.get(scope, 0) + units

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
        assert {budget.scope: budget.spent_epsilon for budget in report.budgets} == {
            b: self.spent(b) for b in self.granted
        }
        assert all(budget.left_epsilon >= 0 for budget in report.budgets)
        assert sum(account.spent_epsilon for account in report.accounts) == sum(
            units for _, units in self.booked
        )
        assert sum(account.commits for account in report.accounts) == self.commits

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
