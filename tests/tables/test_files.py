"""CSV files read by column names: against csv.DictReader and float, for every way to write a
file, and every way to spoil one.
"""

from __future__ import annotations

import csv
import gzip
import io
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.core.files import LimitedReader
from reticent.tables import files as tabular_files
from reticent.tables.attributes import Categorical, Numeric, OneHot
from reticent.tables.files import csv_batches, read_names, read_rows
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema(
    (
        Numeric("age", 0, 100),
        Numeric("gain", 0, 1000, missing=-1),
        Categorical("work", ("farm hand", "office", "?")),
        OneHot("zone", ("zone1", "zone2")),
    )
)
NUMBERS = TabularSchema((Numeric("a", 0, 10), Numeric("b", 0, 10)))
GOOD = "age,gain,work,zone1,zone2\n30,5,office,1,0\n41.5,,?,0,1\n"

CELLS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=6)
ODD = (
    "7",
    "+.5",
    "5.",
    " 1e5\t",
    "1e",
    "1_0",
    "\u0661",
    "1\xa0",
    "0x1",
    "1\0",
    "\0",
    "1d2",
    "infinity",
    "--1",
    "1 2",
    "",
    ".",
    "1e400",
)
WORDS = ("x", " y", "b c ", "", '"x"', '"b\nc"', "2.5", "\xe9")
SPOILT = (*WORDS, "z", '"b" c', '"x,y"', '"x""y"', 'x"y"', '"x\ny"', '"x', '"', '","', "x,y", "2,5")
PLAIN = st.floats(-1e308, 1e308).flatmap(
    lambda number: st.sampled_from([f"{number!r}", f"{number:.3e}", f'"{number}"'])
)
MIXED = TabularSchema(
    (Numeric("a", 0, 10), Categorical("w", ("x", "y", "b c", "b\nc", "", 2.5, "\xe9")))
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.floats(-1e6, 1e6),
            "gain": st.one_of(st.just(-1.0), st.floats(0, 2000)),
            "work": st.sampled_from(["farm hand", "office", "?"]),
            "zone1": st.sampled_from([0, 1]),
            "note": CELLS,
        }
    ),
    min_size=1,
    max_size=12,
)


def file_of(folder: Path, content: str | bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    records=RECORDS,
    order=st.permutations(["age", "gain", "work", "zone1", "zone2", "note"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    packed=st.booleans(),
    mark=st.booleans(),
    block=st.integers(1, 6),
)
def test_whatever_way_a_file_is_written(
    tmp_path, records, order, quoting, ending, packed, mark, block
) -> None:
    for record in records:
        record["zone2"] = 1 - record["zone1"]
        if (
            quoting == csv.QUOTE_MINIMAL
        ):  # which leaves bare the line ending that is not its own: no reader can tell
            record["note"] = record["note"].replace("\r", "").replace("\n", "")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, order, quoting=quoting, lineterminator=ending)
    writer.writeheader()
    writer.writerows(records)
    content = text.getvalue().encode("utf-8-sig" if mark else "utf-8")
    path = file_of(tmp_path, gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular_files, "_BLOCK", block)
        rows = read_rows(path, SCHEMA, ignore=["note"])
    expected = [[record[name] for name in SCHEMA.column_names] for record in records]
    assert rows.tolist() == expected
    np.testing.assert_array_equal(SCHEMA.encode(rows), SCHEMA.encode(expected))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400
)
@given(
    lines=st.lists(st.tuples(PLAIN, st.sampled_from(WORDS)), min_size=1, max_size=6),
    odd=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(ODD), st.just("x")),
            st.tuples(st.just("7"), st.sampled_from(SPOILT)),
        ),
        max_size=1,
    ),
    ending=st.sampled_from(["\n", "\r\n"]),
    at_once=st.integers(1, 60),
)
def test_the_quick_way_reads_what_the_careful_one_reads(
    tmp_path, lines, odd, ending, at_once
) -> None:
    written = ending.join(["a,w", *(f"{number},{word}" for number, word in [*lines, *odd])])
    path = file_of(tmp_path, written, "plain.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular_files, "_AT_ONCE", at_once)
        quick = outcome(path, MIXED)
        patch.setattr(tabular_files._Reader, "_as_arrow", lambda *_: None)
        assert quick == outcome(path, MIXED)
    if not odd:
        assert [cell for cell, _ in quick] == [float(number.strip('"')) for number, _ in lines]


def outcome(path: Path, schema: TabularSchema) -> list[Any] | str:
    try:
        return list(read_rows(path, schema).tolist())
    except InvalidInput as error:
        return str(error)


def test_the_quick_way_is_taken_and_gives_doubles(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pyarrow")
    numbers = np.random.default_rng(0).normal(size=(50, 2)) * 10.0 ** np.arange(-25, 25)[:, None]
    content = "b,a\n" + "".join(f'{second!r},"{first!r}"\n' for first, second in numbers.tolist())
    monkeypatch.setattr(
        tabular_files._Reader, "table", lambda *_: pytest.fail("took the careful way")
    )
    rows = read_rows(file_of(tmp_path, content), NUMBERS)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, numbers)
    words = read_rows(file_of(tmp_path, 'w,a\n"b c",1\nx,2\n'), MIXED)
    assert words.tolist() == [[1.0, "b c"], [2.0, "x"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,0", "line 4: 3 cells"),
        ("1,2,0,0.5", "line 4, attribute 'kind'"),
        ("1,2,0,nan", "line 4, column 'y'"),
        ("1,2,0,secret", "line 4, column 'y'"),
    ],
)
@pytest.mark.parametrize("block", [1, 100])
def test_files_of_numbers_are_checked_as_closely(
    tmp_path, monkeypatch, block, line, message
) -> None:
    monkeypatch.setattr(tabular_files, "_BLOCK", block)
    schema = TabularSchema((Numeric("a", 0, 10), OneHot("kind", ("x", "y"))))
    good = "a,note,x,y\n1,2,0,1\n3,4,1,0\n"
    assert read_rows(file_of(tmp_path, good), schema, ignore=["note"]).tolist() == [
        [1.0, 0.0, 1.0],
        [3.0, 1.0, 0.0],
    ]
    with pytest.raises(InvalidInput) as caught:
        read_rows(file_of(tmp_path, f"{good}{line}\n5,6,1,0\n"), schema, ignore=["note"])
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_blanks_missing_values_and_the_order_of_columns(tmp_path) -> None:
    content = ' zone2,work , age,gain,zone1\n 0, "farm hand",30 , ,1\n1,?,4e1,-1,0.0\n\n  \n'
    rows = read_rows(file_of(tmp_path, content), SCHEMA)
    assert rows.tolist() == [[30.0, -1.0, "farm hand", 1.0, 0.0], [40.0, -1.0, "?", 0.0, 1.0]]
    encoded = SCHEMA.encode(rows)
    np.testing.assert_array_equal(
        encoded, SCHEMA.encode([[30, -1, "farm hand", 1, 0], [40, -1, "?", 0, 1]])
    )


@pytest.mark.parametrize("block", [1, 2, 100])
def test_lines_are_counted_where_records_begin(tmp_path, monkeypatch, block) -> None:
    monkeypatch.setattr(tabular_files, "_BLOCK", block)
    content = (
        'age,gain,work,zone1,"zo\nne2 note",zone2\n'
        '1,2,?,1,"two\nlines",0\n1,2,?,1,,0\nsecret,2,?,1,,0\n'
    )
    with pytest.raises(InvalidInput, match="line 6, column 'age': cannot be read as a number"):
        read_rows(file_of(tmp_path, content), SCHEMA, ignore=["zo\nne2 note"])
    for middle in ("a,b\n1,2\n\n3,4\n", 'a,b\n1,"2"\n \n"3",4\n', "a,b\n1,2\n\n\n3,x\n"):
        with pytest.raises(InvalidInput, match=r"lines? 3.*: blank, and lines follow it"):
            read_rows(file_of(tmp_path, middle), NUMBERS)
    assert read_rows(file_of(tmp_path, "a,b\n1,2\n\n\n\n"), NUMBERS).tolist() == [[1.0, 2.0]]


def changed(**cells: str) -> str:
    row = {"age": "30", "gain": "5", "work": "office", "zone1": "1", "zone2": "0", **cells}
    return f"{GOOD}{','.join(row.values())}\n"


BAD: list[tuple[str | bytes, str]] = [
    ("", "is empty"),
    ("age,gain,work,zone1,zone2\n\n\n", "no rows"),
    ("30,5,secret,1,0\n", "names 0 of 5 columns"),
    ("age,gain,work,zone1\n30,5,secret,1\n", "not 'zone2'"),
    ("age,gain,work,zone1,zone2,age\n30,5,office,1,0,31\n", "column 'age'"),
    ("age,gain,work,zone1,zone2,pay\n30,5,office,1,0,secret\n", "'pay'"),
    (GOOD + "30,5,office,1\n", "line 4: 4 cells"),
    (changed(age="secret"), "line 4, column 'age'"),
    (changed(age="1_000"), "line 4, column 'age'"),
    (changed(age="\u0661"), "line 4, column 'age'"),
    (changed(age=""), "line 4, column 'age'"),
    (changed(gain="nan"), "line 4, column 'gain'"),
    (changed(age="1e999"), "line 4, column 'age'"),
    (changed(work="secret"), "line 4, column 'work'"),
    (changed(work=""), "line 4, column 'work'"),
    (changed(zone2="1"), "line 4, attribute 'zone'"),
    (changed(zone1="0.5", zone2="0.5"), "line 4, attribute 'zone'"),
    ('age,gain,"secret\n30,5,office,1,0\n', "line 1 "),
    (GOOD + '30,5,"off"secret,1,0\n', "line 4 "),
    (GOOD.encode() + b"30,5,secr\xe9t,1,0\n", "UTF-8"),
    (gzip.compress(GOOD.encode())[:-9], "gzip"),
    (gzip.compress(GOOD.encode())[:-8] + b"secret!!", "gzip"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=range(len(BAD)))
def test_refuses_without_showing_a_cell(tmp_path, content, message) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_rows(file_of(tmp_path, content), SCHEMA, name="input")
    shown = str(caught.value)
    assert message in shown
    assert shown.startswith("input=")
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert "off" not in shown


@pytest.mark.parametrize(
    ("ignore", "message"),
    [
        ((), "does not name 'pay', 'id'; take such columns out, or ignore each by name"),
        (("pay",), "does not name 'id'"),
        (("pay", "id", "day"), "has no column 'day' to ignore"),
        (("pay", "id", "b"), "the schema needs 'b'"),
    ],
)
def test_columns_are_ignored_by_name_only(tmp_path, ignore, message) -> None:
    path = file_of(tmp_path, "pay,a,id,b\n<=50K,1,x,2\n>50K,3,y,4\n")
    assert read_rows(path, NUMBERS, ignore=("id", " pay ")).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(InvalidInput, match=message):
        read_rows(path, NUMBERS, ignore=ignore)


NAMES = (
    st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=6)
    .map(str.strip)
    .filter(lambda name: name and name.isprintable())
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(
    people=st.lists(NAMES, min_size=1, max_size=6),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ending=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
    block=st.sampled_from([1, 2, 100]),
)
def test_names_are_those_of_the_rows(tmp_path, people, quoting, ending, packed, block) -> None:
    """Against csv.DictReader, with a note of several lines between the numbers, which must not
    shift rows against names.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=ending)
    writer.writerow(["a", "note", " who ", "b"])
    for number, name in enumerate(people):
        writer.writerow([number, "x\ny," * (number % 3), f" {name} ", 1])
    content = (text.getvalue() + ending * 2).encode()
    expected = [
        row[" who "].strip() for row in csv.DictReader(io.StringIO(text.getvalue(), newline=""))
    ]
    assert expected == people
    stored = gzip.compress(content) if packed else content
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular_files, "_BLOCK", block)
        for source in (stored, file_of(tmp_path, stored)):
            assert read_names(source, "who") == people
            rows = read_rows(source, NUMBERS, ignore=("note", "who"))
            assert rows[:, 0].tolist() == list(range(len(people)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "column 'who', got 0"),
        ("who,a,who\nx,1,y\n", "column 'who', got 2"),
        ("who,a\nx,1\n ,secret\n", "line 3, column 'who'"),
        ('who,a\nx,1\n"secret\tname",2\n', "line 3, column 'who'"),
        ("who,a\nx,1\n" + "secret" * 34 + ",2\n", "line 3, column 'who'"),
        ("who,a\nx,1\nsecret\n", "line 3"),
        ("who,a\nx,1\n\nsecret,2\n", "line 3"),
        (b"who,a\nsecr\xe9t,1\n", "UTF-8"),
        (gzip.compress(b"who,a\nsecret,1\n" * 50)[:-12], "gzip"),
    ],
)
def test_names_are_refused_without_showing_a_cell(tmp_path, content, message) -> None:
    path = file_of(tmp_path, content)
    for source, where in ((path, f"input={str(path)!r}"), (path.read_bytes(), "input")):
        with pytest.raises(InvalidInput) as refused:
            read_names(source, "who", name="input")
        assert str(refused.value).startswith(where)
        assert message in str(refused.value)
        assert "secret" not in str(refused.value)


def test_a_packed_table_that_unpacks_too_far_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = TabularSchema((Numeric("a", 0, 1),))
    content = b"a\n" + b"0.5\n" * 1000
    path = file_of(tmp_path, gzip.compress(content))
    assert len(read_rows(path, schema, ignore=[], name="input")) == 1000
    monkeypatch.setattr(
        tabular_files, "LimitedReader", partial(LimitedReader, most=len(content) - 1)
    )
    with pytest.raises(
        InvalidInput,
        match=r"input='.*': unpacks to more than the 4001 bytes .* pass the plain file",
    ):
        read_rows(path, schema, ignore=[], name="input")


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("block", [1, 100])
@pytest.mark.parametrize("note", [False, True])
def test_semicolons_tabs_and_decimal_commas(tmp_path, monkeypatch, delimiter, block, note) -> None:
    monkeypatch.setattr(tabular_files, "_BLOCK", block)
    lines = [["a", "b"], ["1,5", "2"], ["3", "-0,25e1"]]
    if note:
        lines = [[*line, "A. B, C"] for line in lines]
        lines[0][2] = "note"
    content = "".join(delimiter.join(line) + "\n" for line in lines)
    rows = read_rows(file_of(tmp_path, content), NUMBERS, ignore=["note"] if note else [])
    assert rows.tolist() == [[1.5, 2.0], [3.0, -2.5]]
    assert (
        read_rows(
            file_of(tmp_path, content.replace("5,", "5.").replace("1,", "1.").replace("0,", "0.")),
            NUMBERS,
            ignore=["note"] if note else [],
        ).tolist()
        == rows.tolist()
    )


@pytest.mark.parametrize("block", [1, 3, 100])
def test_all_that_is_wrong_is_said_at_once(tmp_path, monkeypatch, block) -> None:
    monkeypatch.setattr(tabular_files, "_BLOCK", block)
    header, *bad = "who,age,gain,work,zone1,zone2", "a,secret,1,?,1,0", "b,1,1,no,1,1", ",2,1\n"
    lines = [header, *bad, *["c,secret,1,?,1,0"] * 7]
    with pytest.raises(InvalidInput) as refused:
        list(csv_batches(file_of(tmp_path, "\n".join(lines)), SCHEMA, subject_column="who"))
    said = str(refused.value)
    for part in (
        "lines 2, 6, 7, 8, 9 and 3 more, column 'age': cannot be read as a number",
        "line 3, column 'work': is not among its public categories",
        "line 3, attribute 'zone': expected one 1",
        "line 4: 3 cells, expected 6",
        "line 5: blank",
    ):
        assert part in said
    assert "secret" not in said
    columns = "gain,gain,work,zone1\n1,1,?,1\n"
    ignored, path = ["day", "work"], file_of(tmp_path, columns)
    with pytest.raises(InvalidInput) as refused:
        list(csv_batches(path, SCHEMA, ignore=ignored, subject_column="who"))
    for part in ("not 'age', 'zone2'", "column 'who', got 0", "needs 'work'", "no column 'day'"):
        assert part in str(refused.value)
