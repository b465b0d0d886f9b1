"""Reading XML dictionaries: DDI Codebook and Lifecycle, CDISC ODM and define.xml, and XForms."""

from __future__ import annotations

from espalier.core.dictionaries.base import Dictionary
from espalier.core.dictionaries.ddi import read_ddi
from espalier.core.dictionaries.ddi_lifecycle import is_lifecycle, read_lifecycle
from espalier.core.dictionaries.odm import read_odm
from espalier.core.dictionaries.xforms import is_xform, read_xform
from espalier.core.xml_text import read_xml


def read_xml_dictionary(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise `espalier.core.errors.SchemaError`."""
    whole = read_xml(data, source)
    if whole.find(".//ItemDef") is not None:
        return read_odm(whole, source)
    if is_xform(whole):
        return read_xform(whole, source)
    if is_lifecycle(whole):
        return read_lifecycle(whole, source)
    return read_ddi(whole, source)
