"""Tables of private-kNN: rows run and state totals that hold; students, teachers, and what may be
read for settings.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import load
from papers.private_knn import headline as knn_headline
from papers.private_knn import multi_label as knn_multi_label
from papers.private_knn import reviews, rungs
from papers.private_knn.headline import ROWS, settings_of, table
from papers.private_knn.multi_label import (
    SETTINGS,
    markdown,
    published_setting,
)
from papers.private_knn.pate_teachers import PateTeachers
from papers.private_knn.reduced_features import ReducedFeatures
from papers.private_knn.reviews import Reviews, public_rows_alone
from papers.private_knn.rung_rows import Rows
from papers.private_knn.rungs import descent
from papers.private_knn.students import Student, StudentConfig, as_printed, train_student
from reticent.accounting import PrivateKnnSteps, private_knn_total
from reticent.datasets import load_digits
from reticent.training.features import IdentityFeatures, Origin


@pytest.fixture(scope="module")
def clusters() -> Rows:
    """600 private rows, 200 public ones and 100 that are scored."""
    rng = np.random.default_rng(0)
    codes = np.arange(900) % 3
    features = rng.normal(size=(900, 50)) + 3.0 * np.eye(3)[codes] @ rng.normal(size=(3, 50))
    parts = slice(0, 600), slice(600, 800), slice(800, None)
    (private, public, scored) = ((features[part], codes[part]) for part in parts)
    return Rows(*private, *public, *scored, classes=3)


def _small() -> knn_headline.HeadlineSettings:
    whole = settings_of("digits")
    return replace(whole, rounds=(20, 10), student=replace(whole.student, epochs=1), last_epochs=2)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("headline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knn_headline, "settings_of", lambda data: _small())
        return knn_headline.run("digits", list(ROWS), folder=folder, seed=0)


def test_every_row_states_a_total_that_holds(rows: dict[str, dict]) -> None:
    assert list(rows) == list(ROWS)
    assert rows["Private-kNN, calibrated"]["epsilon"] <= 4.0
    assert rows["PATE, Gaussian noise, confident"]["epsilon"] <= 4.0
    assert rows["PATE, Laplace noise"]["epsilon"] == 4.0
    paper = rows["Private-kNN, the paper's setting"]
    steps = PrivateKnnSteps(
        queries=323,
        answers=323,
        neighbours=300,
        sampling_probability=0.15,
        sigma_votes=25.0,
        threshold=180.0,
        sigma_screening=75.0,
    )
    assert paper["epsilon"] == private_knn_total(steps, delta=1e-5).epsilon
    text = table("digits", rows)
    assert text.count("\n| ") == 1 + len(ROWS)
    assert all(name in text for name in ROWS)


SMALL = replace(SETTINGS["digits"], queries=60, epsilons=(0.5, 50.0), taus=(2, 5))


def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "digits", SMALL)
    knn_multi_label.main(["--data", "digits", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {
        f"multi-label-digits.{suffix}" for suffix in ("json", "md", "png")
    }
    results = knn_multi_label.run(load("digits"), SMALL, seed=0)
    for cells in results["cells"].values():
        for epsilon in SMALL.epsilons:
            assert cells[f"{epsilon:g}"]["epsilon"] <= epsilon
        assert cells["50"]["attributes_right"] > cells["0.5"]["attributes_right"]
        assert cells["50"]["sigma"] < cells["0.5"]["sigma"]
        assert cells["50"]["attributes_right"] == pytest.approx(cells["no noise"], abs=0.06)
    # A digit with five attributes loses half of each of its votes to a clip of 2.
    assert results["cells"]["5"]["no noise"] > results["cells"]["2"]["no noise"]
    assert "| 5 |" in markdown(results, published_setting())


def _parts() -> Reviews:
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 2
    found = rng.normal(size=(900, 5)) * 0.1
    found[:, 0] += labels - 0.5
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    parts = slice(0, 600), slice(600, 800), slice(800, None)
    return Reviews(*(column[part] for part in parts for column in (found, labels)))


def test_all_ways_learn_what_is_easy() -> None:
    parts = _parts()
    assert public_rows_alone(parts) > 0.95
    for right in reviews.rows(parts, 8.0).values():
        assert len(right) == 3
        assert np.mean(right) > 0.9


def test_distances_use_directions_of_public_rows_alone(clusters: Rows) -> None:
    near = clusters.near
    assert near.private.shape == (600, 40)
    np.testing.assert_allclose(near.public.mean(axis=0), 0, atol=1e-9)
    moved = Rows(
        clusters.private + 5.0,
        clusters.codes,
        clusters.public,
        clusters.public_codes,
        clusters.scored,
        clusters.truth,
        clusters.classes,
    )
    np.testing.assert_array_equal(moved.near.scored, near.scored)


def test_seeds_reach_the_noise_of_released_models(clusters: Rows) -> None:
    quiet = descent(clusters, 50.0, (0, 1))
    assert min(quiet.right) > 0.9
    assert set(quiet.settings) == {"components", "whitening", "steps", "learning_rate"}
    models, _ = rungs._models(clusters.scaled, 0.5, (0, 1))
    assert not np.array_equal(models[0].weights_, models[1].weights_)


@pytest.mark.parametrize(
    "name",
    [
        "noisy gradient descent",
        "PATE, support vector machine on the surest labels",
    ],
)
def test_settings_come_from_public_rows_alone(name: str, clusters: Rows) -> None:
    """Other private records, as many, leave settings as they are; and answers do not depend on the
    truth that they are scored by, so over the three ways to shift it each of them is right once.
    """
    rng = np.random.default_rng(5)
    parts = ("private", "public", "scored")
    hard = replace(
        clusters,
        **{
            part: getattr(clusters, part) + 15 * rng.normal(size=getattr(clusters, part).shape)
            for part in parts
        },
    )
    others = replace(
        hard, private=rng.normal(size=hard.private.shape), codes=rng.permutation(hard.codes)
    )
    shifted = [replace(hard, truth=(hard.truth + by) % 3) for by in range(3)]
    found, other, *rest = (
        rungs.WAYS[name][1](rows, 5.0, (0, 1)) for rows in (shifted[0], others, *shifted[1:])
    )
    assert 0.35 < found.right[0] < 0.95  # settings matter
    assert found.settings == other.settings != {}
    assert np.sum([one.right for one in (found, *rest)], axis=0) == pytest.approx(1.0)


CONFIG = StudentConfig(
    image_shape=(1, 8, 8),
    channels=(8, 16),
    hidden=(32,),
    epochs=40,
    learning_rate=5e-3,
    turn=0.1,
    zoom=0.05,
    shift=0.05,
)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.train_images.reshape(-1, 64), data.train_labels


def test_a_few_labels_and_many_pictures_make_a_classifier(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    pictures, truth = (part[:700] for part in digits)
    labels = np.full(len(truth), -1)
    labels[:100] = truth[:100]
    student = train_student(pictures, labels, classes=10, config=CONFIG)
    probabilities = student.probabilities(pictures)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1)[100:] == truth[100:]).mean() > 0.8


def test_the_printed_network_has_the_layers_of_the_paper() -> None:
    student = Student(as_printed(StudentConfig(image_shape=(1, 28, 28))), 10)
    shapes = [tuple(each.shape) for each in student.parameters() if each.ndim > 1]
    assert shapes == [(64, 1, 5, 5), (128, 64, 5, 5), (384, 7 * 7 * 128), (192, 384), (10, 192)]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
QUERIES = RNG.normal(size=(40, 3))


def _teachers(keep: np.ndarray, keys: list[str] | None = None, teachers: int = 8) -> PateTeachers:
    own = None if keys is None else [keys[i] for i in keep]
    return PateTeachers.of(
        X[keep], Y[keep], own, teachers=teachers, classes=2, public_features=QUERIES, ridge=1.0
    )


def test_one_record_retrains_one_teacher_and_moves_one_vote() -> None:
    whole = _teachers(np.arange(60))
    for gone in range(60):
        rest = _teachers(np.delete(np.arange(60), gone))
        changed = (whole.weights != rest.weights).any(axis=(1, 2))
        assert changed.sum() == 1
        moved = np.abs(whole.votes(QUERIES) - rest.votes(QUERIES))
        assert moved.sum(axis=1).max() <= 2


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 3])
def test_a_column_that_only_private_rows_vary_in_is_learned_from_in_its_own_unit(value) -> None:
    rows = np.column_stack([np.zeros(60), X[:, 1:]])
    public = np.column_stack([np.full(40, value), QUERIES[:, 1:]])
    rows[:, 0] = value + np.where(Y > 0, 3.0, -3.0)
    teachers = PateTeachers.of(
        rows, Y, None, teachers=4, classes=2, public_features=public, ridge=1.0
    )
    assert (teachers.votes(rows).argmax(axis=1) == Y).mean() > 0.95
    assert teachers.spread[0] == 1.0


def test_all_records_of_a_key_go_to_one_teacher() -> None:
    keys = [f"person {i % 10}" for i in range(60)]
    whole = _teachers(np.arange(60), keys)
    for person in range(10):
        rest = _teachers(np.array([i for i in range(60) if i % 10 != person]), keys)
        assert (whole.weights != rest.weights).any(axis=(1, 2)).sum() == 1


def test_reduction_keeps_the_directions_of_most_variance() -> None:
    rng = np.random.default_rng(2)
    public = rng.normal(size=(200, 4)) * [5.0, 1.0, 3.0, 0.1]
    reduced = ReducedFeatures.of(IdentityFeatures(), public, dimension=2)
    assert reduced.origin is Origin.PUBLIC
    assert (np.abs(reduced.directions).argmax(axis=1) == [0, 2]).all()
    np.testing.assert_allclose(reduced.directions @ reduced.directions.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(
        reduced.features(public), (public - public.mean(axis=0)) @ reduced.directions.T, atol=1e-9
    )
