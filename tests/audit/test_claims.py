"""Anybody's claim: each planted fault is refuted, and the same without the fault is not.

Levels are 1e-6 for what must not be refuted, so that a test fails by chance once in a million.
"""

from __future__ import annotations

import math
import os
import time
import warnings

import numpy as np
import pytest

from reticent.audit import (
    NeighbourPair,
    claim,
    schema_pairs,
    searched_pairs,
)
from reticent.audit.outputs import OutputCode, Raised
from reticent.audit.subjects import RecordedScores, named_object
from reticent.core.errors import InvalidInput
from reticent.tables.attributes import Hashed, Numeric, Truth
from reticent.tables.schema import TabularSchema

PAIR = ([1.0] * 5, [1.0] * 4)


def grid(value: float) -> float:
    """To a public grid, so that the last bits of a double tell nothing."""
    return round(value * 1024) / 1024


def laplace_sum(scale, seed=0):
    random = np.random.default_rng(seed)
    return lambda records: grid(sum(records) + random.laplace(scale=scale))


def audited(subject, *, draws=3000, alpha=1e-6, **kwargs):
    given = {"neighbours": [PAIR], "epsilon": 1.0, "delta": 0.0, "seed": 1, **kwargs}
    return claim(subject, alpha=alpha, draws=draws, **given)


def test_half_the_noise_is_refuted_and_the_whole_noise_is_not():
    whole, half = audited(laplace_sum(1.0)), audited(laplace_sum(0.5))
    assert not whole.refuted
    assert whole.draws == 3000
    assert half.refuted
    assert half.draws < 1000
    assert 1.0 <= half.excluded <= 2.0
    assert whole.excluded < 1.0


def test_a_delta_that_the_claim_ignores_is_found():
    """The data set is shown with chance .02: private at delta .02, never at 0."""
    random = np.random.default_rng(2)

    def shown(records):
        if random.random() < 0.02:
            return f"{len(records)} records"
        return "yes" if random.random() < 0.5 else "no"

    assert audited(shown).refuted
    assert not audited(shown, delta=0.02, draws=1500).refuted


def test_no_order_of_a_pair_hides_a_fault():
    """An answer that only the second data set gives, so that one direction alone would miss it."""
    random = np.random.default_rng(3)

    def rare(records):
        return int(len(records) == 4 and random.random() < 0.1)

    for pair in (PAIR, PAIR[::-1]):
        found = audited(rare, neighbours=[pair])
        assert found.refuted
        assert found.excluded >= 1.0


def test_many_pairs_share_the_level():
    """Thirty pairs that are certainly told apart by chance: each pair's answers are the coins of
    the claim's edge, and a level that is used anew for each pair refutes 30 times as often. The
    wealth of a pair must reach 30 / alpha, or the average 1 / alpha.
    """
    random = np.random.default_rng(4)

    def response(label):
        return label if random.random() < 1.0 / (1.0 + math.exp(-1.0)) else 1 - label

    pairs = [NeighbourPair(0, 1, f"{number}") for number in range(6)]
    for seed in range(3):
        found = claim(
            response, neighbours=pairs, epsilon=1.0, delta=0.0, alpha=0.3, draws=900, seed=seed
        )
        assert all(pair.alpha == pytest.approx(0.05) for pair in found.pairs)
        logs = [math.log(pair.wealth) for pair in found.pairs]
        average = np.logaddexp.reduce(logs) - math.log(6)
        assert found.refuted == (
            average >= math.log(1 / 0.3) or any(pair.refuted for pair in found.pairs)
        )


def test_the_pair_that_tells_is_found_among_others():
    random = np.random.default_rng(5)

    def mean(records):  # sensitivity counted for values up to 1, and 8 is let through
        return grid(sum(records) + random.laplace(scale=2.0))

    pairs = searched_pairs([0.1, 0.2, 8.0, 0.4], replace=False)
    found = audited(mean, neighbours=pairs, draws=4000)
    assert found.refuted
    assert "greatest" in found.pairs[0].name
    assert not audited(mean, neighbours=[([0.1], [])], draws=500).refuted


def test_an_exception_that_depends_on_a_record_is_found_and_named():
    noisy = laplace_sum(1.0)

    def fails(records):
        if len(records) == 4:
            raise ZeroDivisionError
        return noisy(records)

    found = audited(fails)
    assert found.refuted
    assert any("ZeroDivisionError" in one.event for one in found.findings)
    nan = audited(lambda records: float("nan") if len(records) == 4 else noisy(records))
    assert nan.refuted


def test_a_subject_may_change_its_data_set_and_may_not_end_the_audit():
    """A sound sum that appends to what it is given, and a program that leaves at a record."""
    noisy = laplace_sum(1.0)

    def appends(records):
        records.append(0.25)
        return noisy(records)

    pair = ([1.0] * 5, [1.0] * 4)
    stated = {"noise": ("laplace", 1.0), "exact": lambda x: [x.append(1.0), sum(x)][1]}
    found = audited(appends, neighbours=[pair], draws=400, **stated, sensitivity=1.0)
    assert not found.refuted
    assert not found.findings
    assert pair == PAIR

    def leaves(records):
        if len(records) == 4:
            raise SystemExit(0)
        return noisy(records)

    assert audited(leaves).refuted


@pytest.mark.parametrize(
    ("told", "other"),
    [({"flu": 1.0}, {"cold": 1.0}), ([[1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0]]), (-0.0, 0.0)],
    ids=["keys", "lengths", "the sign of zero"],
)
def test_what_is_told_beside_numbers_is_found(told, other):
    random = np.random.default_rng(10)

    def answer(records):  # private at epsilon ln 19, where 1 is claimed
        return told if (len(records) == 5) == (random.random() < 0.95) else other

    assert audited(answer).refuted
    assert not audited(answer, epsilon=3.0, draws=500).refuted


def test_equal_data_sets_are_no_pair_and_few_scores_no_audit():
    with pytest.raises(InvalidInput, match="equal"):
        audited(len, neighbours=[PAIR, ({"X": [1], "y": [0]}, {"X": [1], "y": [0]})])
    searched = searched_pairs([1.0, 0.0], replace=True)  # the greatest is there already
    assert all(pair.first != pair.second for pair in searched)
    with pytest.raises(InvalidInput, match="19"):
        RecordedScores(np.zeros(18), np.zeros(18), name="scores")


def test_a_file_of_data_classes_can_be_audited(tmp_path):
    file = tmp_path / "random.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Mean:\n    size: int = 2\n"
        "def mean(records):\n    return sum(records) / Mean().size\n"
    )
    assert named_object(f"{file}:mean")([1.0, 2.0]) == 1.5


def test_forks_and_state_are_found_and_fresh_noise_is_not():
    def fresh(records):
        return grid(sum(records) + float(np.random.default_rng().laplace(scale=1.0)))

    kept = [0.0]

    def remembers(records):
        answer = kept[0] + fresh(records)
        kept[0] = 5.0 * sum(records)
        return answer

    sound = audited(fresh, draws=64, implementation=True)
    assert [one.kind for one in sound.findings if "time" not in one.kind] == []
    leaky = audited(remembers, draws=64, implementation=True)
    assert any("state" in one.kind for one in leaky.findings)
    forked = audited(laplace_sum(1.0), draws=64, implementation=True)
    assert any("fork" in one.kind for one in forked.findings)
    assert all(one.witness and "draws=64" in one.replay for one in forked.findings)


def test_a_subject_that_hangs_in_a_fork_does_not_hang_its_audit():
    """A lock that another thread holds while the process is forked is never released there."""
    here = os.getpid()

    def hangs(records):
        time.sleep(0.002 if os.getpid() == here else 600.0)
        return 0.0

    start = time.monotonic()
    audited(hangs, draws=64, implementation=True, seconds=0.5)
    assert time.monotonic() - start < 60.0


def test_an_answer_that_takes_longer_about_a_record_is_found():
    fresh = np.random.default_rng

    def slow(records):  # .5 ms for the fifth record alone
        until = time.perf_counter() + 5e-4 * (len(records) == 5)
        while time.perf_counter() < until:
            pass
        return grid(sum(records) + float(fresh().laplace(scale=1.0)))

    found = audited(slow, draws=64, implementation=True)
    assert "time of an answer" in [one.kind for one in found.findings]


def test_last_bits_tell_what_a_grid_hides():
    random = np.random.default_rng(9)
    textbook = audited(lambda x: x + random.laplace(), neighbours=[(1.0, 0.0)])
    assert textbook.refuted
    assert not audited(lambda x: grid(x + random.laplace()), neighbours=[(1.0, 0.0)]).refuted


def test_the_answer_before_the_noise_shows_sensitivity_and_porous_doubles():
    random = np.random.default_rng(6)

    def textbook(records):
        return sum(records) + random.laplace(scale=1.0)

    found = audited(
        textbook,
        neighbours=[([1.0], []), ([3.0], [])],
        draws=64,
        exact=sum,
        sensitivity=1.0,
        noise=("laplace", 1.0),
    )
    kinds = [one.kind for one in found.findings]
    assert "a sensitivity above what is stated" in kinds
    assert "doubles that only one neighbour can give" in kinds


def test_stated_noise_is_tested_as_that_law():
    random = np.random.default_rng(7)
    small = audited(lambda r: float(random.normal(scale=1.0)), draws=64, noise=("gaussian", 2.0))
    assert small.noise_refuted
    assert small.refuted
    right = audited(lambda r: float(random.normal(scale=2.0)), draws=64, noise=("gaussian", 2.0))
    assert not right.noise_refuted


def test_pairs_of_a_schema_differ_at_public_ends():
    schema = TabularSchema((Numeric("age", 0.0, 90.0), Hashed("town", 8), Truth("well")))
    pairs = schema_pairs(schema)
    assert pairs[0].first == {"age": 0.0, "town": "a", "well": False}
    assert pairs[0].second == {"age": 90.0, "town": "b", "well": True}
    assert [
        {name for name in pair.first if pair.first[name] != pair.second[name]} for pair in pairs[1:]
    ] == [{"age"}, {"town"}, {"well"}]


def test_how_an_answer_is_written_depends_on_it_and_on_earlier_ones_alone():
    answers = ["a", "b", Raised("KeyError"), "c", "a", None, 3.0, float("nan")]
    whole = OutputCode()(answers)
    code = OutputCode()
    parts = np.concatenate([code(answers[:3]), code(answers[3:])])
    assert np.array_equal(whole, parts)
    assert np.isfinite(OutputCode()([[1.0, float("nan")], [float("inf"), 2.0]])).all()


def test_neighbours_that_never_vary_are_named_and_warnings_are_counted(capfd):
    def warns(records):
        warnings.simplefilter("always")
        warnings.warn("bounds are taken from the data", stacklevel=1)
        return 3

    found = audited(warns, draws=100)
    assert not found.refuted
    kinds = {finding.kind: finding.event for finding in found.findings}
    assert kinds["answers that never varied"].startswith("100 answers were all alike")
    assert kinds["a warning"].startswith("100 times: UserWarning: bounds")
    assert not capfd.readouterr().err
    exact = audited(len, draws=100)
    assert exact.refuted
    assert "different" in exact.findings[0].event


def test_neighbours_are_searched_at_the_public_ends_of_a_schema():
    schema = TabularSchema((Numeric("age", 0.0, 90.0),))
    ages = [{"age": 30.0}, {"age": 40.0}]
    pairs = searched_pairs(ages, replace=False, schema=schema)
    assert {pair.first[-1]["age"] for pair in pairs[:2]} == {0.0, 90.0}
    with pytest.raises(InvalidInput):
        searched_pairs([{"age": 1.0}, 3.0], replace=False)
