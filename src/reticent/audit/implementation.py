"""Faults of an implementation that its answers alone do not show: forks, time, state."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.outputs import OutputCode, Raised, leaves
from reticent.audit.sequential import SequentialTest
from reticent.audit.subjects import FunctionSubject, Subject

if TYPE_CHECKING:
    from reticent.audit.neighbour_pairs import NeighbourPair

_FORKED = 6
"""Answers of either child that are compared."""

_TIMED, _STATEFUL = 600, 400
_NOTHING = 0.05
"""An epsilon so small that a dependence of a later answer on an earlier data set contradicts it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding beside the value of an answer.

    Attributes:
        kind: the fault, in words.
        witness: the pair of neighbours, or the data set, that shows it.
        event: the observation.
        replay: the command or call that shows it again.
    """

    kind: str
    witness: str
    event: str
    replay: str


def implementation_findings(
    run: Subject,
    pair: NeighbourPair,
    *,
    epsilon: float,
    delta: float,
    alpha: float,
    replay: str,
    seconds: float | None = None,
) -> list[Finding]:
    """Return what forked processes, times of answers and earlier calls give away.

    Args:
        run: the subject that is audited.
        pair: the neighbours that it is tried on.
        epsilon, delta: the claim, which times are held to as well.
        alpha: the chance that one of these looks finds something by chance.
        replay: the command that repeats it.
        seconds: the time limit, or None.
    """
    found = []
    until = math.inf if seconds is None else time.monotonic() + seconds
    words = (
        _forked(run, pair, until),
        _timed(run, pair, epsilon, delta, alpha, until),
        _stateful(run, pair, alpha, until),
    )
    kinds = (
        "noise that repeats after a fork",
        "time of an answer",
        "state that outlives a call",
    )
    for kind, event in zip(kinds, words, strict=True):
        if event is not None:
            found.append(Finding(kind=kind, witness=pair.name, event=event, replay=replay))
    return found


def _forked(run: Subject, pair: NeighbourPair, until: float) -> str | None:
    """Return whether two forked processes draw the same noise."""
    if not isinstance(run, FunctionSubject) or not hasattr(os, "fork"):
        return None
    copies = [pair.copied(True) for _ in range(_FORKED)]
    one, other = (_child(lambda: _plain(run.answers(copies)), until) for _ in range(2))
    varies = len({json.dumps(answer) for answer in one}) > 1
    if varies and one == other:
        return (
            f"two forked processes gave the same {_FORKED} answers, so that a difference of two "
            "workers' answers has no noise"
        )
    return None


def _plain(answers: list[Any]) -> list[Any]:
    return [one.kind if isinstance(one, Raised) else leaves(one) for one in answers]


def _child(work: Callable[[], list[Any]], until: float) -> list[Any]:
    """Return what ``work`` returns in a forked process, as JSON values."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:  # pragma: no cover - the child ends here, whatever happens
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as stream:
                stream.write(json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    left = None if until == math.inf else max(0.0, until - time.monotonic())
    if not select.select([reader], [], [], left)[0]:
        os.kill(process, signal.SIGKILL)  # a lock that another thread held when it was forked
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(process, 0)
    return list(json.loads(content)) if content else []


def _timed(
    run: Subject, pair: NeighbourPair, epsilon: float, delta: float, alpha: float, until: float
) -> str | None:
    """Return whether the time of an answer tells the neighbours better than the claim allows."""
    random = np.random.default_rng()
    test = SequentialTest(epsilon=epsilon, delta=delta, alpha=alpha)
    for _ in range(_TIMED // 20):
        if time.monotonic() >= until:
            break
        coins = random.random(20) < 0.5
        times = []
        for coin in coins:
            copied = pair.copied(coin)
            start = time.perf_counter()
            run.answers([copied])
            times.append(time.perf_counter() - start)
        # To a hundredth of a microsecond: the last bits of a clock's double tell nothing.
        if test.update(coins, np.rint(np.array(times) * 1e8)):
            return (
                f"{test.refuted_after} timed answers contradict the claim by their time alone, at "
                f"level {alpha:g}"
            )
    return None


def _stateful(run: Subject, pair: NeighbourPair, alpha: float, until: float) -> str | None:
    """Return whether an answer about nobody tells which neighbour was asked about before."""
    random = np.random.default_rng()
    test = SequentialTest(epsilon=_NOTHING, delta=0.0, alpha=alpha)
    code = OutputCode()
    for _ in range(_STATEFUL // 20):
        if time.monotonic() >= until:
            break
        coins = random.random(20) < 0.5
        after = []
        for coin in coins:
            run.answers([pair.copied(coin)])
            after += run.answers([pair.copied(False)])
        if test.update(coins, code(after)):
            return (
                f"after {test.refuted_after} pairs of calls, the second call's answer tells which "
                f"data set the first call was about, at level {alpha:g}"
            )
    return None
