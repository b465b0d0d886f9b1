"""Encoding of a schema as a query that Ibis writes for each engine. The query turns each declared column into whole
numbers 0 … size − 1, as :meth:`espalier.core.project.schema.Column.encode` does for text. NULL and NaN are tested
first, because several engines order NaN above every number. A category is compared in the column's own type, never in a
cast to text, since engines write `1.0`, `true` or a date in different ways. Two numbers above the codes mark refused
cells: ``size`` marks an undeclared value, and ``size + 1`` an empty cell.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import ibis

from espalier.core.code_books import code_book
from espalier.core.errors import TableError
from espalier.core.project.date_orders import BLANK, MONTHS, SPELLINGS, Spelling, month_pattern
from espalier.core.project.schema import MISSING, Column, Schema
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.row_limits import runs

FEW = 32
"""Maximum number of bin edges that are compared one after another. Larger sets of edges are searched by bisection."""
_ISO_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE = f"^[ \t\n\r\f\v]*{_ISO_DAY}([T ][0-9]{{2}}:[0-9]{{2}}[^ \t\n\r\f\v]*)?[ \t\n\r\f\v]*$"
_NUMBER = "^[ \t\n\r\f\v]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\n\r\f\v]*$"
_FAR = "[eE][+-]?0*[1-9][0-9]{4,}[ \t\n\r\f\v]*$"
"""Exponent that is out of range for PostgreSQL's decimals unless the digits compensate for it."""
_SHORT = 9_000
"""Length up to which a number's digits cannot compensate for such an exponent."""


def code_name(index: int) -> str:
    """Return the name for the codes of column number ``index``, so that no column name enters a snapshot."""
    return f"c{index}"


def encoding(table: Any, schema: Schema, dialect: str, person: str | None = None, *, utf8: bool = True) -> Any:
    """Return the query for the codes of ``table``, one column per column of ``schema``.

    ``dialect`` is the engine's name. ``person`` adds the person identifier of each row, as text. ``utf8`` is whether
    the engine compares text by its bytes in UTF-8. Raises :class:`TableError` for a column that is missing or has an
    unsupported type.
    """
    made, days, ordered = {}, {}, {}
    for i, column in enumerate(schema.columns):
        value = _column(table, column.name)
        if column.dates is not None and (column.date_order or value.type().is_string()):
            days[column.name] = _day_name(table, i)
            ordered[days[column.name]] = _ordered_day(value, column, dialect)
    if days:  # computed once, because they are compared with every bin edge
        table = table.mutate(**ordered)
        if dialect == "postgres":  # without a limit, it merges the subquery and computes the days for each edge
            table = table.limit(1 << 62)
    for i, column in enumerate(schema.columns):
        day = table[days[column.name]] if column.name in days else None
        made[code_name(i)] = _code(_column(table, column.name), column, dialect, day, utf8=utf8).cast("int32")
    if person is not None:
        made[PERSON] = person_text(_column(table, person))
    return table.select(**made)


def packed(codes: Any, schema: Schema) -> Any:
    """Return the query of :func:`encoding` with the codes joined into a few whole numbers n0, n1, …, which are cheaper
    to write.

    Each column has ``size + 2`` codes, with the two that mark refused cells.
    """
    radices = [column.size + 2 for column in schema.columns]
    made = {}
    for i, run in enumerate(runs(radices)):
        places = range(len(radices))[run]
        weights = [math.prod(radices[place + 1 : run.stop]) for place in places]
        made[f"n{i}"] = _sum([codes[code_name(p)].cast("int64") * w for p, w in zip(places, weights, strict=True)])
    return codes.select(**made, **{name: codes[name] for name in (PERSON,) if name in codes.columns})


def _sum(terms: Sequence[Any]) -> Any:
    """Return the sum, nested only a few levels deep so that no query compiler runs out of stack."""
    middle = len(terms) // 2
    return _sum(terms[:middle]) + _sum(terms[middle:]) if middle else terms[0]


def _column(table: Any, name: str) -> Any:
    if name not in table.columns:
        known = ", ".join(list(table.columns)[:12]) + (", …" if len(table.columns) > 12 else "")
        raise TableError(f"there is no column {name!r}; the table has {known}", column=name)
    return table[name]


def person_text(value: Any) -> Any:
    """Return the person identifier as text, for types with the same text in every engine; raise :class:`TableError`
    for others.
    """
    kind = value.type()
    if kind.is_decimal() and kind.scale == 0:
        return value.cast("string").nullif("NaN")  # a decimal in PostgreSQL may be NaN
    if kind.is_string() or kind.is_integer() or kind.is_uuid():
        return value.cast("string")
    raise TableError(
        f"the person column {value.get_name()!r} contains {kind} values; store identifiers as text or whole numbers",
        column=value.get_name(),
    )


def _day_name(table: Any, index: int) -> str:
    """Return a name, not yet used in the table, for the days of a column."""
    name = f"espalier_day_{index}"
    while name in table.columns:
        name += "_"
    return name


def _code(value: Any, column: Column, dialect: str, day: Any = None, *, utf8: bool = True) -> Any:
    kind = value.type()
    if column.number_style or (column.code_book and code_book(column.code_book).by_rule):
        why = "assigns longer codes to entries of a codebook" if column.code_book else "has its own number style"
        raise TableError(
            f"column {column.name!r} {why}, which this engine does not support. Release from a file, or provide "
            "plain values in a view",
            column=column.name,
        )
    missing = value.isnull()
    if kind.is_floating():
        missing |= value.isnan()
    elif kind.is_decimal() and dialect == "postgres":
        missing |= value.cast("string") == "NaN"
    elif kind.is_string():
        missing |= value == MISSING
    if marks := [x for x in (_as_typed(text, kind) for text in column.missing_marks) if x is not None]:
        missing |= value.isin(marks)
    empty = column.values if column.missing else column.size + 1
    unknown = column.values if column.unknown == "missing" else column.size
    if column.dates is not None:
        codes = _periods(value, column, _int(unknown), day)
    elif column.kind == "numeric":
        codes = _bins(value, column, _int(unknown), dialect)
    else:
        codes = _categories(value, column, _int(unknown), utf8=utf8)
    return ibis.cases((missing, _int(empty)), else_=codes)


def _int(code: int) -> Any:
    return ibis.literal(code, "int32")


def _exact(number: float) -> Any:
    """Return a float as the engine parses it from its shortest text, because a plain literal may first become a decimal
    and be rounded twice.
    """
    return ibis.literal(repr(float(number))).cast("float64")


def _read_number(text: Any, dialect: str) -> Any:
    """Return a decimal, or text that spells a number, as the nearest float. PostgreSQL rejects numbers beyond its
    floats and beyond its decimals.
    """
    if dialect != "postgres":
        return text.try_cast("float64")
    number = text.cast("decimal")
    largest, least = (ibis.literal(x).cast("decimal") for x in ("1e300", "1e-300"))
    zero = ibis.literal("0").cast("decimal")
    bounded = ibis.least(ibis.greatest(number, -largest), largest)
    tiny = ibis.cases((number == zero, zero), (number > zero, least), else_=-least)
    near = ibis.cases((bounded.abs() < least, tiny), else_=bounded).cast("float64")
    if not text.type().is_string():
        return near
    vanishes = text.re_search("^[^1-9eE]*[eE]") | text.re_search("[eE]-")
    edge = ibis.cases((vanishes, _exact(0.0)), (text.re_search("^[^0-9]*-"), _exact(-1e300)), else_=_exact(1e300))
    return ibis.cases((text.re_search(_FAR) & (text.length() <= _SHORT), edge), else_=near)


def _is_like(text: Any, pattern: str, dialect: str) -> Any:
    """Return whether all of ``text`` matches ``pattern``. In Java a closing $ would allow a Unicode line break at the
    end.
    """
    return text.re_search(pattern.removesuffix("$") + r"\z" if dialect == "pyspark" else pattern)


def _bins(value: Any, column: Column, unknown: Any, dialect: str) -> Any:
    kind = value.type()
    if kind.is_string():
        odd, number = ~_is_like(value, _NUMBER, dialect), _read_number(value, dialect)
    elif kind.is_floating():
        number = value.cast("float64")
        odd = number.isinf()
    elif kind.is_decimal() and kind.scale is None and dialect == "postgres":
        odd, number = value.cast("string").isin(["Infinity", "-Infinity"]), _read_number(value, dialect)
    elif kind.is_integer() or kind.is_decimal():
        odd, number = None, value.cast("float64")
    else:
        _refuse_nested(value)
        return unknown  # True or a date is not a number
    bins = _between(number, [_exact(edge) for edge in column.edges[1:-1]])
    return bins if odd is None else ibis.cases((odd, unknown), else_=bins)


def _between(value: Any, edges: Sequence[Any], first: int = 0) -> Any:
    """Return the number of ``edges`` (increasing) at or below ``value``, plus ``first``. Many edges are searched by
    bisection, so each row is compared with few edges.
    """
    if len(edges) <= FEW:
        steps = [(value < edge, _int(first + i)) for i, edge in enumerate(edges)]
        last = _int(first + len(edges))
        return ibis.cases(*steps, else_=last) if steps else last
    middle = len(edges) // 2
    upper = _between(value, edges[middle + 1 :], first + middle + 1)
    return ibis.cases((value < edges[middle], _between(value, edges[:middle], first)), else_=upper)


def _periods(value: Any, column: Column, unknown: Any, ordered: Any) -> Any:
    """Return the calendar bins of dates, of timestamps without a time zone, and of text, whose days are ``ordered``."""
    kind = value.type()
    if kind.is_timestamp() and kind.timezone is not None:
        raise TableError(
            f"column {column.name!r} contains timestamps with a time zone, so their day depends on the zone; "
            "convert them to dates",
            column=column.name,
        )
    if ordered is not None and (kind.is_string() or kind.is_integer()):
        day, odd, kind = ordered, ~_in_calendar(ordered), ordered.type()
    elif kind.is_date() or kind.is_timestamp():
        last = "9999-12-31" if kind.is_date() else "9999-12-31 23:59:59.999999"
        day, odd = value, (value < _day("0001-01-01", kind)) | (value > _day(last, kind))  # infinities
    else:
        _refuse_nested(value)
        return unknown  # a number or a time of day is not a date
    ends = (dt.date.fromordinal(int(edge)).isoformat() for edge in column.edges[1:-1])
    return ibis.cases((odd, unknown), else_=_between(day, [_day(end, kind) for end in ends]))


def _ordered_day(value: Any, column: Column, dialect: str) -> Any:
    """Return the day of each text or whole number in ISO form; empty if it does not have the form of a date."""
    kind = value.type()
    if kind.is_floating() or kind.is_decimal():
        raise TableError(
            f"column {column.name!r} contains {kind} values, from which this engine cannot read dates; provide whole "
            "numbers, text or dates in a view",
            column=column.name,
        )
    if not (kind.is_string() or kind.is_integer()):
        return ibis.literal("")
    text = value.cast("string") if kind.is_integer() else value
    forms = [(_is_like(text, _DATE, dialect), text.re_extract(_ISO_DAY, 0))]
    for spelling in SPELLINGS.get(column.date_order, ()):
        pattern = f"^{BLANK}*{spelling.pattern}{BLANK}*$"
        forms.append((_is_like(text, pattern, dialect), _iso_day(text, pattern, spelling)))
    return ibis.cases(*forms, else_="")


def _iso_day(value: Any, pattern: str, spelling: Spelling) -> Any:
    """Return the day of text that matches ``pattern``, in ISO form."""
    year, month, day = (value.re_extract(pattern, group) for group in (spelling.year, spelling.month, spelling.day))
    named = [(month.re_search(month_pattern(name)), f"{i:02d}") for i, name in enumerate(MONTHS, 1)]
    return year + "-" + ibis.cases(*named, else_=month.lpad(2, "0")) + "-" + day.lpad(2, "0")


def _day(text: str, kind: Any) -> Any:
    return ibis.literal(text) if kind.is_string() else ibis.literal(text).cast(kind)


def _in_calendar(day: Any) -> Any:
    """Return whether text in the form of an ISO date is a valid day. The text is compared without a cast."""
    century, year, month, last = (day.substr(at, 2) for at in (0, 2, 5, 8))
    fours = [f"{i:02d}" for i in range(0, 100, 4)]
    leap = ibis.ifelse(year == "00", century.isin(fours), year.isin(fours))
    february = ibis.ifelse(leap, "29", "28")
    most = ibis.cases((month == "02", february), (month.isin(["04", "06", "09", "11"]), "30"), else_="31")
    return (day.substr(0, 4) != "0000") & month.between("01", "12") & last.between("01", most)


def _categories(value: Any, column: Column, unknown: Any, *, utf8: bool) -> Any:
    _refuse_nested(value)
    texts: dict[int, list[str]] = {}
    for text, code in column.texts.items():
        texts.setdefault(code, []).append(text)
    kind = value.type()
    if kind.is_string():
        found_at = sorted(
            (text.encode("utf-8", "surrogatepass"), text, code) for code, said in texts.items() for text in said
        )
        ordered = [(text, code) for _, text, code in found_at if utf8 or text.isascii()]
        others = [(text, code) for _, text, code in found_at if not (utf8 or text.isascii())]
        return _equal(value, others, _looked_up(value, ordered, unknown))
    compared = value
    if kind.is_floating():
        compared = value.cast("float64")
    elif kind.is_uuid() or (kind.is_decimal() and kind.scale is None):
        compared = value.cast("string")
    found = []
    for code, said in texts.items():
        same = [x for x in (_as_typed(text, kind) for text in said) if x is not None]
        if same:
            found.append((compared.isin(same), _int(code)))
    return ibis.cases(*found, else_=unknown) if found else unknown


def _looked_up(value: Any, texts: Sequence[tuple[str, int]], unknown: Any) -> Any:
    """Return the code of a text among ``texts`` (in byte order, as engines compare here); many texts are searched by
    bisection.
    """
    if len(texts) > FEW:
        middle = len(texts) // 2
        below, above = (_looked_up(value, part, unknown) for part in (texts[:middle], texts[middle:]))
        return ibis.cases((value < ibis.literal(texts[middle][0]), below), else_=above)
    return _equal(value, texts, unknown)


def _equal(value: Any, texts: Sequence[tuple[str, int]], unknown: Any) -> Any:
    """Return the code of a text among ``texts``, in any order."""
    same: dict[int, list[str]] = {}
    for text, code in texts:
        same.setdefault(code, []).append(text)
    found = [(value.isin(said), _int(code)) for code, said in same.items()]
    return ibis.cases(*found, else_=unknown) if found else unknown


def _as_typed(text: str, kind: Any) -> Any:
    """Return the value of type ``kind`` that a table reader would write as ``text``, or None if there is none."""
    try:
        if kind.is_string() or kind.is_uuid():
            return ibis.literal(text)
        if kind.is_boolean():
            return {"True": ibis.literal(True), "False": ibis.literal(False)}.get(text)
        if kind.is_integer():
            low, high = (0, 1 << 64) if kind.is_uint64() else (1 - (1 << 63), 1 << 63)
            known = str(int(text)) == text and low <= int(text) < high
            return ibis.literal(int(text), "uint64" if kind.is_uint64() else "int64") if known else None
        if kind.is_floating():
            number = float(text)
            whole = number.is_integer() and abs(number) < 2**53
            return _exact(number) if (str(int(number)) if whole else repr(number)) == text else None
        if kind.is_decimal():
            return _as_decimal(text, kind)
        if kind.is_date():
            return ibis.literal(text).cast("date") if dt.date.fromisoformat(text).isoformat() == text else None
        if kind.is_timestamp():
            return _as_timestamp(text, kind)
        if kind.is_time():
            return ibis.literal(text).cast("time") if dt.time.fromisoformat(text).isoformat() == text else None
    except (ValueError, OverflowError, InvalidOperation):
        pass
    return None


def _as_decimal(text: str, kind: Any) -> Any:
    if kind.scale is None:
        return ibis.literal(text)
    scaled = Decimal(text).quantize(Decimal(1).scaleb(-kind.scale))
    return ibis.literal(text).cast(kind) if str(scaled) == text else None


def _as_timestamp(text: str, kind: Any) -> Any:
    """Return a timestamp; without a time zone, a date alone means midnight."""
    if kind.timezone is None and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return ibis.literal(text).cast(kind)
    moment = dt.datetime.fromisoformat(text)
    plain = (moment.tzinfo is None) == (kind.timezone is None) and moment.isoformat() == text
    midnight = moment.tzinfo is None and moment.time() == dt.time()
    return ibis.literal(text).cast(kind) if plain and not midnight else None


def _refuse_nested(value: Any) -> None:
    kind = value.type()
    if kind.is_unknown():
        raise TableError(
            f"column {value.get_name()!r} has a type that Espalier cannot read. Name a view that casts it to text.",
            column=value.get_name(),
        )
    if not (kind.is_primitive() or kind.is_string() or kind.is_temporal() or kind.is_decimal() or kind.is_uuid()):
        raise TableError(
            f"column {value.get_name()!r} contains {kind} values; use one plain value per cell", column=value.get_name()
        )
