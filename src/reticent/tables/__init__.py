"""Tables: their public descriptions, their files, and the way back from coordinates to words."""

from reticent.tables.attributes import (
    Categorical,
    Hashed,
    Instant,
    Numeric,
    OneHot,
    Ordered,
    Truth,
)
from reticent.tables.files import read_names, read_rows
from reticent.tables.frames import NamedRows
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema
from reticent.tables.shards import Shards

__all__ = [
    "Categorical",
    "Hashed",
    "Instant",
    "NamedRows",
    "Numeric",
    "OneHot",
    "Ordered",
    "Shards",
    "TabularSchema",
    "Truth",
    "adult_schema",
    "read_names",
    "read_rows",
]
