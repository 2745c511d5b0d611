"""Scopes, which name a request's client, the data's subject and the bundle, and a ledger's policy
on those names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

from reticent.core.errors import InvalidInput, UnknownName
from reticent.core.names import LONGEST_NAME as LONGEST_NAME
from reticent.core.names import checked_name

PARTS = ("principal", "subject", "bundle")
"""The names of a scope, in the order of its fields."""


@dataclass(frozen=True)
class Scope:
    """The names that a request is booked under, or that a budget covers.

    A budget covers every request that agrees with it in the names it gives:
    ``Scope(subject="patient-7")`` covers all clients' requests about patient 7,
    ``Scope(principal="acme", subject="patient-7")`` only those of acme. A request must fit into
    *every* budget that covers it, and is refused where none does.

    Attributes:
        principal: the client that asks, or "" for any.
        subject: the person, record or data set whose privacy is spent, or "" for any.
        bundle: the model that answers, or "" for any.

    Raises:
        InvalidInput: no name at all, or one that could be mistaken for another
            (``names.checked_name``).

    Example:
        >>> Scope(subject="patient-7").covers(Scope(principal="acme", subject="patient-7"))
        True
    """

    principal: str = ""
    subject: str = ""
    bundle: str = ""

    def __post_init__(self) -> None:
        for name, value in self.parts.items():
            if not isinstance(value, str):
                raise InvalidInput(f"{name}: expected a name, a text, got {type(value).__name__}")
            checked_name(value, name=name)
        if not any(self.parts.values()):
            raise InvalidInput("scope: expected at least one of principal, subject, bundle")

    @classmethod
    def stored(cls, principal: str, subject: str, bundle: str) -> Self:
        """Return the scope that a row of a ledger names, unchecked. A stored scope must be shown,
        not refused.
        """
        scope = object.__new__(cls)
        for name, value in zip(PARTS, (principal, subject, bundle), strict=True):
            object.__setattr__(scope, name, value)
        return scope

    @cached_property  # each charge reads it
    def parts(self) -> dict[str, str]:
        """Three names, by their field."""
        return {"principal": self.principal, "subject": self.subject, "bundle": self.bundle}

    def covers(self, request: Scope) -> bool:
        """Return whether a budget for this scope counts a request made under ``request``."""
        return all(
            mine in ("", theirs)
            for mine, theirs in zip(self.parts.values(), request.parts.values(), strict=True)
        )

    def describe(self) -> str:
        """Return the scope as one phrase."""
        return ", ".join(f"{name}={value}" for name, value in self.parts.items() if value)


@dataclass(frozen=True)
class Policy:
    """The parts that every request to a ledger must name, and that a covering budget must name too.

    Without a required part, a request that leaves the part out, or misspells it, meets only the
    budgets that leave it open. With a budget for each patient and one for each client, a request
    without a patient would be charged to the client alone. If ``subject`` is required, that request
    is refused, and so is one whose subject no budget names.

    Attributes:
        required: parts out of "principal", "subject", "bundle", in this order. () requires nothing.

    Raises:
        UnknownName: not one of these.

    Example:
        >>> Policy(["subject"]).describe()
        'every request names its subject, and a budget that names it too must cover it'
    """

    required: tuple[str, ...]

    def __init__(self, required: Iterable[str]) -> None:
        given = (required,) if isinstance(required, str) else tuple(required)
        for name in given:
            if name not in PARTS:
                raise UnknownName(f"required={name!r:.60}: expected principal, subject or bundle")
        object.__setattr__(self, "required", tuple(part for part in PARTS if part in given))

    @classmethod
    @lru_cache(maxsize=16)  # each transaction of a ledger reads it
    def stored(cls, text: str) -> Self:
        """Return the policy that a ledger holds as text, as ``text`` gives it."""
        return cls(text.split(",") if text else ())

    @cached_property  # each charge writes it
    def text(self) -> str:
        """Required parts, joined by commas, as a ledger holds them."""
        return ",".join(self.required)

    def describe(self) -> str:
        """Return the policy as one sentence."""
        if not self.required:
            return "requests need not name any particular part of their scope"
        return (
            f"every request names its {', '.join(self.required)}, and a budget that "
            "names it too must cover it"
        )
