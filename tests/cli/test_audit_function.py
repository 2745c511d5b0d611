"""``reticent audit function``: each kind of subject with half of its noise and with all of it, and
what is refused before anything is drawn.

A sound subject is refuted with a chance of at most 1e-6. Half the noise is missed by fewer than one
run in a thousand: 20 audits of the function took 264 to 648 draws, and 3,000 are allowed.
"""

from __future__ import annotations

import http.server
import json
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.audit.claim_page import PURPOSE
from reticent.core.signatures import verify, write_key_pair
from reticent.core.strict_json import strict_dumps, strict_loads

Command = Callable[..., Any]

ANSWERS = """
import json
import sys

import numpy as np
from sklearn.base import BaseEstimator

noise = np.random.default_rng()


def rounded(value):  # to a public grid, so that the last bits of a double tell nothing
    return round(float(value) * 1024) / 1024


def whole(records):
    return rounded(sum(records) + noise.laplace(scale=1.0))


def half(records):
    return rounded(sum(records) + noise.laplace(scale=0.5))


class Whole(BaseEstimator):
    scale = 1.0

    def fit(self, X, y):
        self.total_ = rounded(sum(y) + noise.laplace(scale=self.scale))
        return self

    def predict(self, X):
        return np.full(len(X), self.total_)


class Half(Whole):
    scale = 0.5


if __name__ == "__main__":
    for line in sys.stdin:
        print(globals()[sys.argv[1]](json.loads(line)), flush=True)
"""
PAIR = {"first": [1.0] * 5, "second": [1.0] * 4, "name": "one record more"}
FITTED = {
    "first": {"X": [[0.0]] * 5, "y": [1.0] * 5},
    "second": {"X": [[0.0]] * 4, "y": [1.0] * 4},
}
QUICK = ("--claim", "1,0", "--draws", "3000", "--alpha", "1e-6", "--seed", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder: a module of answers, pairs, and public rows of an estimator."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "asked.py").write_text(ANSWERS)
    (tmp_path / "pairs.jsonl").write_text(json.dumps(PAIR) + "\n")
    (tmp_path / "fitted.jsonl").write_text(json.dumps(FITTED) + "\n")
    (tmp_path / "rows.json").write_text("[[0.0]]")
    yield tmp_path
    sys.modules.pop("asked", None)


def served(scale: float) -> http.server.ThreadingHTTPServer:
    noise = np.random.default_rng()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            records = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            value = round((sum(records) + noise.laplace(scale=scale)) * 1024) / 1024
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def audited(command: Command, folder: Path, kind: str, *, noise: str) -> Any:
    if kind == "callable":
        return command("audit", "function", f"asked:{noise}", "--neighbours", "pairs.jsonl", *QUICK)
    if kind == "command line":
        words = shlex.join([sys.executable, "asked.py", noise])
        given = ("--command", "--neighbours", "pairs.jsonl")
        return command("audit", "function", words, *given, *QUICK)
    if kind == "estimator":
        given = ("--queries", "rows.json", "--neighbours", "fitted.jsonl")
        return command("audit", "function", f"asked:{noise.title()}", *given, *QUICK)
    server = served(1.0 if noise == "whole" else 0.5)
    try:
        where = f"http://127.0.0.1:{server.server_port}/"
        return command("audit", "function", where, "--neighbours", "pairs.jsonl", *QUICK)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", ["callable", "command line", "estimator", "address"])
@pytest.mark.parametrize(("noise", "status"), [("half", 19), ("whole", 0)])
def test_half_the_noise_fails_and_all_of_it_passes(
    command: Command, folder: Path, kind: str, noise: str, status: int
) -> None:
    answer = audited(command, folder, kind, noise=noise)
    assert answer.status == status, answer.err
    assert answer.out.startswith("refuted: " if status else "not refuted by 3000 draws")


def test_scores_of_a_file_and_neighbours_of_a_search(command: Command, folder: Path) -> None:
    random = np.random.default_rng(0)
    np.savez("scores.npz", first=random.normal(1, 0.2, 2000), second=random.normal(0, 0.2, 2000))
    assert command("audit", "function", "scores.npz", *QUICK).status == 19
    Path("data.json").write_text("[1.0, 0.5, 0.25]")
    searched = command("audit", "function", "asked:half", "--search", "data.json", *QUICK)
    assert searched.status == 19
    assert "record more" in searched.out or "record less" in searched.out


def test_the_report_is_signed_and_the_page_is_written_once(command: Command, folder: Path) -> None:
    write_key_pair(folder / "key.pem", folder / "key.pub")
    words = (
        "audit", "function", "asked:half", "--neighbours", "pairs.jsonl", *QUICK,
        "--output", "report.json", "--key", "key.pem", "--page", "page.html", "--unit", "a record",
    )  # fmt: skip
    assert command(*words).status == 19
    signed = strict_loads(Path("report.json").read_bytes())
    content, signature = strict_dumps(signed["report"]), strict_dumps(signed["signature"])
    verify(content, signature, purpose=PURPOSE, trusted_key=folder / "key.pub")
    assert signed["report"]["verdict"] == "refuted"
    assert signed["report"]["unit of privacy"] == "a record"
    assert signed["report"]["excluded epsilon"] >= 1.0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "one record more" in page
    for name in ("report.json", "page.html"):
        checked = ("verify", name, "--trusted-key", "key.pub")
        assert command(*checked).status == 0
        text, changed = Path(name).read_text(), Path("changed").with_suffix(Path(name).suffix)
        for other in (text.replace("refuted", "verified", 1), text.replace("signature", "x")):
            changed.write_text(other)
            assert command("verify", str(changed), *checked[2:]).status == 18
    again = command(*words)  # refused before a draw, and nothing is written over
    assert again.status == 2
    assert Path("page.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("--claim", "1"), "claim"),
        (("--claim", "1,2"), "delta"),
        (("--noise", "laplace"), "noise"),
        (("--noise", "cauchy=1"), "law"),
        (("--alpha", "0"), "alpha"),
        (("--neighbours", "missing.jsonl"), "missing.jsonl"),
        (("--schema", "pairs.jsonl"), "schema"),
        (("--key", "key.pem"), "output"),
        (("--sensitivity", "1"), "noise"),
        (("--anew",), "command"),
    ],
)
def test_what_is_refused_before_a_draw(
    command: Command, folder: Path, changes: tuple[str, ...], said: str
) -> None:
    (folder / "asked.py").write_text("def whole(records):\n    open('drawn', 'w').close()\n")
    words = ("audit", "function", "asked:whole", "--neighbours", "pairs.jsonl", *QUICK)
    answer = command(*words, *changes)
    assert answer.status in (2, 3, 4)  # input, a parameter's range, an unknown name
    assert said in answer.err
    assert not Path("drawn").exists()


def test_a_command_that_reads_its_whole_input_is_started_for_each_answer(
    command: Command, folder: Path
) -> None:
    words = ("wc -c", "--command", "--neighbours", "pairs.jsonl", "--draws", "200")
    given = ("audit", "function", *words, "--claim", "1,0", "--alpha", "1e-4")
    found = command(*given, "--anew")
    assert found.status == 19
    assert "never varied" in found.out
    silent = command(*given, "--seconds", "0.3")
    assert silent.status == 2
    assert "--anew" in silent.err


def test_neighbours_of_an_estimator_are_searched_among_rows_with_labels(
    command: Command, folder: Path
) -> None:
    Path("data.json").write_text(json.dumps({"X": [[0.0]] * 5, "y": [1.0, 1.0, 1.0, 1.0, 0.0]}))
    words = ("--search", "data.json", "--queries", "rows.json", "--claim", "1,0", "--draws", "3000")
    answer = command("audit", "function", "asked:Half", *words, "--alpha", "1e-6", "--seed", "1")
    assert answer.status == 19
    assert "the first record less" in answer.out


def test_a_subject_that_only_raises_is_no_audit(command: Command, folder: Path) -> None:
    (folder / "asked.py").write_text("def whole(records):\n    return records['missing']\n")
    words = ("audit", "function", "asked:whole", "--neighbours", "pairs.jsonl", *QUICK)
    answer = command(*words)
    assert answer.status == 2
    assert "TypeError" in answer.err


def test_the_law_that_is_stated_is_compared_with_the_claim(command: Command, folder: Path) -> None:
    """Local noise for updates 2 apart, sized for 1: exact epsilon 1.61 for a stated 1."""
    (folder / "asked.py").write_text(
        "import random\nexact = sum\ndef whole(records):\n    return random.gauss(0, 4.845)\n"
    )
    words = ("audit", "function", "asked:whole", "--neighbours", "pairs.jsonl", "--draws", "64")
    stated = (*words, "--claim", "1,1e-5", "--noise", "gaussian=4.845", "--sensitivity")
    assert "epsilon 1.61 at delta 1e-05" in command(*stated, "2").out
    assert "stated noise" not in command(*stated, "1").out
    shown = command(*words, "--claim", "1,1e-5", "--exact", "asked:exact", "--sensitivity", ".5")
    assert "answers before the noise differ by 1, stated is 0.5" in shown.out


def test_another_machine_has_to_be_meant(command: Command, folder: Path) -> None:
    words = ("audit", "function", "http://example.org/", "--neighbours", "pairs.jsonl", *QUICK)
    answer = command(*words)
    assert answer.status == 2
    assert "--remote" in answer.err
