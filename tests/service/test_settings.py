from __future__ import annotations

from pathlib import Path

import pytest

from reticent.core.errors import InvalidInput
from reticent.service.settings import Settings


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(
        'bundles = "b"\nsigning_key = "key.pem"\nledger = "l.db"\n'
        "workers = 2\nport = 1\nqueue = 7\n"
    )
    environment = {"RETICENT_SERVE_PORT": "2", "RETICENT_SERVE_QUEUE": "8", "OTHER": "x"}
    environment["RETICENT_SERVE_TRUSTED_WITH"] = "a,b"
    found = Settings.gathered({"queue": 9, "port": None}, file=file, environment=environment)
    assert (found.workers, found.port, found.queue) == (2, 2, 9)
    assert found.bundles == tmp_path / "b"
    assert found.trusted_with == ("a", "b")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workers": 0}, "workers"),
        ({"colour": "red"}, "colour"),
        ({"signing_key": None}, "signing_key"),
        ({"level": "LOUD"}, "level"),
    ],
)
def test_what_cannot_be_used_is_named_and_not_shown(given: dict[str, object], said: str) -> None:
    usual = {"bundles": "b", "signing_key": "k", "ledger": "postgresql://u:secret@h/n"}
    with pytest.raises(InvalidInput, match=said) as caught:
        Settings.gathered(usual | given, environment={})
    assert "secret" not in str(caught.value)
