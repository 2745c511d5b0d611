"""An output file or folder is there whole or not at all, and its place is taken before anything is spent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reticent.core.errors import InvalidInput, WriteFailed


@contextmanager
def output_file(path: str | Path, *, size: int, overwrite: bool) -> Iterator[Callable[[bytes], None]]:
    """A function that puts the content in place; ``size`` bytes are set aside for it beforehand.

    The content goes to a temporary file beside the target, is flushed to the disk, and is renamed. A folder that is
    not writable or a disk without ``size`` free bytes is found out on entry, before the caller computes and spends.

    Args:
        path: where the file shall stand; its folder is made if missing.
        size: bytes to set aside, at least as many as will be written; 0 sets nothing aside.
        overwrite: whether a file that stands there may be replaced.

    Raises:
        InvalidInput: ``path`` is a folder, or a file that may not be replaced.
        WriteFailed: not writable, or no room; whatever stood at ``path`` stands there still.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with output_file(Path(folder) / "note.txt", size=5, overwrite=False) as put:
        ...         put(b"hello")
        ...     print((Path(folder) / "note.txt").read_text(), os.listdir(folder))
        hello ['note.txt']
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInput(f"output={str(target)!r}: is a folder; expected the name of a file")
    if target.exists() and not overwrite:
        raise InvalidInput(f"output={str(target)!r}: exists already; choose another name, or ask to overwrite it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise _failed(target, error) from error
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            with _reported(target):
                _set_aside(file.fileno(), size)

            def put(content: bytes) -> None:
                with _reported(target):
                    rest = memoryview(content)
                    while rest:
                        rest = rest[file.write(rest) :]
                    file.truncate()
                    os.fsync(file.fileno())
                    scratch.chmod(0o644)
                    scratch.replace(target)

            yield put
    finally:
        scratch.unlink(missing_ok=True)


@dataclass(frozen=True)
class OutputFolder:
    """A folder that is being filled, under a temporary name.

    Attributes:
        path: where it is for now.
        target: where it will stand.
    """

    path: Path
    target: Path

    def write(self, name: str, content: bytes) -> None:
        """Puts a file into the folder and flushes it to the disk.

        Raises:
            WriteFailed: no room, or not writable.
        """
        with _reported(self.target), (self.path / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def output_folder(path: str | Path, *, marker: str, overwrite: bool) -> Iterator[OutputFolder]:
    """A folder to fill; it gets its name when the caller is done without an error, and is removed otherwise.

    Args:
        path: where the folder shall stand; the folders above it are made if missing.
        marker: name of a file that every folder of this kind holds; only such a folder is ever replaced.
        overwrite: whether a folder of this kind may be replaced.

    Raises:
        InvalidInput: something that may not be replaced stands at ``path``.
        WriteFailed: not writable, or no room; whatever stood at ``path`` stands there still.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise InvalidInput(f"folder={str(target)!r}: exists already; choose another, or ask to overwrite it")
    if target.exists() and not (target / marker).is_file():
        raise InvalidInput(f"folder={str(target)!r}: exists and holds no {marker}, so it will not be replaced; choose another")
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield OutputFolder(scratch, target)
        with _reported(target):
            scratch.chmod(0o755)
            _put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(scratch: Path, target: Path) -> None:
    """Rename ``scratch`` to ``target``; an older folder there is moved aside first and removed afterwards."""
    if not target.exists():
        scratch.rename(target)
        return
    aside = target.with_name(f".{target.name}-replaced-{os.getpid()}")
    target.rename(aside)
    try:
        scratch.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _reported(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _failed(target, error) from error


def _set_aside(descriptor: int, size: int) -> None:
    """Take ``size`` bytes of the disk, where the system knows how; elsewhere write them."""
    if size == 0:
        return
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    os.write(descriptor, bytes(size))
    os.lseek(descriptor, 0, os.SEEK_SET)


def _failed(target: Path, error: OSError) -> WriteFailed:
    return WriteFailed(f"output={str(target)!r}: could not be written ({error.strerror or error}); nothing was left behind")
