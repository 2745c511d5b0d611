"""Public names: those of the package itself are pinned, and all that a package lists exist."""

from __future__ import annotations

import importlib

import pytest

import reticent

TOP = (
    "BetaVAE Calibration CellsClassifier CellsRegressor CertifiedClassifier CertifiedEnsemble "
    "ConvexCertifiedClassifier Identity IndividualKNNClassifier InputPlan LabelAware "
    "LinearVoteClassifier MomentClassifier MomentRegressor Named NearestRowClassifier "
    "NoiseAware NoisyGradientClassifier NoisyGradientRegressor Plan "
    "PosthocClassifier PosthocEncoder PowerEncoder PrivacyWarning PrivateKNNClassifier "
    "PrivateKNNStudent PublicRanges Published __version__ load plan plan_inputs"
)
PACKAGES = (
    "accounting attacks audit client core datasets ledger lipschitz neighbours networks noise "
    "plots radius release retraining service systems tables"
)


def test_the_names_that_a_user_meets_first_are_the_pinned_ones():
    assert sorted(reticent.__all__) == sorted(TOP.split())


@pytest.mark.parametrize("package", ["reticent", *map("reticent.{}".format, PACKAGES.split())])
def test_all_public_names_exist_once(package):
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__)) > 0
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_estimators_are_the_same_objects_everywhere():
    from reticent.systems import PosthocClassifier, PosthocEncoder

    assert reticent.PosthocEncoder is PosthocEncoder
    assert reticent.PosthocClassifier is PosthocClassifier
    with pytest.raises(AttributeError, match="no attribute 'PosthocDecoder'"):
        _ = reticent.PosthocDecoder
