"""Who votes: the k nearest of a sample, one swap per unit, and positional ties that break it."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from reticent.neighbours import NeighbourSearch, Records, SampledNeighbours, label_votes
from reticent.noise import SecureSampler, SeededSampler

CLASSES, PER_SET, K = 3, 20, 5


def _votes(
    points: np.ndarray, labels: np.ndarray, queries: np.ndarray, keys: list[int] | None = None
) -> np.ndarray:
    """Votes of the k nearest of *these* records, one fixed sample."""
    records = Records.of(points, labels, keys)
    voters = SampledNeighbours(NeighbourSearch(records), neighbours=K, probability=1.0)
    blocks = voters.search.lists(queries, depth=voters.depth)
    return np.concatenate(
        [
            label_votes(voters.draw(block, sampler=SecureSampler()), records.votes, classes=CLASSES)
            for block in blocks
        ]
    )


def _positional_votes(points: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Ties by a random order of list positions, from a fixed seed: looks harmless, and depends
    on how many there are.
    """
    order = np.random.default_rng(7).permutation(len(points))
    votes = np.zeros((len(queries), CLASSES), dtype=np.int64)
    for row, query in enumerate(queries):
        distances = ((points - query) ** 2).sum(axis=1)
        nearest = sorted(range(len(points)), key=lambda place: (distances[place], order[place]))[:K]
        np.add.at(votes[row], labels[nearest], 1)
    return votes


def _moves(count_votes, pairs: int, side: int) -> tuple[int, float]:
    """Largest change of the largest vote, and of the votes in l2, over random adjacent pairs of
    samples.
    """
    rng = np.random.default_rng(11)
    largest, distance = 0, 0.0
    for _ in range(pairs // PER_SET):
        size = int(rng.integers(1, 25))
        points, labels = (
            rng.integers(-side, side + 1, size=(size, 2)).astype(float),
            rng.integers(0, CLASSES, size=size),
        )
        queries = rng.integers(-side, side + 1, size=(PER_SET, 2)).astype(float)
        gone = int(rng.integers(size))
        with_it = count_votes(points, labels, queries)
        without = count_votes(np.delete(points, gone, axis=0), np.delete(labels, gone), queries)
        largest = max(largest, int(np.abs(with_it.max(axis=1) - without.max(axis=1)).max()))
        distance = max(distance, float(np.sqrt(((with_it - without) ** 2).sum(axis=1)).max()))
    return largest, distance


def test_one_record_moves_the_largest_vote_by_one_and_all_by_sqrt_two_on_ten_thousand_pairs() -> (
    None
):
    largest, distance = _moves(_votes, 10_000, side=2)
    assert largest == 1
    assert distance == math.sqrt(2)


def test_planted_positional_ties_are_caught() -> None:
    largest, distance = _moves(_positional_votes, 2_000, side=2)
    assert largest > 1
    assert distance > math.sqrt(2)


def test_one_unit_moves_one_vote_however_many_records_it_has() -> None:
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(150):
        size = int(rng.integers(2, 40))
        points, labels = (
            rng.integers(-2, 3, size=(size, 2)).astype(float),
            rng.integers(0, CLASSES, size=size),
        )
        owners = rng.integers(0, 6, size=size)
        queries = rng.integers(-2, 3, size=(PER_SET, 2)).astype(float)
        kept = owners != owners[0]
        with_it = _votes(points, labels, queries, owners.tolist())
        without = _votes(points[kept], labels[kept], queries, owners[kept].tolist())
        worst = max(worst, float(np.sqrt(((with_it - without) ** 2).sum(axis=1)).max()))
        assert (with_it.sum(axis=1) <= len(set(owners.tolist()))).all()
    assert worst == math.sqrt(2)


def test_a_unit_brings_its_nearest_record_alone() -> None:
    points = np.array([[1.0], [2.0], [3.0], [4.0], [9.0]])
    search = NeighbourSearch(Records.of(points, [0, 0, 0, 1, 2], ["a", "a", "a", "b", "c"]))
    (block,) = search.lists([[0.0]], depth=5)
    chosen = SampledNeighbours(search, neighbours=4, probability=1.0).draw(
        block, sampler=SecureSampler()
    )
    placed = points[np.argsort(search.records.places)]
    assert placed[chosen[0, :3], 0].tolist() == [1.0, 4.0, 9.0]
    assert chosen[0, 3] == -1


# False-alarm rate 1e-6 each; seeded.
def test_the_distribution_is_that_of_sampling_first_and_searching_afterwards() -> None:
    records = Records.of(np.arange(8.0)[:, None], np.zeros(8, dtype=int), None)
    rate, k, draws = 0.3, 2, 4_000
    voters = SampledNeighbours(NeighbourSearch(records), neighbours=k, probability=rate)
    # A list of three is often too short, so this goes through the deepening too.
    drawn = np.concatenate(
        [
            voters.draw(block, sampler=SeededSampler(3 + block.first))
            for block in voters.search.lists(np.zeros((draws, 1)), depth=3)
        ]
    )
    places = np.where(drawn >= 0, np.argsort(records.places)[drawn], -1)
    expected: dict[tuple[int, ...], float] = {}
    for sample in range(2**8):
        members = [i for i in range(8) if sample >> i & 1]
        first = (*members[:k], *[-1] * (k - len(members[:k])))
        expected[first] = expected.get(first, 0.0) + rate ** len(members) * (1 - rate) ** (
            8 - len(members)
        )
    seen = {pair: int((places == pair).all(axis=1).sum()) for pair in expected}
    assert sum(seen.values()) == draws
    common = [pair for pair in expected if expected[pair] * draws >= 5]
    observed, wanted = [seen[pair] for pair in common], [draws * expected[pair] for pair in common]
    assert (
        stats.chisquare([*observed, draws - sum(observed)], [*wanted, draws - sum(wanted)]).pvalue
        > 1e-6
    )


def test_a_unit_is_included_by_one_coin() -> None:
    points = np.repeat(np.arange(3.0), 2)[:, None]
    records = Records.of(points, [0] * 6, [0, 1, 2, 0, 1, 2])
    voters = SampledNeighbours(NeighbourSearch(records), neighbours=6, probability=0.4)
    (block,) = voters.search.lists(np.zeros((1, 1)), depth=6)
    assert records.units is not None
    sizes = []
    for seed in range(4_000):
        chosen = voters.draw(block, sampler=SeededSampler(seed))[0]
        units = records.units[chosen[chosen >= 0]].tolist()
        assert len(units) == len(set(units))
        sizes.append(len(units))
    assert (
        stats.chisquare(
            np.bincount(sizes, minlength=4), 4_000 * stats.binom.pmf(range(4), 3, 0.4)
        ).pvalue
        > 1e-6
    )


def test_fewer_records_than_neighbours_and_none_at_all() -> None:
    for size in (0, 3):
        records = Records.of(np.arange(float(size))[:, None], np.zeros(size, dtype=int), None)
        voters = SampledNeighbours(NeighbourSearch(records), neighbours=5, probability=1.0)
        (block,) = voters.search.lists([[0.0]], depth=voters.depth)
        chosen = voters.draw(block, sampler=SecureSampler())
        assert (chosen >= 0).sum() == size
        assert label_votes(chosen, records.votes, classes=2).tolist() == [[size, 0]]
