"""Which of the codes that were scored may be chosen, and which of them is."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.channels import MOST_LOST, Channel, randomised_response
from reticent.systems.power.score_choice import (
    FittedScores,
    RowScores,
    ScoreCode,
    informative,
    nearly_best,
    ordered_codes,
    row_scores,
)
from reticent.systems.power.score_query import ScoreBins
from reticent.systems.scores import Scores, channel_scores, joint_of
from reticent.training.public_models import LinearModel

LOST, UNBALANCED = MOST_LOST["accuracy"], MOST_LOST["balanced_accuracy"]
EVEN = np.full(900, 0.7)


def code(
    information: float,
    accuracy: float = 0.7,
    balanced: float = 0.6,
    *,
    auc: float = 0.6,
    response: str = "staircase",
    rows: np.ndarray = EVEN,
    told: np.ndarray | None = None,
    plain: bool = False,
    scores_of: int = 1,
) -> ScoreCode:
    """One whose scores are known; its model and bins are not looked at."""
    scores = Scores(information=information, accuracy=accuracy, balanced_accuracy=balanced, auc=auc)
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), np.zeros((4, scores_of)))
    channel = Channel(response, np.full((2, 2), 2**31), scores)
    each = RowScores(rows, rows, rows if told is None else told)
    return ScoreCode(fitted, ScoreBins(np.zeros((1, 1)), 1), channel, each, plain)


def test_by_information_no_code_is_chosen_that_loses_accuracy() -> None:
    """Where the same rows are right, chance does not excuse a loss."""
    best, near = code(0.10, 0.70), code(0.12, 0.70 - 0.9 * LOST)
    far = code(0.13, 0.70 - 1.1 * LOST)
    assert nearly_best([best, near, far], scoring="accuracy") == [best, near]
    assert nearly_best([far], scoring="accuracy") == [far]
    assert ordered_codes([best, near, far], scoring="information")[0] is near
    assert ordered_codes([best, near, far], scoring="accuracy")[0] is best


@pytest.mark.parametrize(("gap", "kept"), [(0.9, True), (1.1, False)])
def test_a_loss_of_half_a_standard_error_is_excused(gap: float, kept: bool) -> None:
    """Two fifths of 400 rows change by half from right to wrong, or back: an error of 0.0158."""
    right = np.full(400, 0.5)
    other = right.copy()
    other[:80], other[80:160] = 1.0, 0.0
    half = 0.5 * 0.5 * np.sqrt(0.4) / 20
    best, second = code(0.1, rows=right), code(0.2, 0.7 - gap * half, rows=other)
    assert half > LOST
    assert (second in nearly_best([best, second], scoring="accuracy")) is kept


def test_balance_is_kept_where_accuracy_leaves_it() -> None:
    """The most balanced code is less accurate; those that keep the accuracy reach it, or not."""
    side = code(0.10, 0.65, 0.70)
    near, far = code(0.12, balanced=0.70 - 0.9 * UNBALANCED), code(0.13, balanced=0.65)
    assert informative([side, near, far]) == [near]
    less, least = code(0.12, balanced=0.66), code(0.14, balanced=0.66 - 1.1 * UNBALANCED)
    assert informative([side, far, less, least]) == [less]
    assert informative([side, far, code(0.12, balanced=0.65 + 0.9 * UNBALANCED)])[0] is far


def test_the_plain_code_is_first_unless_another_clearly_tells_more() -> None:
    told = np.zeros(900)
    told[:450] = 0.6
    error = 0.3 / 30
    plain = code(0.10, plain=True, response="randomised response", told=np.full(900, 0.3))
    level, above = code(0.10 + 0.9 * error, told=told), code(0.10 + 1.1 * error, told=told)
    assert ordered_codes([level, plain], scoring="information") == [plain, level]
    assert ordered_codes([above, plain], scoring="information") == [above, plain]
    assert ordered_codes([above, plain], scoring="auc")[0] is above


def test_of_codes_that_tell_as_much_balance_and_auc_decide() -> None:
    told = np.zeros(900)
    told[:450] = 0.6
    best = code(0.11, auc=0.60, told=told)
    second = code(0.109, balanced=0.595, auc=0.62, told=np.full(900, 0.3))
    third = code(0.109, balanced=0.601, auc=0.60, told=np.full(900, 0.3))
    found = ordered_codes([best, third, second], scoring="information")
    assert found == [second]  # one of each kind
    other = code(0.05, response="subset selection", auc=0.9)
    assert ordered_codes([best, other, second], scoring="information") == [second, other]


def test_scores_are_means_of_what_rows_add() -> None:
    random = np.random.default_rng(0)
    members = random.integers(0, 4, 5_000)
    labels = (random.random(5_000) < 0.1 + 0.25 * members).astype(np.int64)
    joint = joint_of(members, labels, bins=4)
    table = randomised_response(4, epsilon=2.0)
    found = row_scores(table, joint, members, labels)
    wanted = channel_scores(table.T @ joint)
    for scoring in ("accuracy", "balanced_accuracy", "information"):
        mean = getattr(found, scoring).mean()
        assert mean == pytest.approx(wanted.of(scoring), abs=2e-3)


def test_errors_are_of_paired_differences_and_rows_are_put_in_place() -> None:
    first = RowScores.nothing(4)
    first.fill(np.array([True, False, False, True]), code(0.1, rows=np.array([0.2, 0.6])).rows)
    np.testing.assert_array_equal(first.accuracy, [0.2, 0.0, 0.0, 0.6])
    other = RowScores.nothing(4)
    wanted = np.std([0.2, 0.0, 0.0, 0.6]) / 2
    assert first.error(other, scoring="information") == pytest.approx(wanted)
    assert first.error(first, scoring="accuracy") == 0.0


def test_of_several_labels_only_nats_count() -> None:
    accurate, telling = code(0.15, 0.64, scores_of=7), code(0.19, 0.62, 0.5, scores_of=7)
    assert ordered_codes([accurate, telling], scoring="information") == [telling]
    assert ordered_codes([accurate, telling], scoring="accuracy") == [accurate]
