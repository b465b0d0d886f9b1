"""Display formats of SPSS, SAS and Stata, as named in statistical files and codebooks."""

from __future__ import annotations

import re

_DATE = re.compile(
    r"([AESJ]?DATE|DATETIME|YMDHMS|DATEAMPM|X?(YYMMDD|MMDDYY|DDMMYY)[BCDNPS]?|([EB]|IS)8601(D[ANTXZJ]|LX)|MDYAMPM"
    r"|MOYR|QYR|WKYR|MONYY|MONNAME|DOWNAME|(WORD|WEEK)DAT[EX]|X?(YYMM|MMYY|YYQR?)[CDNPSZ]?|JULIAN|PDJUL[GI]|WEEK[UVW]"
    r"|MINGUO|NENGO|HDATE|HEBDATE|DTDATE|DTMONYY|DTYEAR|DTYYQC|DTWKDATX|NLDAT[EM]\w*?)[0-9.]*|%-?[0-9]*(D|T[BDC]).*",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(TIME|DTIME|TOD|HHMM|MMSS|HOUR|TIMEAMPM|([EB]|IS)8601(T[MXZ]|LZ)|MTIME|NLTIM\w*?)[0-9.]*", re.IGNORECASE
)
_SAS_NUMBER = re.compile(
    r"(BEST[DX]?|F|D|E|Z|COMMAX?|DOLLARX?|EUROX?|YEN|POUND|PERCENTN?|PCT|NUMX|IEEE|NEGPAREN|FRACT|ROMAN|PVALUE|ODDSR"
    r"|NL(NUM|MNY|PCT)\w*?|WORDF?S|SIZEKB?|HEX|OCTAL|BINARY|P?IB|RB|[PZ]D|PK|YEAR|QTRR?|MONTH|DAY|WEEKDAY|JULDAY|NULL|NONE)"
    r"?[0-9.]*",
    re.IGNORECASE,
)
_NO_DECIMALS = re.compile(r"F\d+\.0|(N|Z|PCT|COMMA|DOT|DOLLAR)\d+(\.0)?|%-?\d+\.0fc?", re.IGNORECASE | re.ASCII)
_SAS_WHOLE = re.compile(r"F?\d+(\.0?)?", re.IGNORECASE)
_DECIMALS = re.compile(r"F\d+\.(\d)", re.IGNORECASE)


def is_date(form: str) -> bool:
    """Return whether a format shows a date, or a date and a time."""
    return _DATE.fullmatch(form) is not None


def is_time(form: str) -> bool:
    """Return whether a format shows a time of day or a duration."""
    return _TIME.fullmatch(form) is not None


def is_sas_number(form: str) -> bool:
    """Return whether SAS itself defines this numeric format. A format with any other name was defined for codes."""
    return _SAS_NUMBER.fullmatch(form) is not None


def is_whole(form: str, *, sas: bool = False) -> bool:
    """Return whether a format shows whole numbers: plain, padded with zeros, with separators, or in dollars or
    percent.

    SAS writes only the width of a plain format, such as ``8``.
    """
    return _NO_DECIMALS.fullmatch(form) is not None or (sas and _SAS_WHOLE.fullmatch(form) is not None)


def decimals(form: str) -> str:
    """Return the decimals in a format such as ``F8.2``, or an empty string."""
    found = _DECIMALS.fullmatch(form)
    return found[1] if found else ""
