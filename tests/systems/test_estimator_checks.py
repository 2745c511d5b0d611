"""scikit-learn's own conventions, with every departure listed, and strict where it is certain: of
estimators that share an engine one, since the checks look at what the engine does with its input.

Where ``predict`` is a release it draws fresh noise and is counted. So checks that ask one row twice
fail unless chance makes both answers alike.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from reticent.systems import (
    Calibration,
    ConvexCertifiedClassifier,
    Features,
    LabelAware,
    NoiseAware,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    PublicRanges,
)

STRICT = (
    {"xfail_strict": True}
    if "xfail_strict" in signature(parametrize_with_checks).parameters
    else {}
)
"""Older versions of scikit-learn know no such argument."""

SMALL = {
    "epsilon": 5.0,
    "delta": 0.0,
    "radius": 0.2,
    "embedder": "identity",
    "random_state": 0,
}
TOTAL = {"epsilon": 500.0, "delta": 1e-5}
RANGE = Features(range=(-5.0, 5.0))

EXPECTED: dict[str, str] = {
    "check_dtype_object": "it wants the offending entry in the message; reticent never shows "
    "values of inputs",
}


FRESH_NOISE = {
    "check_estimators_pickle": "two calls of transform draw different noise",
    "check_fit_idempotent": "two calls of transform draw different noise",
}


FRESH_FIT = {
    "check_fit_idempotent": "two fits draw different noise, which decision_function shows",
}


FRESH_TARGETS = dict.fromkeys(
    (
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_supervised_y_2d",
    ),
    "two fits draw different noise",
) | {"check_estimators_empty_data_messages": "no records are a data set like any other"}


FRESH_ANSWERS = frozenset(
    {
        "check_classifier_data_not_an_array",
        "check_estimators_pickle",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_supervised_y_2d",
    }
)
"""They ask twice, of one fit or of two, and want equal labels or equal scores."""


def by_chance(estimator: Any) -> frozenset[str]:
    """Checks that fail unless noise happens to be kind."""
    draws = (PosthocClassifier, NoisyGradientClassifier)
    return FRESH_ANSWERS if isinstance(estimator, draws) else frozenset()


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, NoisyGradientClassifier):
        return {**EXPECTED, **FRESH_FIT}
    if isinstance(estimator, NoisyGradientRegressor):
        return {**EXPECTED, **FRESH_TARGETS}
    if isinstance(estimator, PosthocEncoder):
        return {**EXPECTED, **FRESH_NOISE}
    return EXPECTED


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:X. .* feature values lie beyond input_bound"
)  # the checks bring rows around 100
@pytest.mark.filterwarnings(
    "ignore::reticent.PrivacyWarning"
)  # some checks fit twice on the same rows, which is warned of
@parametrize_with_checks(
    [
        PosthocEncoder(
            **SMALL,
            obfuscator=NoiseAware(hidden=(8,), epochs=3, outputs=2),
            calibration=Calibration(head_epochs=1),
            mechanism="laplace",
        ),
        PosthocClassifier(
            **SMALL, classifier=LabelAware(hidden=(8,), epochs=30), mechanism="noisy-max"
        ),
        ConvexCertifiedClassifier(
            epsilon=100.0, classes="observed", norm_bound=500.0, regularization=0.1
        ),
        PublicRanges((-100.0, 100.0)),
        NoisyGradientClassifier(**TOTAL, steps=3, classes="observed", features=RANGE),
        NoisyGradientRegressor(**TOTAL, target_range=(-500.0, 500.0), features=RANGE),
        PowerEncoder(
            epsilon=50.0,
            delta=0.0,
            radius=None,
            schema=(-100.0, 100.0),
            mechanism="code",
            random_state=0,
        ),
    ],
    expected_failed_checks=expected_failures,
    **STRICT,
)
def test_estimator(estimator: Any, check: Any) -> None:
    try:
        check(estimator)
    except AssertionError:
        if getattr(check, "func", check).__name__ not in by_chance(estimator):
            raise
        pytest.xfail("two answers to one row draw different noise")
