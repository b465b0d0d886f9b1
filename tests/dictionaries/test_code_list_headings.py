"""Code lists with headings in other words and languages, with comments, without headings, and with lines that have no
code.
"""

from __future__ import annotations

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.headings import kinds_of
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError

LABELS = (("1", "one"), ("2", "two"))


def read(text: str, column: str | None = None) -> dict[str, Declared]:
    return {c.name: c for c in read_dictionary(text.encode(), "d.csv", column).columns}


@pytest.mark.parametrize(
    "header",
    [
        "variable,value,value_label",
        "VARNAME,CODE,LABEL",
        "Variable code,Value code,Value label",
        "Variable Name,Variable Value,Variable Value Label",
        "field_name,field_value,field_value_label",
        "attribute_name,attribute_value,attribute_description",
        "attributeName,code,definition",
        "Data_Item,National_Code,National_Code_Definition",
        "Question,Answer code,Answer",
        "Item,Category code,Category label",
        "LookupName,LookupCode,LookupValue",
        "domain,code,meaning",
        "codelist,code,name",
        "coding,value,meaning",
        "variable,level,label",
        "fmt,CodedValue,decoded",
        "variable,code,value",
        "Variable,Value,Meaning of the value",
        "Variable,Valor,Etiqueta de valor",
        "Nom de la variable,Modalité,Libellé de la modalité",
        "COD_VAR,COD_MOD,LIB_MOD",
        "Nome da variável,Código da categoria,Descrição da categoria",
        "Merkmal,Ausprägung,Text",
        "Variabel,Värde,Klartext",
        "Variabel,Værdi,Tekst",
        "muuttuja,arvo,selite",
        "zmienna,kod,etykieta",
        "Переменная,Код,Значение",
        "变量,值,标签",
        "変数,コード,ラベル",
    ],
)
def test_headings_of_a_list_for_many_columns(header):
    found = read(f"{header}\nsize,1,one\nsize,2,two\n")
    assert {name: c.labels for name, c in found.items()} == {"size": LABELS}


@pytest.mark.parametrize(
    "header",
    [
        *(
            "Kod,Nazwa",
            "kod,navn",
            "Código,Nombre",
            "Код,Наименование",
            "代码,名称",
            "コード,名称",
            "CD,DESCR",
            "symbol,term",
        ),
        *("code,value", "key,value", "abbreviation,name", "Concept_Code,Concept_Name", "Levels,Labels"),
    ],
)
def test_headings_of_a_list_for_one_column(header):
    assert read(f"{header}\n1,one\n2,two\n", "size")["size"].labels == LABELS


def test_a_language_may_head_the_labels_and_the_first_of_two_codes_counts():
    found = read('"alpha3-b","alpha2","English"\n"aar","aa","Afar"\n"abk","ab","Abkhazian"\n', "language")["language"]
    assert found.labels == (("aar", "Afar"), ("abk", "Abkhazian"))
    assert kinds_of(["code", "English"]) == ("code", "?"), "unless the cells show it"


def test_headings_of_a_statistical_office_with_the_length_of_the_variable():
    found = kinds_of(["COD_VAR", "LIB_VAR", "COD_MOD", "LIB_MOD", "TYPE_VAR", "LONG_VAR"])
    assert found == ("column", "about", "code", "label", "?", "?")


def test_what_headings_do_not_decide():
    for header in ("code,value,label", "old code,new code,label", "age,sex", "description", "type,code"):
        kinds = kinds_of(header.split(","))
        assert kinds.count("code") != 1 or "label" not in kinds
    assert kinds_of(["concept_id", "concept_name", "concept_code", "", ""]) == ("?", "label", "code")
    assert kinds_of(["question", "variable", "code", "label"]) == ("?", "column", "code", "label")
    assert kinds_of(["variable", "variable label", "code", "label"]) == ("column", "about", "code", "label")
    assert kinds_of(["code", "label", "x" * 300_000]) == ("code", "label", "?")


@pytest.mark.parametrize(
    "text",
    [
        "# sizes, of shirts\ncode;label\n1;one\n# more\n2;two\n",
        "Sizes, by year\n\ncode;label\n1;one\n2;two\n",
        "#sizes\nsize_code\tsize_name\n1\tone\n2\ttwo\n",
        "1;one\n2;two\n",
        "ONE,1\nTWO,2\n".lower(),
        "Size,Shown\n1,one\n2,two\n",
    ],
    ids=["comments", "title with a comma", "comment above words", "no header", "code last", "unknown headings"],
)
def test_a_list_with_comments_or_without_known_headings(text):
    assert read(text, "size")["size"].labels == LABELS


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("M,Male\nF,Female\n", {"M": "Male", "F": "Female"}),
        ("Sex,Shown\nM,Male\nF,Female\n", {"M": "Male", "F": "Female"}),
        ("sex,label of it\nmale,man\nfemale,woman\n", {"male": "man", "female": "woman"}),
        ("Alabama,AL\nAlaska,AK\n", {"AL": "Alabama", "AK": "Alaska"}),
    ],
)
def test_the_first_line_is_a_header_if_it_has_another_shape_or_a_known_word(text, labels):
    assert dict(read(text, "x")["x"].labels) == labels


def test_two_columns_without_known_headings_need_the_name_of_a_column():
    with pytest.raises(SchemaError, match="If it lists the codes of one column.*write FILE:COLUMN") as asked:
        read("M,Male\nF,Female\n")
    assert asked.value.data["key"] == "column"
    for table in ("M,Male\nM,Female\n", "M,Male\n", "M,Male,x\nF,Female,y\n", "M,\nF,Female\n"):
        with pytest.raises(SchemaError, match="not a dictionary") as refused:
            read(table, "x")
        assert "key" not in refused.value.data


@pytest.mark.parametrize("head", ["Var1,Freq", "value,n", "code,count", "code,N", "value,percent", "sex,Anzahl", "0,9"])
def test_a_table_of_counts_is_not_a_code_list(head):
    """Previously, the counts were the labels of the codes, which a release contains."""
    text = f"{head}\n1,30\n2,31\n"
    with pytest.raises(SchemaError, match="no label contains a letter"):
        read_dictionary(text.encode(), "f.csv", "sex")
    assert read_dictionary(text.replace("30", "2019").replace(head, "code,label").encode(), "f.csv", "y")["y"].labels


def test_lines_without_a_code():
    found = read_dictionary(b"variable,code,label\nage,,Age in years\nsex,,Sex\n,1,m\n,2,f\n", "d.csv")
    assert [(c.name, c.kind, c.label) for c in found.columns] == [
        ("age", "open", "Age in years"),
        ("sex", "categorical", "Sex"),
    ]
    assert found.notes == ("line 2: it has no code", "line 3: it has no code")
    assert read("code,label\n1,one\n,blank\n2,two\n", "size")["size"].labels == LABELS


def test_a_code_that_is_a_range_of_numbers():
    found = read("variable,code,label\nage,0-120,years\nage,999,unknown\nband,0-9,a\nband,10-19,b\nn,1-2,few\n")
    assert (found["age"].kind, found["age"].range, found["age"].integer) == ("numeric", ("0", "120"), True)
    assert found["age"].labels == (("999", "unknown"),)
    assert found["band"].categories == ("0-9", "10-19")
    assert found["n"].categories == ("1-2",)
    assert read("code,label\n0.5 to 9.5,mg\n", "dose")["dose"].range == ("0.5", "9.5")
