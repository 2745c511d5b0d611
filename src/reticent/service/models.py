"""Models that were trained on released values, and answer released values.

That is post-processing, which costs nothing. A model is a bundle whose estimator has ``predict``
for released values, shape (n, m). If it knows the bundle that released them, ``released_by_``
names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.core.errors import InvalidInput, UnknownName
from reticent.release.bundle import MARKER, Bundle
from reticent.systems.loading import load


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model, and what it takes.

    Attributes:
        name: name of its folder.
        identity: identity of its bundle.
        released_by: identity of the bundle whose values it was trained on, or "" where it does not
            say.
        model: an object with ``predict``.
    """

    name: str
    identity: str
    released_by: str
    model: Any

    def describe(self) -> dict[str, Any]:
        """Describe the model for a client that has not asked yet."""
        return {
            "id": self.identity,
            "name": self.name,
            "system": type(self.model).__name__,
            "bundle": self.released_by,
            "values": int(getattr(self.model, "n_features_in_", 0)),
        }

    def predictions(self, values: list[Any]) -> list[Any]:
        """Return a prediction for each released value, and None for one that was withheld.

        Raises:
            InvalidInput: values of another shape than the model takes.
        """
        known = [value for value in values if value is not None]
        if not known:
            return [None] * len(values)
        if len({len(value) if isinstance(value, list) else -1 for value in known}) > 1:
            raise InvalidInput("values: expected all of one length, or all of them labels")
        rows = np.array(known, dtype=object if isinstance(known[0], str) else np.float64)
        found = iter(self.model.predict(rows).tolist())
        return [None if value is None else next(found) for value in values]


class ModelShelf:
    """The models of a folder, or none where there is no folder.

    Raises:
        InvalidInput: no such folder, or a bundle in it that does not predict.
    """

    def __init__(self, folder: Path | None, *, trusted_key: Path | None = None) -> None:
        self._models: dict[str, ServedModel] = {}
        if folder is None:
            return
        if not folder.is_dir():
            raise InvalidInput(f"models={str(folder)!r}: expected a folder of bundles")
        for place in sorted(place for place in folder.iterdir() if (place / MARKER).is_file()):
            model = load(place, trusted_key=trusted_key)
            # A model of private records would answer from them uncharged.
            if hasattr(model, "release") or not callable(getattr(model, "predict", None)):
                raise InvalidInput(
                    f"models: {place.name} holds a {type(model).__name__}; expected a model that "
                    "was trained on released values and predicts"
                )
            identity = Bundle.read(place).identity
            released_by = str(getattr(model, "released_by_", ""))
            self._models[identity] = ServedModel(place.name, identity, released_by, model)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def find(self, name: str, *, may_ask: Callable[..., bool]) -> ServedModel:
        """Return the model of this identity or name, if the key may ask it.

        Raises:
            UnknownName: there is none, or the key was not granted it.
        """
        named = {model.name: model for model in self}
        model = self._models.get(name) or named.get(name)
        if model is None or not may_ask(model.identity, model.name):
            raise UnknownName("model: expected one that GET /v1/models lists")
        return model
