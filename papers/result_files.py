"""Files that an experiment leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reticent.core.files import output_file


def write_result(path: Path, content: str | bytes) -> None:
    """Puts ``content`` (text as UTF-8) in place, whole or not at all; an older result that stands
    there is replaced.

    Args:
        path: where the file shall stand; its folder is made if missing.
        content: all of it.

    Raises:
        InvalidInput: ``path`` is a folder.
        WriteFailed: not writable, or no room; whatever stood at ``path`` stands there still.
    """
    whole = content.encode() if isinstance(content, str) else content
    with output_file(path, size=len(whole), overwrite=True) as put:
        put(whole)


def cached_result(path: Path, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Plain values that an earlier run left at ``path``, or else computed and left there: what a
    command that takes long continues from.

    Args:
        path: JSON.
        compute: called where there is no such file.

    Raises:
        InvalidInput, WriteFailed: as of ``write_result``.
    """
    if not path.is_file():
        write_result(path, json.dumps(compute()))
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
