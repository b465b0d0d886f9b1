"""Reading JSON from untrusted sources, with limits and clear messages."""

from __future__ import annotations

import json
import math
from typing import Any

from espalier.core.errors import ProjectError, first_twice

MOST_JSON = 64 << 20
"""Maximum size of a JSON file in bytes; the files of a release with 10,000 columns reach 20 MB."""
DEEPEST = 50
"""Maximum number of nested levels. A project file has six levels, in addition to the levels of a drawing tool's
notes.
"""
MOST_LISTS = 2_000_000
"""Maximum number of lists and objects in a file, because each takes 50 times the memory of its two characters."""

LONGEST_WHOLE = 300
"""Maximum number of digits of a whole number. Floats go up to 309 digits."""


def read_json(data: bytes | str, what: str, *, finite: bool = True) -> Any:
    """Return the value in ``data``; raises a :class:`ProjectError` that names ``what``.

    Encodings other than UTF-8, files above `MOST_JSON`, nesting deeper than `DEEPEST` and repeated keys are refused. So
    are numbers that are not finite as floats, unless ``finite`` is false.
    """
    if len(data) > MOST_JSON:
        raise ProjectError(f"{what} is larger than {MOST_JSON >> 20} MiB")
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        refusing: dict[str, Any] = {"parse_constant": _no_constant, "parse_float": _finite, "parse_int": _whole}
        if text.count("[") + text.count("{") > MOST_LISTS:
            raise ProjectError(f"{what} contains more than {MOST_LISTS:,} lists and objects")
        value = json.loads(text, object_pairs_hook=_no_doubles, **(refusing if finite else {}))
    except UnicodeDecodeError:
        raise ProjectError(f"{what} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ProjectError(
            f"{what} is not JSON: {error.msg} at {where}", line=error.lineno, start=error.pos == 0
        ) from None
    except (RecursionError, ValueError):
        raise ProjectError(
            f"{what} is not JSON: it is nested too deeply or contains a number that is too long"
        ) from None
    check_depth(value, what)
    return value


def check_depth(value: Any, what: str) -> None:
    """Raise :class:`ProjectError` for lists that are nested more than `DEEPEST` deep."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ProjectError(f"{what} is nested more than {DEEPEST} levels deep")
        inside = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, dict | list))
        level = [value for values in inside for value in values]


def _no_constant(word: str) -> Any:
    raise ProjectError(f"{word} is not allowed as a number in a file")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ProjectError(f"the number {digits[:40]} is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:  # as a float, it would be infinite
        raise ProjectError(f"the number {digits[:40]} is too large")
    return int(digits)


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ProjectError(f"the key {first_twice(name for name, _ in pairs)!r} is given twice")
    return out
