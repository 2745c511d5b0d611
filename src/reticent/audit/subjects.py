"""The subjects of an audit: a function, a command, an estimator, an address, or recorded scores.

Each takes data sets and returns one answer for each, drawn afresh. Nothing here knows the coin.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import selectors
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from reticent.audit.outputs import Raised
from reticent.core.addresses import is_loopback
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.core.files import read_regular

LONGEST_ANSWER = 2**20
"""Bytes of one answer of a command or an address, at most."""

_LARGEST_FILE = 2**30

_WARNINGS, _WARNING_LENGTH = 8, 240
"""Warnings of a subject that are told apart, and letters of each."""

_FLUSH = (
    ". Expected a line for each line that is read, written at once (flush); anew (--anew) starts "
    "a command for each answer, and ends its input"
)


class Subject(Protocol):
    """A subject of an audit."""

    name: str

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return one fresh answer for each data set, or ``Raised`` where it failed."""

    def close(self) -> None:
        """Give back processes and connections, if there are any."""
        return


class FunctionSubject(Subject):
    """A Python callable of one data set.

    Args:
        function: the callable. An exception of its own is an answer, ``SystemExit`` too.
        name: name in the report. None takes the callable's own.

    It runs in this process, which it can end (``os._exit``) or change. What is not trusted is run
    as a ``CommandSubject``.

    Attributes:
        warned: number of times that the callable gave each of its first warnings, which are not
            shown.
    """

    def __init__(self, function: Callable[[Any], Any], *, name: str | None = None) -> None:
        if not callable(function):
            raise InvalidInput(f"function: expected a callable, got {type(function).__name__}")
        self.function = function
        self.name: str = name or str(getattr(function, "__qualname__", type(function).__name__))
        self.warned: Counter[str] = Counter()

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return one fresh answer for each data set."""
        with warnings.catch_warnings():
            warnings.showwarning = self._warn
            return [self._answer(one) for one in data_sets]

    def _answer(self, data_set: Any) -> Any:
        try:
            return self.function(data_set)
        except (Exception, SystemExit) as error:  # which would end the audit with status 0
            return Raised(type(error).__name__)

    def _warn(self, message: Warning | str, category: type[Warning], *_: object, **__: Any) -> None:
        text = f"{category.__name__}: {message}"[:_WARNING_LENGTH]
        if text in self.warned or len(self.warned) < _WARNINGS:
            self.warned[text] += 1


class EstimatorSubject(FunctionSubject):
    """A scikit-learn estimator that is fitted anew for each answer, and predicts public rows.

    Args:
        estimator: an estimator, not fitted. It is cloned for each answer.
        queries: shape (q, ...), public rows that it predicts.
    """

    def __init__(self, estimator: Any, *, queries: npt.ArrayLike) -> None:
        if not callable(getattr(estimator, "fit", None)):
            raise InvalidInput(f"estimator: expected one with fit, got {type(estimator).__name__}")
        super().__init__(self._released, name=type(estimator).__name__)
        self.estimator, self.queries = estimator, np.asarray(queries)

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return what a fit on each data set, an object with ``X`` and perhaps ``y``, predicts."""
        if not all(isinstance(one, Mapping) and "X" in one for one in data_sets):
            raise InvalidInput(
                'neighbours: expected data sets {"X": rows, "y": labels} for an estimator'
            )
        return super().answers(data_sets)

    def _released(self, data_set: Any) -> Any:
        from sklearn.base import clone

        given = [] if data_set.get("y") is None else [np.asarray(data_set["y"])]
        fitted = clone(self.estimator).fit(np.asarray(data_set["X"]), *given)
        return np.asarray(fitted.predict(self.queries)).ravel().tolist()


class CommandSubject:
    """A command that reads one data set a line, as JSON, and writes one answer a line.

    The process is started once and stays, or is started for each answer. One that ends too early,
    or is silent for too long, ends the audit.

    Args:
        command: words, or one line that is split as a shell splits it. No shell runs it.
        anew: whether the command is started for each answer, and finds its input at an end. That
            suits what reads a whole file.
        seconds: the longest wait for one answer.
    """

    def __init__(
        self, command: str | Sequence[str], *, anew: bool = False, seconds: float = 60.0
    ) -> None:
        self.words = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.words:
            raise InvalidInput("command: expected at least one word")
        self.name = shlex.join(self.words)
        self.anew = anew
        self.seconds = positive(seconds, name="seconds")
        self._process: subprocess.Popen[bytes] | None = None
        self._kept = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return the command's answers."""
        return [self._answer(one) for one in data_sets]

    def close(self) -> None:
        """End the process."""
        process, self._process, self._kept = self._process, None, b""
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _answer(self, data_set: Any) -> Any:
        if self.anew:
            self.close()
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            except OSError as error:
                raise self._fault(str(error.strerror)) from error
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(data_set).encode() + b"\n")
            self._process.stdin.flush()
            if self.anew:
                self._process.stdin.close()
        except (BrokenPipeError, ValueError) as error:
            if not self.anew:  # else it may answer without reading
                raise self._fault("ended before an answer") from error
        return _decoded(self._line(self._process), self.words[0])

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        until = time.monotonic() + self.seconds
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._kept:
                left = until - time.monotonic()
                if left <= 0 or not ready.select(left):
                    hint = "" if self.anew else _FLUSH
                    raise self._fault(f"no answer in {self.seconds:g} seconds{hint}")
                part = process.stdout.read1(65536)  # type: ignore[attr-defined]
                if not part:
                    if self._kept:
                        break  # a last line without an end
                    raise self._fault("ended before an answer")
                self._kept += part
                if len(self._kept) > LONGEST_ANSWER and b"\n" not in self._kept:
                    raise self._fault("an answer above 1 MiB")
        line, _, self._kept = self._kept.partition(b"\n")
        return line

    def _fault(self, what: str) -> InvalidInput:
        return InvalidInput(f"command={self.words[0]!r}: {what}")


class HttpSubject(Subject):
    """An address that takes a data set as the JSON body of a POST and returns an answer as JSON.

    No proxy of the environment is used, no redirect is followed, and a body above 1 MiB is refused.

    Args:
        url: an http or https address.
        remote: whether an address that is not this machine is meant. Every draw sends it the
            neighbours, so it has to be said.
        seconds: the longest wait for one answer.
    """

    def __init__(self, url: str, *, remote: bool = False, seconds: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"url={url!r}: expected an http or https address")
        if not remote and not is_loopback(parts.hostname):
            raise InvalidInput(
                f"url={url!r}: not this machine; say remote=True (--remote) if it is meant"
            )
        self.name, self.url = url, url
        self.seconds = positive(seconds, name="seconds")
        self._open = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), _NoRedirect()
        ).open

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return the answers of as many requests, one after the other."""
        return [self._answer(one) for one in data_sets]

    def _answer(self, data_set: Any) -> Any:
        request = urllib.request.Request(
            self.url,
            data=json.dumps(data_set).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        try:
            with self._open(request, timeout=self.seconds) as reply:
                body = reply.read(LONGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            error.close()
            return Raised(f"HTTP {error.code}")
        except (OSError, HTTPException) as error:
            raise InvalidInput(f"url={self.url!r}: no reply ({type(error).__name__})") from error
        if len(body) > LONGEST_ANSWER:
            raise InvalidInput(f"url={self.url!r}: an answer above 1 MiB")
        return _decoded(body, self.url)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class RecordedScores(Subject):
    """Scores of a model that were drawn before, each on a fresh run.

    Args:
        first: shape (n, ...), outputs on the first neighbour, n at least 19.
        second: the same on the second.

    The neighbours of such an audit are the words "first" and "second". Each score is used once, in
    its order, and the audit ends with the first side that is used up.
    """

    def __init__(self, first: npt.ArrayLike, second: npt.ArrayLike, *, name: str) -> None:
        self._scores = {"first": np.asarray(first), "second": np.asarray(second)}
        self._used = {"first": 0, "second": 0}
        self.name = name
        if not all(scores.ndim for scores in self._scores.values()) or not self.fair:
            raise InvalidInput(f"scores={name!r}: expected at least 19 of either side")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read an .npz file with the arrays ``first`` and ``second``."""
        import io

        try:
            content = read_regular(path, most=_LARGEST_FILE)
        except InvalidInput as error:
            raise InvalidInput(f"scores={str(path)!r}: {error}") from error
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                first, second = arrays["first"], arrays["second"]
        except (KeyError, ValueError, OSError) as error:
            raise InvalidInput(
                f"scores={str(path)!r}: expected an .npz file with the arrays first and second"
            ) from error
        return cls(first, second, name=str(path))

    @property
    def fair(self) -> int:
        """Return fair coins that are most likely served, with a margin of six standard
        deviations.
        """
        least = min(len(scores) for scores in self._scores.values())
        return max(0, int(2 * least - 6.0 * math.sqrt(2.0 * least)))

    def answers(self, data_sets: Sequence[Any]) -> list[Any]:
        """Return the next scores of each side."""
        found = []
        for side in data_sets:
            place = self._used[side]
            if place >= len(self._scores[side]):
                raise InvalidInput("scores: used up; ask for fewer draws")
            found.append(self._scores[side][place].tolist())
            self._used[side] = place + 1
        return found


def named_object(name: str) -> Any:
    """Return the object MODULE:NAME, found from the working folder too, or FILE:NAME of a Python
    file.

    The file is run.

    Raises:
        InvalidInput: no such module or name.
    """
    module, _, inside = name.partition(":")
    if not module or not inside:
        raise InvalidInput(f"{name!r}: expected MODULE:NAME")
    if module.endswith(".py"):
        return _in_file(Path(module), inside)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in inside.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidInput(f"{name!r}: not found ({error})") from error
    except (Exception, SystemExit) as error:  # the module's own
        raise _not_loaded(name, error) from error
    return found


def _in_file(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"audited_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidInput(f"{str(path)!r}: no such Python file")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where a data class of the file looks for it
    try:
        spec.loader.exec_module(made)
    except (Exception, SystemExit) as error:  # the file's own
        raise _not_loaded(str(path), error) from error
    if not hasattr(made, name):
        raise InvalidInput(f"{str(path)!r}: has no {name}")
    return getattr(made, name)


def _not_loaded(name: str, error: BaseException) -> InvalidInput:
    # Only what an import says: any other message may hold what the file has read.
    said = f": {error}" if isinstance(error, ImportError) else ""
    return InvalidInput(f"{name!r}: cannot be loaded ({type(error).__name__}{said})")


def _decoded(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)  # NaN and Infinity are answers too
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{where!r}: an answer that is not JSON; expected a number, a list, or a label in "
            "quotation marks"
        ) from error
