"""Rows of SPSS, Stata and SAS transport files: the encoding theorem, dates, and what is refused."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest

from espalier.core.errors import TableError
from espalier.core.tables import stat_rows
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import person_codes
from espalier.core.tables.text_table import TextTable
from tests.support.layouts import DAYS, NUMBERS, REALS, TEXTS, WRITTEN_DATES, WRITTEN_REALS, WRITTEN_TEXTS
from tests.support.row_by_row import Kind, Layout, check

pyreadstat = pytest.importorskip("pyreadstat")

WRITE = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}
FINITE = tuple(x for x in REALS if x is None or (abs(x) < 1e70 and (x == 0 or abs(x) > 1e-70)))
"""Numbers that each format holds: Stata has no infinity, and transport files have the exponents of IBM floats."""
DAYS_HELD = (dt.date(2020, 1, 2), None, dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 2, 28))
SPSS_REALS = tuple(x for x in REALS if x is None or abs(x) < 1e308)


def kinds(suffix):
    reals = SPSS_REALS if suffix == "sav" else FINITE
    return [
        Kind("double", None, (1.0, 2.0), reals, NUMBERS, WRITTEN_REALS),
        Kind("constant", None, (1.0, 1.0), reals[:4], NUMBERS, WRITTEN_REALS),
        Kind("day", None, (dt.date(2000, 1, 1), dt.date(2001, 5, 6)), DAYS_HELD, DAYS, WRITTEN_DATES),
        Kind("string", None, ("x", "1"), TEXTS, ("numeric", "categorical", "dates"), WRITTEN_TEXTS),
    ]


def written(suffix):
    """A writer of one file; its table gets its long names back, because no format allows blanks in a name."""

    def write(cells, held, folder):
        short = {name: f"c{i}" for i, name in enumerate(cells)}
        frame = {}
        for name, column in cells.items():
            ordinary = "" if held[name] is None else held[name].ordinary[0]
            frame[short[name]] = pd.Series(column, dtype=float if isinstance(ordinary, float) else object)
            if isinstance(ordinary, str):
                frame[short[name]] = frame[short[name]].fillna("")
        place = folder / f"t.{suffix}"
        more = {"file_format_version": 8} if suffix == "xpt" else {}
        WRITE[suffix](pd.DataFrame(frame), str(place), **more)
        read = read_table(place)
        return TextTable({name: read.columns[short[name]] for name in cells}, read.rows, read.source)

    return write


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize("suffix", WRITE)
def test_one_row_never_changes_how_another_is_read(suffix, first, tmp_path):
    outcome = check(kinds(suffix), Layout(suffix, written(suffix), odd_first=first, together=20), tmp_path)
    assert not outcome.broken, outcome.broken[:3]
    assert not outcome.refused, outcome.unnamed
    assert outcome.combinations >= 700


@pytest.mark.parametrize("suffix", WRITE)
def test_dates_are_dates_whatever_the_format_counts_from(suffix, tmp_path):
    days = [dt.date(2020, 1, 2), None, dt.date(1900, 2, 28), dt.date(2024, 2, 29)]
    place = tmp_path / f"t.{suffix}"
    WRITE[suffix](pd.DataFrame({"day": pd.Series(days, dtype=object), "n": [1.0, 2.5, None, -9.0]}), str(place))
    read = read_table(place)
    cells = [read.columns["day"].values[code] for code in read.columns["day"].codes]
    assert cells == ["2020-01-02", "", "1900-02-28", "2024-02-29"]
    assert [read.columns["n"].values[code] for code in read.columns["n"].codes] == ["1", "2.5", "", "-9"]


def test_stata_times_with_leap_seconds_are_refused(tmp_path):
    """Previously, they were read without leap seconds: 23:59:50 on 31 December 2019 became 2020."""
    table, place = pd.DataFrame({"t": [1893456017000.0]}), tmp_path / "t.dta"
    pyreadstat.write_dta(table, place, variable_format={"t": "%tC"})
    with pytest.raises(TableError, match=r"column 't' counts leap seconds \(%tC\)"):
        read_table(place)
    pyreadstat.write_dta(table, place, variable_format={"t": "%tc"})
    assert read_table(place).columns["t"].values == ("2020-01-01T00:00:17",)


def test_user_missing_codes_of_spss_stay_codes(tmp_path):
    place = tmp_path / "t.sav"
    pyreadstat.write_sav(pd.DataFrame({"n": [1.0, -9.0]}), str(place), missing_ranges={"n": [-9]})
    assert read_table(place).columns["n"].values == ("1", "-9")


def test_rows_of_sas7bdat_are_refused_with_the_reason():
    start = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
    with pytest.raises(TableError, match=r"not read rows of \.sas7bdat files.*Export the table as SAS transport"):
        read_table(start + bytes(2000), "t.sas7bdat")


@pytest.mark.parametrize("start", [b"$FL2", b"<stata_dta>", b"HEADER RECORD*******LIBRARY"])
def test_a_damaged_file_is_refused_without_a_traceback(start):
    with pytest.raises(TableError, match="cannot be read as"):
        read_table(start + b"\0" * 300, "t")


def test_a_small_file_of_spss_with_very_many_rows_is_refused_before_they_are_read(tmp_path, monkeypatch):
    """Previously, a file of 12 kB held a million rows, and one of a megabyte would have taken gigabytes."""
    monkeypatch.setattr(stat_rows, "BOMB_BYTES", 100_000)
    place = tmp_path / "t.zsav"
    pyreadstat.write_sav(pd.DataFrame({"a": [0.0] * 100_000}), str(place), compress=True)
    with pytest.raises(TableError, match="unpacks to more than 150 times its size"):
        read_table(place)


@pytest.mark.parametrize("version", [117, 118])
def test_rows_of_stata_that_share_one_long_text_are_refused_before_they_are_read(tmp_path, version):
    """Previously, a file of 1 MB took 1.6 GB."""
    place, shared = tmp_path / "t.dta", "x" * 200_000
    for rows, text in ((1500, shared), (3, "short")):
        frame = pd.DataFrame({"a": [0.0] * rows, "s": pd.Series([text] * rows, dtype=object)})
        frame.to_stata(place, version=version, convert_strl=["s"], write_index=False)
        if text is shared:
            with pytest.raises(TableError, match="unpacks to more than 150 times its size"):
                read_table(place)
    assert read_table(place).columns["s"].values == ("short",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems show no open file as a path")
@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_a_read_that_is_killed_leaves_no_rows_behind(suffix, tmp_path):
    """Previously, a copy of the whole file stayed in TMPDIR."""
    path, scratch = tmp_path / f"t{suffix}", tmp_path / "scratch"
    scratch.mkdir()
    WRITE[suffix[1:]](pd.DataFrame({"a": ["x"]}), str(path))
    reader = {".sav": "read_sav", ".dta": "read_dta"}[suffix]
    killed = f"""
import os, signal, sys, pyreadstat
from espalier.core.tables.reading import read_table
pyreadstat.{reader} = lambda *given, **named: os.kill(os.getpid(), signal.SIGKILL)
read_table(sys.argv[1])
"""
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", killed, str(path)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(scratch.iterdir()) == []


def merged(cells, suffix, **options):
    """The table of these person identifiers, which `person_codes` refuses."""
    frame = pd.DataFrame({"id": cells, "x": ["a", "b", "c"]})
    place = options.pop("folder") / f"people.{suffix}"
    if suffix == "dta" and frame["id"].dtype == "float32":  # PyReadStat widens such a column
        frame.to_stata(place, write_index=False)
    else:
        WRITE[suffix](frame, str(place), **options)
    return read_table(place)


@pytest.mark.parametrize(
    ("cells", "suffix", "form"),
    [
        ([1.0e10 + 0.00001, 1.0e10 + 0.00002, 5.0], "sav", "DATETIME20"),
        ([1.25, 1.375, 2.0], "dta", "%tc"),
        ([0.0, 1e-9, 1.0], "dta", "%td"),
        ([0.0, 1e-9, 1.0], "xpt", "DATE9"),
        (pd.Series([1.0, 2.0**24 + 1, 2.0**24 + 2], dtype="float32"), "dta", None),
        ([1.0, 2.0**53, 2.0**53 + 2], "sav", None),
    ],
)
def test_people_whose_identifiers_a_format_rounds_are_refused(cells, suffix, form, tmp_path):
    form = {"variable_format": {"id": form}} if form else {}
    with pytest.raises(TableError, match="two people"):
        person_codes(merged(cells, suffix, folder=tmp_path, **form), "id")


def test_whole_numbers_that_a_format_stores_exactly_identify_people(tmp_path):
    short = pd.Series([1.0, 2.0, 2.0**24 - 1], dtype="float32")
    for cells in ([1.0, 2.0, 2.0**53 - 1], [1, 2, 2**30], short):
        assert len(person_codes(merged(cells, "dta", folder=tmp_path), "id").values) == 3


def test_people_in_a_short_number_of_sas_are_refused(tmp_path):
    place = tmp_path / "short.xpt"
    pyreadstat.write_xport(pd.DataFrame({"id": [1.0, 8191.0, 8193.0]}), str(place), file_format_version=8)
    head, mark, rows = place.read_bytes().rpartition(b"HEADER RECORD*******OBSV8")
    length = head.index(b"\0\1\0\0\0\x08") + 4  # header of the only column: a number of 8 bytes without an informat
    head = head[: length + 1] + b"\3" + head[length + 2 :]
    start = 80 - len(mark)
    short = b"".join(rows[start + 8 * i :][:3] for i in range(3))
    place.write_bytes(head + mark + rows[:start] + short.ljust(80))
    read = read_table(place)
    assert read.columns["id"].values == ("1", "8191", "8193")
    with pytest.raises(TableError, match="two people"):
        person_codes(read, "id")


@pytest.mark.parametrize(
    ("encoding", "first", "second"),
    [
        (b"UTF-8", b"A\xe9", b"A\xe8"),  # the beginnings of letters that never end
        (b"UTF-8", b"A\xe9", b"A "),
        (b"CP932", b"\x81\xe0", b"\x87\x90"),  # two ways to write one sign
    ],
)
def test_different_bytes_that_become_one_text_are_not_one_person(tmp_path, encoding, first, second):
    """Previously, two people became one: without one of them, the other kept other rows."""
    frame = pd.DataFrame({"who": ["AB", "CD", "EF"], "x": [1.0, 2.0, 3.0]})
    pyreadstat.write_sav(frame, tmp_path / "t.sav")
    stored = (tmp_path / "t.sav").read_bytes()
    assert set(person_codes(read_table(stored, "t.sav"), "who").codes) == {0, 1, 2}
    changed = stored.replace(b"UTF-8", encoding).replace(b"AB", first).replace(b"CD", second)
    read = read_table(changed, "t.sav")
    assert len(set(read.columns["who"].values)) < 3
    with pytest.raises(TableError, match="person column 'who'"):
        person_codes(read, "who")
    apart = stored.replace(b"UTF-8", b"CP932").replace(b"AB", b"\x81\xe0")
    assert set(person_codes(read_table(apart, "t.sav"), "who").codes) == {0, 1, 2}


@pytest.mark.parametrize(
    ("suffix", "cells"),
    [
        ("xpt", (b"A\0X", b"A\0Y", b"BCD")),
        ("xpt", (b"A\0X", b"A  ", b"BCD")),
        ("sav", (b"A\0X", b"AX ", b"BCD")),
        ("sav", (b"A\0X", b"BCD", b"EFG")),
    ],
)
@pytest.mark.parametrize("version", [5, 8])
def test_texts_with_a_zero_character_identify_no_one(tmp_path, suffix, cells, version):
    """Previously, the reader left out the zero character, or all that follows it, so two people became one."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "who": ["ABC", "DEF", "GHI"], "y": [0.0, 2.0, 3.0]})
    more = {"file_format_version": version} if suffix == "xpt" else {}
    WRITE[suffix](frame, tmp_path / "t", **more)
    stored = (tmp_path / "t").read_bytes()
    assert set(person_codes(read_table(stored, f"t.{suffix}"), "who").codes) == {0, 1, 2}
    for plain, odd in zip((b"ABC", b"DEF", b"GHI"), cells, strict=True):
        stored = stored.replace(plain, odd)
    with pytest.raises(TableError, match="person column 'who'"):
        person_codes(read_table(stored, f"t.{suffix}"), "who")


@pytest.mark.parametrize("bits", ["4170000000000001", "4170000000000002"])
@pytest.mark.parametrize("version", [5, 8])
def test_numbers_that_sas_transport_files_hold_more_exactly_than_floats_identify_no_one(tmp_path, version, bits):
    """Previously, numbers with 56 bits were rounded to 53, so two people became one."""
    frame = pd.DataFrame({"x": ["a", "b", "c"], "who": [7.0, 9.0, 11.0], "y": [0.5, 0.25, 0.125]})
    pyreadstat.write_xport(frame, tmp_path / "t.xpt", file_format_version=version)
    stored = (tmp_path / "t.xpt").read_bytes()
    assert set(person_codes(read_table(stored, "t.xpt"), "who").codes) == {0, 1, 2}
    near = (int(bits, 16) ^ 1).to_bytes(8, "big")
    stored = stored.replace(bytes.fromhex("4170000000000000"), bytes.fromhex(bits))
    stored = stored.replace(bytes.fromhex("4190000000000000"), near)
    read = read_table(stored, "t.xpt")
    assert len(read.columns["who"].values) == 2
    with pytest.raises(TableError, match="person column 'who'"):
        person_codes(read, "who")


@pytest.mark.parametrize("version", [117, 118, 119])
def test_long_texts_of_stata_with_a_zero_character_identify_no_one(tmp_path, version):
    """Previously, the reader left out all that follows the zero character, so two people became one."""
    frame = pd.DataFrame({"who": ["ABCD1", "ABCD2", "EFGH3"], "y": ["q", "r", "s"]})
    frame.to_stata(tmp_path / "t.dta", write_index=False, version=version, convert_strl=["who"])
    stored = (tmp_path / "t.dta").read_bytes()
    assert set(person_codes(read_table(stored, "t.dta"), "who").codes) == {0, 1, 2}
    read = read_table(stored.replace(b"ABCD", b"A\0CD"), "t.dta")
    assert read.columns["who"].values == ("A", "EFGH3")
    with pytest.raises(TableError, match="person column 'who'"):
        person_codes(read, "who")
    assert set(person_codes(read, "y").codes) == {0, 1, 2}


def test_a_sas_transport_file_that_states_another_number_of_rows_is_refused(tmp_path):
    """Previously, rows were left out, among them those of a second data set, or blanks were read as rows."""
    frame = pd.DataFrame({"x": ["a", "b", "c", "d"], "y": [1.0, 2.0, 3.0, 4.0]})
    pyreadstat.write_xport(frame, tmp_path / "t.xpt", file_format_version=8)
    stored = (tmp_path / "t.xpt").read_bytes()
    count = stored.index(b"HEADER RECORD*******OBSV8") + 48
    assert read_table(stored, "t.xpt").rows == 4
    second = stored[stored.index(b"HEADER RECORD*******MEM") :]
    for data in (*(stored[:count] + b"%15d" % rows + stored[count + 15 :] for rows in (2, 9)), stored + second):
        with pytest.raises(TableError, match="states a wrong number of rows"):
            read_table(data, "t.xpt")
