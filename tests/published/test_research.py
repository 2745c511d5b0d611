"""Algorithms as printed end to end: none is private by type, each states a sound cost, and nobody
reads its bundle without saying so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer

from reticent import load
from reticent.accounting import PrivateKnnSteps
from reticent.core import AddRemove, GuaranteeKind, Neighborhood, Norm
from reticent.core.errors import (
    CorruptBundle,
    IncompatibleGuarantees,
    InvalidInput,
    InvalidParameter,
)
from reticent.published import (
    CodedObfuscator,
    PowerConfig,
    PublishedCertifiedClassifier,
    PublishedCertifiedEnsemble,
    PublishedObfuscator,
    PublishedPosthoc,
    PublishedPosthocEncoder,
    PublishedPowerEncoder,
    PublishedPrivateKNN,
    PublishedSystem,
    SmoothCauchy,
    Switches,
    load_research,
)
from reticent.published.certified import _largest_loss
from reticent.published.private_knn import _loss_of_one_more
from reticent.release.bundle import Bundle, sign_bundle, stored_card
from reticent.systems import Features, PosthocEncoder
from reticent.tables import TabularSchema

RANDOM = np.random.default_rng(0)
LABELS = np.tile([0, 1], 60)
ROWS = np.clip(RANDOM.normal(0.35, 0.1, (120, 2)) + 0.3 * LABELS[:, None], 0.0, 1.0)
STEPS = PrivateKnnSteps(
    queries=20,
    answers=20,
    neighbours=9,
    sampling_probability=0.3,
    sigma_votes=2.0,
    threshold=5.0,
    sigma_screening=3.0,
    shared_subsample=True,
)
CERTIFIED = {"epsilon": 1.0, "classes": [0, 1], "certified_at": (1, 5, 20)}

UNFITTED = {
    "posthoc, text": PublishedPosthocEncoder(
        epsilon=2.0,
        delta=0.05,
        radius=0.1,
        maximum_radius=2.0,
        obfuscator=PublishedObfuscator(row="ARL", outputs=2, hidden=(4,), epochs=2),
        random_state=0,
    ),
    "posthoc, code": PublishedPosthocEncoder(
        epsilon=2.0,
        delta=0.05,
        radius=0.1,
        maximum_radius=2.0,
        obfuscator=CodedObfuscator(row="ARL-C-N", outputs=2, hidden=(4,), epochs=2),
        switches=Switches.as_coded(),
        head="at the noise",
        random_state=0,
    ),
    "power": PublishedPowerEncoder(
        epsilon=4.0,
        alpha=0.05,
        schema=TabularSchema.numbers(2, 0.0, 1.0),
        training=PowerConfig(steps=2),
        random_state=0,
    ),
    "kNN": PublishedPrivateKNN(
        steps=STEPS, delta=1e-5, classes=[0, 1], features=Features(range=(0.0, 1.0))
    ),
    "certified": PublishedCertifiedClassifier(**CERTIFIED, k_max=20),
    "ensemble": PublishedCertifiedEnsemble(**CERTIFIED, k_max=20, members=4),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, PublishedSystem]:
    return {name: each.fit(ROWS, LABELS) for name, each in UNFITTED.items()}


@pytest.mark.parametrize("name", list(UNFITTED))
def test_it_is_not_private_by_type_and_its_bundle_is_for_research(fitted, name, tmp_path) -> None:
    system = fitted[name]
    assert system.guarantee.kind is GuaranteeKind.NO_PRIVACY
    with pytest.raises(IncompatibleGuarantees):
        _ = system.event
    with pytest.raises(InvalidParameter, match="research"):
        system.save(tmp_path / "bundle")
    folder = system.save(tmp_path / "bundle", research=True)
    for read in (load, Bundle.read, stored_card, type(system).load):
        with pytest.raises(InvalidInput, match="not private"):
            read(folder)
    with pytest.raises(InvalidInput, match="not private"):
        sign_bundle(folder, key=tmp_path / "key")
    again = load_research(folder)
    assert stored_card(folder, research=True) == again.card().to_markdown()
    for seed in (0, 1):
        one, other = system.release(ROWS[:20], seed=seed), again.release(ROWS[:20], seed=seed)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.withheld, other.withheld)
    assert again.worst_pair() == system.worst_pair()
    assert again.spent() == system.spent()


def test_votes_end_where_the_statement_ends() -> None:
    few = PublishedPrivateKNN(
        steps=replace(STEPS, answers=3, threshold=-30.0),
        delta=1e-5,
        classes=[0, 1],
        features=Features(range=(0.0, 1.0)),
    ).fit(ROWS, LABELS)
    answers = few.release(ROWS[:20], seed=0)
    assert (~answers.withheld).sum() == 3
    assert (answers.values[answers.withheld] == -1).all()
    with pytest.raises(InvalidInput, match="at most 20"):
        few.release(ROWS[:21], seed=0)


@pytest.mark.parametrize("name", list(UNFITTED))
def test_no_pair_costs_more_than_the_sound_account(fitted, name) -> None:
    assert 0 < fitted[name].worst_pair().loss <= fitted[name].spent().epsilon


def test_a_mark_that_was_taken_out_is_missed(fitted, tmp_path) -> None:
    bundle = fitted["certified"].bundle()
    Bundle(bundle.system, bundle.settings["system"], bundle.arrays, "", bundle.serial).write(
        tmp_path / "unmarked"
    )
    with pytest.raises(InvalidInput, match="no installed package"):
        load(tmp_path / "unmarked")
    Bundle(
        bundle.system, {**bundle.settings, "more": 1}, bundle.arrays, bundle.card, bundle.serial
    ).write(tmp_path / "more")
    with pytest.raises(CorruptBundle):
        load_research(tmp_path / "more")


def test_what_is_private_is_no_research(tmp_path) -> None:
    system = PosthocEncoder(
        epsilon=4.0, delta=0.0, radius=0.1, embedder="identity", obfuscator="identity"
    ).fit(ROWS)
    folder = system.save(tmp_path / "private")
    with pytest.raises(InvalidInput, match="leave research out"):
        load_research(folder)


@pytest.mark.parametrize("stability", ["half", "slack"])
@pytest.mark.parametrize(
    ("searched", "unstable"), [("R", "R / 2"), ("R", "zero"), ("midpoint", "R / 2")]
)
@pytest.mark.parametrize(("tolerance", "most"), [(0.0, 7.0), (0.25, 1.5), (0.25, 7.0)])
def test_the_tested_number_moves_between_neighbours_by_what_is_charged(
    searched, unstable, stability, tolerance, most
) -> None:
    mechanism = PublishedPosthoc(
        radius=1.0,
        maximum_radius=most,
        proposal=1.0,
        stated_epsilon=1.0,
        stated_delta=0.05,
        dimension=1,
        adjacency=Neighborhood(Norm.LINF, 1.0, "embedding"),
        switches=Switches(searched_at=searched, if_unstable=unstable, stability=stability),
    )
    radii = np.arange(0.0, 9.0, 1 / 64)
    tested = mechanism.tested_stability(radii)
    near = np.abs(radii[:, None] - radii) <= 1.0 + tolerance
    most_found = np.abs(tested[:, None] - tested)[near].max()
    assert most_found <= mechanism.tested_change(tolerance=tolerance) <= most_found + 1 / 32


def test_the_loss_of_a_sparse_set_is_the_largest_of_all_pairs() -> None:
    for at, step in (((1, 5, 20), 1), ((), 1), ((3, 9), 4)):
        mechanism = SmoothCauchy(epsilon=2.0, adjacency=AddRemove(1), certified_at=at)
        wrong = mechanism.flip_probabilities(np.arange(31))
        answers = np.stack([wrong, 1 - wrong])
        pairs = [(a, b) for a in range(31) for b in range(31) if abs(a - b) <= step]
        worst = max(
            [np.log(answers[each, a] / answers[each, b]) for a, b in pairs for each in (0, 1)]
            + [np.log((1 - wrong[0]) / wrong[0])]
        )
        assert _largest_loss(mechanism, most=30, step=step)[0] == pytest.approx(worst)


def test_every_distance_is_a_repair_and_a_sparse_set_is_none() -> None:
    sparse = PublishedCertifiedClassifier(**{**CERTIFIED, "epsilon": 2.0}, k_max=30)
    assert sparse.spent().epsilon > 2.0
    for repair in ({"certified_at": ()}, {"credit": "index"}):
        repaired = PublishedCertifiedClassifier(**{**CERTIFIED, "epsilon": 2.0, **repair}, k_max=30)
        assert repaired.spent().epsilon <= 2.0


def test_the_loss_of_one_record_more_is_that_of_all_noise() -> None:
    # Votes (0, 9) and, where the sample includes the record, (1, 8): a sum over all noise.
    values = np.arange(-40, 41)
    votes, bit = (np.exp(-0.5 * (values / sigma) ** 2) for sigma in (2.0, 3.0))
    law = (bit / bit.sum())[:, None, None] * np.outer(votes, votes) / votes.sum() ** 2
    screen, first, second = np.meshgrid(values, values, values, indexing="ij")

    def shares(one: int) -> np.ndarray:
        passes, wins = 9 - one + screen >= 5, one + first >= 9 - one + second
        return np.array([law[passes & wins].sum(), law[passes & ~wins].sum(), law[~passes].sum()])

    mixed = 0.7 * shares(0) + 0.3 * shares(1)
    found = np.abs(np.log(mixed / shares(0))).max()
    assert found == pytest.approx(_loss_of_one_more(STEPS), rel=1e-6)


def test_power_answers_thirty_columns_with_a_wider_kernel() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    for factor, least, most in ((1.0, 0.0, 0.0), (10.0, 0.95, 1.0)):
        encoder = PublishedPowerEncoder(
            epsilon=1.0,
            alpha=0.05,
            schema=TabularSchema.numbers(30, 0.0, 1.0),
            bandwidth_factor=factor,
            training=PowerConfig(steps=5),
            random_state=0,
        ).fit(X[::2], y[::2])
        assert least <= (encoder.scores(X[1::2]) <= 1.0).mean() <= most


def test_the_sign_of_the_code_helps_its_adversary() -> None:
    # The label is one coordinate; with a plus sign the other three stay decodable too.
    random = np.random.default_rng(0)
    points = random.normal(size=(2000, 4))
    missed = {}
    for sign in ("plus", "minus"):
        part = CodedObfuscator(
            row="ARL", sign=sign, hidden=(16,), outputs=4, epochs=6, random_state=0
        ).fit(points, (points[:, 0] > 0).astype(int), pictures=points)
        encoder = part.network()
        with torch.no_grad():
            values = encoder(torch.as_tensor(points, dtype=torch.float32)).numpy()
        values = np.column_stack([values, np.ones(len(values))])
        rebuilt = values @ np.linalg.lstsq(values, points, rcond=None)[0]
        missed[sign] = float(((rebuilt - points) ** 2).mean())
        right = part.predictor_.forward(values[:, :4]).argmax(axis=1) == (points[:, 0] > 0)
        assert right.mean() > 0.85
    assert missed["plus"] < 0.7 * missed["minus"]
