"""Settings of an estimator, declared once as annotated fields. The constructor is written here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, Signature
from typing import Any, Literal, TypeVar

from typing_extensions import dataclass_transform

from reticent.core.errors import InvalidParameter

_LEARNED: Any = object()


class Group:
    """Base of a frozen dataclass of settings that are one idea, as an estimator takes it.

    ``get_params`` of the estimator looks into it, and ``clone`` makes it anew.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name. ``deep`` changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


T = TypeVar("T")
P = TypeVar("P", bound=Group)


def learned(*, init: Literal[False] = False) -> Any:
    """Mark an annotated attribute that ``fit`` sets, so that it is no setting."""
    return _LEARNED


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as plain values by name, for a record of a choice.

    A part gives its own settings in its place, without those that are None.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Group):
            own = value.get_params().items()
            found |= {key: entry for key, entry in own if entry is not None}
        else:
            found[name] = value
    return found


def a_part(given: P | None, kind: type[P], *, name: str) -> P:
    """Return the part that a setting holds, or ``kind()`` for None.

    Args:
        given: the setting's value.
        kind: the class of the part.
        name: name of the setting.

    Raises:
        InvalidParameter: something else.
    """
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise InvalidParameter(
            f"{name}: expected a {kind.__name__} or None, got {type(given).__name__}"
        )
    return given


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(learned,))
def with_settings(cls: type[T]) -> type[T]:
    """Give ``cls`` a constructor that stores its annotated fields as they are.

    Every field is a keyword. A field with a value has it as its default. Fields of decorated base
    classes are settings too, and a class may declare one again with another default. A class
    variable and ``learned()`` are none. Nothing is checked, copied or converted here, as
    scikit-learn asks of a constructor. So ``clone``, ``get_params`` and ``set_params`` work, and an
    estimator refuses a setting only in ``fit``.

    In the signature, fields without a default come first, those of the bases before a class's own.
    The others follow, a class's own before those of its bases.

    Example:
        >>> from sklearn.base import BaseEstimator, clone
        >>> @with_settings
        ... class Private(BaseEstimator):
        ...     epsilon: float
        ...     rows_: int = learned()
        >>> @with_settings
        ... class Mean(Private):
        ...     clip: float = 1.0
        >>> list(inspect.signature(Mean).parameters)
        ['epsilon', 'clip']
        >>> clone(Mean(epsilon=2.0)).get_params()
        {'clip': 1.0, 'epsilon': 2.0}
        >>> hasattr(Mean(epsilon=2.0), "rows_")
        False
    """
    own = {}
    for name, annotation in inspect.get_annotations(cls).items():
        default = vars(cls).get(name, Parameter.empty)
        if default is _LEARNED:
            delattr(cls, name)
        elif "ClassVar" not in str(annotation):
            own[name] = Parameter(
                name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
    cls._declared = own  # type: ignore[attr-defined]
    signature = _signature(cls)

    def store(self: Any, **values: Any) -> None:
        try:
            bound = signature.bind(self, **values)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        vars(self).update(bound.kwargs)

    store.__qualname__ = f"{cls.__qualname__}.__init__"
    store.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = store  # type: ignore[method-assign]
    return cls


def _signature(cls: type) -> Signature:
    """Return the constructor's signature, with the fields that ``cls`` and its bases declare."""
    declared: list[dict[str, Parameter]] = [vars(each).get("_declared", {}) for each in cls.__mro__]
    down: dict[str, Parameter] = {}
    up: dict[str, Parameter] = {}
    for own in reversed(declared):
        down |= own  # the latest declaration counts, at the place of the first
        up = own | {name: field for name, field in up.items() if name not in own}
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    needed = [field for field in down.values() if field.default is Parameter.empty]
    others = [field for field in up.values() if field.default is not Parameter.empty]
    return Signature([itself, *needed, *others], return_annotation="None")
