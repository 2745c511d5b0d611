"""Codes for several targets: what every pair of nodes is told apart by, what is stored, what is
public, and what a server makes of a code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import Guarantee, Replace
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.mechanisms import FiniteChannel
from reticent.release.bundle import Bundle
from reticent.systems import CodeEncoder, train_server
from reticent.systems.power.code_query import CodeQuery
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.frames import NamedRows
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema((Numeric("a", 0, 10), Numeric("b", 0, 10), Categorical("c", ("x", "y"))))


def table_of(count: int, seed: int) -> tuple[NamedRows, NamedRows]:
    random = np.random.default_rng(seed)
    rows = np.empty((count, 3), dtype=object)
    rows[:, :2] = random.uniform(0, 10, (count, 2))
    rows[:, 2] = random.choice(["x", "y"], size=count)
    noisy = rows[:, :2].astype(float) + random.normal(size=(count, 2))
    labels = np.column_stack([noisy[:, 0] > 5, noisy[:, 1] > 7]).astype(str)
    return NamedRows(rows, ("a", "b", "c")), NamedRows(labels, ("first", "second"))


def fitted(epsilon: float = 2.0, **changes: Any) -> CodeEncoder:
    settings = {"schema": SCHEMA, "nodes": 12, "random_state": 0, **changes}
    return CodeEncoder(epsilon=epsilon, **settings).fit(*table_of(600, 0))


@pytest.fixture(scope="module")
def encoder() -> CodeEncoder:
    return fitted(targets=("first", "second", "c"))


def test_any_two_records_are_told_apart_by_no_more_than_epsilon(encoder: CodeEncoder) -> None:
    assert encoder.guarantee == Guarantee(2.0, 0.0, Replace(1))
    chances = encoder.exact(table_of(400, 1)[0])
    losses = np.log(chances[:, None, :] / chances[None, :, :])
    assert 1.99 < losses.max() <= 2.0


def test_an_entry_that_is_one_unit_too_large_is_refused(encoder: CodeEncoder) -> None:
    channel = encoder.query_.mechanism
    entries = np.argwhere(channel.shares == channel.shares.max(axis=1, keepdims=True))
    refused = 0
    for answer, node in entries:
        shares = channel.shares.astype(np.int64)
        other = (answer + 1) % len(shares)
        for _ in range(2000):
            shares[answer, node] += 1
            shares[other, node] -= 1
            exact = shares[answer].max() <= np.exp(2.0) * shares[answer].min() and (
                shares[other].max() <= np.exp(2.0) * shares[other].min()
            )
            if not exact:
                break
        else:
            continue
        with pytest.raises(InvalidInput, match="more than e"):
            FiniteChannel(
                nodes=channel.nodes,
                shares=shares.astype(np.uint32),
                epsilon=2.0,
                adjacency=channel.adjacency,
            )
        refused += 1
    assert refused


def test_a_row_has_the_same_node_alone_and_among_others(encoder: CodeEncoder) -> None:
    query, rows = encoder.query_, encoder.checked(table_of(300, 2)[0])
    together = query.nodes(rows)
    assert len(np.unique(together)) > 3
    alone = [int(query.nodes(rows.part(slice(row, row + 1)))[0]) for row in range(300)]
    assert together.tolist() == alone


def test_answers_leave_what_is_public_as_it_was(encoder: CodeEncoder) -> None:
    before = {name: encoder.posterior(name).copy() for name in encoder.query_.joints}
    encoder.release(table_of(100, 3)[0])
    for name, table in before.items():
        np.testing.assert_array_equal(encoder.posterior(name), table)
    assert encoder.bundle().identity == encoder.bundle_identity_


def test_a_target_among_the_labels_is_never_read_from_the_row() -> None:
    X, Y = table_of(600, 4)
    labels = NamedRows(Y.values, ("first", "c"))  # another column than the row's own "c"
    unknown = CodeEncoder(epsilon=2.0, schema=SCHEMA, nodes=8, random_state=0).fit(X, labels)
    assert all(source.model is not None for source in unknown.query_.sources)
    assert unknown.classes_[1].tolist() == ["False", "True"]


def test_a_server_reads_every_target_from_one_code(encoder: CodeEncoder) -> None:
    X, Y = table_of(3000, 5)
    released = encoder.simulate(X, seed=0).values
    truth = {"first": Y.values[:, 0], "second": Y.values[:, 1], "c": X.values[:, 2]}
    for place, name in enumerate(encoder.targets_):
        table, known = encoder.posterior(name), encoder.classes_[place]
        guessed = known[(released @ table).argmax(axis=1)]
        right = float((guessed == truth[name]).mean())
        stated = encoder.query_.scores[name].accuracy
        assert abs(right - stated) < 0.05
        assert encoder.query_.worths[place].kept >= encoder.share_ - 1e-9
    server = train_server("channel", released, truth["first"], seed=0, channel=encoder.channel_)
    assert float((server.predict(released) == truth["first"]).mean()) > 0.55


def test_a_cap_on_the_attacker_is_kept() -> None:
    free, capped = fitted(4.0), fitted(4.0, crowd=0.06)
    assert free.query_.crowd[0] > 0.06
    assert capped.query_.crowd[0] <= 0.06 + 1e-4
    assert capped.share_ < free.share_


def test_a_bundle_answers_as_what_was_saved(encoder: CodeEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "bundle")
    loaded = CodeEncoder.load(tmp_path / "bundle")
    rows = table_of(50, 6)[0]
    np.testing.assert_array_equal(loaded.exact(rows), encoder.exact(rows))
    assert loaded.card().to_markdown() == encoder.card().to_markdown()
    text = encoder.card().to_markdown()
    assert all(f"worth for {name}" in text for name in encoder.targets_)
    stored = Bundle.read(tmp_path / "bundle")
    settings = {**stored.settings, "targets": stored.settings["targets"][:1]}
    with pytest.raises(CorruptBundle):
        CodeQuery.from_description(settings, stored.arrays)


def test_what_does_not_fit_is_refused_before_anything_is_trained() -> None:
    X, Y = table_of(600, 7)
    with pytest.raises(InvalidParameter, match="no column"):
        fitted(targets=("third",))
    with pytest.raises(InvalidParameter, match="weights"):
        fitted(weights=(1.0,))
    with pytest.raises(InvalidParameter, match="nodes"):
        fitted(nodes=500)
    with pytest.raises(InvalidInput, match="too few"):
        CodeEncoder(epsilon=1.0, schema=SCHEMA).fit(X[:40], Y[:40])
