"""Random words of the operating system: read into the caller's own array, given out once, kept
nowhere.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_DEVICE = "/dev/urandom"


def system_words(count: int) -> npt.NDArray[np.uint64]:
    """``count`` independent uniform 64-bit words.

    There is no store of words: each call asks the kernel for what it needs, so a forked process,
    another thread or a later call cannot meet the same words, and the caller, who owns the only
    copy, can overwrite it. (Where there is no ``/dev/urandom``, ``os.urandom`` is asked, which
    leaves one more copy to the memory allocator.)

    Args:
        count: number of words, 0 or more.

    Example:
        >>> system_words(3).shape
        (3,)
    """
    block = np.empty(count, dtype=np.uint64)
    if not count:
        return block
    target = block.view(np.uint8).data
    device = _open_device()
    if device is None:
        target[:] = os.urandom(len(target))
        return block
    try:
        filled = 0
        while filled < len(target):
            got = os.readv(device, [target[filled:]])
            if got <= 0:
                raise OSError(f"{_DEVICE}: no random bytes")
            filled += got
    finally:
        os.close(device)
    return block


def _open_device() -> int | None:
    """The kernel's generator as a file, or None where there is none.

    It is opened for each block, because a descriptor that is kept may be closed by others and
    then stand for another file.
    """
    _generator_is_seeded()
    try:
        device = os.open(_DEVICE, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    if stat.S_ISCHR(os.fstat(device).st_mode):
        return device
    os.close(device)
    return None


@lru_cache(maxsize=1)
def _generator_is_seeded() -> None:
    """Returns once the kernel has collected enough randomness after booting, which the device
    does not wait for.
    """
    os.urandom(1)
