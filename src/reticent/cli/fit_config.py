"""What the TOML file of `reticent fit` says, checked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reticent.core.errors import InvalidInput
from reticent.core.files import read_regular
from reticent.tables.schema import TabularSchema

_MOST_BYTES = 2**20


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataFiles(_Table):
    """Where the data are.

    Attributes:
        inputs: .npy, .npz, .csv, .csv.gz, .parquet or .arrow file with one row, picture or record
            each.
        array: name of the array in an .npz file; not needed where it has one.
        labels: .npy or .npz file with one label for each.
        labels_array: as ``array``, for ``labels``.
        label_column: column of a CSV, Parquet or Arrow file that holds the labels, in place of
            ``labels``.
        ignore_columns: columns of such a file that are not read.
        schema_file: "schema" in the file: JSON description of the columns of a table.
        further: further arguments of ``fit``, each a .npy or .npz file.
    """

    inputs: str
    array: str | None = None
    labels: str | None = None
    labels_array: str | None = None
    label_column: str | None = None
    ignore_columns: list[str] = []
    schema_file: str | None = Field(default=None, alias="schema")
    further: dict[str, str] = {}


class FitConfig(_Table):
    """The whole file.

    Attributes:
        estimator: name of an estimator that ``reticent methods`` lists.
        bundle: folder to write.
        parameters: arguments of its constructor; a table with ``part = NAME`` is a part.
        data: where the data are.
        folder: the file's own, which paths start from.
    """

    estimator: str
    bundle: str
    parameters: dict[str, Any]
    data: DataFiles
    folder: Path = Field(exclude=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """What the file says.

        Raises:
            InvalidInput: no such file, no TOML, or keys that are missing, unknown or of another
                type.
        """
        where = f"config={str(path)!r}"
        try:
            content = tomllib.loads(read_regular(path, most=_MOST_BYTES).decode("utf-8"))
        except (InvalidInput, ValueError) as error:
            raise InvalidInput(f"{where}: cannot be read as TOML ({error})") from error
        if "folder" in content:
            raise InvalidInput(f"{where}: folder: unknown key; expected {_keys(cls)}")
        try:
            return cls(**content, folder=path.absolute().parent)
        except ValidationError as error:
            raise InvalidInput(f"{where}: {_told(error)}") from error

    def place(self, path: str) -> Path:
        """``path`` as seen from the folder of the file."""
        return self.folder / path

    def schema_of_table(self) -> TabularSchema | None:
        """The schema that the file names, or None.

        Raises:
            InvalidInput: no such file, or no schema.
        """
        name = self.data.schema_file
        return None if name is None else TabularSchema.read(self.place(name))


def _told(error: ValidationError) -> str:
    """Every fault in one line, by key; values are never shown."""
    lines = []
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        key = ".".join(str(step) for step in fault["loc"])
        if fault["type"] == "extra_forbidden":
            table = DataFiles if fault["loc"][0] == "data" else FitConfig
            lines.append(f"{key}: unknown key; expected {_keys(table)}")
        elif fault["type"] == "missing":
            lines.append(f"{key}: is missing")
        else:
            lines.append(f"{key}: {fault['msg']}")
    return "; ".join(lines)


def _keys(table: type[BaseModel]) -> str:
    names = [field.alias or name for name, field in table.model_fields.items()]
    return ", ".join(name for name in names if name != "folder")
