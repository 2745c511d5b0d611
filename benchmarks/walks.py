"""Files, functions and lines of the package that four walks enter: what a reader has to follow.

    python benchmarks/walks.py [--list WALK]

A walk is one call of a public method. The first two calls of a process read modules, fill caches
and compile statements, so the third one is what a reader follows; the first stands beside it.
``--list`` prints the functions of one walk, file by file. Nothing here is a time, so the numbers
are those of any machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import reticent
from reticent.core import Guarantee, Scope
from reticent.core.errors import PrivacyWarning
from reticent.ledger import Ledger

PACKAGE = str(Path(reticent.__file__).parent)
RECORDS = "ward 7"
"""Name of the protected records."""


@dataclass
class Walk:
    """What one call entered.

    Attributes:
        functions: every function of the package, and how often it was entered.
        depth: the most functions of the package that stood on the stack at once.
        standing: how many of them do now.
    """

    functions: Counter[CodeType] = field(default_factory=Counter)
    depth: int = 0
    standing: int = 0

    @property
    def lines(self) -> int:
        """Lines of the functions, from each one's first to its last, docstrings included."""
        return sum(_last_line(code) - code.co_firstlineno + 1 for code in self.functions)

    @property
    def files(self) -> list[str]:
        """The files that hold the functions, below the package's folder."""
        return sorted({_file(code) for code in self.functions})

    def seen(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call or a return; see ``sys.setprofile``."""
        code = frame.f_code
        if event not in ("call", "return") or not _counts(code):
            return
        if event == "return":
            self.standing -= 1
            return
        self.functions[code] += 1
        self.standing += 1
        self.depth = max(self.depth, self.standing)


def _file(code: CodeType) -> str:
    return str(Path(code.co_filename).relative_to(PACKAGE))


def _last_line(code: CodeType) -> int:
    return max(line for _, _, line in code.co_lines() if line is not None)


def _counts(code: CodeType) -> bool:
    """Return whether it is a named function of the package: a comprehension, a lambda or the body
    of a module or class is part of the text around it.
    """
    return (
        code.co_filename.startswith(PACKAGE)
        and not code.co_name.startswith("<")
        and code.co_flags & 2 != 0  # CO_NEWLOCALS, which the body of a class lacks
    )


def walked(work: Callable[[], Any]) -> Walk:
    """Return what ``work`` entered."""
    walk = Walk()
    before = sys.getprofile()
    sys.setprofile(walk.seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return walk


@contextmanager
def place() -> Iterator[dict[str, Callable[[], Any]]]:
    """The walks, ready to be made again and again."""
    from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier
    from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.clip(rng.normal(size=(400, 2)) * 0.1 + 0.3 * (2 * y[:, None] - 1), -0.7, 0.7)
    certified = ConvexCertifiedClassifier(epsilon=0.5, classes=[0, 1], data_set=RECORDS).fit(X, y)
    total = Guarantee(1000.0, 0.0, certified.guarantee.adjacency)
    scope = Scope("acme", RECORDS, certified.bundle_identity_)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(f"{folder}/ledger.db", anchor=f"{folder}/anchors")
        ledger.grant(Scope(subject=RECORDS), total)
        certified.save(f"{folder}/bundles/labels")
        descent = NoisyGradientClassifier(
            epsilon=1.0, delta=1e-5, classes=[0, 1], steps=3, data_set="fits"
        )
        with _answering(Path(folder), total) as answer:
            yield {
                "NoisyGradientClassifier.fit": lambda: descent.fit(X, y, public_X=X[:50]),
                "release, one row": lambda: certified.release(X[:1]),
                "release, booked": lambda: certified.release(X[:1], ledger=ledger, scope=scope),
                "served answer": answer,
            }
        ledger.close()


@contextmanager
def _answering(folder: Path, total: Guarantee) -> Iterator[Callable[[], Any]]:
    """One request to a service: its answering object, without HTTP and without other threads."""
    from reticent.core.signatures import write_key_pair
    from reticent.service.answering import Answering
    from reticent.service.catalogue import Catalogue
    from reticent.service.drawing import Question
    from reticent.service.keys import KeyStore
    from reticent.service.signing import Signer

    ledger = Ledger.create(f"{folder}/served.db", anchor=f"{folder}/anchors")
    ledger.grant(Scope(subject=RECORDS), total)
    keys = KeyStore(ledger)
    _, secret = keys.create("acme", bundles=["*"], subjects=["*"])
    key = keys.find(secret)
    write_key_pair(folder / "key.pem")
    signer = Signer(folder / "key.pem")
    bundle = Catalogue(folder / "bundles").find("labels", may_ask=key.may_ask)
    answering = Answering(ledger, keys, signer, lease=60.0)
    numbers = iter(range(100))

    def answer() -> None:
        from reticent.service.answering import Answer, Asked, Request

        request = Request(key, f"request-{next(numbers)}", b"\0" * 32, "0" * 64)
        scope, _ = bundle.scopes("acme", None)
        inputs = bundle.inputs([[0.25, 0.25]], None)
        with answering.turn:
            (found,) = answering.answer([Asked(request, Question(bundle, inputs, scope))])
        if not isinstance(found, Answer):
            raise found

    yield answer
    ledger.close()


HEAD = (
    f"| {'walk':<20} | files | functions | lines | depth | calls | first: files | functions |\n"
    f"|{'-' * 22}|------:|----------:|------:|------:|------:|-------------:|----------:|"
)


def main() -> None:
    """Print the table, or the functions of one walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", help="the walk whose functions are printed")
    wanted = parser.parse_args().list
    warnings.simplefilter("ignore", PrivacyWarning)  # the records were drawn here
    with place() as walks:
        if wanted:
            walks[wanted]()
            walks[wanted]()
            found = walked(walks[wanted])
            for file in found.files:
                names = [code.co_qualname for code in found.functions if _file(code) == file]
                print(f"{file}: {', '.join(names)}")
            return
        print(HEAD)
        for name, work in walks.items():
            first, _, again = walked(work), work(), walked(work)
            print(
                f"| {name:<20} | {len(again.files):5} | {len(again.functions):9} | "
                f"{again.lines:5} | "
                f"{again.depth:5} | {again.functions.total():5} | {len(first.files):12} | "
                f"{len(first.functions):9} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
