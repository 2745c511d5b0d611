"""The ledger: durable budgets, charged before an answer is computed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count
from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable, ReticentError
from reticent.core.guarantees import Guarantee
from reticent.core.releases import Receipt
from reticent.core.scopes import Policy, Scope
from reticent.ledger import grants
from reticent.ledger.chain import (
    Anchor,
    AnchorFile,
    EndMoved,
    Page,
    Tip,
    digest_at,
    expect_end,
    read_end,
    read_tip,
)
from reticent.ledger.charges import (
    Budget,
    Charge,
    Preview,
    PreviewEach,
    charge_of,
    delta_cost,
    delta_grant,
    epsilon_cost,
    epsilon_grant,
    largest_fitting,
    statement_of,
)
from reticent.ledger.charging import (
    Booking,
    Claim,
    Reservation,
    charge_many,
    charge_one,
    checked_scopes,
    checked_text,
    covering,
    post_charges,
    post_commits,
    refusal_of_many,
    shortfalls,
    uncovered,
)
from reticent.ledger.leases import Lease
from reticent.ledger.reports import (
    Format,
    LedgerReport,
    Spending,
    export_to,
    report,
    spending,
)
from reticent.ledger.statements import Session
from reticent.ledger.store import Store, Synchronous
from reticent.ledger.verification import ReceiptClaim, Verification, verify

T = TypeVar("T")

_ALONE = 4
"""Transactions in a row that nobody interferes with, after which the next one relies on it. Of two
processes that take turns hardly any has so many.
"""


class Ledger:
    """Budgets that cannot be overspent: by one process or many, through crashes, in SQLite or
    PostgreSQL.

    A request reserves (one transaction: every covering budget is checked and charged, or none is),
    computes, and commits its receipt. What is reserved stays spent.

    **Guarantee.** All answers booked under a budget are together (granted epsilon, granted
    delta)-private under the budget's kind and adjacency, even if every request is chosen from
    earlier answers. Costs are added as whole units rounded up, which is the basic filter
    of Rogers, Roth, Ullman and Vadhan (2016). A float stands for its shortest
    decimal: 0.1 is a tenth, not the double next to it, which may exceed the booked cost by 1e-17
    of it. The caller must book every answer before it leaves and name the scope truthfully.

    Example:
        >>> import tempfile
        >>> from reticent.core import AddRemove
        >>> one = PrivacyEvent("label", Guarantee(0.1, 0.0, AddRemove()))
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     tempfile.TemporaryDirectory() as elsewhere,
        ... ):
        ...     ledger = Ledger.create(f"{folder}/budgets.db", anchor=elsewhere)
        ...     _ = ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-6, AddRemove()))
        ...     with ledger.reserve(
        ...         Scope(principal="acme", subject="ward-7"), one, answers=4
        ...     ) as reservation:
        ...         answers = "computed here"
        ...         reservation.commit("receipt-1")
        ...     ledger.preview(Scope(subject="ward-7"), one, answers=1).largest
        ...     ledger.close()
        6

    Runtime:
        One transaction a request, in the time of the disk or server. benchmarks/ledger.py
        prints pairs of reserve and commit per second.

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294, basic composition is a valid privacy filter.
        - Haber and Stornetta (1991), "How to time-stamp a digital document",
          doi:10.1007/BF00196791, linked digests.
        - Schneier and Kelsey (1999), "Secure audit logs to support computer forensics",
          doi:10.1145/317087.317089, logs that show what was changed.

    See Also:
        reticent.ledger.Reservation: what ``reserve`` gives.
        reticent.ledger.PlanCounter: many queries paid for at once.
    """

    def __init__(self, store: Store, *, clock: Callable[[], int] | None = None) -> None:
        self.store = store
        self._name = ""  # of the ledger, once it was read
        self._end: Tip | None = None  # behind the last transaction
        self._alone = 0  # transactions in a row with which nobody interfered, on a server
        self._clock = clock or (lambda: time.time_ns() // 1000)

    @classmethod
    def create(
        cls,
        url: str | Path,
        *,
        required: Iterable[str] = ("subject",),
        synchronous: Synchronous = "FULL",
        lock_timeout: float = 60.0,
        anchor: str | Path | None = None,
    ) -> Self:
        """Return the ledger at ``url``, made first where there is none.

        Args:
            url: path or URL, as ``Store`` takes it.
            required: parts that every request and budget of a new ledger must name, of "principal",
                "subject" and "bundle", as in ``Policy``. An existing ledger keeps its own.
            synchronous, lock_timeout, anchor: arguments of ``Store``.

        Raises:
            LedgerUnavailable: it cannot be reached or written, or is older than its anchor.
        """
        policy = Policy(required)
        store = Store(url, synchronous=synchronous, lock_timeout=lock_timeout, anchor=anchor)
        store.anchor_of("any")  # a place that is refused is refused before anything is made
        store.create(required=policy.text)
        ledger = cls(store)
        standing = ledger.anchor()
        if standing.seq == 0:
            file = store.anchor_of(standing.ledger)
            if file.read(to_write=True) is None:
                file.raise_to(standing)
        ledger.check_anchor()
        return ledger

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        synchronous: Synchronous = "FULL",
        lock_timeout: float = 60.0,
        anchor: str | Path | None = None,
    ) -> Self:
        """Return the ledger that exists at ``url``. ``Store`` describes the arguments.

        Raises:
            LedgerUnavailable: there is none, it cannot be reached, its file has several names,
                its schema is of another version, or it is older than its anchor.
        """
        store = Store(url, synchronous=synchronous, lock_timeout=lock_timeout, anchor=anchor)
        store.check()
        ledger = cls(store)
        ledger.check_anchor()
        return ledger

    def close(self) -> None:
        """Close idle connections. The ledger may be used again."""
        self.store.close()

    def grant(self, scope: Scope, total: Guarantee) -> Budget:
        """Add ``total`` to the budget of ``scope``.

        A new budget starts with what its scope has spent before.

        Args:
            scope: the scope that the budget covers.
            total: the additional amount that may be spent, rounded down to whole units. Its kind
                and adjacency are the budget's for good.

        Returns:
            The budget as it stands now.

        Raises:
            IncompatibleGuarantees: the total promises nothing, or the scope has spent or granted
                under another kind or adjacency.
            BudgetExceeded: the scope has already spent more than this.
            LedgerUnavailable: the ledger could not be written.
        """
        return self.grant_each([scope], total)[0]

    def grant_each(self, scopes: Iterable[Scope], total: Guarantee) -> tuple[Budget, ...]:
        """Add the same ``total`` to the budget of every scope, as ``grant`` does: all of them or
        none.

        Args:
            scopes: the scopes that the budgets cover, at least one. A repeated scope is granted
                once.
            total: the additional amount that may be spent under each budget.

        Returns:
            The budgets as they stand now, in the order in which their scopes come first.

        Raises:
            InvalidInput: no scopes, or something else than scopes.
            IncompatibleGuarantees, BudgetExceeded, LedgerUnavailable: the errors of ``grant``.
                Nothing was granted to any.
        """
        wanted = tuple(dict.fromkeys(checked_scopes(scopes)))
        statement = statement_of(total)
        epsilon, delta = epsilon_grant(total.epsilon), delta_grant(total.delta)
        return tuple(
            self._post(
                lambda page: grants.post_grants(
                    page, wanted, statement=statement, epsilon=epsilon, delta=delta
                )
            )
        )

    def lower(
        self, scope: Scope, *, epsilon: float | None = None, delta: float | None = None
    ) -> Budget:
        """Take back what is left of the budget of exactly this ``scope``, or a part of it.

        With neither amount the budget is frozen: nothing is charged to it until it is granted more.
        What is spent stays spent. What a process has leased counts as spent, and may be answered.

        Args:
            scope: scope of the budget.
            epsilon: amount to take at most, above 0, rounded up to whole units.
            delta: the same for delta, from 0 to below 1.

        Returns:
            The budget as it stands now.

        Raises:
            UnknownName: no budget has this scope.
            InvalidParameter: an amount out of its range.
            LedgerUnavailable: the ledger could not be written.
        """
        part: tuple[int, int] | None = None
        if epsilon is not None or delta is not None:
            part = (
                0 if epsilon is None else epsilon_cost(epsilon, answers=1),
                0 if delta is None else delta_cost(delta, answers=1),
            )
        return self._post(lambda page: grants.post_lowering(page, scope, part))

    def reserve(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0
    ) -> Reservation:
        """Charge every budget that covers ``scope``, durably, before anything is computed.

        One call makes one entry.

        Args:
            scope: the principal that asks, the subject whose data it is, and the bundle.
            event: the cost of one answer.
            answers: number of answers that the call pays for, withheld ones included, at least 1.
            slack_delta: extra delta that this call may spend to get a smaller epsilon for its batch
                of up to 65,536 answers by optimal composition. 0 adds up epsilon and delta. It is
                spent only where it makes epsilon smaller.

        Raises:
            InvalidInput: the scope leaves out a part that the ledger's policy requires, or
                ``answers`` is no whole number above 0. Nothing was charged.
            BudgetExceeded: it does not fit, or no budget answers for the scope. Nothing was
                charged.
            IncompatibleGuarantees: the event promises nothing, or a covering budget has another
                kind or adjacency. Nothing was charged.
            LedgerUnavailable: the ledger could not be written. Nothing may be released.
        """
        posting = charge_one(self._commit, scope, event, answers=answers, slack_delta=slack_delta)
        return posting.result(self._post(posting.work))

    def lease(self, scope: Scope, event: PrivacyEvent, *, answers: int, least: int = 1) -> Lease:
        """Charge a block of answers at once, durably, with one entry.

        This process then spends them call by call, without the database. Near the end of a budget a
        block is smaller: a sixteenth of what is left, so that several processes share the rest, but
        never less than ``least``.

        **Guarantee.** The guarantee of ``reserve``: the whole block is charged before the first of
        its answers is computed. What is not spent when the process ends, however it ends, stays
        charged.

        Args:
            scope: the scope, as ``reserve`` takes it.
            event: the cost of one answer.
            answers: number of answers that the block pays for at most, at least 1. Their epsilon
                and delta add up.
            least: number of answers that it pays for at least, 1 to ``answers``.

        Raises:
            InvalidInput, IncompatibleGuarantees, LedgerUnavailable: the errors of ``reserve``.
            BudgetExceeded: fewer than ``least`` answers fit. Nothing was charged.
        """
        answers, least = count(answers, name="answers"), count(least, name="least")
        if least > answers:
            raise InvalidInput(f"least={least}: expected at most answers={answers}")
        posting = charge_one(
            self._commit, scope, event, answers=answers, slack_delta=0.0, least=least
        )
        reservation = posting.result(self._post(posting.work))
        return Lease(reservation, event, answers=reservation.bookings[0].entry.answers)

    def reserve_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> Reservation:
        """Charge every answer to a scope of its own, durably, before anything is computed.

        All of them are charged or none. It is for the rows of a table that belong to different
        people: the scope of each row names its person. Each of k answers under one scope is paid
        for, as ``reserve(scope, event, answers=k)`` does it. Each different scope is one entry, and
        all of them are one transaction. A budget that covers several scopes pays for all of them.

        **Guarantee.** The guarantee of the ledger, for each scope by itself, where the answer that
        is charged to it depends on nothing that belongs to another one.

        Args:
            scopes: one scope for each answer, at least one, in any order. Withheld answers count.
            event: the cost of one answer.

        Raises:
            InvalidInput: no scopes, something else than scopes, or one that leaves out what the
                policy requires.
            BudgetExceeded: one or more scopes lack budget, by themselves or together. Nothing was
                charged to any. The message says how many, and names two of them at most.
            IncompatibleGuarantees: the event promises nothing, or a covering budget has another
                kind or adjacency. Nothing was charged.
            LedgerUnavailable: the ledger could not be written. Nothing may be released.
        """
        posting = charge_many(self._commit, checked_scopes(scopes), event)
        return posting.result(self._post(posting.work))

    def post_together(
        self, works: Sequence[Callable[[Page], T]], *, keep: bool = True
    ) -> list[T | ReticentError]:
        """Return what each of ``works`` returns, or the error by which it refused, in one
        transaction.

        So many requests pay for one wait for the disk. Each sees what those before it wrote. One
        that refuses leaves the others as they are.

        Args:
            works: works, done in their order.
            keep: whether the anchor is moved behind them. Turn it off only where none of them
                charges, as ``Reservation.commit`` does.

        Raises:
            LedgerUnavailable: the ledger could not be written, or is older than its anchor. None of
                them took place.
            ReticentError: one refused after it had appended an entry, which must not happen. None
                of them took place.
        """

        def all_of_them(page: Page) -> list[T | ReticentError]:
            done: list[T | ReticentError] = []
            for work in works:
                before = page.tip, page.tree.root
                try:
                    done.append(work(page))
                except LedgerUnavailable:
                    raise
                except ReticentError as error:
                    if (page.tip, page.tree.root) != before:
                        raise
                    done.append(error)
            return done

        return self._post(all_of_them, keep=keep)

    def preview(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, slack_delta: float = 0.0
    ) -> Preview:
        """Return what ``reserve`` would do now. It costs nothing and writes nothing.

        Raises:
            InvalidInput, IncompatibleGuarantees: the errors of ``reserve``.
            BudgetExceeded: no budget answers for the scope.
            LedgerUnavailable: the ledger cannot be read.
        """
        charge = charge_of(event, answers=answers, slack_delta=slack_delta)
        statement = statement_of(event.guarantee)
        with self.store.read() as connection:
            page = Page.of(connection, read_tip(connection))
            (cover,) = covering(page, [scope], statement=statement)
        if cover.lacking:
            raise uncovered(cover)
        standing = [Budget.of_row(row) for row in cover.budgets]
        largest = largest_fitting(event, slack_delta, standing)
        return Preview(charge.fits(standing), charge, largest, tuple(standing))

    def preview_each(self, scopes: Iterable[Scope], event: PrivacyEvent) -> PreviewEach:
        """Return what ``reserve_each`` would do now. It costs nothing and writes nothing.

        Its arguments and errors are those of ``reserve_each``, but a lack of budget is the result.
        """
        answers = Counter(checked_scopes(scopes))
        charges = {
            many: charge_of(event, answers=many, slack_delta=0.0) for many in set(answers.values())
        }
        statement = statement_of(event.guarantee)
        with self.store.read() as connection:
            page = Page.of(connection, read_tip(connection))
            found = covering(page, tuple(answers), statement=statement)
        claims = [
            Claim(cover, answers[cover.scope], charges[answers[cover.scope]]) for cover in found
        ]
        short = shortfalls(claims, statement)
        if not short:
            return PreviewEach(True, (), "")
        lacking = {claim.cover.scope for shortfall in short for claim in shortfall.claims}
        reason = refusal_of_many(short, len(answers), answers.total(), event)
        return PreviewEach(False, tuple(scope for scope in answers if scope in lacking), reason)

    def report(self, scope: Scope | None = None, *, limit: int = 100) -> LedgerReport:
        """Return what is granted, spent and left within ``scope``, and by whom, by
        ``reports.report``.
        """
        return report(self.store, scope, limit=limit)

    def spending(self, scope: Scope | None = None, *, points: int = 200) -> list[Spending]:
        """Return what the tightest budgets within ``scope`` have spent over time, by
        ``reports.spending``.
        """
        return spending(self.store, scope, points=points)

    @property
    def policy(self) -> Policy:
        """The parts that every request must name, and that a budget that covers it must name
        too.
        """
        with self.store.read() as connection:
            return read_tip(connection).policy

    def set_policy(self, required: Iterable[str]) -> Policy:
        """Set what every request must name from now on, with one entry.

        Args:
            required: parts of "principal", "subject", "bundle", or nothing to require nothing.

        Raises:
            UnknownName: not one of these.
            LedgerUnavailable: the ledger could not be written.
        """
        policy = Policy(required)
        self._post(lambda page: grants.post_policy(page, policy))
        return policy

    def verify(
        self, *, anchor: str | None = None, receipts: Iterable[Receipt | Mapping[str, Any]] = ()
    ) -> Verification:
        """Recompute the chain and every total, and compare them with what is kept elsewhere.

        ``verification.verify`` says more.
        """
        return verify(
            self.store, anchor=anchor, receipts=[ReceiptClaim.of(receipt) for receipt in receipts]
        )

    def export(self, path: str | Path, *, format: Format, overwrite: bool) -> int:
        """Write every entry to ``path`` as JSON Lines or CSV, by ``reports.export_to``."""
        return export_to(self.store, path, format=format, overwrite=overwrite)

    def anchor_file(self) -> AnchorFile:
        """The file outside the database that keeps the ledger's last position."""
        with self.store.read() as connection:
            return self.store.anchor_of(read_tip(connection).ledger)

    def anchor(self) -> Anchor:
        """Return the ledger's last entry, and what was charged up to there."""
        with self.store.read() as connection:
            return read_tip(connection).anchor

    def holds(self, anchor: Anchor) -> bool:
        """Return whether the ledger has the entry that ``anchor`` names."""
        with self.store.read() as connection:
            return read_tip(connection).holds(connection, anchor)

    def check_anchor(self) -> None:
        """Refuse a ledger that does not hold the entry that its anchor names.

        Raises:
            LedgerUnavailable: the ledger is an older copy, or was written to behind the anchor's
                back. Or its anchor was moved, removed or emptied, and nobody can tell.
            CorruptLedger: its last entry is not the one that its head names.
        """
        # Read before the snapshot: an anchor that is read after it may name an entry that the
        # snapshot cannot see yet.
        standing = self.anchor_file().read()
        with self.store.read() as connection:
            tip, _ = read_end(connection)
            if standing is None and tip.seq:  # made meanwhile, with the first entry, or missing
                standing = self.store.anchor_of(tip.ledger).read()
                if standing is None:
                    raise self._unknown(tip)
            elif standing is not None and not tip.holds(connection, standing):
                raise self._older(tip, standing)

    def accept_rollback(self, *, charge: bool) -> tuple[int, int]:
        """Go on with a ledger that is older than its anchor, as its operator decides.

        It makes one entry, and one for each budget.

        Args:
            charge: whether every budget, present and future, is charged what the lost entries spent
                in all, by ``grants.post_acceptance``. Without it what they spent may be spent
                again: only where nothing was released.

        Returns:
            Micro-epsilon and pico-delta that each budget was charged at most.

        Raises:
            InvalidInput: the ledger is not older than its anchor.
            LedgerUnavailable: the ledger could not be written.
        """

        def accept(page: Page) -> tuple[int, int]:
            file = self.store.anchor_of(page.tip.ledger)
            standing = file.read()
            if standing is None or page.tip.holds(page.connection, standing):
                raise InvalidInput(
                    f"{self.store.name}: is not older than its anchor at {file.path}; there is "
                    "nothing to accept"
                )
            return grants.post_acceptance(page, standing, charge=charge)

        return self._post(accept, check=False)

    def adopt(self) -> Anchor:
        """Go on with a ledger that has no anchor here, as its operator decides, with one entry.

        It is verified first. Only its operator can tell whether it is the newest copy, by an
        anchor or receipts that were kept elsewhere. See ``verify``.

        Returns:
            The anchor that is kept from now on.

        Raises:
            InvalidInput: the ledger has an anchor.
            CorruptLedger: the ledger does not match its own entries.
            LedgerUnavailable: the ledger could not be written.
        """
        if (file := self.anchor_file()).read() is not None:
            raise InvalidInput(f"{self.store.name}: has its anchor at {file.path}")
        if problems := self.verify().problems:
            raise CorruptLedger(
                f"{self.store.name}: does not match its own entries, for one: {problems[0]}"
            )
        self._post(lambda page: page.note("adopted, since its anchor was missing"), check=False)
        return self.anchor()

    def post_use(
        self, scope: Scope, event: PrivacyEvent, *, answers: int, work: Callable[[Page], T]
    ) -> T:
        """Return the result of ``work``, done in one transaction with an entry that says so.

        It costs nothing, and is for what was paid beforehand. The entry moves the anchor: a copy of
        the ledger from before it is refused, and what ``work`` wrote cannot be taken back.

        Args:
            scope: the scope of the charge that paid for it.
            event: the event that was paid for.
            answers: number of the prepaid queries that are used, at least 1.
            work: function that changes the count, and puts it into the page's tree. If it raises,
                nothing is written.

        Raises:
            InvalidInput, BudgetExceeded, IncompatibleGuarantees: the errors of ``reserve``, for the
                scope and the event's adjacency.
            LedgerUnavailable: the ledger could not be written, or is older than its anchor. Nothing
                may be released.
        """
        answers = count(answers, name="answers")
        statement = statement_of(event.guarantee)
        mechanism = checked_text(event.mechanism, "mechanism")

        def use(page: Page) -> T:
            (cover,) = covering(page, [scope], statement=statement)
            if cover.lacking:
                raise uncovered(cover)
            result = work(page)
            claims = [Claim(cover, answers, Charge(0, 0, "prepaid"))]
            bookings = post_charges(page, claims, statement=statement, mechanism=mechanism)
            post_commits(page, bookings, receipt="prepaid")
            return result

        return self._post(use)

    def _commit(self, bookings: Sequence[Booking], receipt: str) -> None:
        # The anchor stays at the charge: a copy that lost nothing but commits gives no budget back.
        self._post(lambda page: post_commits(page, bookings, receipt=receipt), keep=False)

    def _post(self, work: Callable[[Page], T], *, check: bool = True, keep: bool = True) -> T:
        """Return the result of ``work``, once what it posted is durable here.

        Unless ``keep`` is off, it is then known outside the database too.
        """

        def attempt() -> tuple[T, Tip]:
            expected = self._end if check and self._alone >= _ALONE else None
            try:
                return self._transaction(work, expected, check, keep)
            except EndMoved:
                return self._transaction(work, None, check, keep)

        result, tip = self.store.retried(attempt)
        self._end = tip
        if keep:
            anchor = tip.anchor
            standing = self.store.anchor_of(tip.ledger).raise_to(anchor)
            if standing != anchor:
                # Somebody was here in the meantime: whoever wrote a later entry wrote it after
                # ours, or into another copy.
                with self.store.read() as connection:
                    tip = read_tip(connection)
                    if not tip.holds(connection, standing):
                        raise self._older(tip, standing)
        return result

    def _transaction(
        self, work: Callable[[Page], T], expected: Tip | None, check: bool, keep: bool
    ) -> tuple[T, Tip]:
        """Return the result of ``work``, and the end of the chain behind it.

        Args:
            work: function that posts.
            expected: end of the chain that a server is to compare when it gets all the work, or
                None to read it first, which takes one more round trip.
            check, keep: arguments of ``_post``.

        Raises:
            EndMoved: the end is not the ``expected`` one. Nothing took place.
        """
        with self.store.write() as connection:
            name, standing = self._name, None
            if name:
                standing = self.store.anchor_of(name).read(to_write=keep)
            if expected is not None and standing is not None and standing.seq:
                expect_end(connection, expected, standing)
                tip = expected
            else:
                tip = self._locked(connection, name, standing, check)
                self._alone = 0 if self.store.is_sqlite or tip != self._end else self._alone + 1
            page = Page.of(connection, tip, self._clock())
            try:
                result = work(page)
            except ReticentError:
                if tip is expected:
                    connection.flush()  # what was refused may be granted in the meantime
                raise
            if page.tip is not tip:
                page.write()
            return result, page.tip

    def _locked(self, connection: Session, name: str, standing: Anchor | None, check: bool) -> Tip:
        """Return the end of the chain, once nobody else can write, and compare it with the anchor.

        Args:
            connection: connection of the transaction.
            name: the ledger's name, or "" where it is not known.
            standing: its anchor, as it was read before, or None.
            check: whether to refuse a ledger that is older than its anchor.
        """
        tip, digest = read_end(connection, 0 if standing is None else standing.seq, lock=True)
        file = self.store.anchor_of(tip.ledger)
        if name != tip.ledger or not self.store.is_sqlite:
            # The name was not known, or the anchor was read before the lock was had.
            self._name, before, standing = tip.ledger, standing, file.read(to_write=True)
            if standing is not None and standing != before:
                digest = digest_at(connection, standing.seq)
        if standing is None and tip.seq == 0:
            file.raise_to(tip.anchor)  # before the first entry: from then on it is there
        elif check and standing is None:
            raise self._unknown(tip)
        elif check and standing is not None and not tip.has(standing, digest):
            raise self._older(tip, standing)
        return tip

    def _unknown(self, tip: Tip) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.store.name}: has {tip.seq} entries, and its anchor at "
            f"{self.store.anchor_of(tip.ledger).path} is missing or empty. It was moved or "
            "removed, or this ledger was never used from here; an old copy could not be told from "
            "the newest. Nothing is released. Put the anchor back, name its place by anchor= or "
            "RETICENT_ANCHOR, or go on with the ledger as it is by `reticent ledger adopt`"
        )

    def _older(self, tip: Tip, standing: Anchor) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.store.name}: is older than its anchor, or was written to behind it: "
            f"{self.store.anchor_of(tip.ledger).path} names entry "
            f"{standing.seq}, which is not among the {tip.seq} here. A backup, an old "
            "copy, or a file without its -wal was "
            "put in its place; nothing is released. Put the newest copy back, or go on "
            "with this one by "
            "`reticent ledger accept-rollback`"
        )
