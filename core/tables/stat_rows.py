"""Reader of the rows of SPSS, Stata and SAS transport files, based on PyReadStat.

PyReadStat returns each cell as a number or as text. Dates are returned as numbers and are converted here, cell by cell,
by the format that the file declares for the column. No row therefore changes how another row is read. The generated row
test covers SPSS, Stata and SAS transport files. The test needs a writer, and PyReadStat cannot write ``.sas7bdat``, so
rows of these files are refused.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from espalier.core.errors import TableError, wheel_with
from espalier.core.tables.text_table import MAX_CELLS, WHOLE_FLOATS, Cells, TextTable, check_names
from espalier.core.tables.unpacking import BOMB_BYTES, BOMB_RATIO

_ROWS = re.compile(rb"HEADER RECORD\*{7}OBS.{57}", re.DOTALL)
"""Record of 80 bytes after which the rows of a SAS transport file begin."""
_COUNTED = b"HEADER RECORD*******LIBV8"
"""First bytes of a SAS transport file that states its number of rows."""
_BLANKS = {sum(32 / 256**place for place in range(1, size)) * 16.0**-32 for size in range(2, 9)}
"""Numbers that consist of blank bytes in a SAS transport file, for lengths of 2 to 8 bytes."""

READERS = {
    ".sav": ("read_sav", "SPSS"),
    ".zsav": ("read_sav", "SPSS"),
    ".dta": ("read_dta", "Stata"),
    ".sas7bdat": ("read_sas7bdat", "SAS"),
    ".xpt": ("read_xport", "SAS transport"),
}
"""PyReadStat's function for each format, and the format's name, by file extension."""
_STARTS = {b"$FL2": ".sav", b"$FL3": ".zsav", b"<stata_dta>": ".dta", b"HEADER RECORD*******LIB": ".xpt"}
_OLD_STATA = {bytes([version, order, 1, 0]) for version in (110, 111, 113, 114, 115) for order in (1, 2)}
_SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_SPSS_EPOCH, _SAS_EPOCH = dt.datetime(1582, 10, 14), dt.datetime(1960, 1, 1)
_DAYS = {"TD", "D", "DATE", "YYMMDD", "MMDDYY", "DDMMYY", "E8601DA", "B8601DA"}
_SPSS_DAYS = {"DATE", "ADATE", "EDATE", "SDATE", "JDATE"}
"""Formats for whole days, without their width."""


def kind_of(data: bytes) -> str:
    """Return the extension of the format that matches a file's first bytes, or an empty string."""
    for start, suffix in _STARTS.items():
        if data.startswith(start):
            return suffix
    return ".dta" if data[:4] in _OLD_STATA else ".sas7bdat" if data.startswith(_SAS) else ""


def pyreadstat() -> Any:
    """Return the library; raise a :class:`TableError` that names the extra if it is not installed."""
    try:
        import pyreadstat as found
    except ImportError:
        raise TableError(
            f"SPSS, Stata and SAS files need PyReadStat: the extra [formats]. {wheel_with('formats')}"
        ) from None
    return found


def read_stat(
    data: bytes, shown: str, *, rows: bool, suffix: str = "", raw: bool = False
) -> tuple[dict[str, Any], Any]:
    """Return PyReadStat's columns (empty without ``rows``) and its facts about a file; raise :class:`TableError`.

    User-missing values of SPSS are returned unchanged. With ``raw``, each byte of text becomes one character.
    """
    library, suffix = pyreadstat(), suffix or kind_of(data) or Path(shown).suffix.lower()
    if suffix not in READERS:
        raise TableError(f"{shown} is not an SPSS, Stata or SAS file")
    reader, name = READERS[suffix]
    options: dict[str, Any] = {"disable_datetime_conversion": True, "output_format": "dict"}
    if reader == "read_sav":
        options["user_missing"] = True
    if raw:
        options["encoding"] = "LATIN1"
    with _placed(data, suffix) as place:
        read, cells = getattr(library, reader), dict[str, Any]()
        try:
            _, facts = read(place, metadataonly=True, **options)
            if not rows:
                return {}, facts
            check_names(facts.column_names, shown)
            most = _most_rows(facts, data)
            if (facts.number_rows or 0) <= most:
                cells, facts = read(place, row_limit=most + 1, **options)
            if (facts.number_rows or 0) > most or any(len(column) > most for column in cells.values()):
                raise TableError(
                    f"{shown} contains too many cells, or unpacks to more than {BOMB_RATIO} times its size. Use CSV or "
                    "Parquet"
                )
        except TableError:
            raise
        except Exception:  # its text may quote a cell
            raise TableError(f"{shown} cannot be read as {name}; save it again, or use CSV") from None
    return dict(cells), facts


@contextmanager
def _placed(data: bytes, suffix: str) -> Iterator[str]:
    """Write the bytes where PyReadStat can open them, and yield the path.

    The file has no name, so it leaves no trace if the process is killed. On a system that does not expose open files
    as paths, it has a name in a folder that only this user may read.
    """
    with tempfile.TemporaryFile(prefix="espalier-") as file:
        file.write(data)
        file.flush()
        if Path(shown := f"/proc/self/fd/{file.fileno()}").exists():
            yield shown
            return
    with tempfile.TemporaryDirectory(prefix="espalier-") as folder:
        place = Path(folder) / f"file{suffix}"
        place.write_bytes(data)
        yield str(place)


def _most_rows(facts: Any, data: bytes) -> int:
    """Return the largest number of rows that a file may have, by its cells and by its unpacked size.

    SPSS packs equal cells, and Stata rows may share one long text value.
    """
    shared = _longest(data)
    widths = [max(facts.variable_storage_width.get(name) or shared, 8) for name in facts.column_names]
    return min(MAX_CELLS // max(len(widths), 1), max(BOMB_BYTES, BOMB_RATIO * len(data)) // max(sum(widths), 1))


def _longest(data: bytes) -> int:
    """Return an upper bound on the bytes of the longest text that rows of a Stata file may share.

    Each such text follows the letters GSO, two numbers, its kind, and its length in four bytes.
    """
    return max((stop - start for start, stop in _long_texts(data)), default=0)


def _long_texts(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each text that rows of a Stata file may share."""
    order: Literal["little", "big"] = "little" if b"<byteorder>LSF" in data[:200] else "big"
    place = 12 if b"<release>117" in data[:200] else 16
    at = data.find(b"GSO")
    while at >= 0:
        start = at + place + 4
        yield start, min(start + int.from_bytes(data[start - 4 : start], order), len(data))
        at = data.find(b"GSO", at + 3)


def stat_table(data: bytes, shown: str) -> TextTable:
    """Return the rows as text; raise :class:`TableError`."""
    suffix = kind_of(data)
    if suffix == ".sas7bdat":
        raise TableError(
            f"{shown}: Espalier does not read rows of .sas7bdat files, because its tests cannot prove that the reader "
            "treats each row separately. Export the table as SAS transport (.xpt), CSV or Parquet"
        )
    cells, facts = read_stat(data, shown, rows=True)
    if suffix == ".xpt" and not data.startswith(_COUNTED):
        _check_blanks(cells, facts, shown)
    if suffix == ".xpt" and data.startswith(_COUNTED):
        _check_count(data, shown, cells, facts)
    columns, rows, merging = {}, 0, _merging(data, shown, cells, facts)
    for name in facts.column_names:
        if suffix == ".dta" and str(facts.original_variable_types.get(name) or "").startswith(("%tC", "%-tC")):
            raise TableError(
                f"{shown}: column {name!r} counts leap seconds (%tC), so Espalier would shift its times. Convert it in "
                f"Stata: replace {name} = cofC({name}), then format {name} %tc",
                column=name,
            )
        convert = _converted(suffix, str(facts.original_variable_types.get(name) or ""))
        made = Cells(_exact(facts, name))
        try:
            for cell in cells[name]:
                made.add(convert(cell))
        except (OverflowError, ValueError):
            raise TableError(f"{shown}: column {name!r} contains an invalid date", column=name) from None
        made.unclear |= convert is not _plain or name in merging
        columns[name] = made.column()
        rows = len(columns[name].codes)
    return TextTable(columns, rows, shown)


def _merging(data: bytes, shown: str, cells: dict[str, Any], facts: Any) -> set[str]:
    """Return the columns in which different bytes have become the same text or the same number. The reader drops an
    incomplete letter at the end of text, such as a Latin-1 é in a UTF-8 file, and some encodings write one letter in
    two ways. The reader also ends text at a zero character, and rounds numbers in SAS transport files, which have up to
    three bits more than floats.
    """
    texts = {name for name in facts.column_names if facts.readstat_variable_types.get(name) == "string"}
    found = _of_sas(data, texts, cells, facts) | _of_stata(data, texts, facts)
    if not texts:
        return found
    raw = list(read_stat(data, shown, rows=True, raw=True)[0].values())  # the names may be decoded differently, too
    if len(raw) != len(facts.column_names):
        return found | texts
    stored = dict(zip(facts.column_names, raw, strict=True))
    pairs = {name: set(zip(stored[name], cells[name], strict=True)) for name in texts}
    merged = {name for name in texts if len(pairs[name]) > len(set(cells[name]))}
    # the bytes end at a zero character, which SPSS text leaves out
    cut = {name for name in texts if any(len(text or "") > len(of or "") for of, text in pairs[name])}
    return found | merged | cut


def _of_sas(data: bytes, texts: set[str], cells: dict[str, Any], facts: Any) -> set[str]:
    """Return the columns of a SAS transport file whose text has a zero character, or whose numbers were rounded."""
    start = _ROWS.search(data)
    if kind_of(data) != ".xpt" or start is None:
        return set()
    widths = [facts.variable_storage_width.get(name) or 0 for name in facts.column_names]
    starts, size = np.cumsum([0, *widths]), max(sum(widths), 1)
    rows = np.frombuffer(data[start.end() :], np.uint8)
    rows = rows[: len(rows) // size * size].reshape(-1, size)
    found = set[str]()
    for name, at, width in zip(facts.column_names, starts.tolist(), widths, strict=False):
        own = rows[: len(cells[name]), at : at + width]
        if name in texts:
            merged = not own.all()
        else:
            merged = len({cell.tobytes() for cell in own}) > len({_plain(cell) for cell in cells[name]})
        found |= {name} if merged else set()
    return found


def _of_stata(data: bytes, texts: set[str], facts: Any) -> set[str]:
    """Return the long-text columns of a Stata file in which some text has a zero character before its end."""
    if kind_of(data) != ".dta" or not any(b"\0" in data[start : stop - 1] for start, stop in _long_texts(data)):
        return set()
    return {name for name in texts if not facts.variable_storage_width.get(name)}


def _exact(facts: Any, name: str) -> float:
    """Return the smallest number to which the storage of a column may have rounded two different whole numbers.

    Stata's short floats have 24 bits. SAS shortens a number of 64 bits to the column's length in bytes, and 11 of the
    remaining bits are the exponent.
    """
    kind = facts.readstat_variable_types.get(name)
    if kind == "float":
        return WHOLE_FLOATS[32]
    width = (facts.variable_storage_width.get(name) or 8) if kind == "double" else 8
    return 2.0 ** (8 * min(max(width, 2), 8) - 11)


def _check_blanks(cells: dict[str, Any], facts: Any, shown: str) -> None:
    """Refuse a version 5 SAS transport file in which a row may consist of blanks.

    Such a file is padded with blanks and does not state its number of rows. Blank rows count only if another row
    follows, so the last row would determine whether all blank rows before it count. A missing number does not consist
    of blanks.
    """
    numbers = [name for name in facts.column_names if facts.readstat_variable_types.get(name) != "string"]
    if not numbers:
        raise TableError(
            f"{shown} has only text columns and does not state its number of rows. Export the table as version 8 of "
            "SAS "
            "transport, CSV or Parquet"
        )
    for name in numbers:
        if not _BLANKS.isdisjoint(cells[name]):
            raise TableError(
                f"{shown}: column {name!r} contains a number whose bytes are all blanks; correct it", column=name
            )


def _check_count(data: bytes, shown: str, cells: dict[str, Any], facts: Any) -> None:
    """Refuse a version 8 SAS transport file that states a wrong number of rows.

    Otherwise, rows could be left out, such as those of a second data set, or blanks after the last row could be read as
    rows.
    """
    start = _ROWS.search(data)
    stated = re.match(rb" *([0-9]+)", start[0][48:]) if start is not None else None
    if start is None or stated is None or not facts.column_names:
        return
    rows = len(cells[facts.column_names[0]])
    size = sum(facts.variable_storage_width.get(name) or 0 for name in facts.column_names)
    rest = data[start.end() + rows * size :]
    if rows != int(stated[1]) or len(rest) >= 80 or rest.strip(b" "):
        raise TableError(
            f"{shown} states a wrong number of rows, or has several data sets. Export one data set, or use CSV"
        )


def _converted(suffix: str, form: str) -> Callable[[Any], Any]:
    """Return the function that converts a cell with this display format to a Python value."""
    named = form.upper().lstrip("%").rstrip("0123456789.")
    if suffix in (".sav", ".zsav"):
        if named in _SPSS_DAYS:
            return lambda cell: _moment(_SPSS_EPOCH, cell, 1)
        return (lambda cell: _moment(_SPSS_EPOCH, cell, 1)) if named in ("DATETIME", "YMDHMS") else _plain
    if suffix == ".dta":
        if form.lower().startswith(("%td", "%d")):
            return lambda cell: _moment(_SAS_EPOCH, cell, 86_400)
        return (lambda cell: _moment(_SAS_EPOCH, cell, 0.001)) if form.lower().startswith("%tc") else _plain
    if named in _DAYS:
        return lambda cell: _moment(_SAS_EPOCH, cell, 86_400)
    return (lambda cell: _moment(_SAS_EPOCH, cell, 1)) if named in ("DATETIME", "E8601DT") else _plain


def _plain(cell: Any) -> Any:
    """Convert a number or text; NaN and None are empty."""
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _moment(epoch: dt.datetime, cell: Any, seconds: float) -> Any:
    """Return the time that is ``cell`` times ``seconds`` after ``epoch``."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return epoch + dt.timedelta(seconds=round(float(cell) * seconds, 3))
