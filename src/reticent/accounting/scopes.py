"""Scopes: whose request it is, whose data it touches, which bundle answers."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.errors import InvalidInput

LONGEST_NAME = 200
"""Characters in a name at most."""


@dataclass(frozen=True)
class Scope:
    """What a request is booked under, or what a budget covers.

    A budget covers every request that agrees with it in the names it gives: ``Scope(subject="patient-7")`` covers all clients'
    requests about patient 7, ``Scope(principal="acme", subject="patient-7")`` only those of acme. A request must fit into *every*
    budget that covers it, and is refused where none does.

    Attributes:
        principal: the client that asks; "" for any.
        subject: the person, record or data set whose privacy is spent; "" for any.
        bundle: the model that answers; "" for any.

    Example:
        >>> Scope(subject="patient-7").covers(Scope(principal="acme", subject="patient-7"))
        True
    """

    principal: str = ""
    subject: str = ""
    bundle: str = ""

    def __post_init__(self) -> None:
        for name, value in self.parts.items():
            if not isinstance(value, str) or len(value) > LONGEST_NAME or not (value.isprintable() and value == value.strip()):
                raise InvalidInput(
                    f"{name}: expected up to {LONGEST_NAME} printable characters without spaces at the ends, got {value!r:.60}"
                )
        if not any(self.parts.values()):
            raise InvalidInput("scope: expected at least one of principal, subject, bundle")

    @property
    def parts(self) -> dict[str, str]:
        """The three names by their field."""
        return {"principal": self.principal, "subject": self.subject, "bundle": self.bundle}

    def covers(self, request: Scope) -> bool:
        """Whether a budget for this scope counts a request made under ``request``."""
        return all(mine in ("", theirs) for mine, theirs in zip(self.parts.values(), request.parts.values(), strict=True))

    def describe(self) -> str:
        """The scope as one phrase."""
        return ", ".join(f"{name}={value}" for name, value in self.parts.items() if value)
