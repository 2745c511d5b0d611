"""What other data sets say is weighed by how sure either side is."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.planning.prior import (
    Case,
    Prior,
    mixed,
    noise_level,
    prior_content,
    prior_of,
    shipped_prior,
)
from reticent.planning.survey import Entry
from tests.planning.fakes import Known, task

ENTRIES = [Entry(Known("a", 0.9), {}), Entry(Known("b", 0.9), {"size": 1})]


def case(data="one", ratio=0.04, level=None, **regrets):
    found = noise_level(task()) if level is None else level
    return Case(data, ratio, found, {"accuracy": regrets or {"a": 0.0, "b (size=1)": 0.1}})


def test_regrets_are_those_of_each_other_data_set():
    second = Case("two", 0.04, noise_level(task()), {"accuracy": {"a": 0.02, "b (size=1)": 0.0}})
    prior = Prior((case(), second))
    found = prior.regrets(ENTRIES, task(), scoring="accuracy")
    assert found == pytest.approx(np.array([[0.0, 0.02], [0.1, 0.0]]))
    alone = prior.without("one").regrets(ENTRIES, task(), scoring="accuracy")
    assert alone == pytest.approx(np.array([[0.02], [0.0]]))


def test_cases_of_like_noise_count_most():
    near = case()
    far = Case("one", 0.04, near.level + 1.5, {"accuracy": {"a": 0.5, "b (size=1)": 0.0}})
    found = Prior((near, far)).regrets(ENTRIES, task(), scoring="accuracy")
    assert found == pytest.approx(np.array([[0.0], [0.1]]), abs=0.01)
    # Far enough off, a case says nothing at all.
    alone = Case("one", 0.04, near.level + 9.0, near.regrets)
    assert Prior((alone,)).regrets(ENTRIES, task(), scoring="accuracy").shape == (2, 0)


@pytest.mark.parametrize(
    ("settings", "regret"),
    [
        ({"size": 2, "kind": "tree"}, 0.1),
        ({"size": 9, "kind": "tree"}, 0.3),
        ({"size": 5, "kind": "line"}, 0.5),
        ({"size": [1, 2], "kind": "line"}, 0.5),
        ({}, 0.1),
    ],
)
def test_unknown_settings_do_as_the_nearest_one_of_their_method(settings, regret):
    entries = [*ENTRIES[:1], Entry(Known("b", 0.9), settings)]
    lost = {
        "b (size=1, kind=tree)": 0.1,
        "b (size=10, kind=tree)": 0.3,
        "b (size=1, kind=line)": 0.5,
        "c": 0.0,
    }
    known = Case("one", 0.04, noise_level(task()), {"accuracy": lost})
    found = Prior((known,)).regrets(entries, task(), scoring="accuracy")
    assert np.isnan(found[0, 0])
    assert found[1, 0] == regret
    assert Prior(()).regrets(entries, task(), scoring="accuracy").shape == (2, 0)


def of(utilities, regrets, *, error, extrapolated=0.0, methods="abc"):
    return mixed(
        np.array(utilities),
        np.array(regrets),
        methods=tuple(methods),
        error=error,
        extrapolated=extrapolated,
    )


def test_a_sure_measurement_outweighs_the_prior_and_an_unsure_one_does_not():
    measured = [0.80, 0.82, 0.5]
    lost = [[0.0, 0.02], [0.04, 0.06], [np.nan, np.nan]]
    assert of(measured, lost, error=1e-5) == pytest.approx(measured, abs=1e-4)
    doubtful = of(measured, lost, error=0.2)
    assert doubtful[0] > doubtful[1]
    assert doubtful[2] == 0.5
    # What was extrapolated is as doubtful, however sure the folds are.
    assert of(measured, lost, error=1e-5, extrapolated=0.1) == pytest.approx(doubtful, abs=2e-3)
    nothing = np.empty((3, 0))
    assert of(measured, nothing, error=0.2).tolist() == measured


def test_what_is_extrapolated_says_nothing_against_settings_of_one_method():
    measured, lost = [0.80, 0.82], [[0.0, 0.02], [0.04, 0.06]]
    apart = of(measured, lost, error=1e-5, extrapolated=0.1, methods="ab")
    together = of(measured, lost, error=1e-5, extrapolated=0.1, methods="aa")
    assert apart[0] > apart[1]
    assert together[1] - together[0] == pytest.approx(0.02, abs=1e-4)


def test_data_sets_that_disagree_count_less():
    measured = [0.80, 0.82]
    alike = of(measured, [[0.00, 0.00], [0.05, 0.05]], error=0.02, methods="ab")
    apart = of(measured, [[0.0, 0.1], [0.05, 0.05]], error=0.02, methods="ab")
    assert alike[0] > alike[1]
    assert apart[1] > apart[0]


def test_levels_count_records_of_a_label_over_the_noise():
    from reticent.planning.noise_levels import gaussian_multiplier

    noise = gaussian_multiplier(epsilon=1.0, delta=1e-5)
    assert 10 ** noise_level(task()) == pytest.approx(10_000 / (2 * noise))


def test_what_is_written_is_read_again():
    prior = Prior((case(), case("two", ratio=0.2)))
    again = prior_of(prior_content(prior))
    assert [one.data for one in again.cases] == ["one", "two"]
    assert again.cases[0].regrets == prior.cases[0].regrets
    for text in ("", "{}", '{"format": 0, "cases": []}', '{"format": 1, "cases": [1]}'):
        with pytest.raises(InvalidInput, match="prior"):
            prior_of(text)


def test_the_shipped_prior_is_of_several_data_sets():
    cases = shipped_prior().cases
    assert len({one.data for one in cases}) >= 5
    for one in cases:
        assert set(one.regrets) == {"accuracy", "log_loss"}
        assert all(min(regrets.values()) == 0 for regrets in one.regrets.values())
