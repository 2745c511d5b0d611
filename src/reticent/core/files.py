"""Files that cannot surprise: outputs appear whole or not at all, and inputs are plain and of
bounded size.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from reticent.core.errors import InvalidInput, WriteFailed

MOST_UNPACKED = 2**30
"""Bytes that a gzip file may unpack to, unless its reader sets another limit. A plain file may be
larger.
"""

_READ_ONLY = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def read_regular(path: str | Path, *, most: int) -> bytes:
    """Return the content of a plain file of at most ``most`` bytes.

    Links, folders, pipes, sockets and devices are refused before anything is read from them, so
    that no file can block the reader or feed it without end.

    Raises:
        InvalidInput: no such file, not a plain one, larger, or not readable. The message does not
            repeat the path.

    Example:
        >>> read_regular("/dev/zero", most=10)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        reticent.core.errors.InvalidInput: not a plain file; expected one that is no link, ...
    """
    plain = "not a plain file; expected one that is no link, pipe, device or folder"
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening some devices has effects of its own
            raise InvalidInput(plain)
        descriptor = os.open(path, _READ_ONLY)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InvalidInput(plain)
            content = file.read(most + 1) if found.st_size <= most else None
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error
    if content is None or len(content) > most:
        raise InvalidInput(f"larger than the {most} bytes that are expected at most")
    return content


def unpacked(content: bytes, *, most: int = MOST_UNPACKED) -> bytes:
    """Return the content of a gzip file if it has at most ``most`` bytes. A small file may unpack
    to any size.

    Raises:
        InvalidInput: not a whole gzip file, or one that unpacks to more.

    Example:
        >>> unpacked(gzip.compress(bytes(1000)), most=999)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        reticent.core.files.UnpacksTooFar: unpacks to more than the 999 bytes that are ...
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            found = file.read(most + 1)
    except (EOFError, zlib.error, OSError) as error:
        raise InvalidInput("not a whole gzip file") from error
    if len(found) > most:
        raise UnpacksTooFar(f"unpacks to more than the {most} bytes that are expected at most")
    return found


class UnpacksTooFar(InvalidInput):
    """A packed file that unpacks to more than its reader takes."""


class LimitedReader(io.RawIOBase):
    """A stream that refuses to give more than ``most`` bytes.

    Args:
        stream: the stream that is read.
        most: largest number of bytes that it may give.

    Raises:
        UnpacksTooFar: on reading beyond.
    """

    def __init__(self, stream: io.BufferedIOBase, *, most: int = MOST_UNPACKED) -> None:
        self._stream, self._most, self._left = stream, most, most

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read the next bytes, as in ``io.RawIOBase``."""
        found = self._stream.read(len(buffer))
        self._left -= len(found)
        if self._left < 0:
            raise UnpacksTooFar(
                f"unpacks to more than the {self._most} bytes that are expected at most"
            )
        buffer[: len(found)] = found
        return len(found)


def check_replaceable(target: Path, *, overwrite: bool) -> None:
    """Raise InvalidInput unless ``target`` is free or a plain file that may be replaced.

    Raises:
        InvalidInput: a folder, a file that may not be replaced, or a device, pipe or socket, which
            is never replaced.
    """
    where = f"output={str(target)!r}"
    if target.is_dir():
        raise InvalidInput(f"{where}: is a folder; expected the name of a file")
    if not os.path.lexists(target):
        return
    if target.exists() and not target.is_file():
        raise InvalidInput(
            f"{where}: is a device, pipe or socket, which is never replaced; expected the name "
            "of a file"
        )
    if not overwrite:
        raise InvalidInput(f"{where}: exists already; choose another name, or ask to overwrite it")


def new_file_beside(target: Path, *, private: bool = False) -> tuple[int, Path]:
    """Return an open descriptor and the path of a new, empty file in the folder of ``target``, to
    be renamed to it.

    Its mode follows the umask, or is that of the file that it will replace. A private one is for
    its owner alone (0600).

    Raises:
        OSError: the folder is missing or not writable.
    """
    path = _scratch(target)
    descriptor = os.open(path, _NEW, 0o600 if private else 0o666)
    if private:
        path.chmod(0o600)
    elif target.is_file():
        path.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
    return descriptor, path


@contextmanager
def output_file(
    path: str | Path, *, size: int, overwrite: bool, private: bool = False
) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that puts the content in place. ``size`` bytes are set aside for it
    beforehand.

    The content goes to a temporary file beside the target, is flushed to the disk, and is renamed.
    A folder that is not writable or a disk without ``size`` free bytes is found out on entry,
    before the caller computes and spends. The umask, or the file that it replaces, decides who may
    read the file.

    Args:
        path: place of the file. Its folder is made if missing.
        size: bytes to set aside, at least as many as will be written. 0 sets nothing aside.
        overwrite: whether a file that stands there may be replaced.
        private: whether the file is for its owner alone (0600), whatever the umask.

    Raises:
        InvalidInput: ``path`` is a folder, a file that may not be replaced, or a device, pipe or
            socket.
        WriteFailed: not writable, or no room. Whatever stood at ``path`` stands there still.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     with output_file(Path(folder) / "note.txt", size=5, overwrite=False) as put:
        ...         put(b"hello")
        ...     print((Path(folder) / "note.txt").read_text(), os.listdir(folder))
        hello ['note.txt']
    """
    target = Path(path)
    check_replaceable(target, overwrite=overwrite)
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = new_file_beside(target, private=private)
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
                    scratch.replace(target)

            yield put
    finally:
        scratch.unlink(missing_ok=True)


@dataclass(frozen=True)
class OutputFolder:
    """A folder that is being filled, under a temporary name.

    Attributes:
        path: temporary place of the folder.
        target: final place of the folder.
        private: whether its files are for their owner alone.
    """

    path: Path
    target: Path
    private: bool = False

    def write(self, name: str, content: bytes) -> None:
        """Put a file into the folder and flush it to the disk.

        Raises:
            WriteFailed: no room, or not writable.
        """
        with (
            _reported(self.target),
            os.fdopen(
                os.open(self.path / name, _NEW, 0o600 if self.private else 0o666), "wb"
            ) as file,
        ):
            if self.private:
                (self.path / name).chmod(0o600)  # whatever the umask is
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def check_folder_replaceable(target: Path, *, marker: str, overwrite: bool) -> None:
    """Raise InvalidInput unless ``target`` is free or a folder of its kind that may be replaced.

    Raises:
        InvalidInput: something stands there that may not be replaced.
    """
    if os.path.lexists(target) and not overwrite:
        raise InvalidInput(
            f"folder={str(target)!r}: exists already; choose another, or ask to overwrite it"
        )
    if os.path.lexists(target) and not (target / marker).is_file():
        raise InvalidInput(
            f"folder={str(target)!r}: exists and holds no {marker}, so it will not be "
            "replaced; choose another"
        )


@contextmanager
def output_folder(
    path: str | Path, *, marker: str, overwrite: bool, private: bool = False
) -> Iterator[OutputFolder]:
    """Yield a folder to fill. It gets its name when the caller is done without an error, and is
    removed otherwise.

    Args:
        path: place of the folder. The folders above it are made if missing.
        marker: name of a file that every folder of this kind holds. Only such a folder is ever
            replaced.
        overwrite: whether a folder of this kind may be replaced.
        private: whether folder and files are for their owner alone (0700 and 0600), whatever the
            umask. Otherwise the umask decides.

    Raises:
        InvalidInput: something that may not be replaced stands at ``path``.
        WriteFailed: not writable, or no room. Whatever stood at ``path`` stands there still.
    """
    target = Path(path)
    check_folder_replaceable(target, marker=marker, overwrite=overwrite)
    with _reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = _scratch(target)
        scratch.mkdir(0o700 if private else 0o777)
    try:
        if private:
            scratch.chmod(0o700)
        yield OutputFolder(scratch, target, private)
        with _reported(target):
            _put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(scratch: Path, target: Path) -> None:
    """Rename ``scratch`` to ``target``. An older folder there is moved aside first and removed
    afterwards.
    """
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


def _scratch(target: Path) -> Path:
    """Return a free name in the folder of ``target``, cut to the length that the system allows."""
    return target.with_name(f".{target.name[:50]}-{token_hex(8)}")


@contextmanager
def _reported(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _failed(target, error) from error


def _set_aside(descriptor: int, size: int) -> None:
    """Take ``size`` bytes of the disk where the system knows how, and write them elsewhere."""
    if size == 0:
        return
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    os.write(descriptor, bytes(size))
    os.lseek(descriptor, 0, os.SEEK_SET)


def _failed(target: Path, error: OSError) -> WriteFailed:
    return WriteFailed(
        f"output={str(target)!r}: could not be written ({error.strerror or error}); nothing "
        "was left behind"
    )
