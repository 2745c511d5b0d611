"""Calls side by side, in threads or in forked processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

FORK = multiprocessing.get_context("fork")  # a spawned process would spend seconds on imports


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """Return what calls return, each in a thread of its own; raise what the first one raises."""
    with ThreadPoolExecutor(len(calls)) as threads:
        running = [threads.submit(call) for call in calls]
    return [one.result() for one in running]


def in_forks(*calls: Callable[[], Any]) -> list[Any]:
    """Return what calls return, each in a child of its own; no child may fail."""
    children = []
    for call in calls:
        receiver, sender = FORK.Pipe(duplex=False)
        child = FORK.Process(target=_tell, args=(call, sender))
        child.start()
        sender.close()
        children.append((child, receiver))
    found = [receiver.recv() for _, receiver in children]
    for child, _ in children:
        child.join(60)
        assert child.exitcode == 0
    return found


def _tell(call: Callable[[], Any], sender: Any) -> None:
    sender.send(call())
