"""Plans for private inputs: what is ranked, why, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import CalibrationFailed, InvalidInput
from reticent.core.guarantees import Guarantee, Replace
from reticent.planning.input_methods import InputMethod, Majority, PublicThirds, Thirds
from reticent.planning.inputs import plan_inputs
from reticent.planning.methods import Limit
from reticent.planning.tasks import Inputs, Task
from tests.planning.fakes import INPUT_GIVEN as GIVEN
from tests.planning.fakes import INPUT_LABELS as LABELS
from tests.planning.fakes import INPUT_ROWS as ROWS


@dataclass(frozen=True)
class Known(InputMethod):
    """Predicts the truth with a fixed probability, whatever epsilon is."""

    right: float
    name: str = "known <b>"
    line: str = "nothing"
    there: bool = False
    slow: bool = False
    fails: bool = False

    def probabilities(self, task: Task, parts: Thirds) -> list[np.ndarray]:
        if self.fails:
            raise CalibrationFailed("no noise fits")
        scored = parts.scored[1]
        found = np.full((len(scored), task.classes), (1 - self.right) / (task.classes - 1))
        found[np.arange(len(found)), scored] = self.right
        return [found]

    def settings(self, task: Task) -> dict[str, Any]:
        return {"right": self.right}

    def estimator(self, task: Task) -> Any:
        return ("estimator", task.guarantee.epsilon) if self.there else None


def test_thirds_share_no_row_and_take_turns() -> None:
    labels = (np.arange(90) % 3 == 0).astype(np.int64)
    asked = Inputs(GIVEN["schema"], None, "information", 1)
    task = Task(Guarantee(1.0, 0.0, Replace(1)), 0, 90, 2, inputs=asked)
    turns = PublicThirds(np.arange(90)[:, None], labels, task, Limit(60.0)).folds
    for turn in turns:
        parts = [turn.learned, turn.released, turn.scored]
        assert sorted(np.concatenate([rows.ravel() for rows, _ in parts])) == list(range(90))
        for rows, own in parts:
            assert own.sum() == 10
            assert np.array_equal(own, labels[rows.ravel()])
        assert np.array_equal(turn.places, turn.scored[0].ravel())
    assert sorted(np.concatenate([turn.places for turn in turns])) == list(range(90))


@pytest.mark.parametrize(("fails", "seconds"), [(True, 60.0), (False, 1e-9)])
def test_a_plan_of_nothing_is_refused(fails: bool, seconds: float) -> None:
    with pytest.raises(InvalidInput, match="nothing was finished"):
        plan_inputs(
            ROWS, LABELS, epsilon=1.0, methods=[Known(0.9, fails=fails)], seconds=seconds, **GIVEN
        )


def test_rows_are_ranked_and_warnings_follow(tmp_path) -> None:
    methods = [
        Majority(),
        Known(0.9, there=True),
        Known(0.95, name="for comparison"),
        Known(0.5, name="broken", fails=True),
    ]
    found = plan_inputs(ROWS, LABELS, epsilon=1.0, methods=methods, **GIVEN)
    assert [row.method for row in found.rows] == ["for comparison", "known <b>", "majority"]
    assert found.winner.method == "known <b>"
    assert found.estimator == ("estimator", 1.0)
    assert found.left_out == (("broken", "no noise fits"),)
    assert any("only to compare with" in note for note in found.notes)
    assert found.rows[1].behind.value == pytest.approx(np.log(0.95 / 0.9))
    assert found.rows[1].scores["accuracy"].value == 1.0
    assert found.rows[2].constant
    assert found.guess_cap == pytest.approx(np.e / (1 + np.e))
    alone = plan_inputs(ROWS, LABELS, epsilon=1.0, methods=methods[:1], **GIVEN)
    assert alone.estimator is None
    assert any("beats the majority" in note for note in alone.notes)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["winner"] == "known <b> (right=0.9)"
    assert "known &lt;b&gt;" in found.page(tmp_path / "plan.html").read_text(encoding="utf-8")
