"""What is served: bundles from a folder, how each is asked, and who is charged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput, NotPermitted, UnknownName
from reticent.core.guarantees import Guarantee, GuaranteeCard, Neighborhood
from reticent.core.scopes import Scope
from reticent.release.bundle import MARKER, Bundle
from reticent.release.paying import Price, check_bookable
from reticent.service.requests import Answers, Numbers
from reticent.service.structure import MOST_CELLS, Structure
from reticent.systems.loading import VALUE_MODEL, load
from reticent.tables.frames import NamedRows, kept_names

Rows = Sequence[Sequence[Any]]

_FILES = ("manifest.json", "bundle.json", "weights.safetensors", "card.md", "signature.json")
_WIDEST_NUMBER = len("-2.2250738585072014e-308")


@dataclass(frozen=True, eq=False)
class ServedBundle:
    """A fitted bundle, and how it is asked.

    Attributes:
        name: name of its folder.
        folder: path of its folder.
        system: the estimator.
        identity: its name in receipts and scopes.
        guarantee: cost of one answer, or of the model where ``route`` is "free".
        route: "answers" where each row is charged, "free" for post-processing of what was released
            at the fit, "device" where rows may not come here.
        subject: the data set that is charged, or None where every request names its own.
        schema: schema of its columns, or None for numbers.
        private: whether its files hold private records.
    """

    name: str
    folder: Path
    system: Any
    identity: str
    guarantee: Guarantee
    route: str
    subject: str | None
    schema: Any
    private: bool

    @classmethod
    def read(cls, folder: Path, *, trusted_with: bool, trusted_key: Path | None) -> ServedBundle:
        """Return the bundle in ``folder``.

        Args:
            folder: the bundle's folder.
            trusted_with: whether rows that it protects may come here.
            trusted_key: file with the public key that must have signed it, or None.

        Raises:
            InvalidInput: there is no bundle, it books no data set, its answers take a time that
                depends on the row, or it is a model of released values.
            CorruptBundle, UntrustedSignature: the errors of ``load``.
        """
        stored = Bundle.read(folder, trusted_key=trusted_key)
        if stored.system == VALUE_MODEL:
            raise InvalidInput(
                f"bundles: {folder.name} takes released values and no rows; expected it in the "
                "folder of models"
            )
        system = load(folder, trusted_key=trusted_key)
        guarantee = system.guarantee
        adjacency = guarantee.adjacency
        of_input = isinstance(adjacency, Neighborhood) or not adjacency.data_set
        if not hasattr(system, "release"):
            route, identity = "free", stored.identity
        else:
            route = "answers" if trusted_with or not of_input else "device"
            identity = system.bundle_identity_
        subject = None if isinstance(adjacency, Neighborhood) else adjacency.data_set or None
        schema = getattr(getattr(system, "query_", None), "schema", None)
        served = cls(
            folder.name,
            folder,
            system,
            identity,
            guarantee,
            route,
            subject,
            schema,
            stored.private,
        )
        if route == "answers":
            check_bookable(adjacency)
            served.check_charged_by_row()
        return served

    @cached_property
    def price(self) -> Price:
        """Return the price of one answer, which depends on no row."""
        found: Price = self.system.price(range(1))
        return found

    @property
    def protects(self) -> str:
        """Return "records" or "input", whichever it protects."""
        return "input" if self.subject is None else "records"

    @property
    def columns(self) -> list[str]:
        """Return the names of its columns in order, or none where it was fitted on an array."""
        names = kept_names(self.system)
        if names is None and self.schema is not None:
            return [str(name) for name in getattr(self.schema, "names", None) or ()]
        return names or []

    @property
    def asks(self) -> type[Answers]:
        """Return the class of its requests."""
        return Numbers if self.schema is None else Answers

    @property
    def files(self) -> list[str]:
        """Return the names of the files that a device may have."""
        if self.private:
            return []
        return [name for name in _FILES if (self.folder / name).is_file()]

    def file(self, name: str) -> Path:
        """Return the path of a file that a device may have.

        Raises:
            NotPermitted: the bundle holds private records.
            UnknownName: it has no such file.
        """
        if self.private:
            raise NotPermitted("files: this bundle holds private records, and stays where it is")
        if name not in self.files:
            raise UnknownName(f"file: expected one of {', '.join(self.files)}")
        return self.folder / name

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        card: GuaranteeCard = self.system.card()
        return card

    def most_rows(self, most: int) -> int:
        """Return the most rows of one request to it, where requests have ``most`` at most."""
        return max(1, min(most, MOST_CELLS // int(self.system.n_features_in_)))

    def structure(self, most: int) -> Structure:
        """Return the bounds of a body that asks about up to ``most`` rows."""
        rows, width = self.most_rows(most), int(self.system.n_features_in_)
        # Commas of the rows, of their columns, of a subject for each, and between names.
        return Structure(lists=rows + 3, items=rows * width + width + rows + 4)

    def describe(self, *, most_rows: int) -> dict[str, Any]:
        """Describe the bundle for a client that has not asked yet."""
        return {
            "id": self.identity,
            "name": self.name,
            "system": type(self.system).__name__,
            "protects": self.protects,
            "route": self.route,
            "subject": self.subject,
            "features": int(self.system.n_features_in_),
            "columns": self.columns,
            "guarantee": self.guarantee.to_dict(),
            "most_rows": self.most_rows(most_rows),
            "signed": (self.folder / "signature.json").is_file(),
            "files": self.files,
        }

    def check_open(self) -> None:
        """Refuse rows of a bundle that protects them.

        Raises:
            NotPermitted: the bundle protects its rows. The message says where to release them.
        """
        if self.route == "device":
            raise NotPermitted(
                "rows: this bundle protects its input; release on your own device, and send "
                "released values to /v1/models/{id}/predictions"
            )

    def check_charged_by_row(self) -> None:
        """Refuse a system whose answers cannot be charged one by one, or tell by their time.

        Raises:
            InvalidInput: its answers are paid for as a whole, or its certificate takes a time that
                depends on the row.
        """
        if self.price.prepaid is not None:
            raise InvalidInput(
                f"bundles: {self.folder.name} is paid for as a whole, and its answers are counted "
                "by whoever fitted it; expected a bundle whose answers are charged one by one"
            )

    def inputs(self, rows: Rows | npt.NDArray[np.float64], columns: Sequence[str] | None) -> Any:
        """Return rows as the system takes them, from a request of the class ``asks``.

        Raises:
            InvalidInput: rows of different lengths, or another number of columns.
            NotPermitted: raw rows of a bundle that protects them.
        """
        self.check_open()
        width = int(self.system.n_features_in_)
        lengths = {rows.shape[1]} if isinstance(rows, np.ndarray) else {*map(len, rows)}
        if lengths != {width}:
            found = sorted(lengths)[0] if len(lengths) == 1 else "rows of different lengths"
            raise InvalidInput(f"rows: expected {width} cells in each, got {found}")
        names = kept_names(self.system) if columns is None else list(columns)
        if names is not None and len(names) != width:
            raise InvalidInput(f"columns: expected {width} names, got {len(names)}")
        table = _table(rows, self.schema)
        return table if names is None else NamedRows(table, tuple(names))

    def scopes(
        self, principal: str, subjects: list[str] | str | None
    ) -> tuple[Scope | list[Scope], list[str]]:
        """Return the scopes that a request is charged to, and the subjects named there.

        Raises:
            InvalidInput: no subject where one is mandatory, or another than the bundle's.
        """
        if self.subject is not None:
            if subjects not in (None, self.subject):
                raise InvalidInput(
                    "subject: expected none, or the data set that this bundle protects, whose "
                    "records pay for all answers"
                )
            subjects = self.subject
        if subjects is None:
            raise InvalidInput(
                "subject: expected the name of whoever the rows are about, or subjects with one "
                "name for each row"
            )
        if isinstance(subjects, str):
            return Scope(principal, subjects, self.identity), [subjects]
        known = {name: Scope(principal, name, self.identity) for name in set(subjects)}
        return [known[name] for name in subjects], sorted(known)

    def predict(self, inputs: Any) -> npt.NDArray[Any]:
        """Return the answers of a model that was paid for at its fit."""
        found: npt.NDArray[Any] = self.system.predict(inputs)
        return found

    def widest(self, values: npt.NDArray[Any]) -> int:
        """Return the bytes that one answer takes at most, whatever was asked."""
        if values.ndim == 2:
            return int(values.shape[1]) * (_WIDEST_NUMBER + 1) + 2
        return self._widest_label

    @cached_property
    def _widest_label(self) -> int:
        labels = getattr(self.system, "classes_", np.array([]))
        return max([len("null"), *(_length(label) for label in labels.tolist())])


class Catalogue:
    """The bundles of a folder.

    Args:
        folder: a folder whose subfolders hold one bundle each.
        trusted_with: names of bundles whose raw rows may come here.
        trusted_key: file with the public key that must have signed all of them, or None.

    Raises:
        InvalidInput: no bundle there, two with one identity, an unknown name in ``trusted_with``,
            or a bundle that cannot be served.
        CorruptBundle, UntrustedSignature: the errors of ``load``.
    """

    def __init__(
        self, folder: Path, *, trusted_with: Sequence[str] = (), trusted_key: Path | None = None
    ) -> None:
        if not folder.is_dir():
            raise InvalidInput(f"bundles={str(folder)!r}: expected a folder of bundles")
        places = sorted(place for place in folder.iterdir() if (place / MARKER).is_file())
        if not places:
            raise InvalidInput(
                f"bundles={str(folder)!r}: expected a folder with at least one bundle in a folder "
                "of its own; `reticent fit` makes one"
            )
        unknown = set(trusted_with) - {place.name for place in places}
        if unknown:
            raise InvalidInput(
                f"trusted_with: expected names of bundles in {str(folder)!r}, got "
                f"{', '.join(sorted(unknown))}"
            )
        self._bundles: dict[str, ServedBundle] = {}
        for place in places:
            bundle = ServedBundle.read(
                place, trusted_with=place.name in trusted_with, trusted_key=trusted_key
            )
            if bundle.identity in self._bundles:
                other = self._bundles[bundle.identity].name
                raise InvalidInput(
                    f"bundles: {place.name} and {other} are the same bundle; remove one of them"
                )
            self._bundles[bundle.identity] = bundle
        self._names: Mapping[str, ServedBundle] = {
            bundle.name: bundle for bundle in self._bundles.values()
        }

    def __iter__(self) -> Any:
        return iter(self._bundles.values())

    def find(self, name: str, *, may_ask: Callable[..., bool]) -> ServedBundle:
        """Return the bundle of this identity or name, if the key may ask it.

        Raises:
            UnknownName: there is none, or the key was not granted it. The message does not say
                which.
        """
        bundle = self._bundles.get(name) or self._names.get(name)
        if bundle is None or not may_ask(bundle.identity, bundle.name):
            raise UnknownName("bundle: expected one that GET /v1/bundles lists")
        return bundle


def _table(rows: Rows | npt.NDArray[np.float64], schema: Any) -> npt.NDArray[Any]:
    if isinstance(rows, np.ndarray):  # of finite numbers: see arrow_rows
        return rows
    if schema is not None:
        table = np.empty((len(rows), len(rows[0])), dtype=object)
        table[:] = rows
        return table
    many = len(rows) * len(rows[0])
    return np.fromiter(chain.from_iterable(rows), np.float64, many).reshape(len(rows), -1)


def _length(label: Any) -> int:
    return len(json.dumps(label))
