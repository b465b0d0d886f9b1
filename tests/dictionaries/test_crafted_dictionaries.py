"""Dictionaries, code books and JSON that were crafted to cause a traceback, or to take minutes."""

from __future__ import annotations

import pytest

from espalier.core.code_books.importing import read_own_book
from espalier.core.dictionaries.drafting import declared_column
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.dictionaries.redcap import HEADER
from espalier.core.errors import EspalierError, SchemaError, first_twice
from espalier.core.project.hierarchy import read_hierarchy
from espalier.core.project.json_text import MOST_LISTS, read_json

LONG = "x" * 200_000
MANY = 100_000
"""So many that a search through all items for each item takes minutes."""


def of_redcap(check, low, high):
    row = dict.fromkeys(HEADER, "") | {
        HEADER[0]: "n",
        HEADER[3]: "text",
        HEADER[7]: check,
        HEADER[8]: low,
        HEADER[9]: high,
    }
    first = {HEADER[0]: "id", HEADER[3]: "text"}
    lines = [HEADER, [first.get(name, "") for name in HEADER], [row[name] for name in HEADER]]
    cells = (",".join('"' + cell + '"' for cell in line) for line in lines)
    return read_dictionary("\n".join(cells).encode(), "d.csv")["n"]


@pytest.mark.parametrize(
    ("check", "low", "high"),
    [
        ("number", "-1e308", "1e308"),
        ("number", "0", "5e-324"),
        ("integer", "-1e308", "1e308"),
        ("integer", "0", "1e999"),
    ],
)
def test_a_range_without_bins_is_ignored(check, low, high):
    assert declared_column(of_redcap(check, low, high)) is None


@pytest.mark.parametrize("digit", ["²", "①", "٣"])
def test_digits_of_other_scripts_are_no_decimal_places(digit):
    assert of_redcap(f"number_{digit}dp", "0", "1").decimals is None
    var = f"<var name='n' intrvl='contin' dcml='{digit}'/>"
    assert read_dictionary(f"<codeBook>{var}</codeBook>".encode(), "d.xml")["n"].decimals is None


@pytest.mark.parametrize(
    "read",
    [
        lambda: read_dictionary(f"Variable / Field Name,Field Type,{LONG}\n".encode(), "d.csv"),
        lambda: read_own_book(f"code,{LONG}\n".encode()),
        lambda: read_hierarchy(f"a,{LONG}"),
    ],
    ids=["dictionary", "code book", "hierarchy"],
)
def test_too_long_a_cell_is_refused(read):
    with pytest.raises(SchemaError, match="line 1.*field larger than field limit"):
        read()


def test_long_code_lists_are_read():
    lines = "".join(f"a,c{i},l\n" for i in range(MANY))
    assert len(read_dictionary(f"column,code,label\n{lines}".encode(), "c.csv")["a"].categories) == MANY


@pytest.mark.parametrize(
    "read",
    [
        lambda names: read_own_book("".join(["code,label\n", *(f"{name},l\n" for name in names)]).encode()),
        lambda names: read_json("{" + ",".join(f'"{name}":1' for name in names) + "}", "it"),
        lambda names: read_dictionary(
            f"<codeBook>{''.join(f'<var name={name!r}/>' for name in names[-19_000:])}</codeBook>".encode(), "d.xml"
        ),
    ],
    ids=["code book", "JSON", "dictionary"],
)
def test_a_name_given_twice_is_found_at_once(read):
    with pytest.raises(EspalierError, match=f"'c{MANY - 1}'.* twice"):
        read([*(f"c{i}" for i in range(MANY)), f"c{MANY - 1}"])


def test_what_occurs_twice():
    assert first_twice(["a", "b", "b", "a"]) == "b"
    assert first_twice(["", ""]) == ""
    assert first_twice("abc") is None


def test_too_many_lists_are_refused_unread():
    with pytest.raises(EspalierError, match="contains more than 2,000,000 lists"):
        read_json("[" + "[]," * MOST_LISTS + "[]]", "it")
