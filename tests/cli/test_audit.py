"""``reticent audit bundle``: a table, a page, an exit status."""

from __future__ import annotations

from reticent.systems import PosthocEncoder
from reticent.systems.loading import load

QUICK = ("--runs", "2000", "--seed", "3")


def test_the_bound_the_claim_and_what_was_tried(command, encoder_bundle, inputs, tmp_path):
    page = tmp_path / "audit.html"
    words = ("audit", "bundle", encoder_bundle, "--data", inputs, *QUICK, "--output", page)
    answer = command(*words)
    assert answer.status == 0
    assert "claim: " in answer.out
    assert "2000 on each neighbour; seed 3; no budget was charged" in answer.out
    assert "not examined: " in answer.out
    assert "written to" in answer.out
    assert "<h2" in page.read_text(encoding="utf-8")
    again = command(*words)
    assert again.status == 2
    assert "exists" in again.err
    assert command(*words, "--overwrite").out == answer.out  # one seed, one audit


def test_a_refuted_claim_fails(command, encoder_bundle, inputs, tmp_path, monkeypatch):
    """A bundle whose mechanism was edited to half of its noise."""

    def faulty(folder, trusted_key):
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
        "audit", "bundle", encoder_bundle, "--data", inputs,
        "--runs", "60000", "--seed", "0", "--output", page,
    )  # fmt: skip
    assert answer.status == 19
    assert "refuted: the claim is epsilon=" in answer.err
    assert "Refuted" in page.read_text(encoding="utf-8")


def test_what_cannot_be_audited_says_why(command, student_bundle, inputs):
    answer = command("audit", "bundle", student_bundle, "--data", inputs, *QUICK)
    assert answer.status == 2
    assert "cannot be audited by itself" in answer.err


def test_bad_numbers_and_damaged_bundles_are_refused(command, encoder_bundle, inputs, tmp_path):
    for words, said in (
        (("--runs", "10"), "expected at least 2000"),
        (("--confidence", "2"), "confidence"),
        (("--seed", "-1"), "seed"),
    ):
        answer = command("audit", "bundle", encoder_bundle, "--data", inputs, *words)
        assert answer.status in (2, 3)
        assert said in answer.err
    (tmp_path / "bundle").mkdir()
    assert command("audit", "bundle", tmp_path / "bundle", "--data", inputs).status == 11
