"""Reader of XML of unknown origin, which refuses documents that declare entities or refer to other files."""

from __future__ import annotations

import itertools
from xml.etree.ElementTree import Element, ParseError

from espalier.core.errors import SchemaError

MOST_XML = 256 << 20
"""Maximum size of an XML file in bytes."""
MOST_PIECES, MOST_PIECE = 200, 10_000
"""Maximum number of parts of a text that markup separates, and largest length of each in characters."""


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


def inner_text(element: Element) -> str:
    """Return the text in an element, with that of the elements inside, up to `MOST_PIECES` parts.

    Elements may be nested, so a text without a limit would be read again for each element around it.
    """
    return "".join(piece[:MOST_PIECE] for piece in itertools.islice(element.itertext(), MOST_PIECES))
