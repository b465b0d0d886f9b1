"""Reading of XML of unknown origin. Documents that declare entities or refer to other files are refused."""

from __future__ import annotations

import html.entities
import itertools
import re
from xml.etree.ElementTree import Element, ParseError

from espalier.core.errors import SchemaError

MOST_XML = 256 << 20
"""Largest size of an XML file in bytes."""
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,30});")
_LOOSE = re.compile(r"&(?![A-Za-z][A-Za-z0-9]{0,30};|#[0-9]{1,7};|#x[0-9A-Fa-f]{1,6};)")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ENCODING = re.compile(r"""^\s*(<\?xml[^>]{0,100}?)\s+encoding\s*=\s*["'][^"']{0,40}["']""")
_OWN = {"amp", "lt", "gt", "quot", "apos"}
MOST_PIECES, MOST_PIECE = 200, 10_000
"""Maximum number of parts into which markup may split a text, and maximum length of each part in characters."""


def read_xml(data: bytes, what: str) -> Element:
    """Return the root of the document, with namespaces removed from all tags. Raises :class:`SchemaError`, which names
    ``what``.

    A document with one of these faults is corrected and read again: leading blank lines, HTML entities such as
    ``&nbsp;``, an unescaped ``&``, control characters, and an encoding other than the stated one.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    if len(data) > MOST_XML:
        raise SchemaError(f"{what} is larger than {MOST_XML >> 20} MiB")
    try:
        try:
            root: Element = fromstring(data, forbid_dtd=False, forbid_entities=True, forbid_external=True)
        except ParseError as error:
            if (mended := _mended(data)) is None:
                raise
            try:
                root = fromstring(mended, forbid_dtd=False, forbid_entities=True, forbid_external=True)
            except ParseError:
                raise error from None  # its position refers to the original file
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


def _mended(data: bytes) -> str | None:
    """Return the document's text with common faults of other programs corrected; `None` if it has none of these
    faults."""
    stated = True
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return None
        text, stated = data.decode("cp1252", "replace"), False
    made = _ENCODING.sub(r"\1", text.lstrip())
    made = _LOOSE.sub("&amp;", _NAMED.sub(_number, _CONTROL.sub(" ", made)))
    return None if stated and made == text else made


def _number(found: re.Match[str]) -> str:
    """Return the numeric reference of a named HTML entity."""
    name = found[1]
    if name in _OWN or name not in html.entities.name2codepoint:
        return found[0]
    return f"&#{html.entities.name2codepoint[name]};"


def inner_text(element: Element) -> str:
    """Return the text in an element, including nested elements, up to `MOST_PIECES` parts.

    Without this limit, the text of deeply nested elements would be read again for each enclosing element.
    """
    return "".join(piece[:MOST_PIECE] for piece in itertools.islice(element.itertext(), MOST_PIECES))
