"""Answers over HTTP: bundles, durable budgets, and keys for those who may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.service.app import create_app
    from reticent.service.keys import ApiKey, KeyStore
    from reticent.service.settings import Settings
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

__all__ = ["ApiKey", "KeyStore", "Settings", "create_app"]
