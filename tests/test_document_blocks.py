"""Every block of Python in the documents runs, in the order of its page, on small data.

What a page takes as given (its reader's records, networks and scopes) is made in a prelude here;
everything else is on the page.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LEDGER = """
from reticent.published.certified import GlobalSensitivityResponse
from reticent.core import AddRemove, Guarantee, Replace, Scope
from reticent.ledger import Ledger
from reticent.noise import SecureSampler
ledger = Ledger.create("budgets.db")
scope = Scope(principal="acme", subject="ward-7")
"""

DIGITS = """
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
"""

ADULT = """
import csv
import numpy as np
from reticent.datasets import load_adult_sample
table = load_adult_sample()
rows, labels = table.train_rows, table.train_labels
public_rows, public_labels = rows[:300], labels[:300]
private_rows, new_rows, labels = rows[300:600], rows[600:620], labels[300:600]
"""

ENCODER = """
import numpy as np
from reticent import PowerEncoder
from reticent.systems import VectorTraining
from reticent.tables import Numeric, TabularSchema as Schema
encoder = PowerEncoder(
    epsilon=12.0, delta=0.0, radius=None, schema=Schema([Numeric("age", 0, 100)]),
    training=VectorTraining(epochs=1), random_state=0,
)
ages = np.linspace(0, 100, 100)
encoder.fit(ages.reshape(-1, 1), (ages > 50).astype(int))
"""

PRELUDES = {
    # The package of the page's last block is the class of its first.
    "docs/write-your-own.md": """
import sys, types
class Sides(types.ModuleType):
    def __getattr__(self, name):
        if name != "SidesClassifier":
            raise AttributeError(name)
        return SidesClassifier
sys.modules["sides"] = Sides("sides")
""",
    "README.md": DIGITS
    + """
import csv
from reticent.datasets import load_adult_sample
public_pictures, public_labels, private_pictures = X[:300] / 16, y[:300], X[300:310] / 16
table = load_adult_sample()
for name, part in (("public.csv", slice(0, 300)), ("private.csv", slice(300, 600))):
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*table.columns, "label"])
        for row, label in zip(table.train_rows[part], table.train_labels[part]):
            writer.writerow([*row, label])
""",
    "docs/certified.md": LEDGER
    + DIGITS
    + """
X, y = X[:, 20:30][y < 2][:120] / 16, y[y < 2][:120]
queries = X[:5]
ledger.grant(Scope(subject="ward-7"), Guarantee(5.0, 0.0, AddRemove(data_set="ward 7")))
""",
    "docs/exact-search.md": """
import numpy as np
from reticent.core import Box, Norm
from reticent.networks import affine_chain
rng = np.random.default_rng(0)
network = affine_chain(
    [rng.normal(size=(6, 8)), rng.normal(size=(3, 6))], [rng.normal(size=6), np.zeros(3)]
)
center, points = np.zeros(8), rng.normal(size=(3, 8))
""",
    "docs/ledger.md": LEDGER
    + """
from reticent.core import Neighborhood, Norm


class Answers:
    adjacency = AddRemove(1)
    inner = GlobalSensitivityResponse(epsilon=0.1, adjacency=adjacency)
    event = inner.event

    def release(self, queries):
        return self.inner.release(queries, [0] * len(queries), sampler=SecureSampler())


mechanism, queries, receipt_id = Answers(), [0, 1, 1], "receipt-1"
ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove(1)))

from reticent.tables import read_names, read_rows
with open("visits.csv", "w") as file:
    file.write("person,age\\n" + "".join(f"p{n},{20 + n}\\n" for n in range(6)))
"""
    + ENCODER
    + """
ledger.grant(Scope(subject="patient-7"), Guarantee(100_000.0, 0.0, encoder.guarantee.adjacency))
requests = [ages[:3].reshape(-1, 1), ages[3:5].reshape(-1, 1)]
""",
    "docs/power.md": ADULT
    + """
place = list(table.columns).index("marital-status")
wed = np.array([row[place] == "Married-civ-spouse" for row in table.train_rows])
income, married = public_labels, wed[:300]
private_income, private_married = labels, wed[300:600]
""",
    "docs/private-knn.md": DIGITS
    + """
private_pictures, labels, public_pictures = X[:900] / 16, y[:900], X[900:1500] / 16
private_pictures, public_pictures = (
    part.reshape(-1, 8, 8) for part in (private_pictures, public_pictures)
)
owners = list(range(900))
public_X, public_y = X[:200] / 16, y[:200] % 2
private_X, private_y = X[200:1100] / 16, y[200:1100] % 2
queries = X[1100:1120] / 16
""",
    "docs/radius.md": DIGITS + "points, labels = X[:300, 20:26] / 16, y[:300]",
    "docs/size.md": LEDGER
    + ENCODER
    + """
rows = ages.reshape(-1, 1)
ledger.grant(Scope(subject="ward-7"), Guarantee(10_000.0, 0.0, encoder.guarantee.adjacency))
rng = np.random.default_rng(0)
for part in range(2):
    np.save(f"x{part}.npy", rng.uniform(-6, 6, size=(500, 4)))
    np.save(f"y{part}.npy", rng.integers(10, size=500))
""",
    "docs/tables.md": LEDGER
    + """
import pandas as pd
from reticent.datasets import load_adult_sample
table = load_adult_sample()
public_rows = pd.DataFrame(table.train_rows[:200], columns=table.columns)
public_rows["label"] = table.train_labels[:200]
pd.DataFrame({"age": [30, 40, 50]}).to_parquet("rows.parquet")
ledger.grant(Scope(subject="ward-7"), Guarantee(100.0, 0.0, Replace()))
"""
    + ENCODER,
    "docs/training.md": "from reticent import BetaVAE, NoiseAware, PosthocEncoder",
    "docs/votes.md": LEDGER
    + DIGITS
    + """
ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-4, AddRemove(data_set="ward 7")))
X, y, rows_without_labels, anything = X[:1300] / 16, y[:1300], X[1300:1700] / 16, X[1700:] / 16
""",
}
"""What is given before a page begins, by page."""


def blocks(page: Path) -> list[str]:
    found = re.findall(
        r"^( *)```python\n(.*?)^\1```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    return [textwrap.dedent(text) for _, text in found]


PAGES = [
    path
    for path in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    if blocks(path) and "tutorials" not in path.parts
]


LONG = {
    "README.md",
    "docs/plan.md",
    "docs/power.md",
    "docs/private-knn.md",
    "docs/write-your-own.md",
}
"""Pages that take long, since nothing on them is cut short; the same calls on smaller data are on
other pages: docs/start/records.md, docs/choose/method.md, docs/votes.md. What the last one defines
is checked by tests/testing/test_check_system.py.
"""

TORCH = {
    "docs/ledger.md",
    "docs/size.md",
    "docs/start/hospital.md",
    "docs/tables.md",
    "docs/training.md",
    *LONG,
}
"""Pages that need the extra `networks`."""


SERVED = {"docs/client.md"}
"""Pages that ask a service: what they import has to be there. Their calls run in tests/client and
on the page of the tutorial, against servers that listen.
"""


def cases() -> list[object]:
    found = []
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        marks = [pytest.mark.soak] if name in LONG else [pytest.mark.slow]
        found.append(pytest.param(page, id=name, marks=marks))
    return found


def test_pages_that_are_named_are_there() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert TORCH | SERVED | set(PRELUDES) <= names


@pytest.mark.parametrize("page", cases())
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = page.relative_to(ROOT).as_posix()
    if name in TORCH:
        pytest.importorskip("torch")
    space: dict[str, object] = {"__name__": "page"}
    exec(PRELUDES.get(name, ""), space)
    for number, text in enumerate(blocks(page), 1):
        code = ast.parse(text)
        if name in SERVED:
            code.body = [
                each for each in code.body if isinstance(each, ast.Import | ast.ImportFrom)
            ]
            assert code.body
        exec(compile(code, f"{name}, block {number}", "exec"), space)
