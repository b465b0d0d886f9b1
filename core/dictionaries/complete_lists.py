"""Rules that decide whether labelled codes are a complete list of values or only some points on a scale."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from espalier.core.project.schema import NUMBER
from espalier.core.tables.value_patterns import no_yes

SEVERAL = 5
"""Number of labelled whole numbers at or above which gaps between them are treated as codes that do not exist."""
MANY = 20
"""Number of labelled whole numbers at or above which they form a complete list, even with wide gaps, because no column
has that many special values.
"""
FEW = 3
"""Number of consecutive codes near zero at or above which they form a complete list."""
_PHRASES = (
    *("missing", "niu", r"n\.i\.u", "not in universe", r"refus\w*", "decline[sd]?", "prefer not", "preferred not"),
    *("don.?t know", "do not know", "dk", "not applicable", "no answer", "not asked", "unknown", "not stated"),
    *("inapplicable", "inap", "not ascertained", "no response", "non.?response", "not reported", r"skip\w*"),
    *("not available", "no data", "no opinion", "undetermined", "does not apply", "not determined", "can.?t say"),
    *("keine angabe", "weiss nicht", "weiß nicht", r"trifft nicht zu\s*$", "verweigert", "nicht erhoben", "fehlend"),
    *("ne sai[ts] pas", "nsp", "non.?r[ée]ponse", "sans r[ée]ponse", "sans objet", "non concern[ée]", "manquant"),
    *("no sabe", "no responde", "ns.?nr", "ns.?nc", "no contesta", "no aplica", "no informa", "sin dato", "ignorado"),
    *("não sabe", "não respond", "não se aplica", "sem resposta", "non sa", "non risponde", "non applicabile"),
    *("weet niet", "geen antwoord", "niet van toepassing", "vet ej", "vet inte", "vet ikke", "ved ikke", "ubesvart"),
    *("nie wiem", "brak odpowiedzi", "nie dotyczy", "bilmiyor", "cevap yok"),
)
_NOT_A_VALUE = re.compile(rf"\b({'|'.join(_PHRASES)})\b|^\W*n\.?/?a\.?\W*$", re.IGNORECASE)
_SPECIAL = re.compile(r"-\d+|([5-9])\1*|9+\d")
"""Whole numbers that questionnaires use for "other" and for missing answers: 8, 99, 996, -1."""
_WHOLE = re.compile("[0-9]{1,18}")
_AMOUNT = re.compile(r"\d|\b(none|zero|one|two|three|once|twice)\b", re.IGNORECASE)
_SPAN = re.compile(
    r"(-?\d+(?:\.\d+)?)\s*(?:-|–|—|:|\.\.|to|thru|through)\s*(-?\d+(?:\.\d+)?)", re.IGNORECASE | re.ASCII
)
WIDE, MOST_OTHERS = 5, 20
"""Minimum width of a code such as ``0-97`` that is treated as a range of numbers, and maximum number of other codes in
its column.
"""
_PAIRS = (
    *({"male", "female"}, {"m", "f"}, {"man", "woman"}, {"men", "women"}, {"boy", "girl"}, {"homme", "femme"}),
    *({"mann", "frau"}, {"männlich", "weiblich"}, {"hombre", "mujer"}, {"masculino", "feminino"}, {"man", "vrouw"}),
    *({"present", "absent"}, {"positive", "negative"}, {"on", "off"}, {"urban", "rural"}),
)
"""Pairs of opposite labels, with no value between them."""


_SIGN = re.compile(r"\)?\s*[.:=)–-]+\s*(?=\S)")
"""Text between a code and its label."""


def bare(code: str, labels: Mapping[str, str]) -> str:
    """Return the label of a code without a leading code, as in ``1. Yes``."""
    label, own = labels.get(code, "").strip(), code.lstrip("0")
    for whole in dict.fromkeys((label.removeprefix("("), label)):
        rest = whole.lstrip("0")
        if rest.startswith(own) and (own or rest != whole) and (sign := _SIGN.match(rest, len(own))):
            return rest[sign.end() :]
    return label


def is_value(code: str, labels: Mapping[str, str]) -> bool:
    """Return whether a code is a value of the scale, judged by its label. Files do not always declare the other codes
    as missing.
    """
    return _NOT_A_VALUE.search(bare(code, labels)) is None


def kinds_not_amounts(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether the codes are two whole numbers in sequence, or the labels name categories.

    Many programs write the measure "scale" for any number. Labels at the two ends of a true scale leave room between
    them, and labels of amounts are numbers or number words.
    """
    whole = sorted(int(code) for code in codes if _WHOLE.fullmatch(code))
    if len(codes) == len(whole) == 2 and whole[1] == whole[0] + 1:
        return True
    return len(codes) > 2 and not any(_AMOUNT.search(bare(code, labels)) for code in codes)


def _names_kind(code: str, labels: Mapping[str, str]) -> bool:
    """Return whether the code has a label that names no amount."""
    label = bare(code, labels)
    return bool(label) and not _AMOUNT.search(label)


def span_of(codes: Sequence[str]) -> tuple[str, tuple[str, str]] | None:
    """Return the only code that is a range of numbers, such as ``0-97`` next to ``99``, and its ends; otherwise `None`.

    Several such codes are groups.
    """
    found = [(code, (span[1], span[2])) for code in codes if len(code) < 50 and (span := _SPAN.fullmatch(code))]
    others = [code for code in codes if NUMBER.fullmatch(code)]
    if len(found) != 1 or len(others) != len(codes) - 1 or len(others) > MOST_OTHERS:
        return None
    low, high = found[0][1]
    return found[0] if float(high) - float(low) >= WIDE else None


def declares_all(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether the labelled codes are clearly a complete list.

    These are complete lists: codes that are text; two opposites, such as yes and no; whole numbers in sequence from 0
    or 1, or at least `FEW` in sequence near zero; at least `FEW` in equal steps of 10 or 100 from the first such
    number; at least `SEVERAL` that fill a quarter of their range, such as state codes; at least `MANY` that all have a
    label, such as occupation codes; at least `SEVERAL` unevenly spaced ones, such as country codes, whose labels name
    categories.

    Codes of missing answers are ignored, as are codes such as ``96 = other`` after a sequence of at least `FEW`.

    Labels on only some codes declare no domain: ``0 = never`` and ``90 = 90 or more`` do not declare the values between
    them, and neither do labels on the ends of a scale.
    """
    named = [code for code in codes if is_value(code, labels)]
    if len(codes) < 2 or not named:
        return False
    if not all(NUMBER.fullmatch(code) for code in named):
        return True
    numbers = [code for code in codes if NUMBER.fullmatch(code)]
    return len(named) > 1 and any(_complete(listed, labels) for listed in (named, numbers))


def _complete(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    scale = sorted(float(code) for code in codes)
    if not all(map(float.is_integer, scale)):
        return False
    if _in_sequence(scale) or _opposite([bare(code, labels) for code in codes]):
        return True
    step, first = scale[1] - scale[0], scale[0]
    rounds = len(scale) >= FEW and step == first in (10, 100) and _in_sequence([x / step for x in scale])
    dense = len(scale) >= SEVERAL and scale[-1] - scale[0] < 4 * len(scale)
    many = len(scale) >= MANY and all(labels.get(code) for code in codes)
    # labelled points on a scale are evenly spaced
    steps = {after - before for before, after in itertools.pairwise(scale)}
    kinds = len(scale) >= SEVERAL and len(steps) > 1 and all(_names_kind(code, labels) for code in codes)
    return rounds or dense or many or kinds or _sequence_and_others(codes, labels)


def _in_sequence(scale: Sequence[float]) -> bool:
    follow = scale[-1] - scale[0] == len(scale) - 1 == len(set(scale)) - 1
    return follow and (scale[0] in (0, 1) or (len(scale) >= FEW and abs(scale[0]) < 10))


def _opposite(labels: Sequence[str]) -> bool:
    folded = {label.strip().casefold() for label in labels}
    return len(labels) == 2 and (no_yes(labels) is not None or folded in _PAIRS)


def _sequence_and_others(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether only special codes follow a sequence. A code whose label contains digits, as in "97 or more", is a
    value.
    """
    special = {
        float(code)
        for code in codes
        if _SPECIAL.fullmatch(f"{float(code):.0f}") and not any(c.isdigit() for c in bare(code, labels) or "0")
    }
    numbers = {float(code) for code in codes}
    run = sorted(numbers)
    while run and run[-1] in special and run[-1] - 1 not in numbers:
        run.pop()
    while run and run[0] < 0 and run[0] in special:
        run.pop(0)
    return FEW <= len(run) < len(codes) and _in_sequence(run)
