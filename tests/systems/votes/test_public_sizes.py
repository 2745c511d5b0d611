"""What is public does not depend by a bit on how many private records there are.

Released models: ``reticent.testing`` compares what is public and what each record adds. Here are
the query voters, whose queries are public and are worked on beside private records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import reticent.systems.votes.linear_vote as linear_vote
import reticent.systems.votes.query_votes as query_votes
from reticent.release.fits import not_counted
from reticent.systems import LinearVoteClassifier, PublicReference

RANDOM = np.random.default_rng(0)
PUBLIC = RANDOM.normal(size=(200, 37))
ROWS = RANDOM.normal(size=(700, 37))
LABELS = RANDOM.integers(0, 2, 700)
QUERIES = RANDOM.normal(size=(301, 37))
TOTAL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "classes": (0, 1), "answers": 301}
SYSTEMS = {
    "alone": LinearVoteClassifier(**TOTAL),
    "beside public models": LinearVoteClassifier(
        features=PublicReference(
            models=[LogisticRegression(), RandomForestClassifier(5, random_state=0)],
            rows="embedding",
            records=200,
        ),
        **TOTAL,
    ),
}
FIT = {"public_X": PUBLIC, "public_y": (PUBLIC[:, 0] > 0).astype(int)}


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A query voter, whose public models are made once."""
    found = SYSTEMS[request.param]
    if request.param != "alone":
        started = found.features.start(PUBLIC, FIT["public_y"], 2)
        monkeypatch.setattr(PublicReference, "start", lambda *given: started)
    return found


def to_the_bit(patched: pytest.MonkeyPatch) -> None:
    """Leave out the rounding of directions, which hides last bits almost always."""
    patched.setattr(linear_vote, "_FINE", 2.0**80)
    patched.setattr(linear_vote, "of_length", lambda rows, length: rows)
    patched.setattr(linear_vote, "exact_product", lambda left, right, bound: left @ right)


def seen(
    system: Any, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, rounded: bool
) -> tuple[list[bytes], dict[bytes, bytes]]:
    """What each query is to the records, wherever blocks of queries end for so many records; and
    the votes of each record.
    """
    queries: list[bytes] = []
    votes: dict[bytes, bytes] = {}
    weights = LinearVoteClassifier.weights

    def noted(self: Any, voters: Any, asked: Any) -> Any:
        queries.extend(np.ascontiguousarray(query).tobytes() for query in asked)
        found = weights(self, voters, asked)
        for point, row in zip(voters.points, found, strict=True):
            votes[point.tobytes()] = votes.get(point.tobytes(), b"") + row.tobytes()
        for point, row in zip(voters.points, self.ballots(voters), strict=True):
            votes[b"ballot of " + point.tobytes()] = row.tobytes()
        return found

    with monkeypatch.context() as patched, not_counted("nothing leaves"):
        patched.setattr(LinearVoteClassifier, "weights", noted)
        patched.setattr(query_votes, "_AT_ONCE", 600)
        if not rounded:
            to_the_bit(patched)
        labels = np.zeros(len(rows), dtype=int)
        system.fit(rows, labels, **FIT).vote_table(QUERIES)
    return queries, votes


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("n", [0, 1, 199])
def test_a_query_is_the_same_beside_one_record_more(
    system: Any, n: int, rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 600 numbers at once, blocks of queries are of 600, 300, 200, 3 and 2."""
    few, _ = seen(system, ROWS[:n], monkeypatch, rounded=rounded)
    assert few == seen(system, ROWS[: n + 1], monkeypatch, rounded=rounded)[0]


@pytest.mark.parametrize("n", [1, 2, 200, 299])
def test_a_record_votes_alike_beside_any_others(
    system: Any, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, few = seen(system, ROWS[:n], monkeypatch, rounded=True)
    _, more = seen(system, ROWS[: n + 1][::-1], monkeypatch, rounded=True)
    assert len(few) == 2 * n
    assert few.items() <= more.items()


def test_records_vote_alike_in_any_order_and_with_any_number_of_threads(system: Any) -> None:
    order = RANDOM.permutation(len(ROWS))
    with not_counted("nothing leaves"):
        first = system.fit(ROWS, LABELS, **FIT).vote_table(QUERIES)
        with threadpool_limits(1):
            other = system.fit(ROWS[order], LABELS[order], **FIT)
            np.testing.assert_array_equal(first, other.vote_table(QUERIES))
