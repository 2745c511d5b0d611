"""The common parts of released models' bundles: settings, public space, feature map and receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from reticent.core.arrays import Arrays, part_of, under
from reticent.core.checks import count, flag, words
from reticent.core.errors import InvalidInput
from reticent.core.releases import Receipt
from reticent.core.settings import Group
from reticent.release.bundle import Bundle, rebuilding
from reticent.systems.features import Features
from reticent.tables.frames import keep_names, kept_names, stored_names
from reticent.tables.schema import TabularSchema
from reticent.training.public_features import PatchFeatures, PublicPCA, public_map
from reticent.training.public_space import RowMap

if TYPE_CHECKING:
    from reticent.systems.votes.released_model import ReleasedModel

Model = TypeVar("Model", bound="ReleasedModel")

_APART = ("pool", "classes", "target_range", "features", "epsilon", "delta", "data_set")
_SHAPING = ("components", "whitening", "reach")
_OWN = "own"


def common_settings(model: ReleasedModel) -> tuple[dict[str, Any], Arrays]:
    """Return settings and arrays of everything but the model itself."""
    arguments = {
        name: _plain(value)
        for name, value in model.get_params(deep=False).items()
        if name not in _APART
    }
    map_settings, map_arrays = _map_description(model.map_)
    settings = {
        "arguments": arguments,
        "features": {name: _plain(getattr(model._shaping, name)) for name in _SHAPING},
        **model._label_settings(),
        "input_shape": list(model.input_shape_),
        "feature_names": kept_names(model),
        **({} if model.schema_ is None else {"schema": model.schema_.to_dict()}),
        "feature_map": map_settings,
        "receipt": model.receipt_.to_dict(),
        "by_person": model.by_person_,
        "most_records": model.most_records_,
        "public_rows": model.public_rows_,
        "public_labels": model.public_labels_,
    }
    return settings, under("space.", model.space_.arrays()) | under("map.", map_arrays)


def restore_common(cls: type[Model], bundle: Bundle, feature_map: Any) -> Model:
    """Return an estimator with everything that ``common_settings`` stored.

    Raises:
        InvalidInput: a feature map that is missing, or given where the bundle holds it.
        CorruptBundle: no such settings.
    """
    settings = bundle.settings
    with rebuilding():
        stored = settings["feature_map"]
        own = stored is not None and stored["kind"] == _OWN
    if own != (feature_map is not None):
        raise InvalidInput(
            "feature_map: expected the map that the bundle was fitted with, which it does not hold"
            if own
            else "feature_map: expected none; the bundle holds its own"
        )
    with rebuilding():
        found: RowMap | None = feature_map
        if own:
            if not isinstance(feature_map, RowMap) or feature_map.name != stored["name"]:
                raise InvalidInput(f"feature_map: expected the map {stored['name']!r}")
        elif stored is not None:
            found = public_map(stored, part_of(bundle.arrays, "map."))
        receipt = Receipt.from_dict(settings["receipt"])
        labels, columns = cls._restored_labels(settings)
        adjacency = receipt.guarantee.adjacency
        described = settings.get("schema")
        schema = None if described is None else TabularSchema.from_dict(described)
        data_set = None if adjacency.unnamed else adjacency.data_set  # type: ignore[union-attr]
        model = cls(
            **settings["arguments"],
            epsilon=receipt.guarantee.epsilon,
            delta=receipt.guarantee.delta,
            **labels,
            features=Features(map=found, schema=schema, **settings["features"]),
            data_set=data_set,
        )
        model.schema_ = schema
        model.check_settings()
        model.map_ = found
        model.space_ = cls._space_kind.from_arrays(part_of(bundle.arrays, "space."))
        model._keep_columns(columns)
        model.receipt_ = receipt
        model.simulated_ = receipt.seeded
        model.input_shape_ = tuple(
            count(size, name="input_shape") for size in settings["input_shape"]
        )
        model.n_features_in_ = int(np.prod(model.input_shape_))
        model.by_person_ = flag(settings["by_person"], name="by_person")
        model.most_records_ = count(settings["most_records"], name="most_records")
        model.public_rows_ = count(settings["public_rows"], name="public_rows", minimum=0)
        model.public_labels_ = count(settings["public_labels"], name="public_labels", minimum=0)
        keep_names(model, stored_names(settings, model.n_features_in_))
    return model


def _map_description(row_map: RowMap | None) -> tuple[dict[str, Any] | None, Arrays]:
    if row_map is None:
        return None, {}
    if isinstance(row_map, PatchFeatures) or (
        isinstance(row_map, PublicPCA) and _holdable(row_map)
    ):
        return row_map.describe()
    return {"kind": _OWN, "name": words(row_map.name, name="feature_map")}, {}


def _holdable(row_map: PublicPCA) -> bool:
    below = row_map.of
    return (
        below is None
        or isinstance(below, PatchFeatures)
        or (isinstance(below, PublicPCA) and _holdable(below))
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Group):
        return {name: _plain(entry) for name, entry in value.get_params().items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
