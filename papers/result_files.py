"""Files that an experiment leaves behind."""

from __future__ import annotations

from pathlib import Path

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
