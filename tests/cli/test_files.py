"""Files in and out: what a stranger does with a table, from a draft to answers, in every format."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine

from reticent import load
from reticent.cli.main import run

FIT = """
estimator = "PowerEncoder"
bundle = "bundle"

[parameters]
epsilon = 4.0
delta = 0.0
radius = "none"
training = {part = "VectorTraining", epochs = 3}
random_state = 0

[data]
inputs = "public.parquet"
label_column = "kind"
schema = "schema.json"
"""
FIT_CERTIFIED = """
estimator = "CertifiedClassifier"
bundle = "certified"

[parameters]
epsilon = 1.0
classes = [0, 1, 2]
k_max = 2
training = {part = "ClippedDescent", input_bound = 2000.0}

[data]
inputs = "public.csv"
label_column = "kind"
"""


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    bunch = load_wine(as_frame=True)
    return bunch.data.assign(kind=bunch.target)


def test_from_a_draft_to_answers(wine: pd.DataFrame, tmp_path: Path, command) -> None:
    public, private = wine.iloc[::2], wine.iloc[1::2]
    public.to_parquet(tmp_path / "public.parquet")
    public.to_csv(tmp_path / "public.csv", index=False)
    for source in ("public.csv", "public.parquet"):
        drafted = command(
            "schema",
            tmp_path / source,
            "--output",
            tmp_path / "schema.json",
            "--overwrite",
            "--ignore-column",
            "kind",
        )
        assert drafted.status == 0, drafted.err
        assert "13 attributes" in drafted.out
    (tmp_path / "fit.toml").write_text(FIT)
    fitted = command("fit", tmp_path / "fit.toml")
    assert fitted.status == 0, fitted.err
    rows = private[private.columns[::-1]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.reset_index(drop=True).to_feather(tmp_path / "rows.arrow", compression="uncompressed")
    for source, output in (("csv", "parquet"), ("parquet", "arrow"), ("arrow", "csv")):
        done = command(
            "release",
            tmp_path / "bundle",
            "--input",
            tmp_path / f"rows.{source}",
            "--output",
            tmp_path / f"answers.{output}",
            "--ignore-column",
            "kind",
        )
        assert done.status == 0, done.err
        path = tmp_path / f"answers.{output}"
        if output == "csv":
            frame = pd.read_csv(path)
        elif output == "parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pa.ipc.open_file(path).read_all().to_pandas()
        assert len(frame) == len(private)
        assert list(frame.columns[-2:]) == ["withheld", "receipt"]
        assert np.isfinite(frame.iloc[:, 0]).all()


def test_parts_go_on_where_they_were(
    wine: pd.DataFrame, certified: Path, tmp_path: Path, command
) -> None:
    system = load(certified / "certified")
    assert system.feature_names_in_.tolist() == wine.columns[:-1].tolist()
    wine.iloc[:, ::-1].to_parquet(tmp_path / "rows.parquet")
    call = [
        "release",
        certified / "certified",
        "--input",
        tmp_path / "rows.parquet",
        "--output",
        tmp_path / "out",
        "--ignore-column",
        "kind",
        "--rows-per-part",
        "50",
        "--format",
        "csv",
    ]
    first = command(*call)
    assert first.status == 0, first.err
    assert "178 answer(s) in 4 part(s)" in first.out
    receipts = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("part-*.json")]
    assert sorted(receipt["answers"] for receipt in receipts) == [28, 50, 50, 50]
    (tmp_path / "out" / "part-000003.csv").unlink()
    assert "28 answer(s) in 1 part(s)" in command(*call).out
    assert "nothing left to answer" in command(*call).out
    other = command(*call[:-3], "60")
    assert other.status == 2
    assert "another bundle, input or size of parts" in other.err


@pytest.fixture(scope="module")
def certified(wine: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle that reads the columns of wine, and the table."""
    folder = tmp_path_factory.mktemp("certified")
    wine.to_csv(folder / "public.csv", index=False)
    (folder / "fit.toml").write_text(FIT_CERTIFIED)
    assert run(["fit", str(folder / "fit.toml")]) == 0
    return folder


def test_a_file_that_cannot_be_written_is_known_before_the_charge(
    certified: Path, tmp_path: Path, command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    call = ["release", certified / "certified", "--input", certified / "public.csv"]
    call += ["--ignore-column", "kind", "--output", tmp_path / "answers.parquet"]
    monkeypatch.setattr("reticent.systems.CertifiedClassifier.release", None)  # is not reached
    refused = command(*call)
    assert "pyarrow" in refused.err
    assert refused.status not in (0, 70)
