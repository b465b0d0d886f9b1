"""Reader of dictionaries: turns a file in any known format into a `Dictionary`."""

from __future__ import annotations

import itertools
from pathlib import Path

from espalier.core.dictionaries.base import Dictionary, csv_lines, text_of
from espalier.core.dictionaries.code_lists import MOST_SEEN, is_code_list, is_pair_list, read_code_list
from espalier.core.dictionaries.inline_rows import refuse_rows
from espalier.core.dictionaries.json_files import read_json_dictionary
from espalier.core.dictionaries.redcap import is_redcap, read_redcap
from espalier.core.dictionaries.sas_syntax import is_sas_syntax, read_sas_syntax
from espalier.core.dictionaries.spss_syntax import is_spss_syntax, read_spss_syntax
from espalier.core.dictionaries.stat_files import is_stat_file, read_stat_dictionary
from espalier.core.dictionaries.stata_syntax import is_stata_syntax, read_stata_syntax
from espalier.core.dictionaries.xlsform import MOST_SEEN as FORM_LINES
from espalier.core.dictionaries.xlsform import is_xlsform, read_xlsform
from espalier.core.dictionaries.xml_files import read_xml_dictionary
from espalier.core.errors import SchemaError
from espalier.core.limited_file import read_limited
from espalier.core.tables.stat_rows import READERS

MOST_BYTES = 256 << 20
"""Maximum size of a dictionary in bytes."""
MOST_START = 1 << 20
"""Number of characters at the start of a file that are searched for SPSS, SAS and Stata commands, if its extension
belongs to none of the three.
"""


def read_dictionary(source: str | Path | bytes, name: str | None = None, column: str | None = None) -> Dictionary:
    """Return the dictionary in a file, or in the bytes of a file called ``name``; raise :class:`SchemaError`.

    ``column`` names the column that a two-column code list describes.
    """
    if isinstance(source, bytes):
        data, shown = source, name or "the dictionary"
    else:
        path = Path(source)
        shown = name or path.name
        try:
            data = read_limited(path, MOST_BYTES)
        except OSError as error:
            raise SchemaError(f"cannot read the dictionary {source}: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise SchemaError(f"{shown} is larger than {MOST_BYTES >> 20} MiB")
    if is_stat_file(shown):
        return read_stat_dictionary(data, shown)
    if text_of(data[:4096]).lstrip("\ufeff \r\n\t").startswith("<"):
        return read_xml_dictionary(data, shown)
    if data.startswith(b"PK\x03\x04"):
        return read_xlsform(data, shown)
    text = text_of(data)
    suffix = Path(shown).suffix.lower()
    if suffix in (".json", ".jsonld") or text.lstrip("\ufeff \r\n\t").startswith(("{", "[")):
        return read_json_dictionary(data, shown)
    if suffix == ".sps":
        return read_spss_syntax(data, shown)
    if suffix == ".do":
        return read_stata_syntax(data, shown)
    if suffix == ".sas":
        return read_sas_syntax(data, shown)
    if is_redcap([line for _, line in itertools.islice(csv_lines(text, shown), 2)]):
        return read_redcap(data, shown)
    if is_xlsform([line for _, line in itertools.islice(csv_lines(text, shown), FORM_LINES)]):
        return read_xlsform(data, shown)
    if is_code_list([line for _, line in itertools.islice(csv_lines(text, shown), MOST_SEEN)]):
        return read_code_list(data, shown, column)
    languages = (
        (is_sas_syntax, read_sas_syntax),
        (is_stata_syntax, read_stata_syntax),
        (is_spss_syntax, read_spss_syntax),
    )
    for is_syntax, read_syntax in languages:
        if is_syntax(text[:MOST_START]):
            refuse_rows(text, shown, "SPSS", "SAS", "Stata")  # a row must not decide the language either
            return read_syntax(data, shown)
    if is_pair_list([line for _, line in itertools.islice(csv_lines(text, shown), MOST_SEEN)]):
        return read_code_list(data, shown, column)
    raise SchemaError(
        f"{shown} is not a dictionary that Espalier can read. Espalier reads REDCap data dictionaries (CSV), DDI, "
        "CDISC ODM, define.xml and XForms (XML), Table Schema, CSV on the Web and JSON Schema (JSON), XLSForms (.xlsx "
        "or CSV), SPSS and SAS syntax, Stata do-files, "
        f"{', '.join(READERS)} files, and CSV with the columns code,label or column,code,label"
    )
