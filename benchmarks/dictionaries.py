"""Columns of public dictionaries that need no edit, for each blind set, and the reason why other columns need one.

Run: ``python -m benchmarks.dictionaries [SET]``. Files from a package are left out if the package is not installed.
"""

from __future__ import annotations

import argparse

from tests.support.dictionary_files import BLIND, blind_sets, edits, expected, format_of, place


def report(blind: str) -> None:
    """Print the share of one set, by format, and each column that needs an edit."""
    totals: dict[str, list[int]] = {}
    for name, listed in expected(blind).items():
        if place(name, BLIND / blind) is None:
            print(f"{name}: not on this machine")
            continue
        wrong = edits(blind, name)
        for key in (format_of(name), "all"):
            files, columns, right = totals.get(key, [0, 0, 0])
            totals[key] = [files + 1, columns + len(listed), right + len(listed) - len(wrong)]
        for column, (wanted, found) in wrong.items():
            print(f"{name}, {column}: expected {wanted}, found {found}")
    for key, (files, columns, right) in totals.items():
        print(f"{blind}: {key}: {files} files, {columns} columns, {right} need no edit ({right / columns:.1%})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", nargs="?", choices=blind_sets())
    chosen = parser.parse_args().set
    for each in [chosen] if chosen else blind_sets():
        report(each)
