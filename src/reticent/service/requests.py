"""Bodies of requests, and what keeps them small.

The edge checks them with pydantic and strict numbers. Equal requests have one digest.
"""

from __future__ import annotations

import hmac
import re
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from reticent.core.bindings import checked_nonce
from reticent.core.errors import InvalidInput
from reticent.core.scopes import LONGEST_NAME
from reticent.ledger.schema import LONGEST_IDEMPOTENCY_KEY
from reticent.service.keys import checked_subject

_IDEMPOTENCY = re.compile(rf"[A-Za-z0-9._~+/=-]{{8,{LONGEST_IDEMPOTENCY_KEY}}}")
_SHOWN = 3

# Twice the longest name: the composed form may be shorter than what is sent.
Name = Annotated[str, StringConstraints(min_length=1, max_length=2 * LONGEST_NAME)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Cell = float | Text | None


class StrictBody(BaseModel):
    """A body without unknown names, numbers as text, truth values as numbers, NaN or infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Answers(StrictBody):
    """Rows to answer."""

    rows: Annotated[list[Annotated[list[Cell], Field(min_length=1)]], Field(min_length=1)]
    columns: list[Name] | None = None
    subject: Name | None = None
    subjects: Annotated[list[Name], Field(min_length=1)] | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"rows": [[0.5, -1.25], [2.0, 0.0]]},
                {
                    "rows": [[39, "Private"], [50, None]],
                    "columns": ["age", "work"],
                    "subject": "patient-7",
                },
            ]
        }
    )


class Numbers(Answers):
    """Rows of numbers alone, which are read in less time."""

    rows: Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]  # type: ignore[assignment]


class About(StrictBody):
    """The name that is charged for all rows, or one for each."""

    subject: Name | None = None
    subjects: Annotated[list[Name], Field(min_length=1)] | None = None


class Preview(About):
    """A number of answers, and about whom, without rows."""

    answers: Annotated[int, Field(ge=1, le=2**40)] | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"answers": 100}]})


class Predictions(StrictBody):
    """Released values. A row of null was withheld."""

    values: Annotated[
        list[Annotated[list[float], Field(min_length=1)] | float | Text | None],
        Field(min_length=1),
    ]
    receipts: list[Name] | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"values": [[0.25, -1.5], None]}]})


Body = TypeVar("Body", bound=StrictBody)


def parsed(content: bytes | dict[str, Any], kind: type[Body], *, names: int | None = None) -> Body:
    """Return a body, if it is one of ``kind``.

    Args:
        content: the body, or its members.
        kind: class that the body should be of.
        names: number of members of its one object, as ``Structure`` counts them. None does not
            check whether one stands there twice.

    Raises:
        InvalidInput: it is none. The message says where, and never what stands there.

    Example:
        >>> parsed(b'{"rows": [[false]]}', Answers)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidInput: body: rows.0.0...
    """
    try:
        if isinstance(content, bytes):
            found = kind.model_validate_json(content)
        else:
            found = kind.model_validate(content)
    except ValidationError as error:
        raise InvalidInput(_told(error, kind)) from None
    if names is not None and names != len(found.model_fields_set):
        raise InvalidInput("body: expected each name once; a proxy could read the other value")
    return found


def checked_idempotency_key(value: str | None) -> str:
    """Return the header Idempotency-Key.

    Raises:
        InvalidInput: it is missing, or has other characters.
    """
    if value is None or not _IDEMPOTENCY.fullmatch(value):
        raise InvalidInput(
            f"Idempotency-Key: expected a header of 8 to {LONGEST_IDEMPOTENCY_KEY} letters, digits "
            "and -_.~+/=, one for each request; repeat it to repeat the request"
        )
    return value


def checked_request_nonce(value: str | None) -> str:
    """Return the header Request-Nonce, or "" where there is none.

    Raises:
        InvalidInput: it is not 32 hexadecimal digits.
    """
    return "" if value is None else checked_nonce(value, name="Request-Nonce")


def subjects_of(body: Answers | About, rows: int) -> list[str] | str | None:
    """Return the name that is charged for all rows, or one for each, in the composed normal form.

    Raises:
        InvalidInput: both are given, their number is not that of rows, or a name could be mistaken.
    """
    if body.subject is not None and body.subjects is not None:
        raise InvalidInput("subject, subjects: expected one of them")
    if body.subject is not None:
        return checked_subject(body.subject)
    if body.subjects is None:
        return None
    if len(body.subjects) != rows:
        raise InvalidInput(
            f"subjects: expected one for each of the {rows} rows, got {len(body.subjects)}"
        )
    return [checked_subject(subject) for subject in body.subjects]


def request_digest(
    secret: bytes, *, bundle: str, body: Answers, table: npt.NDArray[Any], bound: str
) -> bytes:
    """Return the HMAC-SHA-256 of what is asked, 32 bytes.

    Under a nonce a request is its bytes, as its receipt binds them. Without one it is what it says:
    bodies that differ in spelling only are equal. Rows can be guessed, but without the key their
    digests cannot be compared with guesses.

    Args:
        secret: the key.
        bundle: identity of the bundle that is asked.
        body: the request.
        table: its rows, float64 where all cells are numbers, or of objects.
        bound: digest of the body under the client's nonce (``core.bindings``), 64 hexadecimal
            digits, or "" where it sent none.
    """
    if bound:
        return hmac.digest(secret, bound.encode(), "sha256")
    # Fields stand in their order in the class, and numbers are floats however they were written.
    plain = table.dtype == np.float64
    told = body.model_dump_json(exclude={"rows"} if plain else None)
    content = f"{bundle}\n\n{told}\n{table.shape if plain else ''}\n"
    digest = hmac.new(secret, content.encode(), "sha256")
    if plain:
        digest.update(np.ascontiguousarray(table, "<f8").data)
    return digest.digest()


def _told(error: ValidationError, kind: type[BaseModel]) -> str:
    """Say what is wrong, and where. Only names of our own fields are shown, since any other text
    comes from the body.
    """
    parts: list[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    said = []
    for part in parts[:_SHOWN]:
        where = ".".join(
            str(place) if isinstance(place, int) or place in kind.model_fields else "..."
            for place in part["loc"]
        )
        # Messages of malformed JSON quote none of it, but those of custom types may.
        said.append(f"{where}: {part['type']}" if where else str(part["type"]))
    more = f", and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return (
        f"body: {'; '.join(said)}{more}. Expected members {', '.join(kind.model_fields)}; see "
        "/openapi.json"
    )
