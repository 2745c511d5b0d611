"""The contract of everything that releases, for certified training and for systems of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.systems import (
    CertifiedClassifier,
    CertifiedEnsemble,
    CertifiedNetwork,
    ClippedDescent,
    CodeEncoder,
    ConvexCertifiedClassifier,
    ExplainedVariance,
    HiddenLayer,
    LabelAware,
    NearRows,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    PublicReference,
    VectorTraining,
    Within,
)
from reticent.testing import Case, Check, checks_of
from tests.systems.votes.test_contract import LABELS, QUERY, ROWS

RANDOM = np.random.default_rng(0)
PUBLIC = RANDOM.uniform(size=(60, 2))
SIDES = (PUBLIC[:, 0] > 0.5).astype(int)
NEAR = np.array([[0.45, 0.5], [0.55, 0.5]])
CERTIFIED: dict[str, Any] = {
    "one network": CertifiedClassifier(
        epsilon=1.0, classes=(0, 1, 2), k_max=3, training=ClippedDescent(epochs=2)
    ),
    "one network, signed distance": CertifiedClassifier(
        epsilon=1.0, delta=1e-3, classes=(0, 1), k_max=3
    ),
    "ensemble": CertifiedEnsemble(
        epsilon=1.0, classes=(0, 1), members=2, k_max=2, training=ClippedDescent(epochs=1)
    ),
    "convex": ConvexCertifiedClassifier(epsilon=1.0, classes=(0, 1, 2)),
    "hidden layer beside public models": CertifiedNetwork(
        epsilon=1.0,
        classes=(0, 1),
        training=HiddenLayer(records=20, units=4, random_state=0),
        features=PublicReference(models=[LogisticRegression()], rows="embedding"),
    ),
    "convex beside public models": ConvexCertifiedClassifier(
        epsilon=1.0,
        classes=(0, 1),
        features=PublicReference(models=[LogisticRegression()], rows="embedding"),
    ),
}
INPUTS = {
    "posthoc vectors": PosthocEncoder(
        epsilon=2.0, delta=0.0, radius=0.1, embedder="identity", random_state=0,
        obfuscator=NoiseAware(outputs=1, hidden=(4,), epochs=1), mechanism="laplace",
    ),
    "posthoc labels": PosthocClassifier(
        epsilon=2.0, delta=0.0, radius=0.1, embedder="identity", random_state=0,
        classifier=LabelAware(hidden=(4,), epochs=2),
    ),
    "score codes": PowerEncoder(
        epsilon=2.0, delta=0.0, radius=None, schema=(0.0, 1.0), mechanism="code",
        random_state=0,
    ),
    "noise within a radius": PowerEncoder(
        epsilon=2.0, delta=0.0, radius=0.1, schema=(0.0, 1.0), mechanism="k-norm-l2",
        random_state=0,
        training=VectorTraining(outputs=1, hidden=(4,), epochs=1, head_epochs=1),
    ),
}  # fmt: skip

MANY = RANDOM.uniform(size=(100, 2))
CODES = {
    "codes of rows": CodeEncoder(epsilon=2.0, schema=(0.0, 1.0), random_state=0, nodes=4),
    "codes of points": CodeEncoder(
        epsilon=2.0, targets=("target", ExplainedVariance()), random_state=0, nodes=4
    ),
    "codes within a radius": CodeEncoder(
        epsilon=2.0, neighbours=Within(0.2), random_state=0
    ),
    "codes near public rows": CodeEncoder(
        epsilon=2.0, neighbours=NearRows(12, 4), random_state=0
    ),
}  # fmt: skip


def response_law(fitted: Any) -> dict[Any, float]:
    """The chances of labels by calibrated randomised response to the stable distance."""
    (label,), (level,) = fitted.stable_distances(QUERY)
    mechanism = fitted.query_.mechanism
    right = float(mechanism.right_probabilities[min(level, mechanism.max_level)])
    others = [other for other in fitted.classes if other != label]
    return {int(label): right} | dict.fromkeys(others, (1.0 - right) / len(others))


CASES = {
    **{
        name: Case(
            estimator=system,
            X=ROWS,
            y=LABELS,
            queries=QUERY,
            fit={"public_X": PUBLIC, "public_y": SIDES} if "beside" in name else {},
            labels=system.classes,
            law=None if "distance" in name else response_law,
        )
        for name, system in CERTIFIED.items()
    },
    **{
        name: Case(estimator=system, X=PUBLIC, y=SIDES, queries=NEAR, neighbours=NEAR)
        for name, system in INPUTS.items()
    },
    **{
        name: Case(
            estimator=system,
            X=MANY,
            y=(MANY[:, 0] > 0.5).astype(int),
            queries=NEAR,
            neighbours=NEAR,
        )
        for name, system in CODES.items()
    },
}
CHECKS = [
    pytest.param(check, id=f"{name}, {check.name}")
    for name, case in CASES.items()
    for check in checks_of(case, seconds=0.5)
]


@pytest.mark.filterwarnings("ignore:X:UserWarning")  # of rows that were cut to a public bound
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check) -> None:
    """Chance fails the audit of a sound system once in 10^6 runs."""
    check()
