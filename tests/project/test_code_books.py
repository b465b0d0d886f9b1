"""Codebooks: their contents, the rules that find a code, columns that use one, and the importer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from espalier.core.code_books import CODE_BOOKS, checked_book, code_book
from espalier.core.code_books.importing import read_own_book
from espalier.core.errors import SchemaError
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import HierarchyToBuy, Schema
from espalier.core.project.schema_json import column_from_json, column_to_json
from espalier.core.tables.encoding import Encoder


@pytest.mark.parametrize("name", CODE_BOOKS)
def test_a_book_is_a_tree_of_distinct_codes_with_source_and_licence(name):
    book = code_book(name)
    assert set(book.groups.values()) - {""} <= set(book.groups)
    assert all(book.leaf(code) == code for code in book.codes)
    assert book.title
    assert book.source
    assert book.licence
    assert HierarchyToBuy.of_book("x", name).tree.codes == len(book.codes)


def test_books_have_as_many_codes_as_their_sources_state():
    found = {name: len(code_book(name).codes) for name in CODE_BOOKS}
    assert (found["us-states"], found["nuts"]) == (51, 92)
    assert found["iso-3166"] == found["iso-3166-alpha-3"] == 249
    assert len([g for g, above in code_book("icd-10-cm").groups.items() if not above]) == 22
    assert len([g for g, above in code_book("icd-9-cm").groups.items() if not above]) == 19


def test_blocks_of_icd_9_are_in_order_without_overlap_and_inside_their_chapters():
    book = code_book("icd-9-cm")
    digits = [code for code in book.codes if code[0].isdigit()]
    ends = [tuple(map(int, code.split("-"))) for code in sorted(digits)]
    assert all(low <= high for low, high in ends)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ends))
    for code in digits:
        chapter = book.groups[code] or code
        low, high = map(int, chapter.split("-"))
        assert low <= int(code[:3]) <= int(code[-3:]) <= high


@pytest.mark.parametrize(
    ("book", "text", "code"),
    [
        ("icd-9-cm", "250.43", "249-259"),
        ("icd-9-cm", "25043", "249-259"),
        ("icd-9-cm", "8", "001-009"),
        ("icd-9-cm", "038.9", "030-041"),
        ("icd-9-cm", "V57", "V01-V91"),
        ("icd-9-cm", "E888.9", "E000-E999"),
        ("icd-9-cm", "019", ""),
        ("icd-9-cm", "?", ""),
        ("icd-9-cm", "٢50", ""),
        ("icd-10-cm", "E11.65", "E11"),
        ("icd-10-cm", "E1165", "E11"),
        ("icd-10-cm", "E11.65 ", ""),
        ("icd-10-cm", "Q99X", "Q99"),
        ("icd-10-cm", "U98", ""),
        ("nuts", "DE212", "DE2"),
        ("us-states", "CA", "CA"),
        ("us-states", "ca", ""),
        ("iso-3166-alpha-3", "DEU", "DEU"),
    ],
)
def test_a_longer_code_counts_as_the_code_of_the_book(book, text, code):
    assert code_book(book).leaf(text) == code


def test_a_column_keeps_its_book_by_name_and_digest_before_and_after_it_is_bought():
    column = HierarchyToBuy.of_book("diag", "icd-9-cm", missing=True, missing_marks=("?",))
    assert column_to_json(column)["code_book"] == {"name": "icd-9-cm", "digest": code_book("icd-9-cm").digest}
    assert "hierarchy" not in column_to_json(column)
    assert column_from_json(column_to_json(column)) == column
    assert column_from_json({"name": "diag", "kind": "categorical", "code_book": "icd-9-cm"}).code_book == "icd-9-cm"
    bought = column.expanded(column.tree.top())
    assert column_from_json(column_to_json(bought)) == bought
    texts = ["250.43", "403", "?", "", "V57"]
    for described in (bought, as_read(Schema((column,)))["diag"]):
        codes = described.judge(texts)
        assert (codes[2], codes[3]) == (described.empty_code, described.empty_code)
        assert (codes[[0, 1, 4]] < described.values).all()
    assert bought.label_of("240-279").startswith("Endocrine")


def test_numbers_of_any_type_count_as_codes_of_a_book():
    import pyarrow as pa

    column = as_read(Schema((HierarchyToBuy.of_book("diag", "icd-9-cm", missing=True),)))
    for array in (pa.array([403, 8]), pa.array(["403", "8"]), pa.array(["403", "8"]).dictionary_encode()):
        batch = pa.record_batch({"diag": array})
        codes = Encoder(column, batch.schema, "t")(batch).codes[0]
        assert np.array_equal(codes, column["diag"].judge(["403", "8"]))


@pytest.mark.parametrize(
    "given",
    ["no-such-book", {"name": "icd-9-cm"}, {"name": "icd-9-cm", "digest": "sha256:other"}, 3],
)
def test_a_book_that_is_not_there_or_has_changed_is_refused(given):
    with pytest.raises(SchemaError, match="codebook"):
        column_from_json({"name": "x", "kind": "categorical", "code_book": given})
    with pytest.raises(SchemaError, match="has changed"):
        checked_book("nuts", "sha256:0")


def test_an_own_book_is_imported_from_a_table_or_claml():
    atc = read_own_book(b"code;label\nA;Alimentary\nA10;Drugs for diabetes\nA10BA02;metformin\n", atc=True)
    assert atc.groups == {"A": "", "A10": "A", "A10BA02": "A10"}
    assert atc.labels["A10BA02"] == "metformin"
    claml = read_own_book(
        b'<ClaML><Class code="I" kind="chapter"><Rubric kind="preferred"><Label>Infections</Label></Rubric></Class>'
        b'<Class code="A00" kind="category"><SuperClass code="I"/><Rubric kind="preferred"><Label>Cholera</Label>'
        b"</Rubric></Class></ClaML>"
    )
    assert claml.groups == {"I": "", "A00": "I"}
    assert claml.labels["A00"] == "Cholera"
    assert HierarchyToBuy.of("drug", atc.groups).tree.codes == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "needs a header"),
        (b"code,label\n", "is empty"),
        (b"code,label\nA,a\nA,b\n", "twice"),
        (b"code,label,group\nA,a,B\n", "which it does not list"),
        (b"code,label\n,b\n", "line 2"),
        (b"<ClaML>", "not readable XML"),
    ],
)
def test_an_own_book_that_cannot_be_is_refused(data, why):
    with pytest.raises(SchemaError, match=why):
        read_own_book(data)


def test_classes_inside_classes_are_no_codes_of_claml():
    """Previously, each element searched all its descendants: 200 kB took a second, and 2 MB took two minutes."""
    inside = "".join(f'<Class code="c{i}"><Rubric kind="x"/>' for i in range(20_000)) + "</Class>" * 20_000
    assert read_own_book(f"<ClaML>{inside}</ClaML>".encode()).groups == {"c0": ""}
