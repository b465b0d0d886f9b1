"""Allowed content of an event: the type and the range of each field, checked before anything is written. A database
converts types silently: SQLite stores True as 1, and PostgreSQL rounds 1.5 to 2. An event's hash would then differ from
the hash of the stored value. A value is therefore accepted only if it has exactly its field's type. NumPy's whole
numbers and floats are converted to Python's types.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, get_args

from espalier.core.errors import ProjectError
from espalier.core.privacy.draws import Subtotal
from espalier.core.project.plan import Neighbors

MOST_ROWS_PER_PERSON = 10_000
MOST_NUMBER = 1e6
"""Largest ε, δ or ρ of a ledger."""
MOST_TEXT = 2000
MOST_PLAN = 1 << 24
"""Maximum number of characters in a plan's JSON."""
INVISIBLE = {chr(code) for code in (0x034F, 0x115F, 0x1160, 0x2065, 0x2800, 0x3164, 0xFFA0, 0x16FE4, 0x1D159)}
"""Letters, marks and unassigned codes that are invisible."""
for _codes in ((0x17B4, 0x17B6), (0x180B, 0x1810), (0xFE00, 0xFE10), (0xFFF0, 0xFFF9), (0xE0000, 0xE1000)):
    INVISIBLE |= {chr(code) for code in range(*_codes)}
LIKE_MARKS = {
    "-": (0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2043, 0x2212, 0x02D7),
    "'": (0x60, 0xB4, 0x02B9, 0x02BB, 0x02BC, 0x02BD, 0x02CA, 0x02CB, 0x2018, 0x2019, 0x201B, 0x2032),
    '"': (0x201C, 0x201D, 0x201F, 0x2033),
    "/": (0x2044, 0x2215, 0x29F8),
    ":": (0x02D0, 0x2236, 0xA789),
    "*": (0x204E, 0x2217),
    "|": (0x01C0, 0x2223),
    "~": (0x02DC, 0x223C),
    ",": (0x201A,),
}
"""Plain marks, and marks that look like them."""
_PLAIN_MARK = {code: mark for mark, codes in LIKE_MARKS.items() for code in codes}
FLOATS = ("epsilon", "delta", "rho", "rho_before", "rho_after")
WHOLE = ("seq", "rows_per_person")
KINDS = ("open", "join", "reserve", "select", "measure", "look", "stop", "spend", "return", "diagnose")
OPTIONAL = ("entry", "neighbors", "rows_per_person", *FLOATS, "plan", "fingerprint", "released")
"""Optional fields of each kind of event."""


def checked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``fields`` of a new event as stored; raises a :class:`ProjectError` that names the first wrong
    field.
    """
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None and name in OPTIONAL:
            out[name] = None
        elif name in FLOATS:
            out[name] = number(name, value)
        elif name in WHOLE:
            out[name] = whole(name, value)
        elif name == "plan":
            out[name] = line(name, value, most=MOST_PLAN)
        elif name in ("kind", "neighbors"):
            out[name] = one_of(name, value, KINDS if name == "kind" else get_args(Neighbors))
        else:
            out[name] = line(name, value)
    return out


def misfit(stored: Mapping[str, Any]) -> str:
    """Return the first field of a stored event with a type that differs from its column's; empty if there is none."""
    for name, value in stored.items():
        kind: type = float if name in FLOATS else int if name in WHOLE else str
        if type(value) is not kind and not (value is None and name in OPTIONAL):
            return name
    return ""


def number(name: str, value: Any, most: float = MOST_NUMBER) -> float:
    """Return a finite number from 0 to ``most`` that a float represents exactly and that is not subnormal."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _wrong(name, value, "a number")
    try:
        exact = float(value)
        ok = exact == value and math.isfinite(exact)
    except (OverflowError, ValueError):
        ok = False
    if not ok:
        raise _wrong(name, value, "a finite number that a float represents exactly")
    if not (exact == 0 or sys.float_info.min <= exact <= most):
        raise _wrong(name, value, f"0 or a number from {sys.float_info.min:.3g} to {most:g}")
    return abs(exact)  # −0.0 is 0.0


def whole(name: str, value: Any, most: int = MOST_ROWS_PER_PERSON) -> int:
    """Return a whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        raise _wrong(name, value, f"a whole number from 1 to {most:,}")
    return int(value)


def line(name: str, value: Any, most: int = MOST_TEXT) -> str:
    """Return one line of text without control characters and without lone surrogates, which some databases refuse."""
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    text = str(value)
    if len(text) > most or any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise _wrong(name, value, f"one line of at most {most:,} characters, without control characters")
    return text


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the first of the ``known`` names that differs from ``name`` but may look the same on a screen, or differs
    only in the case of its letters.

    Names are compared in Unicode's normal form NFKC, without invisible characters. Each run of blanks counts as one
    blank, dashes, quotes and similar marks are compared in their plain form, and case is ignored. Letters that look
    like other letters are not detected.
    """
    wanted = _as_seen(name)
    return next((other for other in known if other != name and _as_seen(other) == wanted), None)


def _as_seen(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name.translate(_PLAIN_MARK))
    visible = (c for c in plain if unicodedata.category(c) not in ("Cf", "Cc") and c not in INVISIBLE)
    return " ".join(unicodedata.normalize("NFKC", "".join(visible).casefold()).split())


def one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Return one of the ``known`` words."""
    if not isinstance(value, str) or value not in known:
        raise _wrong(name, value, f"one of {', '.join(known)}")
    return str(value)


def yes_or_no(name: str, value: Any) -> bool:
    """Return the value as a Python ``bool``."""
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def octets(name: str, value: Any) -> bytes:
    """Return bytes, such as a digest or a file."""
    if not isinstance(value, bytes):
        raise _wrong(name, value, "bytes")
    return value


def part(act: Subtotal) -> Subtotal:
    """Return the fields of a draw, after checking each one."""
    kind: Any = one_of("kind", act.kind, ("select", "measure", "look"))
    draws = whole("draws", act.draws, most=1 << 53)
    return Subtotal(kind, line("pool", act.pool), draws, number("rho", act.rho), number("delta", act.delta, most=1.0))


def _wrong(name: str, value: Any, expected: str) -> ProjectError:
    """Return the error for a ``value``, which names its type and, if it is short, the value."""
    kind = type(value).__name__
    long = isinstance(value, int) and abs(value) >= 10**18
    said = f"{kind} {ascii(value)[:40]}" if isinstance(value, str | float | int) and not long else kind
    return ProjectError(f"ledger: {name.replace('_', ' ')} must be {expected}, not {said}", key=name)
