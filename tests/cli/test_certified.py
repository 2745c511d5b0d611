"""release and card on bundles of certified classifiers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.systems import CertifiedClassifier, CertifiedEnsemble


@pytest.fixture(scope="module", params=[CertifiedClassifier, CertifiedEnsemble])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    iris = load_iris()
    names = iris.target_names[iris.target]
    classes = list(iris.target_names)
    return (
        request.param(epsilon=2.0, classes=classes, k_max=2, data_set="iris")
        .fit(iris.data, names)
        .save(tmp_path_factory.mktemp("bundles") / "certified")
    )


def test_release_writes_labels_and_a_receipt(command, bundle, inputs, tmp_path):
    answer = command("release", bundle, "--input", inputs, "--output", tmp_path / "out.npz")
    assert (answer.status, answer.err) == (0, "")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        assert set(written["values"]) <= {"setosa", "versicolor", "virginica"}
        receipt = json.loads(written["receipt"].tobytes())
    assert receipt["certificate"] == "parameter intervals"
    assert receipt["guarantee"]["adjacency"] == {
        **{"type": "AddRemove", "records": 1},
        **{"unit": "record", "data_set": "iris"},
    }
