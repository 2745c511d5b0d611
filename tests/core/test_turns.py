"""Turns: one lock for each process, whoever comes to it first."""

from __future__ import annotations

import copy
import multiprocessing
import threading

from reticent.core.turns import Turn


def in_a_child(turn: Turn, threads: int) -> int:
    """The most threads of a forked child that were ever within the turn at once."""

    def count(results: multiprocessing.Queue[int]) -> None:
        inside, most, start = [0], [0], threading.Barrier(threads)

        def enter() -> None:
            start.wait()
            for _ in range(20):
                with turn:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    threading.Event().wait(1e-4)
                    inside[0] -= 1

        running = [threading.Thread(target=enter) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        results.put(most[0])

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=count, args=(results,))
    child.start()
    most = results.get(timeout=60)
    child.join()
    return int(most)


def test_a_forked_child_and_a_copy_start_unlocked() -> None:
    turn = Turn()
    with turn:
        assert in_a_child(turn, threads=4) == 1
        with copy.copy(turn):
            pass
