"""XML of unknown origin; documents that declare entities or refer to other files are refused."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from espalier.core.errors import SchemaError

MOST_XML = 256 << 20
"""Largest size of an XML file in bytes."""


def read_xml(data: bytes, what: str) -> Element:
    """Return the root of the document, its tags without namespaces; raise :class:`SchemaError` that names ``what``."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    if len(data) > MOST_XML:
        raise SchemaError(f"{what} is larger than {MOST_XML >> 20} MiB")
    try:
        root: Element = fromstring(data, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except DefusedXmlException:
        raise SchemaError(
            f"{what} declares entities or refers to other files, which Espalier does not read; save it without them"
        ) from None
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        where = getattr(error, "position", None)
        at = f": see line {where[0]}, column {where[1]}" if where else ""
        raise SchemaError(f"{what} is not readable XML{at}") from None
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root
