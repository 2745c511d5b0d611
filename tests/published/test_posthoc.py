"""The published mechanism does what is printed, and promises nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core import GuaranteeKind, Neighborhood, Norm
from reticent.core.errors import IncompatibleGuarantees
from reticent.noise import SeededSampler
from reticent.published.posthoc import PublishedPosthoc, Switches

NEAR = Neighborhood(Norm.LINF, 2.0, "embedding")


def published(**changes) -> PublishedPosthoc:
    settings = {
        "radius": 2.0,
        "maximum_radius": 10.0,
        "proposal": 0.5,
        "stated_epsilon": 1.0,
        "stated_delta": 0.05,
        "dimension": 2,
        "adjacency": NEAR,
        "switches": Switches(**changes),
    }
    return PublishedPosthoc(**settings)


RADII = [0.0, 1.9, 2.0, 3.0, 20.0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [1.0, 1.0, 5.0, 5.0, 5.0]),
        ({"if_unstable": "zero"}, [0.0, 0.0, 5.0, 5.0, 5.0]),
        ({"searched_at": "midpoint"}, [1.0, 1.0, 1.0, 1.5, 5.0]),
        ({"searched_at": "midpoint", "if_unstable": "zero"}, [0.0, 0.0, 1.0, 1.5, 5.0]),
        (
            {"searched_at": "midpoint", "if_unstable": "zero", "stability": "slack"},
            [0.0, 0.0, 0.0, 1.0, 8.0],
        ),
    ],
)
def test_search_as_printed_and_with_each_repair(changes, expected) -> None:
    assert published(**changes).tested_stability(RADII).tolist() == expected


@pytest.mark.parametrize(("covers", "scale"), [("P", 0.5), ("P R", 1.0)])
def test_noise_of_the_vector(covers, scale) -> None:
    mechanism = published(noise_covers=covers)
    assert mechanism.scale == scale
    values, withheld = mechanism.release(
        np.zeros((5000, 2)), np.full(5000, 20.0), sampler=SeededSampler(1)
    )
    assert stats.kstest(values[~withheld].ravel(), stats.laplace(scale=scale).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("test_scale", "unit"), [("1 / epsilon", 1.0), ("R / epsilon", 2.0)])
def test_noise_of_the_test(test_scale, unit) -> None:
    mechanism = published(test_scale=test_scale, if_unstable="zero")
    _, withheld = mechanism.release(
        np.zeros((50_000, 2)), np.zeros(50_000), sampler=SeededSampler(2)
    )
    # Threshold ln(1/delta) of the noise's own unit: an unstable point passes with probability delta
    # / 2, either way.
    assert stats.binomtest(int((~withheld).sum()), 50_000, 0.025).pvalue > 1e-6
    assert stats.laplace(scale=unit).sf(unit * np.log(20)) == pytest.approx(0.025)


def test_it_promises_nothing() -> None:
    mechanism = published()
    assert mechanism.guarantee.kind is GuaranteeKind.NO_PRIVACY
    with pytest.raises(IncompatibleGuarantees):
        _ = mechanism.event
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (2.0, 0.025)
    assert mechanism.guarantee.describe() == "no differential privacy"


@pytest.mark.parametrize("searched", ["R", "midpoint"])
def test_the_chance_to_pass_is_that_of_the_release(searched: str) -> None:
    # Four shares of 40,000 draws each lie within 5 deviations: chance fails it once in 400,000.
    mechanism = PublishedPosthoc(
        radius=1.0,
        maximum_radius=7.0,
        proposal=1.0,
        stated_epsilon=1.0,
        stated_delta=0.05,
        dimension=1,
        adjacency=Neighborhood(Norm.LINF, 1.0, "embedding"),
        switches=Switches(searched_at=searched, test_scale="R / epsilon"),
    )
    radii = np.repeat([0.0, 1.0, 4.0, 9.0], 40_000)
    _, withheld = mechanism.release(np.zeros((160_000, 1)), radii, sampler=SeededSampler(0))
    passed = 1.0 - withheld.reshape(4, -1).mean(axis=1)
    chances = mechanism.pass_probabilities(radii[::40_000])
    assert (np.abs(passed - chances) <= 5 * np.sqrt(chances * (1 - chances) / 40_000)).all()
