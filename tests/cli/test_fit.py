"""`reticent fit` through the real command line: every system of docs/command-line.md, and what is
refused; `reticent methods`.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import reticent
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger
from reticent.release.bundle import Bundle
from reticent.systems import (
    NoiseAware,
    PosthocEncoder,
)
from reticent.tables import Categorical, Numeric, TabularSchema

GUIDE = Path(__file__).parents[2] / "docs" / "command-line.md"
EXAMPLES = {
    re.search(r'^estimator = "(\w+)"', block, re.M)[1]: block
    for block in re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.S)
    if "estimator" in block
}
IRIS = load_iris()
SCHEMA = TabularSchema(
    (
        *(Numeric(name, 0, 8) for name in ("sepal length", "petal length")),
        Categorical("garden", ("north", "south")),
    )
)
POSTHOC = """
estimator = "PosthocEncoder"
bundle = "out/bundle"

[parameters]
epsilon = 4.0
delta = 0.0
radius = 0.2
embedder = "identity"
mechanism = "laplace"
random_state = 0

[parameters.obfuscator]
part = "NoiseAware"
outputs = 2
hidden = [8]
epochs = 2

[data]
inputs = "x.npy"
labels = "y.npy"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files that the examples name, small."""
    digits = load_digits()
    pictures = (digits.images / 16)[:240]
    np.save(tmp_path / "pictures.npy", pictures)
    np.save(tmp_path / "digits.npy", digits.target[:240])
    np.save(tmp_path / "public-pictures.npy", (digits.images / 16)[240:300])
    np.savez(tmp_path / "records.npz", X=IRIS.data / 8, y=IRIS.target, owners=np.arange(150))
    two = IRIS.target < 2
    np.savez(tmp_path / "two.npz", X=IRIS.data[two] / 8, y=IRIS.target[two])
    np.savez(tmp_path / "objects.npz", X=np.array([{"a": 1}], dtype=object))
    np.save(tmp_path / "x.npy", IRIS.data)
    np.save(tmp_path / "y.npy", IRIS.target)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA.to_dict()))
    lines = ["sepal length,number,petal length,garden,kind"]
    for index, (row, kind) in enumerate(zip(IRIS.data, IRIS.target, strict=True)):
        garden = "south" if (index % 5 == 0) ^ (kind == 2) else "north"
        lines.append(f"{row[0]},{index},{row[2]},{garden},{IRIS.target_names[kind]}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def fit(command: Any, place: Path) -> Any:
    def fit(content: str, *words: str) -> Any:
        (place / "fit.toml").write_text(content)
        return command("fit", place / "fit.toml", *words)

    return fit


@pytest.mark.filterwarnings("ignore:X. .* feature values lie beyond")
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_of_the_guide_end_with_a_bundle_and_its_card(
    fit: Any, command: Any, place: Path, name: str
) -> None:
    answer = fit(EXAMPLES[name])
    assert answer.status == 0, answer.err
    folder = place / "bundle"
    bundle = Bundle.read(folder, system=name)
    assert bundle.card in answer.out
    assert answer.out.splitlines()[-1] == f"written to {folder}"
    assert command("card", folder).out.strip() == bundle.card.strip()
    loaded = getattr(reticent, name).load(folder)
    stated = dict(re.findall(r"^(epsilon|delta) = (\S+)", EXAMPLES[name], re.M))
    assert 0 < loaded.guarantee.epsilon <= float(stated["epsilon"]) * (1 + 1e-9)
    assert loaded.guarantee.delta <= float(stated.get("delta", 0.0)) * (1 + 1e-9)


def test_a_fit_is_what_python_fits(fit: Any, place: Path) -> None:
    assert fit(POSTHOC).status == 0
    encoder = PosthocEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        mechanism="laplace",
        random_state=0,
        obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=2),
    ).fit(IRIS.data, IRIS.target)
    assert Bundle.read(place / "out" / "bundle").identity == encoder.bundle_identity_


def _without(key: str) -> str:
    return re.sub(rf"^{key} = .*\n", "", POSTHOC, flags=re.M)


def _with(old: str, new: str) -> str:
    assert old in POSTHOC
    return POSTHOC.replace(old, new)


REFUSED = {
    "no TOML": ("estimator = ", "config="),
    "no estimator": (_without("estimator"), "estimator:"),
    "no data": (POSTHOC.partition("[data]")[0], "data:"),
    "unknown key": (f"colour = 1\n{POSTHOC}", "colour:"),
    "key that only we set": (f'folder = "/"\n{POSTHOC}', "folder:"),
    "number for a name": (_with('"out/bundle"', "3"), "bundle:"),
    "unknown estimator": (_with("PosthocEncoder", "Posthoc"), "'Posthoc'"),
    "no bundle": (_with("PosthocEncoder", "PrivateKNNClassifier"), "'PrivateKNNClassifier'"),
    "part for an estimator": (_with("PosthocEncoder", "BetaVAE"), "'BetaVAE'"),
    "unknown part": (_with('"NoiseAware"', '"NoiseAwre"'), "'NoiseAwre'"),
    "no part": (_with('part = "NoiseAware"\n', ""), "parameters.obfuscator"),
    "unknown parameter": (_with("hidden =", "widths ="), "parameters.obfuscator.widths"),
    "no epsilon": (_without("epsilon"), "epsilon"),
    "parameter of a part out of its range": (_with("epochs = 2", "epochs = 0"), "epochs=0"),
    "no such labels": (_with("y.npy", "z.npy"), "data.labels="),
    "two kinds of labels": (f'{POSTHOC}label_column = "kind"\n', "data.label_column"),
    "column of an array": (_with('labels = "y.npy"', 'label_column = "kind"'), "data.inputs"),
    "array that is not there": (_with('"x.npy"', '"records.npz"'), "X, y, owners"),
    "array with objects": (_with('"x.npy"', '"objects.npz"'), "Python objects"),
    "schema where none is taken": (f'{POSTHOC}schema = "schema.json"\n', "data.schema"),
    "column that is not there": (EXAMPLES["PowerEncoder"].replace('"kind"', '"sort"'), "'sort'"),
    "no further data": (
        re.sub(
            "^(steps|features) .*\n",
            "",
            EXAMPLES["NoisyGradientClassifier"].replace("NoisyGradient", "PublicStart"),
            flags=re.M,
        ),
        "public_X: expected public rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_a_line_and_leaves_nothing(fit: Any, place: Path, case: str) -> None:
    content, told = REFUSED[case]
    before = {path.name for path in place.iterdir()} | {"fit.toml"}
    answer = fit(content)
    assert answer.status in (2, 3, 4), answer.err
    assert told in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert {path.name for path in place.iterdir()} == before


def test_a_bundle_that_stands_there_is_found_before_anything_is_fitted(
    fit: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fit(POSTHOC).status == 0
    identity = Bundle.read(place / "out" / "bundle").identity
    monkeypatch.setattr(PosthocEncoder, "fit", lambda *_: pytest.fail("something was trained"))
    assert fit(POSTHOC.replace("4.0", "5.0")).status == 2
    assert Bundle.read(place / "out" / "bundle").identity == identity


PUBLIC = """
estimator = "PublicModelsClassifier"
bundle = "bundle"

[parameters]
epsilon = 1.0
delta = 1e-5
classes = ["setosa", "versicolor"]
data_set = "garden"

[data]
inputs = "private.csv"
label_column = "kind"
public = "public.csv"
"""


def test_public_rows_of_a_table_are_described_and_a_fit_is_booked(
    fit: Any, command: Any, place: Path
) -> None:
    """Words that only the private table has are no part of the schema; one fit is one charge."""
    lines = ["length,garden,kind"]
    for index in range(100):
        kind = index % 2
        lines.append(f"{IRIS.data[50 * kind + index // 2, 2]},north,{IRIS.target_names[kind]}")
    lines += [f"3.0,south,{IRIS.target_names[index]}" for index in (0, 1)]
    (place / "public.csv").write_text("\n".join(lines))
    (place / "private.csv").write_text("\n".join(lines).replace("north", "an island"))
    ledger = place / "book.db"
    with closing(Ledger.create(ledger, synchronous="NORMAL")) as book:
        total = Guarantee(1.5, 1e-4, AddRemove(data_set="garden"))
        book.grant(Scope(subject="garden"), total)
    books = ("--ledger", ledger, "--subject", "garden")
    started = PUBLIC.replace("PublicModels", "PublicStart").replace(
        "data_set", "records = 102\ndata_set"
    )
    answer = fit(started, *books)
    assert answer.status == 0, answer.err
    loaded = reticent.PublicStartClassifier.load(place / "bundle")
    assert "island" not in str(loaded.schema_.to_dict())
    asked = command("predict", place / "bundle", "--input", place / "private.csv",
                    "--ignore-column", "kind", "--output", place / "kinds.csv")  # fmt: skip
    assert asked.status == 0, asked.err
    rows = pd.read_csv(place / "private.csv")
    told = pd.read_csv(place / "kinds.csv")["predictions"]
    assert told.tolist() == loaded.predict(rows[["length", "garden"]]).tolist()
    assert fit(PUBLIC, *books, "--overwrite").status == 0
    assert fit(started, *books, "--overwrite").status != 0  # the second one is beyond the budget
    with closing(Ledger.open(ledger)) as book:
        [account] = book.report().accounts
    assert account.spent_epsilon == pytest.approx(1e6, rel=1e-3)
    assert fit(PUBLIC.replace("public = ", "publik = "), *books).status != 0
    assert fit(POSTHOC, *books).status != 0  # its answers are charged, not its fit
