"""The shapes of answers, for the OpenAPI document and the checks against it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from reticent.core.arrow_bodies import ARROW
from reticent.service.problems import CONTENT_TYPE
from reticent.service.requests import Answers, Predictions, Preview


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Health(_Document):
    """A sign that the service answers."""

    status: str


class Signature(_Document):
    """A signature by the key of the service."""

    algorithm: str
    key: str
    signature: str


class BundleEntry(_Document):
    """The facts about a bundle that a client needs before it asks."""

    id: str
    name: str
    system: str
    protects: str
    route: str
    subject: str | None
    features: int
    columns: list[str]
    guarantee: dict[str, Any]
    most_rows: int
    signed: bool
    files: list[str]


class BundleList(_Document):
    """The bundles that a key may ask."""

    bundles: list[BundleEntry]


class Card(_Document):
    """The guarantee in plain words."""

    bundle: str
    card: dict[str, Any]
    markdown: str


class AnswerList(_Document):
    """One answer for each row, null where withheld, and the signed receipt."""

    bundle: str
    answers: list[Any]
    withheld: list[bool]
    columns: list[str]
    receipt: dict[str, Any] | None
    salt: str | None
    signature: Signature | None


class Cost(_Document):
    """The cost of a request that was not made."""

    bundle: str
    answers: int
    fits: bool
    epsilon: float
    delta: float
    largest: int | None
    reason: str


class Amount(_Document):
    """Epsilon and delta."""

    epsilon: float
    delta: float


class BudgetEntry(_Document):
    """One budget as it stands."""

    scope: dict[str, str]
    statement: str
    granted: Amount
    spent: Amount
    left: Amount


class BudgetList(_Document):
    """The budgets that a key may see."""

    principal: str
    budgets: list[BudgetEntry]


class SignedReceipt(_Document):
    """What was spent, signed by the service."""

    receipt: dict[str, Any]
    signature: Signature


class SignedAnchor(_Document):
    """The ledger's last position, signed by the service."""

    anchor: dict[str, Any]
    signature: Signature


class ModelEntry(_Document):
    """The facts about a model that a client needs before it asks."""

    id: str
    name: str
    system: str
    bundle: str
    values: int


class ModelList(_Document):
    """The models that a key may ask."""

    models: list[ModelEntry]


class PredictionList(_Document):
    """One prediction for each released value."""

    model: str
    bundle: str
    predictions: list[Any]


class ProblemBody(_Document):
    """An error in the shape of RFC 9457."""

    type: str
    title: str
    status: int
    code: int
    detail: str
    request: str


PROBLEM: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem; `code` is that of the error class.",
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}},
    }
    for status in ("4XX", "5XX", 422)
}
"""Every other answer of every route."""


def takes(kind: type[Answers | Predictions | Preview]) -> dict[str, Any]:
    """Describe, for the document, the body of a route that reads it itself."""
    content: dict[str, Any] = {"application/json": {"schema": kind.model_json_schema()}}
    if kind is Answers:
        content[ARROW] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}
