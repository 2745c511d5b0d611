"""Real ledgers of every schema since the first that is frozen, as they were put away.

A folder is named after its schema's version: ``sqlite.sql`` and ``postgresql.sql`` make its tables,
``rows.json`` has what stood in them, ``anchor`` its anchor, ``told.json`` what clients and the
operator knew. Nothing here is made anew: a later schema adds a folder and a step in
``reticent/ledger/migrations/versions``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from reticent.ledger import Ledger, schema
from reticent.ledger.location import Location

FOLDER = Path(__file__).parent
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if (path / "rows.json").exists())
_SEPARATOR = "\n;;\n"


def put_away(ledger: Ledger, folder: Path, told: dict[str, Any]) -> None:
    """Write a ledger of the schema of today; done once for each schema."""
    folder.mkdir()
    for name in ("sqlite", "postgresql"):
        (folder / f"{name}.sql").write_text(_SEPARATOR.join(_statements(name)) + "\n")
    with ledger.store.read() as connection:
        rows = {
            table.name: [list(map(_plain, row)) for row in connection.execute(sa.select(table))]
            for table in schema.metadata.sorted_tables
        }
    rows["alembic_version"] = [[folder.name]]
    content = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in rows.items())
    (folder / "rows.json").write_text("{" + content + "}\n")
    (folder / "anchor").write_bytes(ledger.anchor_file().path.read_bytes())
    (folder / "told.json").write_text(json.dumps(told, indent=1) + "\n")


def bring_back(version: str, url: str, anchors: Path) -> dict[str, Any]:
    """Make the ledger of a version at ``url``, with its anchor, and return what was told."""
    folder = FOLDER / version
    location = Location.of(url)
    engine = sa.create_engine(location.url)
    rows = json.loads((folder / "rows.json").read_text())
    with engine.begin() as connection:
        for statement in (folder / f"{engine.dialect.name}.sql").read_text().split(_SEPARATOR):
            connection.exec_driver_sql(statement)
        for name, each in rows.items():
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            values = [dict(zip(table.c.keys(), map(_read, row), strict=True)) for row in each]
            if values:
                connection.execute(table.insert(), values)
        if engine.dialect.name == "postgresql":  # ids go on behind those that are there
            for name in ("statements", "budgets", "accounts"):
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"
                )
    engine.dispose()
    anchors.mkdir(exist_ok=True)
    (anchors / f"{rows['head'][0][1]}.anchor").write_bytes((folder / "anchor").read_bytes())
    found: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return found


def _statements(name: str) -> list[str]:
    dialect = sa.create_engine(
        f"{name}+psycopg://" if name == "postgresql" else "sqlite://"
    ).dialect
    tables = [str(CreateTable(t).compile(dialect=dialect)) for t in schema.metadata.sorted_tables]
    version = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    if name == "sqlite":
        return [*tables, version, *schema.SQLITE_TRIGGERS.values()]
    function = (
        "CREATE FUNCTION reticent_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$${schema.POSTGRESQL_FUNCTION_BODY}$$"
    )
    return [*tables, version, function, *schema.POSTGRESQL_TRIGGERS.values()]


def _plain(value: Any) -> Any:
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def _read(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
