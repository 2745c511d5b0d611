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


def test_regrets_are_means_over_other_data_sets():
    second = Case("two", 0.04, noise_level(task()), {"accuracy": {"a": 0.02, "b (size=1)": 0.0}})
    prior = Prior((case(), second))
    means, spreads = prior.expected(ENTRIES, task(), scoring="accuracy")
    assert means == pytest.approx([0.01, 0.05])
    assert spreads == pytest.approx([0.02 / 2**0.5, 0.1 / 2**0.5])
    alone, _ = prior.without("one").expected(ENTRIES, task(), scoring="accuracy")
    assert alone == pytest.approx([0.02, 0.0])


def test_cases_of_like_noise_count_most():
    near = case()
    far = Case("one", 0.04, near.level + 1.5, {"accuracy": {"a": 0.5, "b (size=1)": 0.0}})
    means, _ = Prior((near, far)).expected(ENTRIES, task(), scoring="accuracy")
    assert means == pytest.approx([0.0, 0.1], abs=0.01)


def test_unknown_settings_do_as_their_method_and_unknown_methods_are_left_alone():
    known = Case("one", 0.04, noise_level(task()), {"accuracy": {"b (size=2)": 0.3}})
    means, _ = Prior((known,)).expected(ENTRIES, task(), scoring="accuracy")
    assert np.isnan(means[0])
    assert means[1] == 0.3
    nothing, _ = Prior(()).expected(ENTRIES, task(), scoring="accuracy")
    assert np.isnan(nothing).all()


def test_a_sure_measurement_outweighs_the_prior_and_an_unsure_one_does_not():
    measured = np.array([0.80, 0.82, 0.5])
    prior = (np.array([0.0, 0.05, np.nan]), np.array([0.02, 0.02, np.nan]))
    assert mixed(measured, 1e-4, prior) == pytest.approx(measured, abs=1e-4)
    doubtful = mixed(measured, 0.2, prior)
    assert doubtful[0] > doubtful[1]
    assert doubtful[2] == 0.5


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
