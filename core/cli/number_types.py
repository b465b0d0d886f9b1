"""Number types for the command line, which refuse bad input with a clear message."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole(text: str) -> int:
    """Return a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return value


def number(text: str) -> float:
    """Return a number written with a decimal point."""
    try:
        return float(text)
    except ValueError:
        hint = f"; write {text.replace(',', '.')}" if text.count(",") == 1 and "." not in text else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a number{hint}") from None


def between(low: float, high: float) -> Callable[[str], float]:
    """Return a type for numbers above ``low`` and below ``high``. If ``high`` is below 1, it is also allowed."""

    def read(text: str) -> float:
        value = number(text)
        if not low < value < 1 or value > high:
            raise argparse.ArgumentTypeError(f"{text} is not accepted; give a number between {low:g} and {high:g}")
        return value

    return read
