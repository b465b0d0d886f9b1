"""Dictionaries, codebooks and JSON that were crafted to cause a traceback, or to take minutes."""

from __future__ import annotations

import time
from contextlib import suppress

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
"""With this number of items, searching all items for each item takes minutes."""


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
    ids=["dictionary", "codebook", "hierarchy"],
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
    ids=["codebook", "JSON", "dictionary"],
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


def of_ddi(inside, name="a"):
    text = f"<codeBook><dataDscr><var name='{name}'>{inside}</var></dataDscr></codeBook>"
    return read_dictionary(text.encode(), "d.xml")


def listed(missing):
    category = "<catgry missing='{}'><catValu>{}</catValu><labl>{}. l</labl></catgry>"
    return "".join(category.format("Y" if i % missing == 0 else "N", i * 7, i * 7) for i in range(MANY))


def test_long_lists_of_missing_codes_are_read_at_once():
    """Previously, each code was compared with all missing ones."""
    lines = "".join(f"a,{i},l,{'y' if i % 2 else 'n'}\n" for i in range(MANY))
    read = read_dictionary(f"column,code,label,missing\n{lines}".encode(), "c.csv")["a"]
    assert len(read.categories) == len(read.missing) == MANY // 2
    assert declared_column(read).size == MANY // 2 + 1
    assert len(of_ddi(listed(missing=2))["a"].missing) == MANY // 2


def test_long_lists_of_labelled_codes_are_read_at_once():
    """Previously, a pattern was made for each code."""
    assert len(of_ddi(listed(missing=MANY))["a"].labels) == MANY


@pytest.mark.parametrize("sign", ["_", " ", "("])
def test_a_heading_of_many_signs_is_read_at_once(sign):
    """Previously, the search for the end of a heading started again at each character."""
    heading = f"column,code,label,x{sign * MANY}x"
    assert read_dictionary(f"{heading}\na,1,l,\n".encode(), "c.csv")["a"].categories == ("1",)


def test_nested_variables_have_their_own_values():
    """Previously, a value was also assigned to every enclosing variable."""
    inside = "<catgry><catValu>1</catValu></catgry><var name='b'><catgry><catValu>2</catValu></catgry></var>"
    assert [column.labels for column in of_ddi(inside).columns] == [(), ()]
    named = of_ddi(inside.replace("</catValu>", "</catValu><labl>l</labl>")).columns
    assert [column.labels for column in named] == [(("1", "l"),), (("2", "l"),)]


@pytest.mark.parametrize("tag", ["txt", "labl"])
def test_texts_with_variables_inside_are_read_once(tag):
    """Previously, each text was read with all texts nested in it: 600 kB took four seconds, and the time grew
    quadratically."""
    inside = "".join(f"<var name='v{i}'><{tag}>{i}," for i in range(15_000)) + f"</{tag}></var>" * 15_000
    began = time.process_time()
    read = read_dictionary(f"<codeBook>{inside}</codeBook>".encode(), "d.xml").columns
    assert [(c.name, c.description or c.label) for c in read[:2]] == [("v0", "0,"), ("v1", "1,")]
    assert time.process_time() - began < 3


def test_codebooks_inside_codebooks_are_read_once():
    """Previously, each element searched all its descendants."""
    text = "<x>" + "<codeBook>" * 3000 + "<a/>" * 30_000 + "<var name='n'/>" + "</codeBook>" * 3000 + "</x>"
    began = time.process_time()
    assert [c.name for c in read_dictionary(text.encode(), "d.xml").columns] == ["n"]
    assert time.process_time() - began < 3


def test_ranges_of_missing_codes_that_repeat_are_read_once():
    """Previously, 25 bytes of a file became 50 codes in memory."""
    ranges = "<range min='1' max='50'/>" * 1000
    assert len(of_ddi(f"<invalrng>{ranges}</invalrng>")["a"].missing) == 50


def test_notes_on_a_long_name_are_short_and_few():
    """Previously, each of them quoted the name, so 200 kB became gigabytes."""
    ranges = "<range min='a' max='b'/>" * 5000
    lines = [f"{LONG[:90_000]},1,l", *([",1,m"] * 5000)]
    for read in (
        read_dictionary("\n".join(["column,code,label", *lines]).encode(), "c.csv"),
        of_ddi(f"<invalrng>{ranges}</invalrng>", LONG),
    ):
        assert len(read.notes) == 1_000
        assert max(map(len, read.notes)) < 1_000


def of_boxes(label, choices, many=1):
    boxes = dict.fromkeys(HEADER, "") | {HEADER[3]: "checkbox", HEADER[4]: label, HEADER[5]: choices}
    lines = [HEADER, *((f"b{i}", *list(boxes.values())[1:]) for i in range(many))]
    return read_dictionary("\n".join(",".join(f'"{cell}"' for cell in line) for line in lines).encode(), "d.csv")


def test_boxes_of_a_long_label_do_not_repeat_it():
    """Previously, 140 kB became 250 MB."""
    columns = of_boxes("L" * 10_000, "1, one | 2, two").columns
    assert [len(column.label) for column in columns] == [205, 205]


def test_too_many_boxes_are_refused_before_all_are_read(monkeypatch):
    made = []

    def counted(items):
        made.append(tuple(items))
        return made[-1]

    monkeypatch.setattr("espalier.core.dictionaries.redcap.pairs", counted)
    with pytest.raises(SchemaError, match="more than 20,000 columns"):
        of_boxes("l", " | ".join(f"{i},x" for i in range(11_000)), many=9)
    assert len(made) == 2


def test_the_number_of_a_character_may_have_many_digits():
    """Previously, this ended in a traceback."""
    (column,) = of_boxes(f"a&#{'9' * 5000};b &#228;", "1, one").columns
    assert column.label == "a b ä: one"


def test_too_many_cells_in_a_line_are_refused():
    with pytest.raises(SchemaError, match="line 1: more than 16,384 cells"):
        read_dictionary(f"code,label{',a' * MANY}\n1,l\n".encode(), "c.csv", "a")


def test_spss_labels_on_a_code_of_thousands_of_digits_are_read():
    """Previously, comparing two such codes of a scale ended in a traceback."""
    code = "9" * 5000
    text = f"VARIABLE LEVEL v (SCALE).\nVALUE LABELS v '{code}' 'often' '1' 'rarely'.\n"
    (column,) = read_dictionary(text.encode(), "labels.sps").columns
    assert dict(column.labels)[code] == "often"


def form(binds: str, controls: str) -> str:
    """Return an XForm with these binds and controls."""
    return f"<h><model><instance><d/></instance>{binds}</model>{controls}</h>"


def lifecycle(shared: str, *, managed: bool) -> str:
    """Return a file of DDI Lifecycle with 3,000 variables that refer to one shared part."""
    tag = "NumericRepresentationReference" if managed else "RepresentedVariableReference"
    inside = f"<{tag}><ID>b</ID></{tag}>"
    inside = f"<Representation>{inside}</Representation>" if managed else inside
    many = "".join(f"<Variable><VariableName>v{i}</VariableName>{inside}</Variable>" for i in range(3000))
    return f"<r>{shared}{many}<Variable><VariableName>z</VariableName><TextRepresentation/></Variable></r>"


LONG_LABEL = f"{'x' * 9999}<b/>" * 100
BINDS = '<bind nodeset="/d/q" type="string"/>' * 5000
CHOICES = "".join(f"<item><value>{i}</value></item>" for i in range(20_000))
RANGES = '<NumberRange low="0" high="49"/>' * 5000
SHARED = {
    "SAS: a type after types": ("d.sas", f"data x; input a1-a16000 {'$ ' * 300_000};"),
    "SAS: many words": ("d.sas", f"data x; attrib {'a ' * 800_000};"),
    "SAS: a name again and again": ("d.sas", f"data x; input {'a ' * 450_000};"),
    "SAS: ranges of unknown names": ("d.sas", f"data x; input a1-a16000; format {'u--v ' * 400_000} f8.;"),
    "SAS: one format, other missing codes": (
        "d.sas",
        f"proc format; value f {' '.join(f'{i}=k{i}' for i in range(30_000))}; data x; format a1-a5000 f.;"
        + "".join(f"if a{i} = {i} then a{i} = .;" for i in range(1, 5000)),
    ),
    "XForm: one list of choices": ("d.xml", form(BINDS, f'<select1 ref="/d/q">{CHOICES}</select1>')),
    "XForm: one long label": ("d.xml", form(BINDS, f'<input ref="/d/q"><label>{LONG_LABEL}</label></input>')),
    "ODM: versions inside versions": (
        "d.xml",
        f"<ODM>{'<MetaDataVersion>' * 3000}{'<x/>' * 100_000}<ItemDef OID='a'/>"
        f"<ItemGroupDef><ItemRef ItemOID='z'/></ItemGroupDef>{'</MetaDataVersion>' * 3000}</ODM>",
    ),
    "DDI Lifecycle: one wide variable": (
        "d.xml",
        lifecycle(
            f"<RepresentedVariable><ID>b</ID>{'<x/>' * 50_000}<NumericRepresentation/></RepresentedVariable>",
            managed=False,
        ),
    ),
    "DDI Lifecycle: missing codes": (
        "d.xml",
        lifecycle(
            f'<ManagedNumericRepresentation missingValue="{"9 " * 300_000}"><ID>b</ID></ManagedNumericRepresentation>',
            managed=True,
        ),
    ),
    "DDI Lifecycle: missing ranges": (
        "d.xml",
        lifecycle(
            "<ManagedNumericRepresentation><ID>b</ID><MissingValuesReference><ID>m</ID></MissingValuesReference>"
            "</ManagedNumericRepresentation><ManagedMissingValuesRepresentation><ID>m</ID>"
            f"<MissingNumericRepresentation>{RANGES}</MissingNumericRepresentation>"
            "</ManagedMissingValuesRepresentation>",
            managed=True,
        ),
    ),
    "DDI Lifecycle: one long unit": (
        "d.xml",
        lifecycle(
            f"<RepresentedVariable><ID>b</ID><Representation><MeasurementUnit>{LONG_LABEL}</MeasurementUnit>"
            "<NumericRepresentation/></Representation></RepresentedVariable>",
            managed=False,
        ),
    ),
    "XLSForm: many headings": (
        "d.csv",
        f"survey,,\n,{','.join(f'h{i}' for i in range(16_000))},type,name\n" + ",a,b\n" * 200_000,
    ),
    "XLSForm: groups inside groups": (
        "d.csv",
        "type,name,label\nselect_one x,q,l\n" + "begin group,g,x\n" * 50_000 + "integer,q,l\n" * 19_000,
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_parts_that_many_columns_share_are_read_once(name):
    """Previously, each of these files, of about a megabyte, took minutes or gigabytes."""
    file, text = SHARED[name]
    began = time.process_time()
    with suppress(SchemaError):
        read_dictionary(text.encode(), file)
    assert time.process_time() - began < 12
