"""The least that a durable answer costs over HTTP: FastAPI, uvicorn, SQLite, and nothing of ours.

    python benchmarks/bare_service.py FOLDER PORT

A request is charged in one transaction and stored in another, which waits for the disk. Then 512
bytes beside the database are written and waited for, as an anchor is. No key, budget, chain, draw,
signature or bound stands in between.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header, Response
from pydantic import BaseModel

BODY = b" " * 1500


class Rows(BaseModel):
    """Rows of numbers."""

    rows: list[list[float]]


def create_app(folder: Path) -> FastAPI:
    """Return the application, with its database and its file in ``folder``."""
    database = sqlite3.connect(
        folder / "bare.db", isolation_level=None, check_same_thread=False, timeout=60
    )
    for statement in (
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE answers (name TEXT PRIMARY KEY, rows INTEGER, body BLOB)",
    ):
        database.execute(statement)
    beside = os.open(folder / "bare.anchor", os.O_RDWR | os.O_CREAT)
    turn = threading.Lock()
    app = FastAPI()

    def written(level: str, statement: str, *values: object) -> None:
        for one in (f"PRAGMA synchronous = {level}", "BEGIN IMMEDIATE"):
            database.execute(one)
        database.execute(statement, values)
        database.execute("COMMIT")

    @app.post("/v1/bundles/{bundle}/answers")
    def answers(bundle: str, asked: Rows, idempotency_key: Annotated[str, Header()]) -> Response:
        with turn:
            charge = "INSERT INTO answers VALUES (?, ?, NULL)"
            written("NORMAL", charge, idempotency_key, len(asked.rows))
            written("FULL", "UPDATE answers SET body = ? WHERE name = ?", BODY, idempotency_key)
            os.pwrite(beside, BODY[:512], 0)
            os.fdatasync(beside)
        return Response(BODY, media_type="application/json")

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


if __name__ == "__main__":
    uvicorn.run(
        create_app(Path(sys.argv[1])),
        port=int(sys.argv[2]),
        http="h11",
        loop="asyncio",
        log_level="warning",
        access_log=False,
    )
