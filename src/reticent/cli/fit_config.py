"""The TOML file of `reticent fit`: its keys, the estimator that it describes, and its data."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reticent.cli.files import kind_of, read_array, read_labelled, read_labels
from reticent.core.errors import InvalidInput, InvalidParameter, ReticentError
from reticent.core.files import read_regular
from reticent.systems.methods import FoundMethods, Role, find_methods
from reticent.tables.batches import column_names, read_whole
from reticent.tables.schema import TabularSchema

_MOST_BYTES = 2**20
_GIVEN = ("self", "X", "y", "ledger", "scope", "report")
_NONE = "none"
_PART = "part"
_NEEDED = ("fit", "save", "card")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataFiles(_Table):
    """The files of the data.

    Attributes:
        inputs: .npy, .npz, CSV, Parquet or Arrow file of rows, pictures or records.
        array: name of the array in an .npz file, not needed if the file has only one.
        labels: file with one label for each input: an array, or a table with one column.
        labels_array: name of the array of ``labels`` in an .npz file.
        label_column: column of a CSV, Parquet or Arrow file that holds the labels, in place of
            ``labels``.
        ignore_columns: columns of such a file that are not read.
        schema_file: "schema" in the file: JSON description of the columns of a table.
        public: file of PUBLIC rows like ``inputs``, with the same column of labels. ``fit`` gets
            them as ``public_X`` and ``public_y``. Without ``schema`` one is drafted from them.
        further: further arguments of ``fit``, each a file: an array, rows with the columns of
            ``inputs``, or a table with one column.
    """

    inputs: str
    array: str | None = None
    labels: str | None = None
    labels_array: str | None = None
    label_column: str | None = None
    ignore_columns: list[str] = []
    public: str | None = None
    schema_file: str | None = Field(default=None, alias="schema")
    further: dict[str, str] = {}


class FitConfig(_Table):
    """The whole file.

    Attributes:
        estimator: name of an estimator that ``reticent methods`` lists.
        bundle: folder to write.
        parameters: arguments of its constructor. A table with ``part = NAME`` is a part.
        data: files of the data.
        folder: folder of the file, from which its paths start.
    """

    estimator: str
    bundle: str
    parameters: dict[str, Any]
    data: DataFiles
    folder: Path = Field(exclude=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the configuration in a file.

        Raises:
            InvalidInput: no such file, no TOML, or keys that are missing, unknown or of another
                type.
        """
        where = f"config={str(path)!r}"
        try:
            content = tomllib.loads(read_regular(path, most=_MOST_BYTES).decode("utf-8"))
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
        except ValueError as error:
            raise InvalidInput(f"{where}: cannot be read as TOML ({error})") from error
        if "folder" in content:
            raise InvalidInput(f"{where}: folder: unknown key; expected {_keys(cls)}")
        try:
            return cls(**content, folder=path.absolute().parent)
        except ValidationError as error:
            raise InvalidInput(f"{where}: {_told(error)}") from error

    def place(self, path: str) -> Path:
        """Return ``path`` as seen from the folder of the file."""
        return self.folder / path

    def schema_of_table(self) -> TabularSchema | None:
        """Return the schema that the file names, a draft from public rows, or None.

        Raises:
            InvalidInput: no such file, or no schema.
        """
        data = self.data
        if data.schema_file is not None:
            return TabularSchema.read(self.place(data.schema_file))
        if data.public is None:
            return None
        labels = [] if data.label_column is None else [data.label_column]
        return schema_of_table(self.place(data.public), ignore=[*data.ignore_columns, *labels])


def fitting(config: FitConfig, *, bundled: bool = True) -> tuple[Any, FitData]:
    """Return the estimator of a file, not fitted, and its data.

    Args:
        config: the configuration.
        bundled: whether the estimator has to leave a bundle.

    Raises:
        InvalidInput, UnknownName: the errors of ``estimator_of`` and ``read_data``.
    """
    schema = config.schema_of_table()
    system = estimator_of(config, schema, bundled=bundled)
    check_arguments(system, config)
    return system, read_data(config, schema)


def _told(error: ValidationError) -> str:
    """Return every fault in one line, by key. Values are never shown."""
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


def estimator_of(config: FitConfig, schema: TabularSchema | None, *, bundled: bool = True) -> Any:
    """Return the estimator, not fitted.

    Args:
        config: the configuration.
        schema: the value of the estimator's parameter ``schema``, or None.
        bundled: whether the estimator has to leave a bundle.

    Raises:
        UnknownName: an estimator or part that no installed package offers.
        InvalidInput: an estimator that writes no bundle, or parameters that are missing, unknown or
            cannot be used.
    """
    found = find_methods()
    method = found.named(config.estimator, role="estimator")
    kind = method.load()
    for needed in _NEEDED if bundled else ():
        if not callable(getattr(kind, needed, None)):
            raise InvalidInput(
                f"estimator={config.estimator!r}: has no {needed} and leaves no bundle; use it "
                f"from Python{_why(kind)}"
            )
    values = dict(config.parameters)
    if schema is not None:
        known = inspect.signature(kind).parameters
        holder = values
        if "features" in known:
            part = values.get("features", {_PART: "Features"})
            if not isinstance(part, dict):
                raise InvalidInput(f"parameters.features: expected a table, got {part!r}")
            holder = values["features"] = dict(part)
        if "schema" in holder:
            raise InvalidInput("parameters, data.schema: expected one schema")
        if "schema" not in known and "features" not in known:
            raise InvalidInput(
                f"data.schema: a {config.estimator} takes no schema; leave it out, columns of "
                "numbers need none"
            )
        holder["schema"] = schema
    return _made(config.estimator, "estimator", values, found, "parameters")


def _why(kind: Any) -> str:
    """Return the reason why a system of labels leaves no bundle, or "" for others."""
    if not callable(getattr(kind, "release", None)):
        return ""
    return (
        ". It answers from the private records themselves, query by query, and a bundle would be "
        "their copy; PublicStartClassifier and NoisyGradientClassifier are paid for once and leave "
        "a bundle that may be published"
    )


def _made(name: str, role: Role, values: Mapping[str, Any], found: FoundMethods, where: str) -> Any:
    """Return what the class called ``name`` makes of ``values``."""
    kind = found.named(name, role=role).load()
    known = inspect.signature(kind).parameters
    listed = [key for key, field in known.items() if field.kind is not field.VAR_KEYWORD]
    unknown = [key for key in values if key not in listed]
    if unknown and len(listed) == len(known):
        raise InvalidParameter(
            f"{where}.{unknown[0]}: {name} has no such parameter; expected {', '.join(listed)}"
        )
    missing = [
        key
        for key in listed
        if known[key].default is inspect.Parameter.empty
        and known[key].kind is not inspect.Parameter.VAR_POSITIONAL
        and key not in values
    ]
    if missing:
        raise InvalidParameter(
            f"{where}: {name} needs {', '.join(missing)}; such parameters have no defaults"
        )
    named = {key: _value(value, found, f"{where}.{key}") for key, value in values.items()}
    several = [key for key in listed if known[key].kind is inspect.Parameter.VAR_POSITIONAL]
    listing = named.pop(several[0], ()) if several else ()
    if not isinstance(listing, tuple):
        raise InvalidParameter(f"{where}.{several[0]}: expected a list")
    try:
        return kind(*listing, **named)
    except ReticentError as error:
        raise InvalidParameter(f"{where}: {error}") from error
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{where}: {name} does not take these values ({type(error).__name__})"
        ) from error


def _value(value: Any, found: FoundMethods, where: str) -> Any:
    """Return a TOML value as an argument.

    Tables are parts, or numbers by name. Lists are tuples, and "none" is None.
    """
    if isinstance(value, dict):
        fields = dict(value)
        if fields and all(type(entry) in (int, float) for entry in fields.values()):
            return fields
        name = fields.pop(_PART, None)
        if not isinstance(name, str):
            raise InvalidInput(
                f"{where}: a table here is a part; expected {_PART} = NAME in it, or numbers alone"
            )
        return _made(name, "part", fields, found, where)
    if isinstance(value, list):
        return tuple(_value(entry, found, f"{where}[{at}]") for at, entry in enumerate(value))
    return None if value == _NONE else value


@dataclass(frozen=True, eq=False)
class FitData:
    """The arguments of ``fit``.

    Attributes:
        inputs: array of shape (n, ...), or a data frame with names.
        labels: array of shape (n,), or None.
        further: further arguments.
    """

    inputs: Any
    labels: npt.NDArray[Any] | None
    further: dict[str, Any]


def check_arguments(system: Any, config: FitConfig) -> None:
    """Raise if ``fit`` does not take the arguments that the file names, or needs others.

    Raises:
        InvalidInput: ``fit`` takes no such argument, or one is missing.
    """
    known = inspect.signature(system.fit).parameters
    possible = [name for name in known if name not in _GIVEN]
    from_public = ("public_X", "public_y") if config.data.public is not None else ()
    for key in from_public:
        if key not in possible or key in config.data.further:
            raise InvalidInput(
                f"data.public: fit of a {type(system).__name__} takes no {key}, or "
                "data.further has it too"
            )
    name = type(system).__name__
    for key in config.data.further:
        if key not in possible:
            raise InvalidInput(
                f"data.further.{key}: fit of a {name} takes no such data; expected "
                f"{', '.join(possible) or 'none'}"
            )
    for key in possible:
        field = known[key]
        needed = field.default is field.empty and field.kind is not field.VAR_KEYWORD
        if needed and key not in (*config.data.further, *from_public):
            raise InvalidInput(f"data.further: fit of a {name} needs {key} = FILE")


def read_data(config: FitConfig, schema: TabularSchema | None) -> FitData:
    """Return the data that the file names.

    Args:
        config: the configuration.
        schema: the description of the columns of a table, or None if all are numbers.

    Raises:
        InvalidInput: a file that cannot be read, or keys that do not fit its kind.
    """
    data = config.data
    reading: dict[str, Any] = {
        "schema": schema,
        "array": data.array,
        "ignore": [*data.ignore_columns, *(() if schema is None else schema.left_out)],
        "label_column": data.label_column,
    }
    found, labels = read_labelled(
        config.place(data.inputs),
        **reading,
        labels=None if data.labels is None else config.place(data.labels),
        labels_array=data.labels_array,
        name="data.inputs",
        table="data.",
    )
    wanted = schema or found.column_names
    unread = (*data.ignore_columns, data.label_column)
    further: dict[str, Any] = {
        key: _further(config.place(file), wanted, unread, name=f"data.further.{key}")
        for key, file in data.further.items()
    }
    if data.public is not None:
        public, public_labels = read_labelled(
            config.place(data.public), **reading, name="data.public", table="data."
        )
        further["public_X"] = public.inputs
        if public_labels is not None:
            further["public_y"] = public_labels
    return FitData(found.inputs, labels, further)


def _further(
    path: Path,
    wanted: TabularSchema | list[str],
    unread: Sequence[str | None],
    *,
    name: str,
) -> Any:
    """Return an array, a table's rows as those of the inputs, or its only column."""
    if kind_of(path, name) in ("npy", "npz"):
        return read_array(path, name=name)
    columns = column_names(path, name=name)
    known = list(wanted.column_names if isinstance(wanted, TabularSchema) else wanted)
    if not known or (len(columns) == 1 and columns != known):
        return read_labels(path, name=name)
    left_out = [column for column in unread if column in columns]
    return read_whole(path, wanted, ignore=left_out, name=name).rows


def schema_of_table(path: Path, *, ignore: Sequence[str]) -> TabularSchema | None:
    """Return a draft for a table of PUBLIC rows, or None for arrays.

    Args:
        path: a CSV, Parquet, Arrow, .npy or .npz file.
        ignore: columns that are no data, such as labels.

    Raises:
        InvalidInput: the file cannot be read, or no column is left.
    """
    from reticent.tables.batches import file_kind, read_frame
    from reticent.tables.drafting import draft_schema

    if file_kind(path, name="rows") in ("npy", "npz"):
        return None
    return draft_schema(read_frame(path, name="rows"), ignore=ignore, leave_out=True)
