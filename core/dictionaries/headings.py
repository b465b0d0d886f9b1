"""Recognition of headings in code lists: the column, the code and the label."""

from __future__ import annotations

import re
from collections.abc import Sequence

from espalier.core.dictionaries.base import SHORT, letters


def _words(text: str) -> frozenset[str]:
    return frozenset(map(letters, text.split()))


COLUMN = _words(
    "column variable field var question item attribute feature element parameter spalte merkmal champ campo columna "
    "coluna variavel variabele colonne kolom kolumn kolonne variabel muuttuja zmienna promenna valtozo degisken "
    "переменная поле показатель 变量 变量名 字段 列 変数 項目 변수 항목"
)
_LISTS = _words(
    "domain codelist list lookup coding vocabulary dimension valueset scheme thesaurus codeset set fmt format"
)
_CODE = _words(
    "code cod auspragung value key notation val coded abbreviation abbrev abbr acronym symbol cd wert schlussel valeur "
    "modalite valor codigo waarde kode codice clave cle sleutel abkurzung kurzel varde værdi verdi kod koodi arvo "
    "wartosc hodnota ertek deger код шифр 代码 编码 代號 值 コード 値 코드 값"
)
PROPERTIES = _words("id category level option response answer choice categoria categorie kategorie kategori mod")
"""Code headings that name a different property next to a heading such as ``code``."""
_LABEL = _words(
    "label lib description meaning text desc descr definition title explanation term display decode decoded lbl txt "
    "bezeichnung bedeutung beschreibung beschriftung libelle intitule etiqueta descripcion descricao significado "
    "omschrijving betekenis etichetta descrizione rotulo preferredterm preflabel etikett benamning klartext tekst "
    "beskrivelse beskrivning betegnelse selite nimike selitys etykieta opis popis megnevezes etiket aciklama "
    "название наименование описание метка значение 标签 名称 含义 描述 说明 ラベル 名称 名前 라벨 이름 명칭"
)
_LANGUAGES = _words(
    "english french german spanish portuguese italian dutch swedish danish norwegian finnish polish anglais francais "
    "deutsch englisch espanol ingles portugues italiano nederlands svenska dansk norsk suomi"
)
"""Names of languages. In a table with codes, a column with such a heading contains their labels."""
_NAME = _words("name nom nombre nome naam navn namn nimi nazwa nazev nev ad adi")
_FILLERS = _words(
    "short full official national data sas spss stata in new old standard preferred official local "
    "numeric alpha alphanumeric iso number concept"
)
_OF = _words("of the de del della di da do dos das du des la le les von der des van")
"""Words that connect a property with the thing it describes, as in ``label of the value``."""
_FIRST = _words("cod lib libelle etiqueta etichetta rotulo nombre nom nome codigo codice")
"""Words that may come first without a connecting word, as in ``lib_var``."""
_KNOWN = COLUMN | _LISTS | _CODE | PROPERTIES | _LABEL | _NAME | _LANGUAGES | _FILLERS | _OF
_EXACT = _words("variable var column field columna variavel champ")
"""Headings that always name a column. A question or an item may be a different property."""
WEAK_NAMES = _words("name item element attribute feature")
"""Headings that name columns if several codes have the same name, and codes otherwise."""
_SURE_CODES = _CODE - _words("abbreviation abbrev abbr acronym symbol value val valeur valor wert")
"""Headings that mean the code if there is also a value or an abbreviation."""
_PARTS = _CODE | _words("alpha2 alpha3 alpha")
_WORD = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[^\W\d_]+")
_LANGUAGE = re.compile(
    r"[\s_.:@(-]+(en|eng|english|fr|fra|de|es|pt|it|nl|sv|da|no|fi|pl|cs|ar|zh|ru)\)?$", re.IGNORECASE
)
_MISSING = {"missing", "ismissing", "usermissing"}


def _singular(word: str) -> str:
    return word if word in _KNOWN or len(word) < 4 else word.removesuffix("s")


def _parts(word: str) -> list[str]:
    """Return a word, or its two parts if it consists of two known words, as in ``varname``."""
    one = _singular(word)
    cuts = () if one in _KNOWN else range(2, len(word))
    two = ([word[:at], _singular(word[at:])] for at in cuts if word[:at] in _KNOWN and _singular(word[at:]) in _KNOWN)
    glued = one in _KNOWN or len(word) > 40
    return [one] if glued else next((pair for pair in two), [one])


def words_of(heading: str) -> list[str]:
    """Return the words of a heading in the singular, without a final language such as ``en`` in ``name_en``.

    The word for the column's content comes last: ``label of the value`` is returned as ``value label``.
    """
    shown = _LANGUAGE.sub("", heading.strip()[:SHORT])
    words = [part for word in _WORD.findall(shown) if (known := letters(word)) for part in _parts(known)]
    at = next((at for at, word in enumerate(words) if word in _OF), 0)
    at = at or (1 if len(words) == 2 and words[0] in _FIRST else 0)
    return [word for word in (*words[at:], *words[:at]) if word not in _OF]


def meaning(heading: str) -> str:
    """Return the meaning of one heading, from its last word and the words before it.

    It is "column", "list" (of codes), "code", "own code" (of a column, such as its number), "property", "label",
    "about" (the column's label), "name", "missing" or ``?``.
    """
    words = words_of(heading)
    if letters(heading[:SHORT]) in _MISSING:
        return "missing"
    if not words or not _KNOWN.issuperset(words):
        return "?"
    before, last = frozenset(words[:-1]), words[-1]
    coded, owned, listed = before & (_CODE | PROPERTIES), before & COLUMN, before & _LISTS
    if last in _NAME:
        return "label" if coded else "column" if owned else "list" if listed else "label" if before else "name"
    if last in _LABEL:
        return "about" if (owned or listed) and not coded else "label"
    if last in _CODE or (before and last in ("id", "number")):
        return "own code" if (owned or listed) and not coded else "code" if last != "number" or coded else "?"
    if last in PROPERTIES:
        return "property"
    return "column" if last in COLUMN else "list" if last in _LISTS else "?"


def kinds_of(header: Sequence[str]) -> tuple[str, ...]:
    """Return the meaning of each heading: "column", "code", "label", "about", "missing" or ``?``.

    Empty headings at the end are ignored. A name after the code is its label, as in ``code,name``; a name before the
    code names the column. Next to a code, an id or a category is another property of that code. A second code that
    belongs to the column names the column, as in ``variable code,value code``.
    """
    cells = list(header)
    while cells and not cells[-1].strip():
        cells.pop()
    kinds = [meaning(cell) for cell in cells]
    kinds = _with_one_code(cells, kinds)
    code = kinds.index("code") if "code" in kinds else len(kinds)
    kinds = [("label" if at > code else "column") if kind == "name" else kind for at, kind in enumerate(kinds)]
    if "column" not in kinds and "own code" in kinds:
        kinds = ["column" if kind == "own code" else kind for kind in kinds]
    if "column" not in kinds and "list" in kinds[:code]:
        kinds[kinds.index("list")] = "column"
    if kinds.count("column") > 1:
        sure = [at for at, kind in enumerate(kinds) if kind == "column" and _EXACT.intersection(words_of(cells[at]))]
        kept = sure[0] if sure else kinds.index("column")
        kinds = ["?" if kind == "column" and at != kept else kind for at, kind in enumerate(kinds)]
    if "label" not in kinds:
        other = next((k for k in ("about", "property") if k in kinds[code:]), None)
        kinds = ["label" if kind == other and at > code else kind for at, kind in enumerate(kinds)]
    return tuple("?" if kind in ("own code", "property", "list") else kind for kind in kinds)


def _with_one_code(cells: Sequence[str], kinds: list[str]) -> list[str]:
    """Return the meanings with a single code, if a heading other than ``code`` names it."""
    if kinds.count("code") > 1:
        kinds = [
            "?" if one == "code" and words_of(cell)[-1] == "id" else one for cell, one in zip(cells, kinds, strict=True)
        ]
    kind = next((kind for kind in ("code", "own code", "property") if kind in kinds), "")
    places = [at for at, one in enumerate(kinds) if kind and one == kind]
    if len(places) == 2 and "label" not in kinds:
        sure = [at for at in places if words_of(cells[at])[-1] in _SURE_CODES]
        places = sure if len(sure) == 1 else places
        kinds = ["label" if one == kind and at not in places else one for at, one in enumerate(kinds)]
    return ["code" if at in places else one for at, one in enumerate(kinds)] if len(places) == 1 else kinds


def names_codes(heading: str) -> bool:
    """Return whether a word of the heading means codes."""
    return not _PARTS.isdisjoint(words_of(heading))


def names_labels(heading: str) -> bool:
    """Return whether a word of the heading means labels or names a language."""
    return not (_LABEL | _NAME | _LANGUAGES).isdisjoint(words_of(heading))
