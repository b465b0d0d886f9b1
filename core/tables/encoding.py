"""Encoder of Arrow batches from any reader. Each code is a function of one cell and its column's description.

**Theorem.** ``codes(row) = f(row, public schema)``. The public schema is the project's description of each column and
the Arrow type of each column, which belongs to the table and not to a row. No code of a row depends on other rows, on
their number or order, on the file or batch that contains the row, or on statistics stored in a file.

*Proof.* Let ``text(cell)`` be the canonical text of a cell (the table below) and ``code(text)`` be
`espalier.core.project.schema.Column.judge` of that text. Both read one cell and the column's public description. The
encoder computes ``code(text(cell))``, by one of four methods, chosen by the column's type and description:

1. *Distinct values* (`_by_value`). Arrow lists the distinct values of a batch, and each value is encoded on its own.
   The code of a cell is the code of its value, and two cells share a value only if they are equal under the type's own
   equality, which implies that their texts are equal. The list, its order and the batch therefore do not matter.
2. *Numbers* (`_Numbers`). ``float(str(i))`` is the nearest float of a whole number i, as is NumPy's conversion;
   ``float(repr(x)) = x``. A cell's bin is therefore found from its number by comparison with each public edge. A
   category or mark t is compared as the one number whose canonical text is t, if there is one. A lookup table over the
   whole numbers of a batch contains exactly the values of this function. It only saves time.
3. *Timestamps in calendar bins* (`_days`). The day is the whole part of a division of the cell by the length of a day.
4. *Decimals in bins* (`_decimals`). The lower 64 bits hold all 18 digits. A cell with more digits is refused. ``float``
   is monotone, so the decimals at or above an edge are those with at least a certain whole number of units in the last
   decimal place. This number depends only on the edge and the column's type.

A missing cell is recognised by its own validity bit. Each batch must have the types for which the encoder was made; any
other type raises an error. The encoder keeps nothing between batches. ∎

A *refusal* (an undeclared value, an empty cell, a cell without a text) may depend on any single row. It ends the
release before the first draw.

| cell | canonical text |
| --- | --- |
| null, NaN, empty text | empty: missing |
| whole number | digits, no point: ``7`` |
| float (narrow ones widened) | shortest ``repr``; a whole number below 2⁵³ without a point: ``0.1``, ``7`` |
| -0.0 | ``0`` |
| infinity | ``inf``, ``-inf``: not a number, so undeclared in a numeric column |
| decimal | as written with its scale: ``7.50`` |
| truth value | ``True``, ``False`` |
| text | itself, byte by byte: case, blanks and combining characters matter |
| date | ``2024-01-31`` |
| timestamp | ``2024-01-31T10:00:00`` (midnight without a time zone: the date alone) |
| timestamp with a time zone | in the zone of the column's type: ``2024-01-31T10:00:00+01:00`` |
| time of day | ``10:00:00`` |
| UUID | lower case with hyphens |
| damaged text, a year outside 1 … 9999 | none: refused |

Lists, records, bytes and intervals are refused. In a column of dates, timestamps with a time zone are refused as well,
because their day depends on the zone. A person column must be text, a whole number, a decimal without decimal places or
a UUID, because other types may represent one person in two ways.

Row limits per person (`espalier.core.tables.row_limits`) depend on the key, on the person's identifier and on that
person's rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import Column, Schema, smallest_unsigned
from espalier.core.tables.arrow_text import check_type, is_uuid, value_type, wide
from espalier.core.tables.refusals import together
from espalier.core.tables.text_table import cell_text

if TYPE_CHECKING:
    from espalier.core.project.dates import DateBins

Codes = NDArray[Any]
NARROW = 1 << 16
"""Maximum size of a lookup table of whole numbers."""
FIRST_DAY, LAST_DAY, EPOCH = 1, 3_652_059, 719_163
"""Day numbers of 0001-01-01, of 9999-12-31, and of 1970-01-01, from which Arrow counts."""
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True)
class Batch:
    """Encoded rows: one array of codes per column of the schema, in its order; the person of each row as text."""

    codes: list[Codes]
    person: Any = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes[0])


class Encoder:
    """Encoder of Arrow batches with these columns (``types``, an Arrow schema) as ``schema`` describes them."""

    def __init__(self, schema: Schema, types: Any, shown: str, person: str | None = None) -> None:
        """Check the types of the columns. Raise :class:`TableError` for a type that cannot be encoded."""
        self._shown, self._person = shown, person
        self.names = tuple(dict.fromkeys([*schema.names, *([person] if person is not None else [])]))
        """Names of the columns that the encoder reads."""
        self._types = {name: value_type(types.field(name).type) for name in self.names}
        self._columns, wrong = [], []
        for column in schema.columns:
            try:
                self._columns.append((column, _way(column, self._types[column.name], shown)))
            except TableError as error:
                wrong.append(error)
        if person is not None:
            try:
                check_person(person, self._types[person], shown)
            except TableError as error:
                wrong.append(error)
        if wrong:
            raise together(wrong)
        self._wrong: dict[str, TableError] = {}

    def __call__(self, batch: Any) -> Batch:
        """Return the codes of an Arrow batch. A cell without a code gets an arbitrary code, and :meth:`check` refuses
        it.
        """
        held = {name: batch.column(name) for name in self.names}
        for name, array in held.items():
            if value_type(array.type) != self._types[name]:
                raise TableError(f"{self._shown}: column {name!r} changed its type while it was read", column=name)
        codes = []
        for column, way in self._columns:
            found = self._read(column.name, way, held[column.name])
            codes.append(fitting(self._shown, column, found, self._wrong))
        if self._person is None:
            return Batch(codes)
        return Batch(codes, self._read(self._person, people, held[self._person]))

    def check(self) -> None:
        """Raise one :class:`TableError` for all columns with cells that have no code. The error quotes no cell."""
        if self._wrong:
            raise together([self._wrong[name] for name in self.names if name in self._wrong])

    def _read(self, name: str, way: Callable[[Any], Any], array: Any) -> Any:
        import pyarrow as pa

        try:
            return way(array)
        except (pa.ArrowException, ValueError, OverflowError):  # its text may quote a cell
            raise TableError(
                f"{self._shown}: column {name!r} contains a value that cannot be written as text, such as damaged text "
                "or a year after 9999; correct it",
                column=name,
            ) from None


def fitting(shown: str, column: Column, codes: Codes, wrong: dict[str, TableError]) -> Codes:
    """Return codes within the column's size. Codes that mark a refused cell become 0, and ``wrong`` records the
    reason.
    """
    largest = int(codes.max(initial=0))
    if largest < column.size:
        return codes
    wrong.setdefault(column.name, refusal(shown, column.name, empty=largest > column.size))
    return np.where(codes < column.size, codes, 0).astype(codes.dtype)


def refusal(shown: str, name: str, *, empty: bool) -> TableError:
    """Return the error for an undeclared value, or for an empty cell."""
    if empty:
        text = f'column {name!r} has empty cells, but its schema does not set "missing": true'
    else:
        text = (
            f"column {name!r} contains a value that its schema does not declare (the value is not shown); "
            'correct the table, declare the value, or set "unknown": "missing"'
        )
    return TableError(f"{shown}: {text}", column=name)


def check_person(name: str, kind: Any, shown: str) -> None:
    """Raise :class:`TableError` for an Arrow type that may represent one person by two values, or two people by one
    value.
    """
    import pyarrow as pa

    whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (whole or pa.types.is_string(kind) or is_uuid(kind)):
        raise TableError(
            f"{shown}: the person column {name!r} contains {kind} values; store person identifiers as text or whole "
            "numbers",
            column=name,
        )


def _way(column: Column, kind: Any, shown: str) -> Callable[[Any], Codes]:
    """Return the encoder for cells of this Arrow type; see the proof."""
    import pyarrow as pa

    types = pa.types
    check_type(column.name, kind, shown)
    if column.dates is not None and types.is_timestamp(kind) and kind.tz is not None:
        raise TableError(
            f"{shown}: column {column.name!r} contains timestamps with a time zone, so their day depends on the zone; "
            "store them as dates",
            column=column.name,
        )
    plain: Callable[[Any], Codes] = _by_value(column)
    by_text = bool(column.code_book or column.number_style or column.date_order)
    if (types.is_integer(kind) or types.is_floating(kind)) and not by_text:
        plain = _Numbers(column, kind)
    elif not by_text and not column.missing_marks:
        if column.dates is not None and types.is_timestamp(kind):
            plain = _days(column, column.dates, PER_DAY[kind.unit])
        elif column.kind == "numeric" and column.dates is None and types.is_decimal128(kind) and kind.precision <= 18:
            plain = _decimals(column, kind)

    def encode(array: Any) -> Codes:
        if types.is_dictionary(array.type):
            inside = encode(array.dictionary)
            table = np.append(inside, inside.dtype.type(column.empty_code))
            return table.take(_indices(array, len(inside)))
        return plain(array)

    return encode


def _by_value(column: Column) -> Callable[[Any], Codes]:
    """Encode by the first method of the proof: each distinct value of a batch is written as text and encoded on its
    own.
    """
    kind = smallest_unsigned(column.size + 2)

    def encode(array: Any) -> Codes:
        coded = _plain(array).dictionary_encode()
        codes = column.judge(_texts(coded.dictionary))
        return np.append(codes, column.empty_code).astype(kind).take(_indices(coded, len(codes)))

    return encode


class _Numbers:
    """Encode by the second method of the proof: whole numbers and floats."""

    def __init__(self, column: Column, kind: Any) -> None:
        import pyarrow as pa

        self._column, self._whole = column, pa.types.is_integer(kind)
        self._as = np.dtype(np.uint64 if kind == pa.uint64() else np.int64 if self._whole else np.float64)
        self._kind = smallest_unsigned(column.size + 2)
        texts = list(column.missing_marks)
        if column.kind != "numeric":
            texts += column.texts
        found = {self._number(text): code for text, code in zip(texts, column.judge(texts).tolist(), strict=True)}
        found.pop(None, None)
        order = sorted(x for x in found if x is not None)
        self._keys = np.array(order, dtype=self._as)
        self._codes = np.array([found[x] for x in order], dtype=self._kind)
        """Public numbers with their own code (categories, groups, spellings, marks), and their codes."""

    def _number(self, text: str) -> int | float | None:
        """Return the number of this type whose canonical text is ``text``, if there is one."""
        try:
            number = int(text) if self._whole else float(text)
        except ValueError:
            return None
        if cell_text(number) != text:
            return None
        if self._whole:
            low, high = (0, 1 << 64) if self._as.kind == "u" else (-1 << 63, 1 << 63)
            return number if low <= number < high else None
        return number

    def __call__(self, array: Any) -> Codes:
        cells: NDArray[Any] = _cells(array)
        if not len(cells):
            return np.empty(0, dtype=self._kind)
        low, high = (int(cells.min()), int(cells.max())) if self._whole else (0, NARROW)
        if low >= 0 and high < NARROW:
            codes = self._encode(np.arange(high + 1)).take(cells)
        elif high - low < NARROW:
            table = self._encode(np.arange(high - low + 1).astype(self._as) + self._as.type(low))
            codes = table.take(np.asarray(cells.astype(self._as, copy=False) - self._as.type(low), dtype=np.intp))
        else:
            codes = self._encode(cells)
        return _with_missing(codes, array, self._column)

    def _encode(self, cells: NDArray[Any]) -> Codes:
        column, numbers = self._column, cells.astype(np.float64, copy=False)
        if column.kind == "numeric" and column.dates is None:
            codes = column.bins_of(numbers).astype(self._kind)
        else:
            codes = np.full(len(cells), column.unknown_code, dtype=self._kind)
        if not self._whole and not (finite := np.isfinite(numbers)).all():
            codes[~finite] = column.unknown_code
            codes[np.isnan(numbers)] = column.empty_code
        if len(self._keys):
            exact = cells.astype(self._as, copy=False)
            place = np.minimum(np.searchsorted(self._keys, exact), len(self._keys) - 1)
            same = self._keys[place] == exact
            codes[same] = self._codes[place[same]]
        return codes


def _days(column: Column, dates: DateBins, per_day: int) -> Callable[[Any], Codes]:
    """Encode by the third method of the proof: timestamps without a time zone, in calendar bins."""
    inner = np.array(dates.edges[1:-1], dtype=np.int64)
    kind = smallest_unsigned(column.size + 2)

    def encode(array: Any) -> Codes:
        days = np.floor_divide(_cells(array), per_day) + EPOCH
        there = ~_missing(array)
        if ((days < FIRST_DAY) | (days > LAST_DAY))[there].any():
            raise ValueError("a year outside 1 to 9999")
        return _with_missing(np.searchsorted(inner, days, side="right").astype(kind), array, column)

    return encode


def _decimals(column: Column, decimal: Any) -> Callable[[Any], Codes]:
    """Encode by the fourth method of the proof: decimals of at most 18 digits in bins, by whole numbers of the last
    decimal place.
    """
    most = 10**decimal.precision
    every = range(-most, most + 1)

    def number(units: int) -> float:
        return float(Decimal(units).scaleb(-decimal.scale))

    starts = [bisect_left(every, edge, key=number) - most for edge in column.edges[1:-1]]
    inner, kind = np.array(starts, dtype=np.int64), smallest_unsigned(column.size + 2)

    def encode(array: Any) -> Codes:
        data = array.buffers()[1]
        halves = np.frombuffer(data, np.int64) if data is not None else np.empty(0, np.int64)
        units, upper = (halves[i::2][array.offset : array.offset + len(array)] for i in (0, 1))
        beyond = (upper != units >> 63) | (units >= most) | (units <= -most)
        if beyond[~_missing(array)].any():
            raise ValueError("more digits than the type has")
        return _with_missing(np.searchsorted(inner, units, side="right").astype(kind), array, column)

    return encode


def people(array: Any) -> Any:
    """Return the canonical text of each cell in a person column, as an Arrow array; null stays null."""
    import pyarrow as pa

    values = value_type(array.type)
    if not pa.types.is_dictionary(array.type) and (pa.types.is_string(values) or pa.types.is_integer(values)):
        made = array.cast(pa.string())
    else:
        coded = array if pa.types.is_dictionary(array.type) else _plain(array).dictionary_encode()
        texts = pa.array(_texts(coded.dictionary), pa.string())
        made = pa.DictionaryArray.from_arrays(coded.indices, texts).cast(pa.string())
    made.validate(full=True)  # damaged text could be represented by different bytes
    return made


def _plain(array: Any) -> Any:
    """Return the array in a layout whose distinct values Arrow can list."""
    import pyarrow as pa

    if pa.types.is_decimal(array.type):
        return array.cast(wide(array.type))
    return array.storage if is_uuid(array.type) else array.cast(pa.string()) if _is_view(array.type) else array


def _is_view(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string_view(kind))


def _texts(values: Any) -> list[str]:
    """Return the canonical text of each value of an Arrow array."""
    import uuid

    import pyarrow as pa

    if pa.types.is_fixed_size_binary(values.type):  # UUIDs are the only binary type that reaches this line
        return [str(uuid.UUID(bytes=value)) if value is not None else "" for value in values.to_pylist()]
    return [cell_text(value) for value in values.to_pylist()]


def _cells(array: Any) -> NDArray[Any]:
    """Return a numeric or temporal Arrow array's values without copying them. They are undefined for null cells."""
    import pyarrow as pa

    kind = np.dtype(np.int64) if pa.types.is_timestamp(array.type) else np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, array.offset + len(array))[array.offset :]


def _missing(array: Any) -> NDArray[np.bool_]:
    """Return whether each cell is null, by its validity bit."""
    valid = array.buffers()[0]
    if valid is None or not array.null_count:
        return np.zeros(len(array), dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
    return np.asarray(bits[array.offset : array.offset + len(array)] == 0)


def _with_missing(codes: Codes, array: Any, column: Column) -> Codes:
    if array.null_count:
        codes[_missing(array)] = column.empty_code
    return codes


def _indices(array: Any, missing: int) -> NDArray[Any]:
    """Return the indices of a dictionary array's cells, and ``missing`` for null."""
    indices = array.indices
    places = _cells(indices)
    if not indices.null_count:
        return places
    places = places.astype(np.int64)
    places[_missing(indices)] = missing
    return places
