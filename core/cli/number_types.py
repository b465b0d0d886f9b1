"""Numbers given on a command line; bad ones are refused with a clear message."""

from __future__ import annotations

import argparse


def whole(text: str) -> int:
    """A whole number from 1 on."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return value


def number(text: str) -> float:
    """Any number, with a decimal point."""
    try:
        return float(text)
    except ValueError:
        hint = f"; write {text.replace(',', '.')}" if text.count(",") == 1 and "." not in text else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a number{hint}") from None
