"""Settings of the service: from flags, the environment and one TOML file, in this order."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reticent.core.addresses import is_loopback
from reticent.core.errors import InvalidInput

VARIABLES = "RETICENT_SERVE_"
"""What the names of environment variables begin with: RETICENT_SERVE_WORKERS=2."""

_LISTS = ("trusted_with",)


class Listening(BaseModel):
    """The address that a server listens on, and the most that it takes from anybody.

    Attributes:
        host, port: address to listen on.
        behind_proxy: whether a proxy stands in front that bounds connections, heads and bodies by
            address (deploy/nginx.conf). Without one the service listens on the loopback only.
        connections: connections of one worker at most.
        per_address: connections of one address that have shown no valid key. There is no such bound
            behind a proxy, since all connections have the proxy's address.
        head: seconds that the head of a request may take to arrive, from its first byte.
        send: seconds within which a client must take the next part of an answer.
        queue: requests that one worker holds at most. Others get 429.
        most_bytes: bytes of a body at most.
        deadline: seconds that a request may wait before it is charged. Later it gets 429.
        level: level of the log.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    behind_proxy: bool = False
    connections: int = Field(default=512, ge=1, le=100_000)
    per_address: int = Field(default=128, ge=1, le=100_000)
    head: float = Field(default=5.0, gt=0, le=600)
    send: float = Field(default=10.0, gt=0, le=600)
    queue: int = Field(default=128, ge=1, le=10_000)
    most_bytes: int = Field(default=2**24, ge=1024, le=2**28)
    deadline: float = Field(default=10.0, gt=0, le=600)
    level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")

    def check_listening(self) -> None:
        """Refuse to listen where anybody can connect, with nothing in front.

        Raises:
            InvalidInput: there is no proxy in front. The message says what to set.
        """
        if not self.behind_proxy and not is_loopback(self.host):
            raise InvalidInput(
                f"host={self.host!r}: expected an address of this machine alone (127.0.0.1), or "
                "--behind-proxy where a proxy stands in front that bounds connections by address, "
                "as deploy/nginx.conf does"
            )


class Settings(Listening):
    """The settings that a service needs before it starts, beside where it listens.

    Attributes:
        bundles: folder with one fitted bundle in each folder of it.
        ledger: a file or a URL, as ``Store`` takes it.
        signing_key: file with the private Ed25519 key that signs receipts and anchors. All hosts of
            one ledger use the same. Digests of requests are keyed by it too.
        trusted_key: file with the public key that must have signed every bundle. None trusts the
            folder.
        metrics_key: file with a secret of at least 32 characters that opens ``/metrics`` alone,
            or None for none.
        models: folder with models that were trained on released values, or None for none.
        trusted_with: names of bundles whose raw rows this server may see, though they protect the
            input.
        workers: number of processes.
        threads: number of threads that answer in one worker. Each takes all requests that wait.
            While it waits for the ledger, another one takes those that have come since.
        per_key: requests of one key that one worker holds at most.
        most_rows: rows of a request at most.
        lease: seconds that a charged request may take to be answered. After that a retry finds its
            answer lost.
        durable: whether charges survive a power cut on SQLite ("FULL"), or only crashes ("NORMAL").
    """

    bundles: Path
    ledger: str = Field(min_length=1, repr=False)
    signing_key: Path
    trusted_key: Path | None = None
    metrics_key: Path | None = None
    models: Path | None = None
    trusted_with: tuple[str, ...] = ()
    workers: int = Field(default=1, ge=1, le=64)
    threads: int = Field(default=2, ge=1, le=64)
    per_key: int = Field(default=64, ge=1, le=10_000)
    most_rows: int = Field(default=10_000, ge=1, le=1_000_000)
    lease: float = Field(default=60.0, gt=0, le=3600)
    durable: bool = True

    @classmethod
    def gathered(
        cls,
        given: Mapping[str, Any],
        *,
        file: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Return settings from ``given``, the environment and ``file``. The first source counts.

        Args:
            given: values by name, with None for not given.
            file: TOML with the names of the attributes. Paths start from its folder.
            environment: variables, or None for those of the process. Commas separate lists.

        Raises:
            InvalidInput: an unknown name, a missing one, or a value that cannot be used.

        Example:
            >>> found = Settings.gathered(
            ...     {"bundles": "b", "signing_key": "k.pem", "workers": 2},
            ...     environment={"RETICENT_SERVE_LEDGER": "l.db", "RETICENT_SERVE_WORKERS": "8"},
            ... )
            >>> found.ledger, found.workers
            ('l.db', 2)
        """
        values = {} if file is None else _read(Path(file))
        for name, value in (os.environ if environment is None else environment).items():
            if name.startswith(VARIABLES):
                field = name.removeprefix(VARIABLES).lower()
                values[field] = value.split(",") if field in _LISTS else value
        values |= {name: value for name, value in given.items() if value is not None}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise InvalidInput(_told(error)) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise InvalidInput(f"config={str(path)!r}: cannot be read ({error.strerror})") from error
    except ValueError as error:  # also of text that is not UTF-8
        raise InvalidInput(f"config={str(path)!r}: expected TOML") from error
    for name in ("bundles", "signing_key", "trusted_key", "metrics_key", "models"):
        if isinstance(values.get(name), str):
            values[name] = path.parent / values[name]
    return values


def _told(error: ValidationError) -> str:
    """Say which settings are wrong, without their values, of which one may hold a password."""
    said = []
    for part in error.errors(include_url=False, include_input=False, include_context=False):
        name = ".".join(map(str, part["loc"]))
        said.append(f"{name}: {part['msg']}")
    return (
        f"settings: {'; '.join(said)}. Expected flags of `reticent serve`, {VARIABLES}NAME in the "
        "environment, or names in its TOML file"
    )
