"""Tables: what is public about them, their files, and the way back from coordinates to words."""

from reticent.tables.files import read_names, read_rows
from reticent.tables.known_schemas import adult_schema, atlas_schema, covertype_schema, higgs_schema
from reticent.tables.schema import Categorical, Numeric, OneHot, TabularSchema

__all__ = [
    "Categorical",
    "Numeric",
    "OneHot",
    "TabularSchema",
    "adult_schema",
    "atlas_schema",
    "covertype_schema",
    "higgs_schema",
    "read_names",
    "read_rows",
]
