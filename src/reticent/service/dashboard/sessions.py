"""Sessions of the pages: a signed cookie in place of a key.

It is good for every worker and host that has the same signing key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable

from reticent.core.errors import NotAuthenticated, NotPermitted
from reticent.service.keys import ApiKey, KeyStore

COOKIE = "reticent_dashboard"
"""Name of the cookie."""

LASTS = 8 * 3600
"""Seconds until somebody has to sign in again."""

_TOKEN = re.compile(r"([0-9a-f]{16})\.([0-9]{1,12})\.([0-9a-f]{64})")


class Sessions:
    """Signed cookies of owners.

    A cookie holds the identifier of a key and the time until which it counts, but no key. Whoever
    reads it can look for that long, and ask for nothing. A key that is revoked ends its sessions at
    once.

    Args:
        secret: the service's secret, equal on every host.
        keys: the keys in the ledger.
        clock: seconds since 1970.
    """

    def __init__(
        self, secret: bytes, keys: KeyStore, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._secret = hmac.new(secret, b"reticent dashboard sessions", hashlib.sha256).digest()
        self._keys, self._clock = keys, clock

    def begin(self, secret: str) -> tuple[ApiKey, str]:
        """Return the key that was typed in, and the cookie for it.

        Raises:
            NotAuthenticated: no valid key has this secret.
            NotPermitted: it is a client's key.
        """
        key = self._keys.find(secret)
        _check_owner(key)
        stated = f"{key.id}.{int(self._clock()) + LASTS}"
        return key, f"{stated}.{self._mac(stated)}"

    def viewer(self, cookie: str | None) -> ApiKey | None:
        """Return the owner whose cookie this is, or None."""
        found = _TOKEN.fullmatch(cookie or "")
        if found is None:
            return None
        stated = f"{found[1]}.{found[2]}"
        if not hmac.compare_digest(self._mac(stated), found[3]):
            return None
        if int(found[2]) <= self._clock():
            return None
        try:
            key = self._keys.named(found[1])
            _check_owner(key)
        except (NotAuthenticated, NotPermitted):
            return None
        return key

    def _mac(self, stated: str) -> str:
        return hmac.new(self._secret, stated.encode(), hashlib.sha256).hexdigest()


def _check_owner(key: ApiKey) -> None:
    if key.role != "owner":
        raise NotPermitted("key: expected an owner's; a client's asks for answers")
