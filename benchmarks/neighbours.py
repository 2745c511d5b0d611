"""How fast Private-kNN votes are counted: ``python benchmarks/neighbours.py [--queries 8192]
[--peer-queries 32] [--records 60000]``.

8,192 queries against 60,000 records of 64 features, sampling probability 0.15, k = 300, screening
and voting each with a fresh subsample: one sorted pass per query (``SampledNeighbours``), noise
included, all from ``SecureSampler``.

Peers, on fewer queries of the same data in the same run, stretched to the same number: draw the
subsample, search it, count. The plain way (distances to the subsample in float64, sorted),
scikit-learn's ``NearestNeighbors`` and a flat index of FAISS fitted to the subsample, and our own
exact search of it. All draw coins for every record, twice per query, with the
same quick exact sampler, and leave out the noise of screening and vote, which our side includes;
the first one draws them with ``Sampler.bernoulli``, the library's exact coin before ``coins``.
Seconds are of processor time, one thread.

Then: the k nearest records of the same queries without sampling, ours and FAISS's flat index, both
exact, in one call each. Ours also has to give all records at the last distance. Last: a fit of
``PrivateKNNClassifier`` to ``--fitted`` records.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import time
from collections.abc import Callable

import faiss
import numpy as np
import numpy.typing as npt
from figures import Figure, processor_seconds
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from reticent import PrivateKNNClassifier
from reticent.accounting import PrivateKnnSteps
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours, label_votes
from reticent.neighbours.exhaustive import Exhaustive
from reticent.noise import SecureSampler
from reticent.noise.coins import coins
from reticent.systems import Features, Neighbours
from reticent.systems.private_knn.plan import KnnNoise

FEATURES, CLASSES, NEIGHBOURS, RATE = 64, 10, 300, 0.15
STEPS = 2

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def clusters(rows: int, rng: np.random.Generator, centers: Array) -> tuple[Array, Integers]:
    """Overlapping normal clusters, one per class."""
    labels = rng.integers(CLASSES, size=rows)
    return centers[labels] + rng.normal(size=(rows, FEATURES)), labels


def seconds(task: Callable[[], object]) -> float:
    """Processor time of ``task``, all threads together."""
    start = time.process_time()
    task()
    return time.process_time() - start


def by_library(points: Array, labels: Integers, queries: Array) -> None:
    """A new scikit-learn search of a new subsample for every query and step."""
    sampler = SecureSampler()
    for query in queries:
        for _ in range(STEPS):
            included = coins(len(points), probability=RATE, sampler=sampler)
            search = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(
                points[included]
            )
            (chosen,) = search.kneighbors(query[None, :], return_distance=False)
            np.bincount(labels[included][chosen], minlength=CLASSES)


def by_faiss(points: Array, labels: Integers, queries: Array) -> None:
    """A new flat index of a new subsample for every query and step."""
    sampler = SecureSampler()
    for query in queries:
        for _ in range(STEPS):
            included = coins(len(points), probability=RATE, sampler=sampler)
            index = faiss.IndexFlatL2(points.shape[1])
            index.add(points[included])
            _, (chosen,) = index.search(query[None, :], NEIGHBOURS)
            np.bincount(labels[included][chosen], minlength=CLASSES)


def nearest(points: Array, records: Records, queries: Array) -> None:
    """The figure of the k nearest of all records.

    Raises:
        AssertionError: the two find records at other distances.
    """
    search, index = NeighbourSearch(records), faiss.IndexFlatL2(points.shape[1])
    floats = points.astype(np.float32), queries.astype(np.float32)
    index.add(floats[0])

    def ours() -> Array:
        orders = [block.order for block in search.lists(queries, depth=NEIGHBOURS)]
        return np.concatenate(orders)

    def theirs() -> Array:
        distances, _ = index.search(floats[1], NEIGHBOURS)
        return np.asarray(distances)

    near = floats[0][np.argsort(records.places)][ours()]
    found = ((near - floats[1][:, None]) ** 2).sum(axis=2)
    assert np.array_equal(found, theirs()), "the nearest records of the two are not the same"
    sides = [[seconds(task) / len(queries) for _ in range(3)] for task in (ours, theirs)]
    Figure.of(
        f"{NEIGHBOURS} nearest of {len(points):,} x {FEATURES}, a query",
        sides[0],
        peer="FAISS, flat index",
        theirs=sides[1],
    ).keep()


def plainly(points: Array, labels: Integers, queries: Array, *, quick_coins: bool) -> None:
    """Distances to a new subsample for every query and step, sorted."""
    sampler = SecureSampler()
    for query in queries:
        for _ in range(STEPS):
            if quick_coins:
                heads = coins(len(points), probability=RATE, sampler=sampler)
            else:
                heads = sampler.bernoulli(np.full(len(points), RATE))
            included = np.flatnonzero(heads)
            distances = np.linalg.norm(points[included] - query, axis=1)
            np.bincount(labels[included[np.argsort(distances)[:NEIGHBOURS]]], minlength=CLASSES)


def anew(points: Array, labels: Integers, queries: Array) -> None:
    """Our own search of a new subsample for every query and step."""
    sampler = SecureSampler()
    for query in queries:
        for _ in range(STEPS):
            included = coins(len(points), probability=RATE, sampler=sampler)
            near, order = Exhaustive.of(points[included]), np.arange(included.sum())
            search = NeighbourSearch(Records(near, order, labels[included], None))
            voters = SampledNeighbours(search, neighbours=NEIGHBOURS, probability=1.0)
            (lists,) = search.lists(query[None, :], depth=NEIGHBOURS)
            label_votes(voters.draw(lists, sampler=sampler), search.records.votes, classes=CLASSES)


def fit(rows: int, rng: np.random.Generator) -> None:
    """A fit of the estimator, beside the least that it must do: whole steps, and their digest."""
    points = rng.normal(size=(rows, FEATURES))
    labels = rng.integers(CLASSES, size=rows)
    model = PrivateKNNClassifier(
        epsilon=1.0,
        delta=1e-8,
        queries=100,
        classes=range(CLASSES),
        neighbours=Neighbours(number=NEIGHBOURS, sampling_probability=RATE),
        features=Features(range=(-6.0, 6.0)),
    )

    def least() -> bytes:
        whole = np.rint(points * 2.0**11).astype(np.int16)
        return hashlib.sha256(whole).digest() + hashlib.sha256(labels).digest()

    Figure.of(
        f"a fit of Private-kNN, {rows:,} x {FEATURES}",
        processor_seconds(lambda: model.fit(points, labels), runs=3),
        peer="NumPy and SHA-256, rounded to steps",
        theirs=processor_seconds(least, runs=3),
    ).keep()


def main() -> None:
    """Prints seconds, memory, and how many times faster than each peer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=8192)
    parser.add_argument("--peer-queries", type=int, default=32)
    parser.add_argument("--records", type=int, default=60_000, help="at least 10,000")
    parser.add_argument("--fitted", type=int, default=1_000_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    centers = 0.7 * rng.normal(size=(CLASSES, FEATURES))
    features, labels = clusters(arguments.records, rng, centers)
    asked, _ = clusters(arguments.queries, rng, centers)
    grid = PointGrid.around(asked)
    points, queries = grid.points(features), grid.points(asked)
    steps = PrivateKnnSteps(
        queries=arguments.queries,
        answers=arguments.queries,
        neighbours=NEIGHBOURS,
        sampling_probability=RATE,
        sigma_votes=25.0,
        threshold=180.0,
        sigma_screening=75.0,
    )
    session = KnnNoise(steps, 1e-5, CLASSES)
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        start = time.process_time()
        records = Records.of(points, labels, None)
        voters = SampledNeighbours(
            NeighbourSearch(records), neighbours=NEIGHBOURS, probability=RATE
        )
        prepared = time.process_time() - start
        start = time.process_time()
        given = session.answer(queries, voters, sampler=SecureSampler())
        answered = time.process_time() - start
        nearest(points, records, queries[: max(32, arguments.peer_queries)])
        # The peers get their share of queries; fit and memory of the one pass stay on our side of
        # the scale.
        ours = prepared + answered
        asked_of_us = queries[: arguments.peer_queries]
        few, floats = asked_of_us.astype(np.float32), points.astype(np.float32)
        stretch = arguments.queries / arguments.peer_queries
        wide = points.astype(np.float64)
        peers = {
            "plain numpy, Sampler.bernoulli": seconds(
                lambda: plainly(wide, labels, few, quick_coins=False)
            ),
            "new search each, plain numpy": seconds(
                lambda: plainly(wide, labels, few, quick_coins=True)
            ),
            "new search each, scikit-learn": seconds(lambda: by_library(floats, labels, few)),
            "new search each, FAISS": seconds(lambda: by_faiss(floats, labels, few)),
            "new search each, our search": seconds(lambda: anew(points, labels, asked_of_us)),
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = f"{arguments.queries} queries x {arguments.records} records x {FEATURES} features"
    print(f"{size}, sampling {RATE}, k {NEIGHBOURS}, two samples each")
    print(
        f"{'one sorted pass per query':32s} {ours:8.1f} s   {prepared:.1f} s of it for sorting "
        f"records; {int((given >= 0).sum())} "
        "answered"
    )
    for name, spent in peers.items():
        whole = stretch * spent
        print(
            f"{name:32s} {whole:8.1f} s   {whole / ours:5.1f} times as long, from "
            f"{arguments.peer_queries} queries"
        )
    for name in ("scikit-learn", "FAISS"):
        spent = peers[f"new search each, {name}"] / arguments.peer_queries
        Figure.of(
            f"a Private-kNN answer of {arguments.records:,} records, both samples",
            [ours / arguments.queries],
            peer=f"{name}, a new search each",
            theirs=[spent],
        ).keep()
    print(f"largest memory {peak:.2f} GiB")
    with threadpool_limits(1):
        fit(arguments.fitted, rng)


if __name__ == "__main__":
    main()
