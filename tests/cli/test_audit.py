"""``reticent audit bundle``: a table, a page, an exit status."""

from __future__ import annotations

import pytest

from reticent.systems import PosthocEncoder
from reticent.systems.loading import load


def test_a_refuted_claim_fails(command, vectors_bundle, inputs, tmp_path, monkeypatch):
    """A bundle whose mechanism was edited to half of its noise."""

    def faulty(folder, trusted_key, embedder, *, research):
        system = load(folder, trusted_key=trusted_key)
        assert isinstance(system, PosthocEncoder)
        mechanism = system.query_.mechanism
        system.query_.__dict__["mechanism"] = type(mechanism)(
            sensitivity=mechanism.sensitivity / 2,
            epsilon=mechanism.epsilon,
            dimension=mechanism.dimension,
            adjacency=mechanism.adjacency,
            evaluation_error=mechanism.evaluation_error,
        )
        return system

    monkeypatch.setattr("reticent.cli.audit.open_bundle", faulty)
    page = tmp_path / "audit.html"
    answer = command(
        "audit", "bundle", vectors_bundle, "--input", inputs,
        "--draws", "60000", "--seed", "0", "--page", page,
    )  # fmt: skip
    assert answer.status == 19
    assert "refuted" in answer.err
    assert "refuted: " in page.read_text(encoding="utf-8")


@pytest.fixture
def cancer(tmp_path):
    """The breast cancer table of scikit-learn as a CSV file, and a configuration of a fit."""
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer(as_frame=True).frame.sample(frac=1.0, random_state=0)
    table = table[["mean radius", "mean texture", "mean smoothness", "target"]]
    table.iloc[:200].to_csv(tmp_path / "rows.csv", index=False)
    table.iloc[400:].to_csv(tmp_path / "public.csv", index=False)
    path = tmp_path / "fit.toml"
    path.write_text(
        """
estimator = "NoisyGradientRegressor"
bundle = "bundle"

[parameters]
epsilon = 2.0
delta = 1e-5
target_range = [0, 1]
records = 200
steps = 1
features = {part = "Features", reach = 1.0}

[data]
inputs = "rows.csv"
label_column = "target"
further = {public_X = "public.csv"}
"""
    )
    return path


def test_records_of_a_table_are_audited(command, cancer):
    """Refuted with a chance of at most 1e-6."""
    answer = command("audit", "records", cancer, "--runs", "400", "--alpha", "1e-6")
    assert answer.status == 0
    assert "the claim is epsilon=2, delta=1e-05" in answer.out
    assert not (cancer.parent / "bundle").exists()
