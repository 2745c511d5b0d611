"""What a fleet plans and learns from codes: local epsilon, worth, and a server's model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from reticent import CodeEncoder
from reticent.cli.main import app
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.fleet import ServerModel, planned_code
from reticent.fleet.rounds import channel_of
from reticent.systems.power.code_targets import Within
from reticent.tables.attributes import Categorical
from reticent.tables.schema import TabularSchema

KINDS, SEEN = ("a", "b", "c", "d"), ("no", "yes")
SCHEMA = TabularSchema((Categorical("kind", KINDS), Categorical("seen", SEEN)))
DELTA = 1e-6


def drawn(rng: np.random.Generator, count: int, chances: list[float]) -> np.ndarray:
    """Rows of equally frequent kinds, each with its chance of being seen."""
    kinds = rng.integers(4, size=count)
    seen = (rng.random(count) < np.array(chances)[kinds]).astype(int)
    return np.column_stack(
        [np.array(KINDS, dtype=object)[kinds], np.array(SEEN, dtype=object)[seen]]
    )


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return drawn(np.random.default_rng(0), 400, [0.2, 0.4, 0.6, 0.8])


def code(epsilon: float = 1.0, *targets: str) -> CodeEncoder:
    return CodeEncoder(
        epsilon=epsilon, schema=SCHEMA, targets=targets or ("kind", "seen"), random_state=0
    )


def test_a_plan_uses_its_central_epsilon_and_no_more(rows: np.ndarray) -> None:
    found = planned_code(code(1.0, "kind"), rows, devices=5000, epsilon=0.5, delta=DELTA)
    channel = channel_of(found.encoder)
    assert 0.45 <= channel.epsilon(devices=5000, delta=DELTA) == found.central <= 0.5
    told = found.to_dict()
    assert told["local_epsilon"] == found.encoder.guarantee.epsilon > 2.0
    assert told["codes"] == found.encoder.channel_.shape[1]
    assert told["targets"]["kind"]["nats"] > 0.3
    more = planned_code(code(1.0, "kind"), rows, devices=50_000, epsilon=0.5, delta=DELTA)
    assert more.encoder.guarantee.epsilon > found.encoder.guarantee.epsilon + 1.0
    with pytest.raises(InvalidParameter):
        planned_code(
            code().set_params(neighbours=Within(1.0)), rows, devices=9, epsilon=1.0, delta=DELTA
        )


def test_a_plan_by_the_command_writes_the_bundle(tmp_path: Path, rows: np.ndarray) -> None:
    SCHEMA.write(tmp_path / "schema.json")
    lines = ["kind,seen", *(",".join(row) for row in rows.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    size = ["--devices", "5000", "--epsilon", "0.5", "--delta", "1e-6"]
    base = ["aggregate", "plan", *size]
    given = ["--public", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.json")]
    asked = [*given, "--target", "kind", "--seed", "0", "--bundle", str(tmp_path / "bundle")]
    done = CliRunner().invoke(app, [*base, *asked, "--json"])
    assert done.exit_code == 0, done.output
    told, bundle = json.loads(done.stdout), CodeEncoder.load(tmp_path / "bundle")
    assert told["local_epsilon"] == bundle.guarantee.epsilon
    assert channel_of(bundle).delta(devices=5000, epsilon=0.5) <= DELTA
    assert CliRunner().invoke(app, [*base, *given]).exit_code != 0
    assert CliRunner().invoke(app, [*base, "--bundle", str(tmp_path / "other")]).exit_code != 0


def test_a_servers_model_follows_the_reports(rows: np.ndarray) -> None:
    """On the devices every kind is seen the other way round than in the public rows."""
    encoder = code(6.0).fit(rows)
    private = drawn(np.random.default_rng(1), 20_000, [0.9, 0.9, 0.1, 0.1])
    counts = encoder.release(private).values.sum(axis=0).astype(np.int64)
    same = np.rint(1e6 * encoder.query_.masses @ encoder.channel_).astype(np.int64)
    asked = np.column_stack([np.array(KINDS, dtype=object), np.full(4, "no", dtype=object)])
    for kind in ("logistic", "boosting"):
        told, untold = (
            ServerModel(encoder, found, "seen", model=kind, random_state=0).fit(rows)
            for found in (counts, same)
        )
        yes = list(told.classes_).index("yes")
        with_reports, without = (one.predict_proba(asked)[:, yes] for one in (told, untold))
        assert np.abs(without - [0.2, 0.4, 0.6, 0.8]).max() < 0.15
        # public labels keep a third of the weight
        assert (with_reports - without)[:2].min() > 0.15
        assert (without - with_reports)[2:].min() > 0.15
        other = asked.copy()
        other[:, 1] = "yes"  # the label of a row has no part in its answer
        assert (told.predict_proba(other) == told.predict_proba(asked)).all()
        assert (told.predict(asked)[:2] == "yes").all()
    with pytest.raises(InvalidInput):
        ServerModel(encoder, counts, "neither")
    with pytest.raises(InvalidInput):
        ServerModel(encoder, counts * 0, "seen").fit(rows)
    with pytest.raises(InvalidInput):
        ServerModel(encoder, counts, "seen").fit(rows[rows[:, 1] == "no"])
