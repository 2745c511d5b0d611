"""The Power Mechanism as printed filters by its score, is inverted, and has no price."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.inversion import invert, relative_errors
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter, NotFittedYet
from reticent.core.guarantees import GuaranteeKind
from reticent.published import AsPrinted, PowerConfig, PublishedPowerEncoder
from reticent.tables import TabularSchema

SCHEMA = TabularSchema.numbers(4, 0.0, 1.0)


def encoder(**changes) -> PublishedPowerEncoder:
    training = PowerConfig(steps=20, learning_rate=1e-3)
    settings = {"epsilon": 4.0, "alpha": 0.05, "schema": SCHEMA, "training": training}
    return PublishedPowerEncoder(**{**settings, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).random((1500, 4))


@pytest.fixture(scope="module")
def fitted(rows: np.ndarray) -> PublishedPowerEncoder:
    return encoder(epsilon=6.0).fit(rows, (rows[:, 0] > 0.5).astype(int))


def test_rows_above_the_score_are_withheld_and_the_others_are_found_again(
    fitted: PublishedPowerEncoder, rows: np.ndarray
) -> None:
    released = fitted.transform(rows)
    withheld = np.isnan(released).all(axis=1)
    np.testing.assert_array_equal(withheld, ~(fitted.scores(rows) <= 6.0))
    assert 0 < withheld.mean() < 1
    np.testing.assert_array_equal(released[~withheld], fitted.embed(rows)[~withheld])
    errors = relative_errors(invert(fitted.training_.network, released), SCHEMA.encode(rows))
    assert (errors[~withheld] < 1e-3).mean() >= 0.95


def test_it_is_no_privacy_and_no_release_can_book_it(fitted: PublishedPowerEncoder) -> None:
    assert fitted.guarantee.kind is GuaranteeKind.NO_PRIVACY
    assert isinstance(fitted, AsPrinted)
    with pytest.raises(IncompatibleGuarantees):
        _ = fitted.event


def test_what_cannot_be_used_is_refused(rows: np.ndarray) -> None:
    for name, value in (("alpha", 0.0), ("bandwidth_factor", 0.0), ("density_rows", 1)):
        with pytest.raises(InvalidParameter, match=name):
            encoder(**{name: value}).fit(rows, rows[:, 0] > 0.5)
    with pytest.raises(NotFittedYet):
        encoder().transform(rows)
